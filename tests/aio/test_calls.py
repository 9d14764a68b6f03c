"""Every call does what the blocking one does, on every kind of loop."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import sealog
import sealog.aio
from sealog import Event
from sealog.actors.event_loop import TAKE_ITEMS
from sealog.projections import Projection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ..api.kit import Kit
    from .loops import Backend


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


async def texts(session: Any, *arguments: int) -> list[str]:
    return [event.text async for event in session.events(*arguments)]


def test_appending_and_reading(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s", "then", {"a": "b"})
        assert await session.append("m", "0", {"x": [1]}, key="k") == 0
        assert await session.append("m", "0", {"x": [1]}, key="k") == 0
        assert await session.append_many([Event("m", "1"), Event("m", "2")], expected=1) == range(1, 3)
        assert await session.append_many([]) == range(3, 3)
        assert await session.append_many(iter([Event("m", "3")]), timeout=60) == range(3, 4)
        future = session.append_nowait("m", "4")
        await loop.until(future.done)
        assert future.result() == 4
        assert len(session) == 5
        assert (await session[0]).data == {"x": [1]}
        assert (await session[-1]).text == "4"
        assert [event.text for event in await session[3:0:-2]] == ["3", "1"]
        assert [event.text for event in await session.tail(2)] == ["3", "4"]
        assert await texts(session) == await listed_texts(session) == list("01234")
        assert await texts(session, 1, 3) == ["1", "2"]
        assert session.header.labels == {"a": "b"}
        assert (session.session_id, session.is_sealed, session.recovered) == ("s", False, None)
        assert session.path == f"{store.path}/s"

    async def listed_texts(session: Any) -> list[str]:
        return [event.text async for event in session]

    loop.run(main)


def test_attachments_and_the_seal(loop: Backend, store: sealog.aio.Store, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"path")

    async def main() -> None:
        session = await store.create_session("s")
        assert await session.attach(b"bytes", file_name="b.bin", text="see", key="k") == 0
        assert await session.attach(b"bytes", file_name="b.bin", text="see", key="k") == 0
        assert await session.attach(tmp_path / "a.txt") == 1
        assert await session.attach(io.BytesIO(b"file"), media_type="text/csv") == 2
        found = await listed(session.attachments())
        assert [attachment.bytes for attachment in found] == [b"bytes", b"path", b"file"]
        assert (await session.read_attachment(1)).file_name == "a.txt"
        sealed = await session.seal()
        assert isinstance(sealed, sealog.aio.SealedSession)
        assert (await session.seal()).receipt == sealed.receipt
        assert sealed.is_sealed
        assert session.is_sealed
        assert sealed.receipt.events == len(sealed) == 3
        assert [position async for position, _ in sealed.subscribe(1)] == [1, 2]
        assert len(await listed(sealed.attachments())) == 3
        assert (await sealed[-1]).kind == "attachment"
        await session.delete_committed()
        assert await store.session_ids() == []

    loop.run(main)


class Count(Projection[int]):
    state_type = int

    def initial(self) -> int:
        return 0

    def apply(self, state: int, event: Event) -> int:
        return state + 1


def test_stores(loop: Backend, tmp_path: Path) -> None:
    async def main() -> None:
        async with await sealog.aio.open(tmp_path / "store", max_live_sessions=2) as store:
            for name in "abc":
                async with await store.create_session(name) as session:
                    await session.append("m", name)
                    assert await session.project(Count()) == 1
            assert await store.session_ids() == ["a", "b", "c"]
            assert [info.session_id async for info in store.overview()] == ["a", "b", "c"]
            assert (await store.describe("b")).events == 1
            done: list[int] = []
            reports = await store.recover_all(lambda number, *_: done.append(number))
            assert [report.session_id for report in reports] == ["a", "b", "c"]
            assert done == [1, 2, 3]
            assert (await store.verify("a")).ok
            assert (await store.repair("a", tmp_path / "other")).session_id == "a"
            assert store.stats().known_sessions >= 0
            assert store.blocking.path == store.path == str(tmp_path / "store")
            session = await store.open_session("a", verify="full")
            assert await session.append("m", "again") == 1
            await session.delete_abandoned()
            await store.delete_session("b")
            assert await store.session_ids() == ["c"]
        with pytest.raises(sealog.StoreClosedError):
            await store.session_ids()
        with pytest.raises(sealog.StoreClosedError):
            async with store:
                pass
        await store.close()

    loop.run(main)


def test_errors_are_the_same(loop: Backend, store: sealog.aio.Store, tmp_path: Path) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        await session.append("m", "0", key="k")
        expected: list[tuple[type[BaseException], Any]] = [
            (sealog.SessionExistsError, lambda: store.create_session("s")),
            (sealog.InvalidSessionIdError, lambda: store.create_session("..")),
            (sealog.InvalidHeaderError, lambda: store.create_session("t", " ")),
            (sealog.SessionNotFoundError, lambda: store.open_session("none")),
            (sealog.SessionNotFoundError, lambda: store.describe("none")),
            (sealog.SessionNotFoundError, lambda: store.verify("none")),
            (sealog.SessionNotSealedError, lambda: store.delete_session("s", require_sealed=True)),
            (sealog.SessionNotSealedError, session.delete_committed),
            (sealog.StoreNotFoundError, lambda: sealog.aio.open(tmp_path / "no", create=False)),
            (sealog.InvalidEventError, lambda: session.append(" ", "x")),
            (sealog.InvalidEventError, lambda: session.append("m", "x", {1})),
            (sealog.InvalidEventError, lambda: session.append_many([Event("attachment", "x")])),
            (sealog.PositionConflictError, lambda: session.append("m", "x", expected=7)),
            (sealog.PositionConflictError, lambda: session.append_many([], expected=7)),
            (sealog.KeyConflictError, lambda: session.append("m", "other", key="k")),
            (sealog.LimitExceededError, lambda: session.append_many([Event("m", "")] * 65536)),
            (sealog.AttachmentMissingError, lambda: session.read_attachment(0)),
            (sealog.InvalidEventError, lambda: session.attach(b"", file_name=" ")),
            (FileNotFoundError, lambda: session.attach(tmp_path / "none")),
            (IndexError, lambda: session[1]),
            (ValueError, lambda: session.tail(-1)),
            (TimeoutError, lambda: session.subscribe(1).get(0)),
            (TimeoutError, lambda: session.subscribe(1).get(float("nan"))),
        ]
        for error, call in expected:
            with pytest.raises(error):
                await call()
        for wrong in (lambda: session.events(-1), lambda: session.subscribe(-1)):
            with pytest.raises(ValueError, match="-1"):
                wrong()
        with pytest.raises(sealog.InvalidEventError):
            session.append_nowait("", "x")
        await session.seal()
        for call in (lambda: session.append("m", "x"), lambda: session.attach(b"")):
            with pytest.raises(sealog.SessionSealedError):
                await call()
        assert await session.append("m", "0", key="k") == 0
        session.close()
        session.close()
        for closed in (session.events, session.subscribe, lambda: len(session), lambda: session.header):
            with pytest.raises(sealog.StoreClosedError):
                closed()
        with pytest.raises(sealog.StoreClosedError):
            await listed(session.attachments())
        with pytest.raises(sealog.StoreClosedError):
            await session.append("m", "x")

    loop.run(main)


def test_a_store_that_is_only_read(loop: Backend, kit: Kit, store: sealog.aio.Store) -> None:
    reader = sealog.aio.Store(kit.store(read_only=True))

    async def main() -> None:
        await (await store.create_session("s")).append("m", "0")
        session = await reader.open_session("s")
        assert await texts(session) == ["0"]
        for call in (
            lambda: session.append("m", "x"),
            lambda: session.append_many([]),
            lambda: session.attach(b"x"),
            session.seal,
            reader.recover_all,
            lambda: reader.create_session("t"),
        ):
            with pytest.raises(sealog.StoreReadOnlyError):
                await call()

    loop.run(main)


def test_events_before_a_damaged_one_are_given_first(
    loop: Backend, kit: Kit, store: sealog.aio.Store
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        for number in range(5):
            await session.append("m", f"number {number}")
        with (kit.path / "s" / "log").open("r+b") as log:
            at = log.read().index(b"number 3")
            log.seek(at)
            log.write(b"another!")
        events = session.events()
        seen: list[str] = []

        async def read() -> None:
            async for event in events:
                seen.append(event.text)  # noqa: PERF401 — those before the error count

        with pytest.raises(sealog.CorruptionError):
            await read()
        assert seen == ["number 0", "number 1", "number 2"]
        assert await listed(events) == []

    loop.run(main)


def test_a_step_of_an_iteration_reads_ahead_within_bounds(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        await session.append_many([Event("m", str(number)) for number in range(1000)])
        assert await texts(session) == [str(number) for number in range(1000)]
        events = session.events()
        assert (await anext(events)).text == "0"
        assert len(events._taken) < TAKE_ITEMS

    loop.run(main)


def test_what_is_appended_is_what_it_was_when_it_was_said(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        data = {"list": [1]}
        future = session.append_nowait("m", "x", data)
        data["list"].append(2)
        await loop.until(future.done)
        assert (await session[0]).data == {"list": [1]}

    loop.run(main)


def test_handles_show_what_they_are_and_are_not_pickled(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        assert repr(store) == f"<sealog.aio.Store {store.path}>"
        assert repr(session) == f"<sealog.aio.Session 's' of {store.path}>"
        for handle in (store, session, await session.seal()):
            with pytest.raises(TypeError):
                pickle.dumps(handle)

    loop.run(main)
