"""Following a session: what is there, then what comes."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

from ..storage.errors import SessionDeletedError, SessionSealedError, StoreClosedError
from .requests import Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Self

    from ..storage.events import Event
    from ..storage.format import Head, Receipt
    from ..storage.reader import LogReader, LogView
    from .mailbox import Wakeable
    from .runtime import Runtime
    from .slot import Slot

POLL_S: Final = 0.1
"""How often a session that another process may own is looked at."""


class Follower:
    """The position of one subscription, without the waiting: that is up to threads or coroutines.

    Args:
        runtime: of the store.
        slot: the session.
        start: the first position.
        signal: set when there may be more.
    """

    def __init__(self, runtime: Runtime, slot: Slot, start: int, signal: Wakeable) -> None:
        self.position = start
        self.session_id = slot.session_id
        self._runtime = runtime
        self._slot = slot
        self._signal = signal
        self._buffer: list[Event] = []
        self._taken = 0
        self._reader: LogReader | None = None
        self._closed = False
        slot.watchers.append(signal)

    @property
    def poll_s(self) -> float | None:
        """How long to wait for the signal before looking again: None for as long as it takes."""
        return None if self._slot.is_open else POLL_S

    def take(self) -> tuple[int, Event] | None:
        """Return the next event that has been read; None if `fill` has to be called.

        Raises:
            StoreClosedError: the subscription was closed.
        """
        if self._closed:
            raise StoreClosedError(self._runtime.path, "is open, but this subscription was closed")
        if self._taken == len(self._buffer):
            return None
        event = self._buffer[self._taken]
        self._taken += 1
        self.position += 1
        return self.position - 1, event

    def fill(self) -> bool:
        """Read the next events, if there are some; True if there are.

        Raises:
            SessionSealedError: there will never be more.
            StoreClosedError: the store was closed.
            SessionDeletedError: the session was deleted.
            CorruptionError: the next event is damaged.
        """
        self._runtime.check()
        if not self._slot.is_open:
            reader = self._follow()
            if not self._slot.is_open:
                return self._read(reader.view, reader.head, reader.receipt)
            # an owner has come meanwhile, whose commit in flight the reader could have seen
        self._drop_reader()
        with self._slot.reading() as (view, head, receipt, _):
            return self._read(view, head, receipt)

    def _read(self, view: LogView, head: Head, receipt: Receipt | None) -> bool:
        self._taken = 0
        self._buffer = []
        if self.position < head.position:
            self._buffer = view.some_events(self.position, head)
        if not self._buffer and receipt is not None:
            raise SessionSealedError(self.session_id)
        return bool(self._buffer)

    def _follow(self) -> LogReader:
        """Return a reader of a session that is not open here, up to date."""
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
        """Stop following; whoever waits is woken."""
        self._closed = True
        with contextlib.suppress(ValueError):  # closed before, perhaps by another thread just now
            self._slot.watchers.remove(self._signal)
        self._signal.set()

    def release(self) -> None:
        """Close, and give up the files. Only by the one that reads."""
        self.close()
        self._drop_reader()


class Subscription:
    """An iterator over `(position, event)`: catches up from `start`, then waits for what is appended.

    It shows durable events only, each once and in order. Iteration ends when the session is sealed and read
    to its end, or the subscription or the store is closed. For one thread at a time; `close` from any.
    """

    def __init__(self, follow: Callable[[Wakeable], Follower]) -> None:
        self._signal = Signal()
        self._follower = follow(self._signal)

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
            return self.get()
        except (SessionSealedError, StoreClosedError):
            raise StopIteration from None

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
        follower = self._follower
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            found = follower.take()
            if found is not None:
                return found
            if follower.fill():
                continue
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and not remaining > 0:  # NaN too
                place = f"session {follower.session_id!r}: no event at position {follower.position}"
                msg = f"{place} within {timeout} s"
                raise TimeoutError(msg)
            waits = [wait_s for wait_s in (follower.poll_s, remaining) if wait_s is not None]
            self._signal.wait(min(waits) if waits else None)

    def close(self) -> None:
        """Stop following; a thread that waits in it returns."""
        self._follower.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._follower.release()

    def __del__(self) -> None:
        follower = getattr(self, "_follower", None)
        if follower is not None:
            follower.release()
