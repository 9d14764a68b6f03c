"""`sealog stats`: numbers about a store, or about sessions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from ..storage.errors import FormatError
from .app import DAMAGE, LOOK, command
from .columns import Cell, Column, print_columns
from .ls import state_of
from .options import JsonOption, SessionsArgument, StoreOption, open_for_reading
from .output import clean, out, print_json, size_text, time_text, warn
from .progress import new_progress

if TYPE_CHECKING:
    from ..actors.store import Store


class StoreNumbers(msgspec.Struct):
    """What all sessions have together, at a glance.

    Args:
        store: its folder.
        sessions: how many.
        statuses: how many of each status.
        events: in sessions that can be read.
        size_bytes: of all logs.
        quarantine_bytes: of all that recovery has cut off and kept.
        largest: id of the session with the largest log.
        largest_bytes: of its log.
        last_at: time of the last event of all, ns since the epoch.
    """

    store: str
    sessions: int = 0
    statuses: dict[str, int] = {}
    events: int = 0
    size_bytes: int = 0
    quarantine_bytes: int = 0
    largest: str | None = None
    largest_bytes: int = 0
    last_at: int | None = None


class SessionNumbers(msgspec.Struct):
    """What a session consists of: every event was read for it.

    Args:
        session_id: the session.
        status: as `ls` shows it.
        events: how many.
        kinds: how many of each kind, most frequent first.
        text_chars: characters of all texts.
        longest_position: of the longest text.
        longest_chars: characters of that text.
        attachments: how many.
        attachment_bytes: of all attached files.
        size_bytes: of the log.
        first_at: time of the first event, ns since the epoch.
        last_at: time of the last event.
    """

    session_id: str
    status: str
    events: int = 0
    kinds: dict[str, int] = {}
    text_chars: int = 0
    longest_position: int | None = None
    longest_chars: int = 0
    attachments: int = 0
    attachment_bytes: int = 0
    size_bytes: int = 0
    first_at: int | None = None
    last_at: int | None = None


@command("stats", LOOK)
def stats(store: StoreOption, sessions: SessionsArgument = None, *, json: JsonOption = False) -> None:
    """Count sessions, events and bytes.

    Without ids: of the whole store, at a glance, without reading the logs through. With ids: of these
    sessions, also by kind of event, for which every event is read.

    Exits with 1 if a session is damaged.

    Examples:
        sealog stats
        sealog stats job-17 job-18 --json
    """
    damaged = False
    with open_for_reading(store) as opened:
        if not sessions:
            numbers = _of_store(opened)
            _print(numbers, json=json)
            damaged = bool(numbers.statuses.get("damaged") or numbers.statuses.get("failed"))
        for session_id in sessions or ():
            try:
                found = _of_session(opened, session_id)
            except FormatError as error:
                damaged = True
                warn(f"{session_id}: {error}")
            else:
                _print(found, json=json)
    if damaged:
        raise typer.Exit(DAMAGE)


def _of_store(store: Store) -> StoreNumbers:
    numbers = StoreNumbers(store.path)
    states: Counter[str] = Counter()
    with new_progress() as bar:
        task = bar.add_task("looking at sessions", total=None)
        for info in bar.track(store.overview(), task_id=task):
            numbers.sessions += 1
            states[state_of(info).value] += 1
            numbers.events += info.events or 0
            numbers.size_bytes += info.size_bytes
            numbers.quarantine_bytes += info.quarantine_bytes
            if info.size_bytes > numbers.largest_bytes:
                numbers.largest, numbers.largest_bytes = info.session_id, info.size_bytes
            if info.last_at is not None:
                numbers.last_at = max(info.last_at, numbers.last_at or info.last_at)
    numbers.statuses = dict(states.most_common())
    return numbers


def _of_session(store: Store, session_id: str) -> SessionNumbers:
    info = store.describe(session_id)
    numbers = SessionNumbers(session_id, state_of(info).value, size_bytes=info.size_bytes)
    kinds: Counter[str] = Counter()
    with store.open_session(session_id) as session, new_progress() as bar:
        events = session.events(0, len(session))
        for position, event in enumerate(bar.track(events, total=len(session), description="reading")):
            kinds[event.kind] += 1
            numbers.text_chars += len(event.text)
            if len(event.text) > numbers.longest_chars:
                numbers.longest_position, numbers.longest_chars = position, len(event.text)
            if event.kind == "attachment":
                numbers.attachments += 1
                numbers.attachment_bytes += _file_bytes(event.data)
            if numbers.first_at is None:
                numbers.first_at = event.at
            numbers.last_at = event.at
    numbers.events = kinds.total()
    numbers.kinds = dict(kinds.most_common())
    return numbers


def _file_bytes(data: Any) -> int:
    size = data.get("size_bytes") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return size if isinstance(size, int) else 0


def _print(numbers: StoreNumbers | SessionNumbers, *, json: bool) -> None:
    if json:
        print_json(msgspec.to_builtins(numbers))
        return
    rows = _store_rows(numbers) if isinstance(numbers, StoreNumbers) else _session_rows(numbers)
    cells: list[list[Cell]] = [[(clean(name), ""), (clean(value), "")] for name, value in rows]
    heading = numbers.store if isinstance(numbers, StoreNumbers) else numbers.session_id
    print_columns(out(), [Column(clean(heading)), Column("", right=True)], cells)


def _store_rows(numbers: StoreNumbers) -> list[tuple[str, str]]:
    rows = [("sessions", f"{numbers.sessions:,}")]
    rows += [(f"  {name}", f"{count:,}") for name, count in numbers.statuses.items()]
    rows += [("events", f"{numbers.events:,}"), ("logs", size_text(numbers.size_bytes))]
    rows += [("quarantine", size_text(numbers.quarantine_bytes))]
    if numbers.largest is not None:
        rows += [("largest log", numbers.largest), ("  size", size_text(numbers.largest_bytes))]
    return [*rows, ("last activity (UTC)", time_text(numbers.last_at))]


def _session_rows(numbers: SessionNumbers) -> list[tuple[str, str]]:
    rows = [("status", numbers.status), ("events", f"{numbers.events:,}")]
    rows += [(f"  {name}", f"{count:,}") for name, count in numbers.kinds.items()]
    rows += [("text", f"{numbers.text_chars:,} characters"), ("log", size_text(numbers.size_bytes))]
    if numbers.longest_position is not None:
        rows += [
            ("longest text", f"position {numbers.longest_position}, {numbers.longest_chars:,} characters")
        ]
    rows += [("attachments", f"{numbers.attachments:,} ({size_text(numbers.attachment_bytes)})")]
    return [
        *rows,
        ("first event (UTC)", time_text(numbers.first_at)),
        ("last activity (UTC)", time_text(numbers.last_at)),
    ]
