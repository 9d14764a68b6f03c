"""One session, many threads that open, close, passivate and delete it: never two owners (INV-4)."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

import pytest

import sealog

from ...api.kit import Kit, Task, texts

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 60


def run(work: Callable[[random.Random], None], threads: int = 8) -> None:
    """Let threads do something often, each with its own seed; raise what the first of them raises."""

    def loop(seed: int) -> None:
        rnd = random.Random(seed)
        for _ in range(ROUNDS):
            work(rnd)

    for task in [Task(loop, seed) for seed in range(threads)]:
        task.result()


def test_open_append_and_close_of_one_store_by_eight_threads(kit: Kit) -> None:
    kit.store().create_session("s")
    kit.store().close()
    acknowledged: list[tuple[int, str]] = []
    lock = threading.Lock()

    def work(rnd: random.Random) -> None:
        with sealog.open(kit.path, file_system=kit.fs) as store:
            session = store.open_session("s")
            text = str(rnd.random())
            position = session.append("m", text)
            with lock:
                acknowledged.append((position, text))

    for store in kit._stores:
        store.close()
    run(work)
    session = kit.store().open_session("s")
    found = texts(session)
    assert len(found) == len(acknowledged) == 8 * ROUNDS
    assert sorted(acknowledged) == list(enumerate(found))
    assert kit.fs.violations == []


def test_appends_to_sessions_that_push_each_other_out(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    sessions = [store.create_session(f"s{number}") for number in range(3)]
    acknowledged: list[list[tuple[int, str]]] = [[], [], []]

    def work(rnd: random.Random) -> None:
        number = rnd.randrange(3)
        text = str(rnd.random())
        if rnd.random() < 0.5:
            position = sessions[number].append("m", text)
        else:
            position = store.open_session(f"s{number}").append_nowait("m", text).result()
        acknowledged[number].append((position, text))

    run(work)
    for number, session in enumerate(sessions):
        assert sorted(acknowledged[number]) == list(enumerate(texts(session)))
    assert store.stats().passivations > 10
    assert kit.fs.violations == []


def test_create_append_and_delete_of_one_session_by_eight_threads(kit: Kit) -> None:
    store = kit.store(max_live_sessions=2)
    expected = (
        sealog.SessionExistsError,
        sealog.SessionNotFoundError,
        sealog.SessionDeletedError,
    )
    created, deleted, appended = [0], [0], [0]

    def work(rnd: random.Random) -> None:
        what = rnd.random()
        try:
            if what < 0.3:
                store.create_session("s").append("m", "first of this one or later")
                created[0] += 1
            elif what < 0.5:
                store.delete_session("s")
                deleted[0] += 1
            else:
                session = store.open_session("s")
                position = session.append("m", "x")
                assert session[position].text in ("x", "first of this one or later")
                appended[0] += 1
        except expected:
            pass

    run(work)
    assert created[0] > 1
    assert deleted[0] > 1
    assert appended[0] > 1
    assert kit.fs.violations == []
    assert sorted(path.name for path in kit.path.iterdir()) in ([".sealog"], [".sealog", "s"])


def test_recovery_of_all_sessions_while_others_append(kit: Kit) -> None:
    store = kit.store(max_live_sessions=2)
    sessions = [store.create_session(f"s{number}") for number in range(4)]
    counts = [0] * 4
    lock = threading.Lock()

    def work(rnd: random.Random) -> None:
        if rnd.random() < 0.2:
            assert {report.status for report in store.recover_all()} == {"clean"}
            return
        number = rnd.randrange(4)
        sessions[number].append("m", "x")
        with lock:
            counts[number] += 1

    run(work, threads=4)
    assert [len(session) for session in sessions] == counts
    assert kit.fs.violations == []


@pytest.mark.parametrize("handles", [1, 2])
def test_a_delete_that_races_eight_appenders_ends_them_all(kit: Kit, handles: int) -> None:
    store = kit.store()
    sessions = [store.create_session("s"), store.open_session("s")][:handles]
    session = sessions[-1]
    appended = threading.Semaphore(0)

    def append() -> int:
        count = 0
        while True:
            try:
                session.append("m", "x")
            except (sealog.SessionDeletedError, sealog.SessionNotFoundError):
                return count
            count += 1
            appended.release()

    tasks = [Task(append) for _ in range(8)]
    for _ in range(40):
        assert appended.acquire(timeout=20)
    store.delete_session("s")
    assert sum(task.result() for task in tasks) >= 40
    assert not (kit.path / "s").exists()
    for call in (lambda: session.append("m", "x"), lambda: session.attach(b""), session.seal):
        with pytest.raises(sealog.SessionDeletedError):
            call()
    with pytest.raises(sealog.SessionDeletedError):
        list(session.events())
    assert store.session_ids() == []
