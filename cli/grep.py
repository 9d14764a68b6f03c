"""`sealog grep`: events that hold a text."""

from __future__ import annotations

import re
import sys
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from ..storage.errors import FormatError, SessionDeletedError, SessionNotFoundError
from .app import DAMAGE, ERROR, LOOK, OK, PARTLY, command, exit_code
from .options import JsonOption, SessionsArgument, StoreOption, open_for_reading
from .output import clean, json_text, out, painted, print_json, warn
from .progress import new_progress
from .transcript import style_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console

    from ..actors.store import Store
    from ..storage.events import Event

_AROUND_CHARS: Final = 100
_MATCH_CHARS: Final = 300


class Match(msgspec.Struct, frozen=True):
    """A line of an event that matches.

    Args:
        field: `text` or `data`.
        line: which line of it, from 1; data are one line.
        before: what stands before the match in that line.
        match: what matches first in that line.
        after: what stands behind it.
    """

    field: str
    line: int
    before: str
    match: str
    after: str


class Wanted(msgspec.Struct):
    """What is asked for.

    Args:
        find: finds a pattern in a text, from an offset.
        kinds: of events; all if empty.
        context: how many events to show before and after.
        most: how many matching events of each session; None for all.
        count: print numbers only.
        names: print ids only.
    """

    find: Callable[[str, int], re.Match[str] | None]
    kinds: frozenset[str] = frozenset()
    context: int = 0
    most: int | None = None
    count: bool = False
    names: bool = False


PatternArgument = Annotated[
    str, typer.Argument(metavar="PATTERN", help="What to look for.", show_default=False)
]

IgnoreCaseOption = Annotated[bool, typer.Option("--ignore-case", "-i", help="Take A for a.")]

FixedOption = Annotated[bool, typer.Option("--fixed-strings", "-F", help="The pattern is plain text.")]

KindOption = Annotated[
    list[str] | None,
    typer.Option("--kind", "-k", metavar="KIND", show_default=False, help="Only events of this kind."),
]

ContextOption = Annotated[
    int, typer.Option("--context", "-C", min=0, metavar="N", help="Show N events around each match.")
]

MostOption = Annotated[
    int | None,
    typer.Option(
        "--max-count", "-m", min=1, metavar="N", show_default=False, help="Stop after N in a session."
    ),
]

CountOption = Annotated[
    bool, typer.Option("--count", "-c", help="Print how many events match in each session.")
]

NamesOption = Annotated[
    bool, typer.Option("--sessions-with-matches", "-l", help="Print ids of sessions only.")
]


@command("grep", LOOK)
def grep(  # noqa: PLR0913 — a parameter for each option
    pattern: PatternArgument,
    store: StoreOption,
    sessions: SessionsArgument = None,
    *,
    ignore_case: IgnoreCaseOption = False,
    fixed: FixedOption = False,
    kind: KindOption = None,
    context: ContextOption = 0,
    most: MostOption = None,
    count: CountOption = False,
    names: NamesOption = False,
    json: JsonOption = False,
) -> None:
    """Search texts and data of events for a pattern.

    The pattern is a regular expression of Python. It is looked for in the text of each event, line by
    line or over several, and in its data as one line of JSON. What is printed is session, position, kind
    and the line that matches, long ones cut around the match. Files that are attached are not searched.

    Exits with 3 if nothing matches, with 1 if a session is damaged; the others are searched all the same.

    Examples:
        sealog grep -i 'timed? out'
        sealog grep -C 2 -k tool-error . job-17
        sealog grep -c -F 'rm -rf' --json
    """
    wanted = Wanted(
        _finder(pattern, ignore_case=ignore_case, fixed=fixed),
        frozenset(kind or ()),
        context,
        1 if names else most,
        count,
        names,
    )
    printer = _Printer(wanted, json=json)
    worst = OK
    with open_for_reading(store) as opened, new_progress(prints_meanwhile=True) as bar:
        for session_id in bar.track(sessions or opened.session_ids(), description="searching"):
            try:
                _search(opened, session_id, wanted, printer)
            except (SessionNotFoundError, SessionDeletedError):
                if sessions:
                    raise  # else it was deleted meanwhile
            except (FormatError, OSError) as error:
                if isinstance(error, BrokenPipeError):
                    raise
                warn(f"{session_id}: {error}")
                worst = DAMAGE if DAMAGE in (worst, exit_code(error)) else ERROR
    if worst != OK:
        raise typer.Exit(worst)
    if not printer.found:
        raise typer.Exit(PARTLY)


def _finder(pattern: str, *, ignore_case: bool, fixed: bool) -> Callable[[str, int], re.Match[str] | None]:
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else re.NOFLAG)
    try:
        return re.compile(re.escape(pattern) if fixed else pattern, flags).search
    except (re.error, RecursionError, OverflowError) as error:
        msg = f"{clean(pattern)!r} is no regular expression: {error}; -F takes it as plain text"
        raise typer.BadParameter(msg, param_hint="PATTERN") from None


