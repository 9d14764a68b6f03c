"""What coroutines need of their event loop: to be woken from other threads, and to have calls made in one.

asyncio comes with the standard library; trio is used when it is what runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

T = TypeVar("T")

TAKE_ITEMS: Final = 256
TAKE_S: Final = 0.01
"""How long a step of an iteration reads ahead: large items take longer, so this bounds their memory too."""


class Wakeup(Protocol):
    """An event that any thread can set and one task waits for."""

    def set(self) -> None:
        """Wake the task, now or when it waits next; does nothing once the loop is closed."""
        ...

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait to be set; False if the time ran out."""
        ...

    async def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Wait until something is true, being woken whenever that may have changed; not to be cancelled."""
        ...


def new_wakeup() -> Wakeup:
    """Return a wake-up for the running loop."""
    return _TrioWakeup() if _on_trio() else _AsyncioWakeup()


async def run_in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """Make a blocking call on a worker thread.

    A cancellation goes on at once if no thread has taken the call yet, which is not made then, and else when
    the call has ended.
    """
    if _on_trio():
        import trio  # noqa: PLC0415 — only where it runs

        return await trio.to_thread.run_sync(call, *arguments)
    return await _run_on_asyncio(partial(call, *arguments), withdraw=True)


async def finish_in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """Make a blocking call on a worker thread, also in a task that is cancelled already: for cleaning up."""
    if _on_trio():
        import trio  # noqa: PLC0415 — only where it runs

        with trio.CancelScope(shield=True):
            return await trio.to_thread.run_sync(call, *arguments)
    return await _run_on_asyncio(partial(call, *arguments), withdraw=False)


async def _run_on_asyncio(call: Callable[[], T], *, withdraw: bool) -> T:
    # Not a task, which a loop that shuts down would cancel under the one that waits for it.
    claim = threading.Lock()  # taken once: by the thread that makes the call, or by the cancellation

    def claimed_call() -> T:
        if not claim.acquire(blocking=False):
            raise asyncio.CancelledError  # its future is cancelled already
        return call()

    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(None, contextvars.copy_context().run, claimed_call)
    try:
        await asyncio.wait([future])
    except asyncio.CancelledError:
        if withdraw and claim.acquire(blocking=False):
            future.cancel()
            raise
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        if not future.cancelled():
            future.exception()  # looked at, so that the loop does not complain
        raise
    except GeneratorExit:  # the loop was closed: nobody can wait for it any more
        claim.acquire(blocking=False)
        with contextlib.suppress(RuntimeError):
            future.cancel()
        raise
    return future.result()


class InThread(Generic[T]):
    """An async iterator that takes a blocking iterator's items on worker threads, a few at a time.

    A step that is cancelled, or that comes to an error, loses none of the items it has read.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._taken: deque[T] = deque()
        self._error: Exception | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if not self._taken:
            await run_in_thread(self._take)
        if self._taken:
            return self._taken.popleft()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        raise StopAsyncIteration

    def _take(self) -> None:
        if self._error is not None:
            return
        end = time.monotonic() + TAKE_S
        try:
            for item in self._items:
                self._taken.append(item)
                if len(self._taken) == TAKE_ITEMS or time.monotonic() >= end:
                    return
        except Exception as error:  # noqa: BLE001 — raised behind the items before it
            self._error = error


def _on_trio() -> bool:
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except (AttributeError, RuntimeError):  # another thread may be importing it
        return False
    return True


class _AsyncioWakeup:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._ringing = False

    def set(self) -> None:
        if not self._ringing:  # a loop that is busy gets one callback, however often it is called
            self._ringing = True
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        self._ringing = False  # first: whoever comes from now on calls again
        self._event.set()

    async def wait(self, timeout_s: float | None = None) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    async def wait_until(self, is_true: Callable[[], bool]) -> None:
        while not is_true():
            with contextlib.suppress(asyncio.CancelledError):
                await self.wait()


class _TrioWakeup:
    def __init__(self) -> None:
        import trio  # noqa: PLC0415 — only where it runs

        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()
        self._event = trio.Event()
        self._ringing = False

    def set(self) -> None:
        if not self._ringing:
            self._ringing = True
            with contextlib.suppress(self._trio.RunFinishedError):
                self._token.run_sync_soon(self._set)

    def _set(self) -> None:
        self._ringing = False
        self._event.set()

    async def wait(self, timeout_s: float | None = None) -> bool:
        with self._trio.move_on_after(float("inf") if timeout_s is None else max(timeout_s, 0)):
            await self._event.wait()
            self._event = self._trio.Event()
            return True
        return False

    async def wait_until(self, is_true: Callable[[], bool]) -> None:
        with self._trio.CancelScope(shield=True):
            while not is_true():
                await self.wait()


def remaining_s(deadline: float | None) -> float | None:
    """Return how much time is left until a `time.monotonic` deadline."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())  # 0 first: NaN loses
