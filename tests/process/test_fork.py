"""Forked children: the store stays with the parent, and the child harms nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import sealog

if TYPE_CHECKING:
    from .child import Children

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

FORKED = """
store = sealog.open(path)
session = store.create_session("s")
session.append("m", "zero")
subscription = session.subscribe()
reader = sealog.open(path, read_only=True)
read = reader.open_session("s")
iterating = session.events()
next(iterating)
def fork(child):
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        try:
            child()
        except BaseException as error:
            say("child raised", repr(error))
            os._exit(9)
        os._exit(0)
    return pid
"""


def test_every_call_of_a_child_raises_and_the_parent_goes_on(children: Children) -> None:
    lines = children.run(
        FORKED
        + """
def child():
    calls = dict(
        append=lambda: session.append("m", "child"),
        timeout=lambda: session.append("m", "child", timeout=1),
        nowait=lambda: session.append_nowait("m", "child"),
        many=lambda: session.append_many([sealog.Event("m", "child")]),
        none=lambda: session.append_many([]),
        attach=lambda: session.attach(b"child"),
        events=lambda: list(session.events()),
        length=lambda: len(session),
        item=lambda: session[0],
        tail=lambda: session.tail(1),
        header=lambda: session.header,
        sealed=lambda: session.is_sealed,
        seal=lambda: session.seal(),
        attachments=lambda: list(session.attachments()),
        attachment=lambda: session.read_attachment(0),
        subscribe=lambda: session.subscribe(),
        subscription=lambda: subscription.get(1),
        enter=lambda: session.__enter__(),
        delete=lambda: session.delete_abandoned(),
        create=lambda: store.create_session("t"),
        open=lambda: store.open_session("s"),
        ids=lambda: store.session_ids(),
        describe=lambda: store.describe("s"),
        recover=lambda: store.recover_all(),
        delete_session=lambda: store.delete_session("s"),
        stats=lambda: store.stats(),
        verify=lambda: store.verify("s"),
        store=lambda: store.__enter__(),
        read=lambda: list(read.events()),
        reader=lambda: reader.session_ids(),
    )
    for name, call in calls.items():
        say(name, after(call))
    say("close", after(store.close), after(session.close), after(subscription.close), after(reader.close))
pid = fork(child)
say("status", os.waitpid(pid, 0)[1])
say("parent", session.append("m", "one"), len(session), len(list(read.events())), store.describe("s").events)
say("iterating", len(list(iterating)))
store.close()
reader.close()
"""
    )
    answers = dict(line.split(" ", 1) for line in lines)
    assert answers.pop("status") == "0"
    assert answers.pop("parent") == "1 2 2 2"
    assert answers.pop("iterating") == "0"
    assert answers.pop("close") == "None None None None"
    assert len(answers) == 30
    assert set(answers.values()) == {"StoreClosedError"}


def test_the_message_tells_a_child_what_to_do(children: Children) -> None:
    (message,) = children.run(
        FORKED
        + """
def child():
    try:
        session.append("m", "x")
    except sealog.StoreClosedError as error:
        say(error)
os.waitpid(fork(child), 0)
store.close()
reader.close()
"""
    )
    assert "forked" in message
    assert "open it again" in message
    assert str(children.path) in message


@pytest.mark.parametrize("how", ["os._exit(0)", "sys.exit(0)", "return", "os.kill(os.getpid(), 9)"])
def test_the_end_of_a_child_harms_nothing(children: Children, how: str) -> None:
    lines = children.run(
        FORKED
        + f"""
stop = threading.Event()
counts = []
def work():
    count = 0
    while not stop.is_set():
        session.append("m", "x")
        count += 1
    counts.append(count)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for _ in range(10):
    pid = os.fork()
    if not pid:
        def child():
            {how}
        child()
        os._exit(0)
    os.waitpid(pid, 0)
stop.set()
for thread in threads: thread.join()
say(sum(counts) + 1 == len(session), len(session) > 1, store.stats().restarts)
store.close()
reader.close()
"""
    )
    assert lines == ["True True 0"]


def test_a_sleeping_child_does_not_keep_the_sessions_locked(children: Children) -> None:
    child = children.start(
        FORKED
        + """
def child():
    say("child", os.getpid())
    time.sleep(1000)
pid = fork(child)
say("forked", pid)
store.close()
reader.close()
say("closed")
hear()
os.kill(pid, 9)
os.waitpid(pid, 0)
"""
    )
    heard = {child.hear().split()[0] for _ in range(3)}
    assert heard == {"child", "forked", "closed"}
    with sealog.open(children.path) as store:
        assert store.open_session("s").append("m", "elsewhere") == 1
        store.delete_session("s")
    child.say("end")
    child.end()


def test_a_child_may_use_another_store_with_threads_of_its_own(children: Children) -> None:
    """Threads of the child get the idents that actors of the parent have."""
    lines = children.run(
        FORKED
        + """
sessions = [store.create_session(f"s{number}") for number in range(8)]
def child():
    answers, mine, ready = [], [], threading.Event()
    def work(number):
        ready.wait()
        answers.append(after(lambda: mine[number].append("m", "x")))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads: thread.start()
    with sealog.open(path + "-child") as own:
        mine += [own.create_session(f"s{number}") for number in range(8)]
        ready.set()
        for thread in threads: thread.join()
        say("child", *sorted(map(str, answers)))
    say("same store", after(lambda: sealog.open(path).open_session("s0")))
    os._exit(0)
say("status", os.waitpid(fork(child), 0)[1])
say("parent", *[session.append("m", "x") for session in sessions])
store.close()
reader.close()
"""
    )
    assert lines == [
        "child 0 0 0 0 0 0 0 0",
        "same store SessionLockedError",
        "status 0",
        "parent 0 0 0 0 0 0 0 0",
    ]


def test_a_fork_during_a_commit_of_another_thread_leaves_no_lock_behind_in_the_child(
    children: Children,
) -> None:
    """The child's copy of a mailbox may have been locked by a thread that is not in the child."""
    lines = children.run(
        FORKED
        + """
stop = threading.Event()
def work():
    while not stop.is_set():
        session.append_nowait("m", "x").result()
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
bad = 0
for _ in range(25):
    pid = os.fork()
    if not pid:
        fine = (
            after(lambda: session.append("m", "x")) == "StoreClosedError"
            and after(lambda: store.describe("s")) == "StoreClosedError"
            and after(store.close) is None
        )
        os._exit(not fine)
    bad += os.waitpid(pid, 0)[1] != 0
stop.set()
for thread in threads: thread.join()
say(bad)
store.close()
reader.close()
"""
    )
    assert lines == ["0"]
