"""What coroutines need of their event loop: to be woken from other threads, and to have calls made in one.

asyncio comes with the standard library; trio is used when it is what runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


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
    """Make a blocking call on a worker thread; a cancellation goes on when it has ended."""
    if _on_trio():
        import trio  # noqa: PLC0415 — only where it runs

        return await trio.to_thread.run_sync(call, *arguments)
    task = asyncio.ensure_future(asyncio.to_thread(call, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, so that the loop does not complain
        raise


def _on_trio() -> bool:
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


class _AsyncioWakeup:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def set(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, timeout_s: float | None = None) -> bool:
        try:
            await asyncio.wait_for(self._event.wait(), timeout_s)
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

    def set(self) -> None:
        with contextlib.suppress(self._trio.RunFinishedError):
            self._token.run_sync_soon(self._set)

    def _set(self) -> None:
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
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)
