"""`sealog ls`: the sessions of a store."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from .app import DAMAGE, LOOK, command
from .columns import Cell, Column, print_columns
from .options import JsonOption, StoreOption, open_for_reading
from .output import clean, out, print_json, size_text, time_text, warn
from .progress import new_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..actors.describing import SessionInfo

_STYLES: Final = {"ok": "green", "sealed": "cyan", "torn": "yellow", "damaged": "red", "failed": "red"}
_COLUMNS: Final = [
    Column("session"),
    Column("title", clip_to=12, drop=3),
    Column("events", right=True),
    Column("size", right=True, drop=1),
    Column("status"),
    Column("last activity (UTC)", drop=2),
]


class State(enum.StrEnum):
    """What `--status` takes."""

    OK = "ok"
    SEALED = "sealed"
    TORN = "torn"
    DAMAGED = "damaged"
    FAILED = "failed"


class Order(enum.StrEnum):
    """What `--sort` takes."""

    ID = "id"
    TITLE = "title"
    EVENTS = "events"
    SIZE = "size"
    STATUS = "status"
    ACTIVITY = "activity"
    CREATED = "created"


_SORT_KEYS: Final[dict[Order, Callable[[SessionInfo], str | int]]] = {
    Order.ID: lambda info: info.session_id,
    Order.TITLE: lambda info: info.labels.get("title", ""),
    Order.EVENTS: lambda info: -(info.events or 0),
    Order.SIZE: lambda info: -info.size_bytes,
    Order.STATUS: lambda info: list(_STYLES).index(state_of(info)),
    Order.ACTIVITY: lambda info: -(info.last_at or 0),
    Order.CREATED: lambda info: info.created_at or "",
}


@command("ls", LOOK)
def ls(
    store: StoreOption,
    *,
    sort: Annotated[
        Order,
        typer.Option(
            metavar="BY",
            help="id, title, events, size, status, activity or created. Numbers and activity: highest first.",
        ),
    ] = Order.ID,
    reverse: Annotated[bool, typer.Option("--reverse", "-r", help="The other way round.")] = False,
    status: Annotated[
        list[State] | None,
        typer.Option(
            metavar="STATUS",
            show_default=False,
            help="Only those that are ok, sealed, torn, damaged or failed. May be given several times.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the sessions of a store.

    The status is ok, sealed, torn, damaged or failed. torn is no damage: the next program that opens the
    session cuts off a write that a crash interrupted. damaged is what a look at the start and the end of a
    log shows; only verify looks at every byte.

    Exits with 1 if a listed session is damaged.

    Examples:
        sealog ls --sort activity
        sealog ls --status damaged --json
    """
    seen = _Seen()
    ordered = sort is not Order.ID or reverse
    with (
        open_for_reading(store) as opened,
        new_progress(prints_meanwhile=not ordered) as bar,
    ):
        task = bar.add_task("looking at sessions", total=None)
        wanted = set(status or State)
        found = (info for info in opened.overview() if state_of(info) in wanted)
        infos: Iterable[SessionInfo] = bar.track(found, task_id=task)
        if ordered:
            infos = sorted(infos, key=_SORT_KEYS[sort], reverse=reverse)
            bar.stop()
        _print(seen.note(infos), json=json)
        bar.stop()
        if not seen.count and not json:
            warn(f"no sessions in {opened.path}" if status is None else "no session has that status")
    for line in seen.reasons:
        if not json:
            warn(line)
    if seen.damaged:
        raise typer.Exit(DAMAGE)


class _Seen:
    """What passed by on its way to the printer."""

    def __init__(self) -> None:
        self.count = 0
        self.damaged = False
        self.reasons: list[str] = []

    def note(self, infos: Iterable[SessionInfo]) -> Iterator[SessionInfo]:
        for info in infos:
            self.count += 1
            self.damaged |= info.status in ("damaged", "failed")
            if info.reason is not None:
                self.reasons.append(f"{info.session_id}: {info.reason}")
            yield info


def state_of(info: SessionInfo) -> State:
    """Return the status of a session in one word."""
    return State.SEALED if info.sealed and info.status == "ok" else State(info.status)


def _print(infos: Iterable[SessionInfo], *, json: bool) -> None:
    if json:
        for info in infos:
            print_json(msgspec.to_builtins(info))
    else:
        print_columns(out(), _COLUMNS, map(_row, infos))


def _row(info: SessionInfo) -> list[Cell]:
    state = state_of(info)
    return [
        (info.session_id, ""),
        (clean(info.labels.get("title", "")), ""),
        ("-" if info.events is None else f"{info.events:,}", ""),
        (size_text(info.size_bytes), ""),
        (state.value, _STYLES[state.value]),
        (time_text(info.last_at), ""),
    ]
