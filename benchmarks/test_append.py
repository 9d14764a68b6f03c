"""Appending: what one acknowledged event costs. Floor: write + fdatasync in one thread."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    import sealog
    from benchmarks.conftest import Beside, WriteLoop

IN_FLIGHT = 2_000


def append(session: sealog.Session, event: sealog.Event, count: int) -> None:
    for _ in range(count):
        session.append(event.kind, event.text, event.data)


def start_threads(
    sessions: list[sealog.Session], event: sealog.Event, count: int
) -> tuple[threading.Event, list[threading.Thread]]:
    """Return threads that wait for a signal, one for each session given, and the signal."""
    go = threading.Event()

    def work(session: sealog.Session) -> None:
        go.wait()
        append(session, event, count)

    threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    return go, threads


def run_threads(go: threading.Event, threads: list[threading.Thread]) -> None:
    go.set()
    for thread in threads:
        thread.join()


def test_append_1_thread(beside: Beside, store: sealog.Store, write_loop: WriteLoop, event: sealog.Event):
    session, count = store.create_session("s"), beside.scaled(1_000, 10)
    beside(lambda: append(session, event, count), write_loop, count)


def test_append_16_threads_1_session(
    beside: Beside, store: sealog.Store, write_loop: WriteLoop, event: sealog.Event
):
    session, count = store.create_session("s"), beside.scaled(300, 3)
    beside(run_threads, write_loop, 16 * count, lambda: start_threads([session] * 16, event, count))


def test_append_64_threads_64_sessions(
    beside: Beside, store: sealog.Store, write_loop: WriteLoop, event: sealog.Event
):
    sessions = [store.create_session(f"s-{number}") for number in range(beside.scaled(64, 8))]
    count = beside.scaled(50, 1)
    beside(run_threads, write_loop, len(sessions) * count, lambda: start_threads(sessions, event, count))


def test_append_nowait_pipelined(
    beside: Beside, store: sealog.Store, write_loop: WriteLoop, event: sealog.Event
):
    session, count = store.create_session("s"), beside.scaled(20_000, 50)

    def work() -> None:
        waiting: deque[Future[int]] = deque()
        for _ in range(count):
            if len(waiting) == IN_FLIGHT:
                waiting.popleft().result()
            waiting.append(session.append_nowait(event.kind, event.text, event.data))
        for future in waiting:
            future.result()

    beside(work, write_loop, count)


def test_append_many_100(beside: Beside, store: sealog.Store, write_loop: WriteLoop, event: sealog.Event):
    session, count = store.create_session("s"), beside.scaled(50, 1)
    batch = [event] * 100

    def work() -> None:
        for _ in range(count):
            session.append_many(batch)

    beside(work, write_loop, 100 * count)
