"""Following with `async for`: catch up, follow, end, be cancelled and go on."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

import sealog
import sealog.aio
from sealog import Event

from ..api.kit import Task as Thread
from ..process.child import Children
from .loops import Cancelled

if TYPE_CHECKING:
    from pathlib import Path

    from ..api.kit import Kit
    from .loops import Backend


def is_waiting(subscription: sealog.aio.Subscription) -> bool:
    """Tell whether a task has looked and found nothing."""
    wakeup: Any = subscription._bell.wakeup
    return wakeup is not None and bool(
        wakeup._event.statistics().tasks_waiting
        if hasattr(wakeup._event, "statistics")
        else wakeup._event._waiters
    )


def test_it_follows_while_others_append_and_ends_with_the_seal(
    loop: Backend, store: sealog.aio.Store
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        await session.append_many([Event("m", str(number)) for number in range(1500)])

        async def follow(start: int) -> list[tuple[int, str]]:
            return [(position, event.text) async for position, event in session.subscribe(start)]

        tasks = [loop.start(follow, start) for start in (0, 700, 1600)]
        for number in range(1500, 1700):
            await session.append("m", str(number))
        await session.seal()
        for task, start in zip(tasks, (0, 700, 1600), strict=True):
            assert await task.wait() == [(number, str(number)) for number in range(start, 1700)]

    loop.run(main)


def test_get_tells_of_the_seal_and_of_the_timeout(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        async with session.subscribe() as subscription:
            for timeout in (0, -1, 0.001):
                with pytest.raises(TimeoutError, match=r"'s'.*position 0"):
                    await subscription.get(timeout)
            task = loop.start(subscription.get)
            await loop.until(lambda: is_waiting(subscription))
            await session.seal()
            assert isinstance(await loop.outcome(task), sealog.SessionSealedError)
            with pytest.raises(StopAsyncIteration):
                await anext(subscription)

    loop.run(main)


@pytest.mark.parametrize("where", ["task", "thread"])
def test_a_close_from_elsewhere_ends_the_wait(loop: Backend, store: sealog.aio.Store, where: str) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        subscription = session.subscribe()

        async def follow() -> list[Any]:
            return [item async for item in subscription]

        task = loop.start(follow)
        await loop.until(lambda: is_waiting(subscription))
        if where == "task":
            subscription.close()
        else:
            threading.Thread(target=subscription.close).start()
        assert await task.wait() == []
        subscription.close()
        with pytest.raises(sealog.StoreClosedError):
            await subscription.get()
        await loop.until(lambda: session._session._slot.watchers == [])

    loop.run(main)


def test_the_end_of_the_store_or_of_the_session_ends_the_wait(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session, other = await store.create_session("s"), await store.create_session("t")
        subscriptions = [session.subscribe(), other.subscribe()]
        tasks = [loop.start(subscription.get) for subscription in subscriptions]
        await loop.until(lambda: all(map(is_waiting, subscriptions)))
        await store.delete_session("s")
        assert isinstance(await loop.outcome(tasks[0]), sealog.SessionDeletedError)
        await store.close()
        assert isinstance(await loop.outcome(tasks[1]), sealog.StoreClosedError)

    loop.run(main)


def test_a_wait_that_was_cancelled_loses_nothing(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        subscription = session.subscribe()
        seen: list[str] = []
        for number in range(100):
            task = loop.start(subscription.get)
            for _ in range(number % 5):
                await loop.step()
            if number % 3 == 0:
                await session.append("m", str(number // 3))
            task.cancel()
            outcome = await loop.outcome(task)
            if not isinstance(outcome, Cancelled):
                seen.append(outcome[1].text)
        while len(seen) < 34:
            seen.append((await subscription.get(60))[1].text)
        assert seen == [str(number) for number in range(34)]

    loop.run(main)


def test_a_second_task_is_refused(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        subscription = session.subscribe()
        task = loop.start(subscription.get)
        await loop.until(lambda: is_waiting(subscription))
        with pytest.raises(RuntimeError, match="another task"):
            await subscription.get(0)
        await session.append("m", "0")
        assert (await task.wait())[0] == 0

    loop.run(main)


def test_one_that_is_dropped_is_forgotten(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        await session.append("m", "0")
        for _ in range(10):
            async for _ in session.subscribe():
                break
        gc.collect()
        assert session._session._slot.watchers == []

    loop.run(main)


def test_a_busy_loop_is_called_once_for_many_events(
    asyncio_loop: Backend, store: sealog.aio.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        async with session.subscribe() as subscription:
            task = asyncio_loop.start(subscription.get)
            await asyncio_loop.until(lambda: is_waiting(subscription))
            running, calls = asyncio.get_running_loop(), list[Any]()
            call_soon = running.call_soon_threadsafe
            monkeypatch.setattr(
                running, "call_soon_threadsafe", lambda *call: (calls.append(call), call_soon(*call))
            )
            blocking = store.blocking.open_session("s")
            Thread(lambda: [blocking.append("m", str(number)) for number in range(100)]).result()
            assert len(calls) == 1
            assert (await task.wait())[0] == 0
            assert [(await subscription.get())[0] for _ in range(99)] == list(range(1, 100))

    asyncio_loop.run(main)


def test_it_follows_another_process(loop: Backend, tmp_path: Path) -> None:
    sealog.open(tmp_path / "store").close()
    children = Children(tmp_path / "store")
    child = children.start("""
        with sealog.open(path) as store:
            session = store.create_session("s")
            say("made")
            for number in range(20):
                hear()
                session.append("m", str(number))
            hear()
            session.seal()
        say("done")
    """)
    assert child.hear() == "made"

    async def main() -> None:
        async with await sealog.aio.open(tmp_path / "store", read_only=True) as store:
            session = await store.open_session("s")
            child.say("")
            seen: list[str] = []
            async with session.subscribe() as subscription:
                async for _, event in subscription:
                    seen.append(event.text)
                    child.say("")
            assert seen == [str(number) for number in range(20)]

    try:
        loop.run(main)
        assert child.hear() == "done"
        child.end()
    finally:
        child.close()


def test_one_that_is_used_outlives_its_handle(loop: Backend, kit: Kit, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        await session.append("m", "0")
        subscription = session.subscribe()
        session.close()
        assert (await subscription.get())[1].text == "0"
        subscription.close()

    loop.run(main)
