"""Following a session in coroutines: the waiting half of `subscription`, with `await`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..storage.errors import SessionSealedError, StoreClosedError
from .event_loop import new_wakeup, remaining_s, run_in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType
    from typing import Self

    from ..storage.events import Event
    from .event_loop import Wakeup
    from .readable import ReadableSession


class _Bell:
    """What a session rings when there may be more; heard by the task that waits, if one does."""

    __slots__ = ("wakeup",)

    def __init__(self) -> None:
        self.wakeup: Wakeup | None = None

    def set(self) -> None:
        """Wake the task."""
        wakeup = self.wakeup
        if wakeup is not None:
            wakeup.set()


class Subscription:
    """An async iterator over `(position, event)`, as `sealog.Subscription`. For one task at a time."""

    def __init__(self, session: ReadableSession, start: int) -> None:
        self._closed = False
        self._waited_for = False
        self._bell = _Bell()
        self._follower = session.follow(start, self._bell)

    def __aiter__(self) -> AsyncIterator[tuple[int, Event]]:
        return self

    async def __anext__(self) -> tuple[int, Event]:
        """Return the next event, waiting for it; ends as `sealog.Subscription` does."""
        try:
            return await self.get()
        except (SessionSealedError, StoreClosedError):
            raise StopAsyncIteration from None

    async def get(self, timeout: float | None = None) -> tuple[int, Event]:  # noqa: ASYNC109 — as blocking
        """Return the next event, as `sealog.Subscription.get`; a cancelled call loses none.

        Raises:
            RuntimeError: another task waits in it.
            Everything that `sealog.Subscription.get` raises.
        """
        if self._waited_for:
            msg = f"another task waits for session {self._follower.session_id!r} in this subscription"
            raise RuntimeError(msg)
        found = self._follower.take()
        if found is not None:
            return found
        self._waited_for = True
        try:
            return await self._wait(timeout)
        finally:
            self._waited_for = False
            self._bell.wakeup = None
            if self._closed:  # meanwhile, by somebody who could not give up files that were being read
                self._follower.release()

    async def _wait(self, timeout: float | None) -> tuple[int, Event]:  # noqa: ASYNC109 — as get
        deadline = None if timeout is None else time.monotonic() + timeout
        follower = self._follower
        wakeup = self._bell.wakeup = new_wakeup()
        while True:
            found = follower.take()
            if found is not None:
                return found
            if await run_in_thread(follower.fill):
                continue
            remaining = remaining_s(deadline)
            if remaining == 0:
                place = f"session {follower.session_id!r}: no event at position {follower.position}"
                msg = f"{place} within {timeout} s"
                raise TimeoutError(msg)
            waits = [wait_s for wait_s in (follower.poll_s, remaining) if wait_s is not None]
            await wakeup.wait(min(waits) if waits else None)

    def close(self) -> None:
        """Stop following; a task that waits in it returns. From any task or thread."""
        self._closed = True
        self._follower.close()
        if not self._waited_for:
            self._follower.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        follower = getattr(self, "_follower", None)
        if follower is not None:
            follower.release()
