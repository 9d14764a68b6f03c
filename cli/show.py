"""`sealog show`: a session as a transcript."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from .app import LOOK, command
from .folding import fold
from .options import JsonOption, SessionArgument, StoreOption, open_for_reading
from .output import clean, out, painted, plural, print_json
from .transcript import print_block, print_raw

if TYPE_CHECKING:
    from rich.console import Console

    from ..actors.session import Session


@command("show", LOOK)
def show(
    session: SessionArgument,
    store: StoreOption,
    *,
    start: Annotated[int, typer.Option("--from", min=0, help="First position.", metavar="N")] = 0,
    last: Annotated[
        int | None,
        typer.Option(
            "--to",
            min=0,
            help="Last position, shown too; the end if left out.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    tail: Annotated[
        int | None,
        typer.Option("--tail", "-n", min=0, help="Only the last N events.", metavar="N", show_default=False),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Whole texts and data.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Events one by one as they are stored: whole, nothing folded.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show a session as a transcript: what was said and done, the results of tools below their calls.

    Each event has its position, its kind and its time. Long texts are cut short unless --full is given. Of
    imported records the text is shown; --raw shows everything that is stored. JSON is always whole, with
    bytes as {"base64": …}. Control characters are shown as escapes.

    Examples:
        sealog show job-17 --tail 20
        sealog show job-17 --from 40 --to 60 --full
        sealog show job-17 --json | jq -r 'select(.kind == "user-message").text'
    """
    with open_for_reading(store) as opened, opened.open_session(session) as found:
        count = len(found)
        if tail is not None:
            start = max(start, count - tail)
        stop = count if last is None else min(last + 1, count)
        events = enumerate(found.events(start, stop), start)
        if json:
            for position, event in events:
                print_json({"position": position, **msgspec.structs.asdict(event)})
            return
        console = out()
        _print_heading(console, found, count)
        if raw:
            for position, event in events:
                print_raw(console, position, event)
            return
        for block in fold(events):
            print_block(console, block, full=full, at_end=stop == count)


def _print_heading(console: Console, session: Session, count: int) -> None:
    header, sealed = session.header, ", sealed" if session.is_sealed else ""
    line = f"{header.session_id}: {plural(count, 'event')}{sealed}, created {header.created_at}"
    sys.stdout.write(painted(console, clean(line), "bold") + "\n")
    for name, value in header.labels.items():
        sys.stdout.write(painted(console, clean(f"{name}: {value}"), "dim") + "\n")
