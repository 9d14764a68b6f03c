"""Many coroutines: on many sessions, on a full mailbox, in several loops."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import sealog
import sealog.aio
from sealog import Event
from sealog.actors.event_loop import run_in_thread
from sealog.actors.mailbox import MESSAGES_MAX

from ..api.kit import Task as Thread
from .loops import Asyncio, Cancelled

if TYPE_CHECKING:
    from pathlib import Path

    from ..api.kit import Kit
    from .loops import Backend

SESSIONS = 64
COROUTINES = 1000
EACH = 5


def test_a_thousand_coroutines_on_64_sessions(loop: Backend, tmp_path: Path) -> None:
    loop.debug = False

    async def main() -> None:
        before = threading.active_count()
        most = 0
        async with await sealog.aio.open(tmp_path / "store") as store:
            sessions = await loop.gather(*[(store.create_session, f"s{n}") for n in range(SESSIONS)])
            pool = threading.active_count() - before - SESSIONS - 1

            async def write(number: int) -> list[int]:
                nonlocal most
                session = sessions[number % SESSIONS]
                positions = []
                for step in range(EACH):
                    positions.append(await session.append("m", f"{number} {step}"))
                    most = max(most, threading.active_count())
                return positions

            given = await loop.gather(*[(write, number) for number in range(COROUTINES)])
            assert most <= before + SESSIONS + 1 + pool  # appends start no thread
            for at, session in enumerate(sessions):
                found = [event.text async for event in session.events()]
                writers = range(at, COROUTINES, SESSIONS)
                assert len(found) == len(writers) * EACH
                for number in writers:
                    mine = [text for text in found if text.startswith(f"{number} ")]
                    assert mine == [f"{number} {step}" for step in range(EACH)]
                    assert [found[position] for position in given[number]] == mine

    loop.run(main)


def test_a_full_mailbox_holds_back_everybody_and_forgets_nobody(
    loop: Backend, kit: Kit, store: sealog.aio.Store
) -> None:
    extra = 500
    loop.debug = False

    async def main() -> None:
        session = await store.create_session("s")
        mailbox = session._session._slot.mailbox
        gate = kit.fs.hold("sync_data", "s/log")
        first = session.append_nowait("m", "first")
        await run_in_thread(gate.wait_reached)
        tasks = [loop.start(session.append, "m", str(number)) for number in range(MESSAGES_MAX + extra)]
        await loop.until(lambda: len(mailbox._waiting_for_room) == extra)
        assert store.stats().waiting_requests == MESSAGES_MAX
        withdrawn = 0
        for task in tasks[::40]:  # some of either kind give up
            task.cancel()
            withdrawn += isinstance(await loop.outcome(task), Cancelled)
        assert withdrawn == len(tasks[::40])
        gate.open()
        outcomes = [await loop.outcome(task) for task in tasks]
        assert mailbox._waiting_for_room == []
        assert first.result() == 0
        positions = sorted(outcome for outcome in outcomes if isinstance(outcome, int))
        assert positions == list(range(1, len(tasks) - withdrawn + 1))
        found = [event.text async for event in session.events()]
        expected = [str(number) for number, outcome in enumerate(outcomes) if isinstance(outcome, int)]
        assert sorted(found[1:]) == sorted(expected)

    loop.run(main)


def test_large_events_fill_a_mailbox_by_their_bytes(loop: Backend, kit: Kit, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        mailbox = session._session._slot.mailbox
        gate = kit.fs.hold("sync_data", "s/log")
        session.append_nowait("m", "first")
        await run_in_thread(gate.wait_reached)
        tasks = [loop.start(session.append, "m", "x" * 10_000_000) for _ in range(5)]
        await loop.until(lambda: len(mailbox._waiting_for_room) == 2)
        assert len(mailbox) == 3
        gate.open()
        assert sorted([await task.wait() for task in tasks]) == [1, 2, 3, 4, 5]

    loop.run(main)


def test_calls_from_many_tasks_share_the_pool(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        attach = [(session.attach, f"file {number}".encode()) for number in range(64)]
        for task in [loop.start(lambda call=call: call[0](call[1], file_name="f")) for call in attach]:
            await task.wait()
        found = [attachment.bytes async for attachment in session.attachments()]
        assert sorted(found) == sorted(content for _, content in attach)
        created = [loop.start(store.create_session, "one") for _ in range(16)]
        outcomes = [await loop.outcome(task) for task in created]
        assert sum(isinstance(outcome, sealog.aio.Session) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, sealog.SessionExistsError) for outcome in outcomes) == 15

    loop.run(main)


def test_loops_in_several_threads_share_a_store(loop: Backend, kit: Kit, store: sealog.aio.Store) -> None:
    store.blocking.create_session("s")
    count, writers = 50, 3

    def run(number: int) -> list[Any]:
        async def main() -> list[Any]:
            session = await store.open_session("s")
            other = await sealog.aio.Store(kit.store()).open_session("s")
            async with session.subscribe() as subscription:

                async def write() -> None:
                    for step in range(count):
                        await (session, other)[step % 2].append("m", f"{number} {step}")

                task = backend.start(write)
                seen = [await subscription.get() for _ in range(count * writers)]
                await task.wait()
            return seen

        backend = type(loop)()
        return backend.run(main)

    threads = [Thread(run, number) for number in range(writers)]
    seen = [thread.result() for thread in threads]
    assert seen[0] == seen[1] == seen[2]
    assert [position for position, _ in seen[0]] == list(range(count * writers))
    for number in range(writers):
        mine = [event.text for _, event in seen[0] if event.text.startswith(f"{number} ")]
        assert mine == [f"{number} {step}" for step in range(count)]


def test_one_handle_serves_loops_one_after_the_other(loop: Backend, store: sealog.aio.Store) -> None:
    session = loop.run(store.create_session, "s")
    subscription = session.subscribe()
    for number in range(3):

        async def main(number: int = number) -> None:
            assert await session.append("m", str(number)) == number
            position, event = await subscription.get(60)
            assert (position, event.text) == (number, str(number))

        loop.run(main)


def forsaken(kit: Kit, store: sealog.aio.Store, name: str) -> sealog.aio.Session:
    """Close a loop under coroutines that wait for a commit, for the mailbox and for an event."""
    session = sealog.aio.Session(store.blocking.create_session(name))
    gate = kit.fs.hold("sync_data", f"{name}/log")

    async def follow() -> None:
        await session.subscribe(100).get()

    async def main(loop: asyncio.AbstractEventLoop) -> None:
        taken = session.append("m", "taken")
        taken.send(None)
        await asyncio.to_thread(gate.wait_reached)
        waiting, batch = session.append("m", "waiting"), session.append_many([Event("m", "batch")])
        following = follow()
        for coroutine in (waiting, batch, following):
            coroutine.send(None)
        left.extend([taken, waiting, batch, following])

    left: list[Any] = []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main(loop))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    for coroutine in left:
        coroutine.close()
    gate.open()
    return session


def test_a_loop_that_is_closed_leaves_what_was_taken_and_nothing_else(
    kit: Kit, store: sealog.aio.Store
) -> None:
    session = forsaken(kit, store, "s")

    async def main() -> None:
        assert await session.append("m", "next") == 1
        assert [event.text async for event in session.events()] == ["taken", "next"]
        assert session._session._slot.watchers == []

    Asyncio().run(main)


def test_a_loop_that_ends_cancels_what_runs_in_it_and_waits_for_what_was_taken(
    kit: Kit, store: sealog.aio.Store
) -> None:
    session = sealog.aio.Session(store.blocking.create_session("s"))
    gate = kit.fs.hold("sync_data", "s/log")
    tasks: list[asyncio.Task[Any]] = []

    async def main() -> None:
        tasks.append(asyncio.create_task(session.attach(b"x", file_name="f")))
        await asyncio.to_thread(gate.wait_reached)
        tasks.append(asyncio.create_task(session.append("m", "waiting")))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, gate.open)

    Asyncio().run(main)
    assert all(task.cancelled() for task in tasks)
    assert [event.kind for event in session._session][:1] == ["attachment"]
