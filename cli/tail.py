"""`sealog tail`: the end of a session, and what comes."""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from ..storage.errors import SessionSealedError
from .app import LOOK, command
from .options import JsonOption, SessionArgument, StoreOption, open_for_reading
from .output import flush_stdout, out, print_json, warn
from .transcript import print_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..actors.session import Session
    from ..storage.events import Event

_LOOK_S: Final = 1.0
"""How often it is looked whether somebody still reads the output."""


@command("tail", LOOK)
def tail(
    session: SessionArgument,
    store: StoreOption,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is appended, by whatever process.")
    ] = False,
    count: Annotated[
        int, typer.Option("--lines", "-n", min=0, metavar="N", help="Begin with the last N events.")
    ] = 10,
    full: Annotated[bool, typer.Option("--full", help="Whole texts and data.")] = False,
    json: JsonOption = False,
) -> None:
    """Show the end of a session and follow it.

    With -f it ends when the session is sealed, when the reader of its output goes away, or with Ctrl-C. It
    shows each event that is on disk once, in order; the program that appends is not slowed down by it.

    Examples:
        sealog tail -f job-17
        sealog tail -f -n 0 --json job-17 | my-monitor
    """
    console = out()
    with open_for_reading(store) as opened, opened.open_session(session) as found:
        length = len(found)
        start = max(length - count, 0)
        events: Iterable[tuple[int, Event]]
        events = _follow(found, start) if follow else enumerate(found.events(start, length), start)
        for position, event in events:
            if json:
                print_json({"position": position, **msgspec.structs.asdict(event)})
            else:
                print_event(console, position, event, full=full)


def _follow(session: Session, start: int) -> Iterator[tuple[int, Event]]:
    with session.subscribe(start) as subscription:
        while True:
            try:
                found = subscription.get(timeout=0)
            except TimeoutError:
                pass
            except SessionSealedError:
                flush_stdout()
                warn(f"{session.session_id}: sealed, there will be no more")
                return
            else:
                yield found
                continue
            sys.stdout.flush()
            if _reader_left():
                raise BrokenPipeError
            try:
                yield subscription.get(timeout=_LOOK_S)
            except (TimeoutError, SessionSealedError):
                continue


def _reader_left() -> bool:
    """Tell whether the program that reads the output has gone: nothing else says so before the next event."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))
    except (OSError, ValueError, AttributeError):  # no descriptor, or no poll there
        return False
