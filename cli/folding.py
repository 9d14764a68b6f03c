"""Tool calls together with their results, from a stream of events: what `show` prints."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..projections.transcript import call_id_of
from ..storage.errors import SealogError
from ..storage.events import Event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Block", "fold"]

_WAITING_MAX: Final = 200
"""Events that are held back while a call has no result; one that comes later stands on its own."""
_WAITING_CHARS: Final = 8 * 1024 * 1024


class Block(msgspec.Struct):
    """An event, and if it is a tool call what it was answered.

    Args:
        position: of the event.
        event: the event.
        answers: position and event of each result.
        open: it is a call that has no result.
    """

    position: int
    event: Event
    answers: list[tuple[int, Event]] = []
    open: bool = False


def fold(events: Iterable[tuple[int, Event]]) -> Iterator[Block]:
    """Yield events in order, results with their calls; holds back no more than a few hundred events.

    Raises:
        Whatever reading raises; what was read before is yielded first.
    """
    folder = _Folder()
    try:
        for position, event in events:
            folder.add(position, event)
            yield from folder.ready()
    except (SealogError, OSError):
        yield from folder.waiting
        raise
    yield from folder.waiting


class _Folder:
    def __init__(self) -> None:
        self.waiting: deque[Block] = deque()
        self._chars = 0
        self._calls: dict[str, list[Block]] = {}

    def add(self, position: int, event: Event) -> None:
        self._chars += len(event.text)
        if event.kind in ("tool-result", "tool-error"):
            calls = self._calls.get(_call_id(event.data))
            if calls:
                # Without ids calls are answered in order; an id that is used again means the newest call.
                call = calls.pop(0 if not _call_id(event.data) else -1)
                call.answers.append((position, event))
                call.open = False
                return
        block = Block(position, event, open=event.kind == "tool-call")
        self.waiting.append(block)
        if block.open:
            self._calls.setdefault(_call_id(event.data), []).append(block)

    def ready(self) -> Iterator[Block]:
        while self.waiting and (not self.waiting[0].open or self._full()):
            block = self.waiting.popleft()
            self._chars -= len(block.event.text) + sum(len(event.text) for _, event in block.answers)
            if block.open:
                self._calls[_call_id(block.event.data)].remove(block)
            yield block

    def _full(self) -> bool:
        return len(self.waiting) > _WAITING_MAX or self._chars > _WAITING_CHARS


def _call_id(data: Any) -> str:
    return call_id_of(data) or ""
