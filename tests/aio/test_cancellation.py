"""Cancelled before it was taken is absent; else the outcome is awaited, and the cancellation goes on.

Calls are cancelled at each of their awaits, once and at every pair of them, and at gates of the file system.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import pytest

import sealog
import sealog.aio
from sealog import Event
from sealog.actors.event_loop import finish_in_thread, run_in_thread
from sealog.actors.mailbox import MESSAGES_MAX

from ..api.kit import Gate
from .loops import Cancelled, Steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..api.kit import Kit
    from .loops import Backend, Task


async def arrived(gate: Gate) -> None:
    await run_in_thread(gate.wait_reached)


async def texts(session: sealog.aio.Session) -> list[str]:
    return [event.text async for event in session.events()]


async def cancelled_at(loop: Backend, call: Callable[[], Any], steps: tuple[int, ...]) -> tuple[Any, int]:
    """Run a call that is cancelled at some of its awaits; return its outcome and how many it had."""
    running: list[Task] = []

    def cancel() -> None:
        running[0].cancel()

    driver = Steps(dict.fromkeys(steps, cancel))

    async def run() -> Any:
        return await driver.run(call())

    running.append(loop.start(run))
    return await loop.outcome(running[0]), driver.count


async def at_every_await(loop: Backend, attempt: Callable[[tuple[int, ...]], Any]) -> None:
    """Attempt a call with a cancellation at each await it has, and at each two of them."""
    for step in itertools.count():
        if await attempt((step,)) <= step:
            break
        assert step < 100
        for second in range(step + 1, step + 3):
            await attempt((step, second))


APPENDS: dict[str, Callable[[sealog.aio.Session, str], Any]] = {
    "append": lambda session, text: session.append("m", text),
    "append-with-timeout": lambda session, text: session.append("m", text, timeout=60),
    "append_many": lambda session, text: session.append_many([Event("m", text), Event("m", text)]),
    "attach": lambda session, text: session.attach(text.encode(), file_name="a", text=text),
}


@pytest.mark.parametrize("name", APPENDS)
def test_an_append_that_is_cancelled_anywhere_is_there_or_not_when_it_ends(
    loop: Backend, store: sealog.aio.Store, name: str
) -> None:
    call = APPENDS[name]

    async def main() -> None:
        session = await store.create_session("s")
        numbers = itertools.count()
        stop: list[bool] = []

        async def others() -> int:
            count = 0
            while not stop:
                await session.append("m", f"other {count}")
                count += 1
                await loop.step()
            return count

        other = loop.start(others)

        async def attempt(steps: tuple[int, ...]) -> int:
            text = f"mine {next(numbers)}"
            outcome, count = await cancelled_at(loop, lambda: call(session, text), steps)
            there = (await texts(session)).count(text)
            assert isinstance(outcome, (Cancelled, int, range)), outcome
            if not isinstance(outcome, Cancelled):
                assert there
            assert there in ((0, 2) if name == "append_many" else (0, 1))
            await session.append("m", "barrier")
            assert (await texts(session)).count(text) == there, "it came later"
            return count

        await at_every_await(loop, attempt)
        stop.append(True)
        count = await other.wait()
        found = [text for text in await texts(session) if text.startswith("other")]
        assert found == [f"other {number}" for number in range(count)]

    loop.run(main)


def test_every_other_call_can_be_cancelled_anywhere(
    loop: Backend, store: sealog.aio.Store, tmp_path: Path
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        await session.append_many([Event("m", str(number)) for number in range(600)])
        await session.attach(b"x", file_name="a")
        await (await store.create_session("sealed")).seal()
        numbers = itertools.count()

        async def listed(items: Any) -> list[Any]:
            return [item async for item in items]

        async def opened() -> None:
            async with await sealog.aio.open(tmp_path / "other") as other:
                await other.session_ids()

        async def opened_only() -> None:
            await (await sealog.aio.open(tmp_path / "other")).close()

        async def made() -> None:
            name = f"new-{next(numbers)}"
            async with await store.create_session(name) as new:
                await new.append("m", "x")
                await new.seal()
            await store.delete_session(name)

        async def followed() -> None:
            async with session.subscribe(598) as subscription:
                assert [(await subscription.get())[0] for _ in range(3)] == [598, 599, 600]

        calls: list[Callable[[], Any]] = [
            lambda: store.open_session("s"),
            store.session_ids,
            lambda: store.describe("s"),
            lambda: listed(store.overview()),
            store.recover_all,
            lambda: store.verify("s"),
            lambda: listed(session.events()),
            lambda: listed(session.attachments()),
            lambda: session.tail(3),
            lambda: session.read_attachment(600),
            lambda: store.repair("s", tmp_path / f"repaired-{next(numbers)}"),
            opened,
            opened_only,
            made,
            followed,
        ]
        for call in calls:

            async def attempt(steps: tuple[int, ...], call: Callable[[], Any] = call) -> int:
                outcome, count = await cancelled_at(loop, call, steps)
                assert isinstance(outcome, Cancelled) or not isinstance(outcome, Exception), outcome
                return count

            await at_every_await(loop, attempt)
        assert len(session) == 601
        assert session._session._slot.watchers == []
        assert session._session._slot.pins == 0

    loop.run(main)


@pytest.mark.parametrize("iterations", range(6))
def test_cancelled_after_some_turns_of_the_loop(
    loop: Backend, store: sealog.aio.Store, iterations: int
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        tasks = [loop.start(session.append, "m", str(number)) for number in range(50)]
        for _ in range(iterations):
            await loop.step()
        for task in tasks[::2]:
            task.cancel()
        outcomes = [await loop.outcome(task) for task in tasks]
        found = await texts(session)
        for number, outcome in enumerate(outcomes):
            if isinstance(outcome, Cancelled):
                assert number % 2 == 0
                assert found.count(str(number)) <= 1
            else:
                assert found[outcome] == str(number)
        if iterations == 0 and loop.name == "asyncio":
            assert len(found) == 25  # they had not begun
        await session.append("m", "barrier")
        assert (await texts(session))[:-1] == found

    loop.run(main)


def test_what_waits_behind_a_commit_ends_at_once_and_is_absent(
    loop: Backend, kit: Kit, store: sealog.aio.Store
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        gate = kit.fs.hold("sync_data", "s/log")
        first = loop.start(session.append, "m", "first")
        await arrived(gate)
        waiting = [loop.start(session.append, "m", str(number)) for number in range(10)]
        await loop.until(lambda: store.stats().waiting_requests == 10)
        for task in waiting[::2]:
            task.cancel()
            assert isinstance(await loop.outcome(task), Cancelled)
        assert store.stats().waiting_requests == 5
        assert not first.done
        gate.open()
        assert await first.wait() == 0
        assert sorted([await task.wait() for task in waiting[1::2]]) == [1, 2, 3, 4, 5]
        assert sorted(await texts(session)) == ["1", "3", "5", "7", "9", "first"]

    loop.run(main)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_what_is_being_committed_is_waited_for(
    loop: Backend, kit: Kit, store: sealog.aio.Store, times: int
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        gate = kit.fs.hold("sync_data", "s/log")
        task = loop.start(session.append, "m", "mine")
        await arrived(gate)
        for _ in range(times):
            task.cancel()
            for _ in range(5):
                await loop.step()
            assert not task.done
        gate.open()
        assert isinstance(await loop.outcome(task), Cancelled)
        assert await texts(session) == ["mine"]
        assert await session.append("m", "next") == 1

    loop.run(main)


def test_what_fails_while_its_cancellation_waits_harms_nobody(
    loop: Backend, kit: Kit, store: sealog.aio.Store
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        gate = kit.fs.hold("pwrite", "s/log")
        kit.fs.fail("sync_data", "s/log")
        task = loop.start(session.append, "m", "mine")
        await arrived(gate)
        task.cancel()
        gate.open()
        assert isinstance(await loop.outcome(task), Cancelled)
        kit.fs.heal()
        position = await session.append("m", "next")
        assert (await session[position]).text == "next"

    loop.run(main)


def test_what_waits_for_room_is_absent_and_forgotten(
    loop: Backend, kit: Kit, store: sealog.aio.Store
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        mailbox = session._session._slot.mailbox
        gate = kit.fs.hold("sync_data", "s/log")
        first = session.append_nowait("m", "first")
        await arrived(gate)
        futures = [session.append_nowait("m", "fill") for _ in range(MESSAGES_MAX)]
        waiting = [loop.start(session.append, "m", f"late {number}") for number in range(10)]
        await loop.until(lambda: len(mailbox._waiting_for_room) == 10)
        for task in waiting[:9]:
            task.cancel()
            assert isinstance(await loop.outcome(task), Cancelled)
        assert len(mailbox._waiting_for_room) == 1
        gate.open()
        assert await waiting[9].wait() == MESSAGES_MAX + 1
        assert all(future.done() for future in [first, *futures])
        assert [text for text in await texts(session) if "late" in text] == ["late 9"]

    loop.run(main)


@pytest.mark.parametrize("times", [1, 3])
def test_a_call_on_a_thread_is_waited_for(
    loop: Backend, kit: Kit, store: sealog.aio.Store, times: int
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        gate = kit.fs.hold("sync_data", "s/log")
        task = loop.start(functools.partial(session.attach, b"x", file_name="a"))
        await arrived(gate)
        for _ in range(times):
            task.cancel()
            for _ in range(5):
                await loop.step()
            assert not task.done
        gate.open()
        outcome = await loop.outcome(task)
        assert len(session) == 1
        assert isinstance(outcome, Cancelled) or (outcome == 0 and loop.name == "trio")

    loop.run(main)


def test_a_call_that_no_thread_has_taken_is_not_made(asyncio_loop: Backend) -> None:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        gate, made = Gate(), []
        first = asyncio_loop.start(run_in_thread, gate.pass_through)
        await asyncio_loop.step()
        second = asyncio_loop.start(run_in_thread, made.append, 2)
        third = asyncio_loop.start(finish_in_thread, made.append, 3)
        await asyncio_loop.step()
        second.cancel()
        third.cancel()
        assert isinstance(await asyncio_loop.outcome(second), Cancelled)
        assert not third.done
        gate.open()
        await first.wait()
        assert isinstance(await asyncio_loop.outcome(third), Cancelled)
        assert made == [3]

    asyncio_loop.run(main)


def test_a_store_is_closed_in_a_task_that_is_cancelled(loop: Backend, tmp_path: Path) -> None:
    async def main() -> None:
        stores: list[sealog.aio.Store] = []

        async def use() -> None:
            async with await sealog.aio.open(tmp_path / "store") as store:
                stores.append(store)
                await (await store.create_session("s")).subscribe().get()

        task = loop.start(use)
        await loop.until(lambda: stores and stores[0].stats().live_sessions)
        task.cancel()
        assert isinstance(await loop.outcome(task), Cancelled)
        assert "closed" in repr(stores[0])
        with pytest.raises(sealog.StoreClosedError):
            await stores[0].session_ids()

    loop.run(main)


def test_an_iteration_whose_step_was_cancelled_goes_on_without_a_gap(
    loop: Backend, kit: Kit, store: sealog.aio.Store
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        for number in range(600):
            session.append_nowait("m", str(number))
        await session.append("m", "600")
        events, seen = session.events(), list[str]()
        gate = kit.fs.hold("pread", "s/log")
        task = loop.start(events.__anext__)
        await arrived(gate)
        task.cancel()
        gate.open()
        outcome = await loop.outcome(task)
        if not isinstance(outcome, Cancelled):
            seen.append(outcome.text)
        seen += [event.text async for event in events]
        assert seen == [str(number) for number in range(601)]

    loop.run(main)
