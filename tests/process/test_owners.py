"""Two processes on one store: one owner per session, said honestly, given over at once."""

from __future__ import annotations

import os
import shutil
import socket
from typing import TYPE_CHECKING

import pytest

import sealog

if TYPE_CHECKING:
    from .child import Child, Children

OWNER = """
store = sealog.open(path)
session = store.create_session("s")
session.append("m", "zero")
say("ready")
while (line := hear()) != "end":
    say(eval(line))
store.close()
say("closed")
"""


@pytest.fixture
def owner(children: Children) -> Child:
    """Return a process that owns the session `s`, and evaluates the lines it is told."""
    owner = children.start(OWNER)
    assert owner.hear() == "ready"
    return owner


def test_a_second_owner_is_refused_with_the_name_of_the_first(owner: Child, children: Children) -> None:
    with sealog.open(children.path) as store:
        with pytest.raises(sealog.SessionLockedError) as caught:
            store.open_session("s")
        error = caught.value
        assert error.session_id == "s"
        assert error.holder is not None
        assert error.holder["pid"] == owner.pid
        assert error.holder["host"] == socket.gethostname()[:64]
        assert str(owner.pid) in str(error)
        assert "read_only" in str(error)
        assert isinstance(error, BlockingIOError)
        with pytest.raises(sealog.SessionLockedError):
            store.delete_session("s")
        assert [(report.session_id, report.status) for report in store.recover_all()] == [("s", "locked")]
        assert store.describe("s").events == 1
        assert store.session_ids() == ["s"]
    owner.say("session.append('m', 'one')")
    assert owner.hear() == "1"


def test_a_reader_needs_no_lock_and_sees_what_is_appended(owner: Child, children: Children) -> None:
    with sealog.open(children.path, read_only=True) as store:
        session = store.open_session("s")
        assert [event.text for event in session.events()] == ["zero"]
        owner.say("session.append('m', 'one')")
        assert owner.hear() == "1"
        assert [event.text for event in session.events()] == ["zero", "one"]
        assert len(session) == 2
        with pytest.raises(sealog.StoreReadOnlyError):
            session.append("m", "x")


def test_a_killed_owner_is_followed_at_once(owner: Child, children: Children) -> None:
    owner.kill()
    with sealog.open(children.path) as store:
        session = store.open_session("s")
        assert session.append("m", "one") == 1
        assert [event.text for event in session.events()] == ["zero", "one"]


def test_a_closed_owner_is_followed(owner: Child, children: Children) -> None:
    owner.say("end")
    assert owner.hear() == "closed"
    with sealog.open(children.path) as store:
        assert store.open_session("s").append("m", "one") == 1


def test_sessions_that_one_process_does_not_use_are_free_for_another(children: Children) -> None:
    owner = children.start(
        """
store = sealog.open(path, max_live_sessions=1)
a = store.create_session("a")
b = store.create_session("b")
say("ready")
hear()
say(a.append("m", "mine again"), a[0].text)
store.close()
"""
    )
    assert owner.hear() == "ready"
    with sealog.open(children.path) as store:
        session = store.open_session("a")
        assert session.append("m", "yours") == 0
        with pytest.raises(sealog.SessionLockedError):
            store.open_session("b")
    owner.say("go")
    assert owner.hear() == "1 yours"
    owner.end()


def test_an_append_to_a_session_that_another_process_took_meanwhile_is_refused(children: Children) -> None:
    owner = children.start(
        """
store = sealog.open(path, max_live_sessions=1)
a = store.create_session("a")
b = store.create_session("b")
say("ready")
hear()
say(after(lambda: a.append("m", "x")), after(lambda: a.append_nowait("m", "x").result()))
hear()
say(a.append("m", "x"))
store.close()
"""
    )
    assert owner.hear() == "ready"
    with sealog.open(children.path) as store:
        store.open_session("a").append("m", "yours")
        owner.say("try")
        assert owner.hear() == "SessionLockedError SessionLockedError"
    owner.say("try again")
    assert owner.hear() == "1"
    owner.end()


def test_a_session_deleted_by_another_process_is_gone_for_old_handles(children: Children) -> None:
    owner = children.start(
        """
store = sealog.open(path, max_live_sessions=1)
a = store.create_session("a")
b = store.create_session("b")
say("ready")
for _ in range(2):
    hear()
    say(*[after(call) for call in (
        lambda: a.append("m", "x"), lambda: a.append_nowait("m", "x").result(), lambda: a.attach(b"x"),
        lambda: list(a.events()), lambda: len(a), lambda: a.tail(1), a.seal, a.delete_abandoned,
    )])
say(after(lambda: len(store.open_session("a"))))
store.close()
"""
    )
    assert owner.hear() == "ready"
    with sealog.open(children.path) as store:
        store.delete_session("a")
        owner.say("deleted")
        assert set(owner.hear().split()) == {"SessionDeletedError"}
        store.create_session("a").append("m", "another one")
    owner.say("made anew")
    assert set(owner.hear().split()) == {"SessionDeletedError"}
    assert owner.hear() == "1"
    owner.end()
    with sealog.open(children.path) as store:
        assert [event.text for event in store.open_session("a").events()] == ["another one"]