def _search(store: Store, session_id: str, wanted: Wanted, printer: _Printer) -> None:
    printer.begin(session_id)
    before: deque[tuple[int, Event]] = deque(maxlen=wanted.context)
    after = matching = 0
    with store.open_session(session_id) as session:
        for position, event in enumerate(session.events()):
            found: list[Match] = []
            more = wanted.most is None or matching < wanted.most
            if more and (not wanted.kinds or event.kind in wanted.kinds):
                found = list(_matches(event, wanted.find, first=wanted.count or wanted.names))
            if found:
                matching += 1
                printer.matched(before, position, event, found)
                before.clear()
                after = wanted.context
            elif after:
                after -= 1
                printer.around(position, event)
            elif not more:
                break
            else:
                before.append((position, event))
    printer.end(matching)


def _matches(
    event: Event, find: Callable[[str, int], re.Match[str] | None], *, first: bool
) -> Iterator[Match]:
    text, at, line = event.text, 0, 1
    while at <= len(text):
        match = find(text, at)
        if match is None:
            break
        line += text.count("\n", at, match.start())
        begin = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        yield Match("text", line, text[begin : match.start()], match[0], text[match.end() : end])
        if first:
            return
        line += text.count("\n", match.start(), end) + 1
        at = end + 1
    if event.data is not None:
        data = json_text(event.data)
        match = find(data, 0)
        if match is not None:
            yield Match("data", 1, data[: match.start()], match[0], data[match.end() :])


class _Printer:
    """Prints what was found, as text or as JSON."""

    def __init__(self, wanted: Wanted, *, json: bool) -> None:
        self.found = False
        self._wanted = wanted
        self._json = json
        self._console = out()
        self._session_id = ""
        self._last: tuple[str, int] | None = None

    def begin(self, session_id: str) -> None:
        self._session_id = session_id

    def matched(
        self, before: Iterable[tuple[int, Event]], position: int, event: Event, found: list[Match]
    ) -> None:
        self.found = True
        if self._wanted.count or self._wanted.names:
            return
        for at, other in before:
            self.around(at, other)
        for match in found:
            self._line(position, event, match)

    def around(self, position: int, event: Event) -> None:
        if not (self._wanted.count or self._wanted.names):
            self._line(position, event, None)

    def end(self, matching: int) -> None:
        if self._wanted.names:
            if matching:
                name = {"session_id": self._session_id}
                print_json(name) if self._json else sys.stdout.write(f"{self._session_id}\n")
        elif self._wanted.count:
            line = {"session_id": self._session_id, "matching": matching}
            print_json(line) if self._json else sys.stdout.write(f"{self._session_id}: {matching}\n")

    def _line(self, position: int, event: Event, match: Match | None) -> None:
        if self._json:
            fields: dict[str, Any] = {"session_id": self._session_id, "position": position}
            fields |= {"kind": event.kind, "at": event.at}
            fields |= {"text": event.text} if match is None else msgspec.to_builtins(match)
            print_json(fields)
            return
        here = (self._session_id, position)
        if self._wanted.context and self._last is not None and self._last not in (here, _before(here)):
            sys.stdout.write(painted(self._console, "--", "dim") + "\n")
        self._last = here
        sys.stdout.write(_text_line(self._console, here, event, match) + "\n")


def _before(here: tuple[str, int]) -> tuple[str, int]:
    return here[0], here[1] - 1


def _text_line(console: Console, here: tuple[str, int], event: Event, match: Match | None) -> str:
    separator = "-" if match is None else ":"
    place = f"{painted(console, here[0], 'cyan')}{separator}{painted(console, str(here[1]), 'green')}"
    head = f"{place}{separator}{painted(console, clean(event.kind), style_of(event.kind))}{separator} "
    if match is None:
        line = event.text[: 2 * _AROUND_CHARS + 1].split("\n", 1)[0]
        cut = "…" if len(line) < len(event.text) else ""
        return head + painted(console, clean(line[: 2 * _AROUND_CHARS]) + cut, "dim")
    before, after = match.before, match.after
    start = "…" if len(before) > _AROUND_CHARS else ""
    end = "…" if len(after) > _AROUND_CHARS else ""
    inner = match.match if len(match.match) <= _MATCH_CHARS else f"{match.match[:_MATCH_CHARS]}…"
    shown = painted(console, clean(inner), "bold red")
    if match.field == "data":
        head += painted(console, "data: ", "dim")
    return f"{head}{start}{clean(before[-_AROUND_CHARS:])}{shown}{clean(after[:_AROUND_CHARS])}{end}"
