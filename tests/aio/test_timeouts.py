"""What a timeout says of an append: certainly absent, or unknown with a future that will tell."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

import sealog
import sealog.aio
from sealog import Event
from sealog.actors.event_loop import new_wakeup, run_in_thread
from sealog.actors.mailbox import MESSAGES_MAX

from ..api.kit import texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..api.kit import Gate, Kit
    from .loops import Backend


def held(kit: Kit, store: sealog.aio.Store) -> tuple[sealog.aio.Session, Gate, Any]:
    """Return a session whose first commit waits at a gate."""
    session = sealog.aio.Session(store.blocking.create_session("s"))
    gate = kit.fs.hold("sync_data", "s/log")
    first = session.append_nowait("m", "first")
    gate.wait_reached()
    return session, gate, first


async def arrived(gate: Gate) -> None:
    await run_in_thread(gate.wait_reached)


@pytest.fixture
def expire(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let all timeouts expire when it is called, and not before."""
    wakeups: list[Any] = []
    expired: list[bool] = []

    def noted() -> Any:
        wakeups.append(new_wakeup())
        return wakeups[-1]

    def remaining_s(deadline: float | None) -> float | None:
        return 0.0 if expired and deadline is not None else None

    def expire() -> None:
        expired.append(True)
        for wakeup in wakeups:
            wakeup.set()

    monkeypatch.setattr(sealog.aio, "new_wakeup", noted)
    monkeypatch.setattr(sealog.aio, "remaining_s", remaining_s)
    return expire


def waiting(store: sealog.aio.Store) -> int:
    return store.stats().waiting_requests


@pytest.mark.parametrize("timeout", [0, -1, 0.001, float("nan")])
def test_what_was_not_taken_in_time_is_absent(
    loop: Backend, kit: Kit, store: sealog.aio.Store, timeout: float
) -> None:
    session, gate, first = held(kit, store)

    async def main() -> None:
        with pytest.raises(sealog.MailboxFullError, match="did not take"):
            await session.append("m", "late", timeout=timeout)
        with pytest.raises(sealog.MailboxFullError):
            await session.append_many([Event("m", "late")] * 3, timeout=timeout)
        assert waiting(store) == 0
        gate.open()
        await loop.until(first.done)
        assert await session.append("m", "next", timeout=60) == 1
        assert [event.text async for event in session.events()] == ["first", "next"]

    loop.run(main)


def test_no_room_in_time_is_absent_too(loop: Backend, kit: Kit, store: sealog.aio.Store) -> None:
    session, gate, _ = held(kit, store)
    futures = [session.append_nowait("m", str(number)) for number in range(MESSAGES_MAX)]

    async def main() -> None:
        for timeout in (0, 0.001):
            with pytest.raises(sealog.MailboxFullError, match="stayed full"):
                await session.append("m", "late", timeout=timeout)
        with pytest.raises(sealog.MailboxFullError):
            session.append_nowait("m", "late")
        assert session._session._slot.mailbox._waiting_for_room == []
        gate.open()
        assert await session.append("m", "next", timeout=60) == MESSAGES_MAX + 1
        assert all(future.done() for future in futures)

    loop.run(main)
    assert "late" not in texts(session._session)


def test_what_was_taken_and_is_not_confirmed_is_unknown(
    loop: Backend, kit: Kit, store: sealog.aio.Store, expire: Callable[[], None]
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        gate = kit.fs.hold("sync_data", "s/log")
        one = loop.start(lambda: session.append("m", "a", timeout=60))
        await arrived(gate)
        expire()
        error = await loop.outcome(one)
        assert isinstance(error, sealog.AppendOutcomeUnknownError)
        assert error.positions == range(1)
        assert not error.future.done()
        assert not error.future.cancel()
        gate.open()
        await loop.until(error.future.done)
        assert error.future.result() == 0
        assert (await session[0]).text == "a"

    loop.run(main)


def test_an_unknown_batch_has_all_its_positions(
    loop: Backend, kit: Kit, store: sealog.aio.Store, expire: Callable[[], None]
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        await session.append("m", "first")
        gate = kit.fs.hold("sync_data", "s/log")
        batch = [Event("m", str(number)) for number in range(3)]
        one = loop.start(lambda: session.append_many(batch, timeout=60))
        await arrived(gate)
        expire()
        error = await loop.outcome(one)
        assert error.positions == range(1, 4)
        gate.open()
        await loop.until(error.future.done)
        assert error.future.result() == range(1, 4)

    loop.run(main)


def test_the_future_of_an_unknown_append_tells_of_a_failure(
    loop: Backend, kit: Kit, store: sealog.aio.Store, expire: Callable[[], None]
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        gate = kit.fs.hold("pwrite", "s/log")
        kit.fs.fail("sync_data", "s/log")
        one = loop.start(lambda: session.append("m", "a", timeout=60))
        await arrived(gate)
        expire()
        error = await loop.outcome(one)
        gate.open()
        await loop.until(error.future.done)
        assert isinstance(error.future.exception(), sealog.AppendOutcomeUnknownError)
        kit.fs.heal()
        position = await session.append("m", "b")
        assert (await session[position]).text == "b"

    loop.run(main)


def test_a_failed_commit_is_unknown_and_what_waited_behind_it_is_absent(
    loop: Backend, kit: Kit, store: sealog.aio.Store
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        gate = kit.fs.hold("pwrite", "s/log")
        kit.fs.fail("sync_data", "s/log")
        first = loop.start(session.append, "m", "first")
        await arrived(gate)
        behind = [loop.start(session.append, "m", f"behind {number}") for number in range(5)]
        await loop.until(lambda: waiting(store) == 5)
        gate.open()
        assert isinstance(await loop.outcome(first), sealog.AppendOutcomeUnknownError)
        for task in behind:
            assert isinstance(await loop.outcome(task), sealog.SessionFailedError)
        kit.fs.heal()
        await session.append("m", "again")
        assert not any("behind" in event.text for event in await session[:])

    loop.run(main)


def test_a_full_disk_is_absent(loop: Backend, kit: Kit, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        kit.fs.fail("pwrite", "s/log", errno.ENOSPC)
        with pytest.raises(sealog.StorageFullError):
            await session.append("m", "a")
        assert await session.append("m", "b") == 0

    loop.run(main)


def test_a_close_that_takes_too_long_is_a_timeout_and_can_be_waited_for_again(
    loop: Backend, kit: Kit, store: sealog.aio.Store
) -> None:
    session, gate, first = held(kit, store)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await store.close(0.01)
        gate.open()
        await store.close()
        assert first.result() == 0
        with pytest.raises(sealog.StoreClosedError):
            await session.append("m", "x")

    loop.run(main)
