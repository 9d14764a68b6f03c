"""Following a session: what is there, then what comes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ..storage.errors import SessionDeletedError, SessionSealedError, StoreClosedError
from .requests import Signal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from ..storage.events import Event
    from ..storage.reader import LogReader
    from .runtime import Runtime
    from .slot import Slot

POLL_S: Final = 0.1
"""How often a session that another process may own is looked at."""
READ_EVENTS: Final = 1024


class Subscription:
    """An iterator over `(position, event)`: catches up from `start`, then waits for what is appended.

    It shows durable events only, each once and in order. Iteration ends when the session is sealed and read
    to its end, or the subscription or the store is closed. For one thread at a time; `close` from any.
    """

    def __init__(self, runtime: Runtime, slot: Slot, start: int) -> None:
        self._runtime = runtime
        self._slot = slot
        self._next = start
        self._signal = Signal()
        self._buffer: list[Event] = []
        self._buffered = 0
        self._reader: LogReader | None = None
        self._closed = False
        slot.watchers.append(self._signal)

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        return self

    def __next__(self) -> tuple[int, Event]:
        """Return the next event, waiting for it.

        Raises:
            StopIteration: sealed and read to the end, or closed.
            SessionDeletedError: the session was deleted.
            CorruptionError: the next event is damaged.
        """
        try:
            found = self._take(None)
        except (SessionSealedError, StoreClosedError):
            raise StopIteration from None
        if found is None:
            raise StopIteration
        return found

    def get(self, timeout: float | None = None) -> tuple[int, Event]:
        """Return the next event.

        Args:
            timeout: seconds to wait; None for ever.

        Raises:
            TimeoutError: nothing came in time.
            SessionSealedError: the session is sealed and everything was read.
            StoreClosedError: the subscription or the store was closed.
            SessionDeletedError: the session was deleted.
            CorruptionError: the next event is damaged.
        """
        found = self._take(timeout)
        if found is None:
            msg = f"session {self._slot.session_id!r}: no event at position {self._next} within {timeout} s"
            raise TimeoutError(msg)
        return found

    def _take(self, timeout_s: float | None) -> tuple[int, Event] | None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            if self._closed:
                raise StoreClosedError(self._runtime.path, "is open, but this subscription was closed")
            if self._buffered < len(self._buffer):
                event = self._buffer[self._buffered]
                self._buffered += 1
                self._next += 1
                return self._next - 1, event
            self._runtime.check()
            sealed = self._fill()
            if self._buffer:
                continue
            if sealed:
                raise SessionSealedError(self._slot.session_id)
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                return None
            # a session that is not open here may be appended to by another process
            poll_s = None if self._slot.is_open else POLL_S
            waits = [wait for wait in (poll_s, remaining) if wait is not None]
            self._signal.wait(min(waits) if waits else None)

    def _fill(self) -> bool:
        """Read the next events into the buffer; tell whether there will be no more after them."""
        self._buffer, self._buffered = [], 0
        slot = self._slot
        if slot.is_open:
            self._drop_reader()
            with slot.reading() as (view, head, receipt, _):
                stop = min(self._next + READ_EVENTS, head.position)
                if self._next < stop:
                    self._buffer = list(view.events(self._next, stop, head))
                return receipt is not None and stop >= head.position
        reader = self._follow()
        head, view = reader.head, reader.view
        stop = min(self._next + READ_EVENTS, head.position)
        if self._next < stop:
            self._buffer = list(view.events(self._next, stop, head))
        return reader.receipt is not None and stop >= head.position

    def _follow(self) -> LogReader:
        """Return a reader of a session that is not open here, up to date."""
        if self._slot.state == "deleted":
            raise self._slot.deleted_error()
        if self._reader is None:
            self._reader = self._slot.open_reader()
        else:
            try:
                self._reader.refresh()
            except SessionDeletedError:
                self._drop_reader()
                raise
        return self._reader

    def _drop_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def close(self) -> None:
        """Stop following; a thread that waits in it returns."""
        self._closed = True
        if self._signal in self._slot.watchers:
            self._slot.watchers.remove(self._signal)
        self._signal.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._drop_reader()

    def __del__(self) -> None:
        slot = getattr(self, "_slot", None)
        if slot is not None:
            self.close()
            self._drop_reader()
