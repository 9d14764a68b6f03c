"""One way to speak to asyncio and to trio: tasks that are started, cancelled and looked at."""

from __future__ import annotations

import asyncio
import contextlib
import time
import types
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..api.kit import SAFETY_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator


class Cancelled(Exception):  # noqa: N818 — an outcome
    """The outcome of a task that was cancelled."""


class Task:
    """A running call of an async function."""

    def cancel(self) -> None:
        """Cancel it; again each time."""
        raise NotImplementedError

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        raise NotImplementedError

    async def wait(self) -> Any:
        """Wait for its end; return its value, or raise what it raised, `Cancelled` if it was cancelled."""
        raise NotImplementedError


class Backend:
    """An event loop of some kind.

    Attributes:
        debug: look closely at what is done; slow with thousands of tasks.
    """

    name: ClassVar[str]
    debug = True

    def run(self, function: Any, *arguments: Any) -> Any:
        """Run an async function in a new loop."""
        raise NotImplementedError

    def start(self, function: Any, *arguments: Any) -> Task:
        """Start an async function in the running loop."""
        raise NotImplementedError

    async def step(self) -> None:
        """Let everything that can run do so once."""
        raise NotImplementedError

    async def until(self, condition: Callable[[], object], what: str = "it") -> None:
        """Let others run until something is so; fail if that never comes."""
        end = time.monotonic() + SAFETY_S
        while not condition():
            assert time.monotonic() < end, f"{what} never happened"
            await self.step()

    async def gather(self, *calls: tuple[Any, ...]) -> list[Any]:
        """Run many calls at once; return their values."""
        tasks = [self.start(*call) for call in calls]
        return [await task.wait() for task in tasks]

    async def outcome(self, task: Task) -> Any:
        """Wait for the end of a task; return its value or its error."""
        try:
            return await task.wait()
        except Exception as error:  # noqa: BLE001 — the test looks at it
            return error


class AsyncioTask(Task):
    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.task = asyncio.create_task(coroutine)

    def cancel(self) -> None:
        self.task.cancel()

    @property
    def done(self) -> bool:
        return self.task.done()

    async def wait(self) -> Any:
        await asyncio.wait([self.task])
        if self.task.cancelled():
            raise Cancelled
        return self.task.result()


class Asyncio(Backend):
    name = "asyncio"

    def run(self, function: Any, *arguments: Any) -> Any:
        complaints: list[Any] = []

        async def main() -> Any:
            loop = asyncio.get_running_loop()
            loop.slow_callback_duration = float("inf")
            loop.set_exception_handler(lambda _, context: complaints.append(context))
            return await function(*arguments)

        try:
            return asyncio.run(main(), debug=self.debug)
        finally:
            assert complaints == []

    def start(self, function: Any, *arguments: Any) -> Task:
        return AsyncioTask(function(*arguments))

    async def step(self) -> None:
        await asyncio.sleep(0)


class TrioTask(Task):
    def __init__(self, function: Any, arguments: tuple[Any, ...], nursery: Any) -> None:
        import trio

        self._value: Any = None
        self._error: BaseException | None = None
        self._done = trio.Event()
        self._scope = trio.CancelScope()
        nursery.start_soon(self._run, function, arguments)

    async def _run(self, function: Any, arguments: tuple[Any, ...]) -> None:
        with self._scope:
            try:
                self._value = await function(*arguments)
            except Exception as error:  # noqa: BLE001 — raised by `wait`
                self._error = error
        if self._scope.cancelled_caught:
            self._error = Cancelled()
        self._done.set()

    def cancel(self) -> None:
        self._scope.cancel()

    @property
    def done(self) -> bool:
        return self._done.is_set()

    async def wait(self) -> Any:
        await self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value


class Trio(Backend):
    name = "trio"

    def run(self, function: Any, *arguments: Any) -> Any:
        import trio

        async def main() -> Any:
            failed: Exception | None = None
            value = None
            async with trio.open_nursery() as self._nursery:
                try:
                    value = await function(*arguments)
                except Exception as error:  # noqa: BLE001 — raised below, not in a group
                    failed = error
                    self._nursery.cancel_scope.cancel()
            if failed is not None:
                raise failed
            return value

        return trio.run(main)

    def start(self, function: Any, *arguments: Any) -> Task:
        return TrioTask(function, arguments, self._nursery)

    async def step(self) -> None:
        import trio

        await trio.lowlevel.checkpoint()


BACKENDS: Final = (Asyncio, Trio)


class Steps:
    """Runs a coroutine and does something at chosen ones of its awaits that suspend it.

    Attributes:
        count: how often it was suspended.
    """

    def __init__(self, actions: dict[int, Callable[[], None]]) -> None:
        self.count = 0
        self._actions = actions

    async def run(self, awaitable: Awaitable[Any]) -> Any:
        """Run a coroutine to its end."""
        return await self._drive(awaitable.__await__())

    @types.coroutine
    def _drive(self, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        with contextlib.closing(inner):
            step, given = inner.send, None
            while True:
                try:
                    waited_for = step(given)
                except StopIteration as end:
                    return end.value
                action = self._actions.get(self.count)
                self.count += 1
                if action is not None:
                    action()
                try:
                    step, given = inner.send, (yield waited_for)
                except BaseException as error:  # noqa: BLE001 — thrown into the coroutine
                    step, given = inner.throw, error