def test_a_handle_never_appends_to_a_session_that_was_made_anew_under_its_id(children: Children) -> None:
    """As above, without a call in between that could notice the deletion."""
    owner = children.start(
        """
store = sealog.open(path, max_live_sessions=1)
a = store.create_session("a")
b = store.create_session("b")
say("ready")
hear()
say(after(lambda: a.append("m", "x")), after(lambda: a.append("m", "x")), after(lambda: list(a.events())))
store.close()
"""
    )
    assert owner.hear() == "ready"
    with sealog.open(children.path) as store:
        store.delete_session("a")
        store.create_session("a")
    owner.say("go")
    assert owner.hear() == "SessionDeletedError SessionDeletedError SessionDeletedError"
    owner.end()
    with sealog.open(children.path) as store:
        assert len(store.open_session("a")) == 0


# -- tampering under a live owner


@pytest.mark.parametrize("how", ["unlink", "rmtree", "rename the session"])
def test_a_log_that_is_removed_under_a_live_owner_takes_no_more_events(
    owner: Child, children: Children, how: str
) -> None:
    folder = children.path / "s"
    if how == "unlink":
        (folder / "log").unlink()
    elif how == "rmtree":
        shutil.rmtree(folder)
    else:
        folder.rename(children.path / "elsewhere")
    for _ in range(2):
        owner.say("after(lambda: session.append('m', 'lost?'))")
        assert owner.hear() == "SessionDeletedError"
    owner.say("after(lambda: session.append_nowait('m', 'lost?').result())")
    assert owner.hear() == "SessionDeletedError"
    owner.say("end")
    assert owner.hear() == "closed"
    owner.end()


@pytest.mark.parametrize("content", ["copy", "other", "empty"])
def test_a_log_that_is_replaced_under_a_live_owner_takes_no_more_events(
    owner: Child, children: Children, content: str
) -> None:
    log = children.path / "s" / "log"
    with sealog.open(children.path) as store:
        store.create_session("other").append("m", "x")
    new = {"copy": log.read_bytes(), "other": (children.path / "other" / "log").read_bytes(), "empty": b""}
    (children.path / "new").write_bytes(new[content])
    os.replace(children.path / "new", log)
    before = log.read_bytes()
    owner.say("after(lambda: session.append('m', 'lost?'))")
    assert owner.hear() == "CorruptionError"
    owner.say("after(lambda: session.append('m', 'again'))")
    answer = owner.hear()
    if content == "copy":  # the owner goes on with the file that is there: nothing acknowledged is missing
        assert answer == "1"
    else:
        assert answer in ("CorruptionError", "SessionDeletedError")
        assert log.read_bytes() == before
    owner.say("end")
    assert owner.hear() == "closed"
    owner.end()


def test_an_owner_whose_whole_folder_was_replaced_takes_the_lock_that_is_there(
    owner: Child, children: Children
) -> None:
    """As a restored backup does: the lock it held is that of the folder that is gone."""
    folder = children.path / "s"
    shutil.copytree(folder, children.path / "copy")
    folder.rename(children.path / "elsewhere")
    (children.path / "copy").rename(folder)
    owner.say("after(lambda: session.append('m', 'lost?'))")
    assert owner.hear() == "CorruptionError"
    owner.say("after(lambda: session.append('m', 'one'))")
    assert owner.hear() == "1"
    with sealog.open(children.path) as store, pytest.raises(sealog.SessionLockedError):
        store.open_session("s")
    owner.say("end")
    assert owner.hear() == "closed"
    owner.end()
    with sealog.open(children.path) as store:
        assert [event.text for event in store.open_session("s").events()] == ["zero", "one"]


# -- following


def test_a_subscription_sees_what_another_process_appends(owner: Child, children: Children) -> None:
    with (
        sealog.open(children.path, read_only=True) as store,
        store.open_session("s").subscribe() as subscription,
    ):
        assert subscription.get(60)[1].text == "zero"
        for number in range(1, 4):
            owner.say(f"session.append('m', '{number}')")
            assert owner.hear() == str(number)
            position, event = subscription.get(60)
            assert (position, event.text) == (number, str(number))
        with pytest.raises(TimeoutError):
            subscription.get(0)
        owner.say("session.seal().receipt.events")
        assert owner.hear() == "4"
        with pytest.raises(sealog.SessionSealedError):
            subscription.get(60)


def test_a_subscription_of_a_session_put_to_sleep_sees_what_another_process_appends(
    children: Children,
) -> None:
    with sealog.open(children.path, max_live_sessions=1) as store:
        session = store.create_session("a")
        session.append("m", "zero")
        with session.subscribe() as subscription:
            assert subscription.get(60)[1].text == "zero"
            waiting = children.start(
                """
hear()
with sealog.open(path) as store:
    say(store.open_session("a").append("m", "one"))
"""
            )
            store.create_session("b")
            waiting.say("go")
            position, event = subscription.get(60)
            assert (position, event.text) == (1, "one")
            assert waiting.end() == ["1"]
