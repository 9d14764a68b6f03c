"""The end of a process: what was accepted is committed, and nothing hangs."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

import sealog

if TYPE_CHECKING:
    from .child import Children

PENDING = """
store = sealog.open(path)
session = store.create_session("s")
futures = []
for number in range(500):
    future = session.append_nowait("m", str(number))
    future.add_done_callback(lambda future: future.exception() or say(future.result()))
"""


def stored(children: Children) -> list[str]:
    with sealog.open(children.path) as store:
        session = store.open_session("s")
        assert session.recovered is None
        return [event.text for event in session.events()]


@pytest.mark.parametrize(
    "end", ["", "sys.exit(0)", "store.close()", "del store, session, future", "raise SystemExit(0)"]
)
def test_a_normal_exit_commits_all_that_was_accepted(children: Children, end: str) -> None:
    filters = "import warnings\nwarnings.simplefilter('ignore', ResourceWarning)\n"
    answers = children.run(filters + PENDING + end)
    assert answers == [str(number) for number in range(500)]
    assert stored(children) == answers


def test_an_exception_in_the_main_thread_commits_all_that_was_accepted(children: Children) -> None:
    child = children.start(PENDING + "raise ValueError('the program failed')")
    answers = child.end(code=1)
    assert "the program failed" in child.errors()
    assert stored(children) == answers == [str(number) for number in range(500)]


def test_sys_exit_in_a_thread_ends_that_thread_only(children: Children) -> None:
    answers = children.run(
        PENDING
        + """
threading.Thread(target=sys.exit).start()
say(session.append("m", "after"))
"""
    )
    assert sorted(answers, key=int) == [str(number) for number in range(501)]
    assert stored(children)[-1] == "after"


def test_threads_that_append_while_the_main_thread_ends_are_waited_for(children: Children) -> None:
    answers = children.run(
        """
store = sealog.open(path)
session = store.create_session("s")
def work(worker):
    for number in range(50):
        say(session.append("m", f"{worker}-{number}"))
for worker in range(4):
    threading.Thread(target=work, args=(worker,)).start()
"""
    )
    assert sorted(map(int, answers)) == list(range(200))
    assert len(stored(children)) == 200


def test_daemon_threads_that_append_while_the_interpreter_ends_lose_nothing_acknowledged(
    children: Children,
) -> None:
    answers = children.run(
        """
store = sealog.open(path)
session = store.create_session("s")
running = threading.Semaphore(0)
def work(worker):
    for number in range(10**9):
        text = f"{worker}-{number}"
        say(session.append("m", text), text)
        running.release()
for worker in range(4):
    threading.Thread(target=work, args=(worker,), daemon=True).start()
for _ in range(100):
    running.acquire()
"""
    )
    found = stored(children)
    assert len(answers) >= 100
    for answer in answers:
        position, text = answer.split()
        assert found[int(position)] == text


def test_os_exit_keeps_what_was_acknowledged(children: Children) -> None:
    answers = children.run(PENDING + "futures = [session.append('m', 'sync')]\nos._exit(0)")
    with sealog.open(children.path) as store:
        texts = [event.text for event in store.open_session("s").events()]
    for answer in answers:
        assert texts[int(answer)] == answer
    assert texts[500] == "sync"


def test_exit_waits_no_longer_than_it_was_told(children: Children) -> None:
    """A disk that does not answer must not keep a process from ending."""
    child = children.start(
        """
from sealog.storage import vfs
stuck = threading.Event()
class File(vfs.OsFile):
    def sync_data(self):
        if stuck.is_set() and self.path.endswith("log"):
            say("stuck")
            threading.Event().wait()
        super().sync_data()
class Directory(vfs.OsDirectory):
    def open(self, name, **how):
        file = super().open(name, **how)
        return File(file._fd, file.path)
    def open_directory(self, name):
        directory = super().open_directory(name)
        return Directory(directory._fd, directory.path)
class FileSystem(vfs.OsFileSystem):
    def open_directory(self, path):
        return Directory(super().open_directory(path)._fd, path)
store = sealog.open(path, exit_timeout_s=0.1, file_system=FileSystem())
session = store.create_session("s")
stuck.set()
session.append_nowait("m", "never written")
"""
    )
    assert child.end() == ["stuck"]


def test_a_store_that_is_dropped_without_close_warns_and_is_closed(children: Children) -> None:
    child = children.start(
        """
import gc, warnings
warnings.simplefilter("always")
store = sealog.open(path)
session = store.create_session("s")
session.append_nowait("m", "x")
del store, session
gc.collect()
with warnings.catch_warnings(record=True):
    with sealog.open(path) as store:
        say(len(store.open_session("s")))
"""
    )
    assert child.end() == ["1"]
    errors = child.errors()
    assert "ResourceWarning" in errors
    assert str(children.path) in errors
    assert "never closed" in errors


def test_a_sigterm_without_a_handler_loses_nothing_acknowledged(children: Children) -> None:
    child = children.start(PENDING + "say('accepted')\ntime.sleep(1000)")
    lines = []
    while (line := child.hear()) != "accepted":
        lines.append(line)
    child.signal(signal.SIGTERM)
    lines += child.end(code=-signal.SIGTERM)
    with sealog.open(children.path) as store:
        texts = [event.text for event in store.open_session("s").events()]
    for answer in lines:
        assert texts[int(answer)] == answer


def test_control_c_during_appends_harms_no_other_thread(children: Children) -> None:
    """The interrupted append is there or not, never half; others are answered, and the session goes on."""
    child = children.start(
        """
store = sealog.open(path)
session = store.create_session("s")
stop = threading.Event()
acknowledged = []
failed = []
def work(worker):
    number = 0
    while not stop.is_set():
        text = f"{worker}-{number}"
        try:
            acknowledged.append((session.append("m", text), text))
        except BaseException as error:
            failed.append(repr(error))
        number += 1
threads = [threading.Thread(target=work, args=(worker,)) for worker in range(3)]
for thread in threads: thread.start()
number = 0
for _ in range(50):
    try:
        say("ready")
        while True:
            text = f"main-{number}"
            number += 1
            position = session.append("m", text)
            acknowledged.append((position, text))
    except KeyboardInterrupt:
        pass
signal.signal(signal.SIGINT, signal.SIG_IGN)
stop.set()
for thread in threads: thread.join()
texts = [event.text for event in session.events()]
say("lost", [pair for pair in acknowledged if texts[pair[0]] != pair[1]])
say("twice", len(texts) - len(set(texts)))
say("failed", failed)
say("given up", store.stats().failed_sessions)
store.close()
"""
    )
    for _ in range(50):
        assert child.hear() == "ready"
        child.signal(signal.SIGINT)
    assert child.end() == ["lost []", "twice 0", "failed []", "given up 0"]
