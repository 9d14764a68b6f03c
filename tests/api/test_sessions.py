"""Sessions: made, opened, listed, described, deleted."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import sealog

from .kit import Kit, Task, texts, until_lending

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GOOD_IDS = ["a", "A-1_b", "0", "-", "_", "x" * 255, "2026-01-01T00-00-00"]
BAD_IDS = [
    *("", " ", "a b", "a/b", "../a", ".", "..", ".sealog", "a.b", "x" * 256, "é", "a\n", "a\0", "٣", "a:b"),
    *(None, 7, b"a", ["a"], object()),
]


class StrangeStr(str):
    """A str that shows itself as another one."""

    __slots__ = ()

    def __str__(self) -> str:
        return "../elsewhere"


@pytest.fixture
def store(kit: Kit) -> sealog.Store:
    return kit.store()


@pytest.mark.parametrize("session_id", GOOD_IDS)
def test_an_id_is_a_folder(kit: Kit, store: sealog.Store, session_id: str) -> None:
    session = store.create_session(session_id)
    assert session.session_id == session_id
    assert session.path == str(kit.path / session_id)
    assert session.append("m", "x") == 0
    assert store.session_ids() == [session_id]
    assert store.open_session(session_id)[0].text == "x"


@pytest.mark.parametrize("session_id", BAD_IDS, ids=repr)
def test_what_is_no_id_is_refused_by_every_call(kit: Kit, store: sealog.Store, session_id: Any) -> None:
    before = kit.snapshot()
    for call in (
        store.create_session,
        store.open_session,
        store.describe,
        store.delete_session,
        store.verify,
        lambda session_id: store.repair(session_id, kit.path.parent / "copy"),
    ):
        with pytest.raises(sealog.InvalidSessionIdError) as caught:
            call(session_id)
        assert caught.value.session_id is session_id
        assert "1 to 255" in str(caught.value)
    assert kit.snapshot() == before
    assert not (kit.path.parent / "copy").exists()
    assert store.create_session("fine").append("m", "x") == 0


def test_a_long_bad_id_does_not_fill_the_screen(store: sealog.Store) -> None:
    with pytest.raises(sealog.InvalidSessionIdError) as caught:
        store.create_session("!" * 100_000)
    assert len(str(caught.value)) < 300


def test_an_id_that_shows_itself_as_another_names_what_it_holds(kit: Kit, store: sealog.Store) -> None:
    assert store.create_session(StrangeStr("mine")).session_id == "mine"
    assert store.session_ids() == ["mine"]
    assert not (kit.path.parent / "elsewhere").exists()


# -- create


def test_a_session_has_the_time_of_now_and_no_labels(store: sealog.Store) -> None:
    before = dt.datetime.now(dt.UTC)
    header = store.create_session("s").header
    assert before <= dt.datetime.fromisoformat(header.created_at) <= dt.datetime.now(dt.UTC)
    assert header.created_at.endswith("Z")
    assert header.labels == {}
    assert header.session_id == "s"


def test_a_session_keeps_what_it_was_created_with(kit: Kit, store: sealog.Store) -> None:
    labels = {"title": "first try", "": "empty name", "ключ": "значение"}
    session = store.create_session("s", "whenever", labels)
    labels["title"] = "changed later"
    for handle in (session, store.open_session("s")):
        assert handle.header.created_at == "whenever"
        assert handle.header.labels["title"] == "first try"
    session.header.labels["title"] = "changed in a copy"
    assert session.header.labels["title"] == "first try"
    store.close()
    again = kit.store().open_session("s")
    assert again.header == sealog.SessionHeader("s", "whenever", {**labels, "title": "first try"})


@pytest.mark.parametrize("created_at", ["", " ", "\t\n", "\u3000", 7, b"now", "\ud800", dt.date(2026, 1, 1)])
def test_a_created_at_that_is_blank_or_no_text_is_refused(
    kit: Kit, store: sealog.Store, created_at: Any
) -> None:
    before = kit.snapshot()
    with pytest.raises(sealog.InvalidHeaderError) as caught:
        store.create_session("s", created_at)
    assert (caught.value.session_id, caught.value.field) == ("s", "created_at")
    assert "'s'" in str(caught.value)
    assert "created_at" in str(caught.value)
    assert kit.snapshot() == before
    assert store.create_session("s").append("m", "x") == 0


@pytest.mark.parametrize(
    "labels",
    [
        {"a": 1},
        {1: "a"},
        {"a": None},
        {"a": b"x"},
        {"a": "\ud800"},
        ["a"],
        "a",
        {"a": "x" * 70_000},
        {"a": ["b"]},
    ],
    ids=lambda labels: repr(labels)[:20],
)
def test_labels_that_are_not_text_to_text_are_refused(kit: Kit, store: sealog.Store, labels: Any) -> None:
    before = kit.snapshot()
    with pytest.raises(sealog.InvalidHeaderError) as caught:
        store.create_session("s", labels=labels)
    assert caught.value.field == "labels"
    assert kit.snapshot() == before
    assert store.create_session("s").append("m", "x") == 0


def test_an_id_that_is_taken_is_refused(kit: Kit, store: sealog.Store) -> None:
    session = store.create_session("s", "then")
    session.append("m", "x")
    until_lending(session)
    before = kit.snapshot()
    with pytest.raises(sealog.SessionExistsError) as caught:
        store.create_session("s", "now")
    assert (caught.value.session_id, caught.value.path) == ("s", session.path)
    assert "open_session()" in str(caught.value)
    assert kit.snapshot() == before
    assert session.append("m", "y") == 1
    assert session.header.created_at == "then"


@pytest.mark.parametrize("what", ["file", "folder", "full folder", "link"])
def test_an_id_whose_place_is_taken_by_something_else_is_refused(
    kit: Kit, store: sealog.Store, what: str
) -> None:
    place = kit.path / "s"
    if what == "file":
        place.write_text("mine")
    elif what == "link":
        place.symlink_to("/nowhere")
    else:
        place.mkdir()
        if what == "full folder":
            (place / "mine").write_text("mine")
    with pytest.raises(sealog.SessionExistsError):
        store.create_session("s")
    assert store.session_ids() == []
    with pytest.raises((sealog.SessionNotFoundError, sealog.CorruptionError)):
        store.open_session("s")
    assert place.is_symlink() or place.exists()


# -- open


def test_a_session_that_is_not_there_is_not_found_and_not_made(kit: Kit, store: sealog.Store) -> None:
    before = kit.snapshot()
    for call in (store.open_session, store.describe, store.delete_session, store.verify):
        with pytest.raises(sealog.SessionNotFoundError) as caught:
            call("typo")
        assert (caught.value.session_id, caught.value.store) == ("typo", str(kit.path))
        assert "session_ids()" in str(caught.value)
    assert kit.snapshot() == before


def test_opening_twice_gives_two_handles_on_one_session(store: sealog.Store) -> None:
    one, two = store.create_session("s"), store.open_session("s")
    assert one is not two
    assert [one.append("m", "x"), two.append("m", "y")] == [0, 1]
    assert texts(one) == texts(two) == ["x", "y"]


def test_verify_takes_two_words(store: sealog.Store) -> None:
    store.create_session("s").append("m", "x")
    assert len(store.open_session("s", verify="full")) == 1
    assert len(store.open_session("s", verify="tail")) == 1
    with pytest.raises(ValueError, match="'tail' or 'full'"):
        store.open_session("s", verify="everything")  # type: ignore[arg-type]


# -- list and describe


def test_sessions_are_listed_in_order_and_nothing_else_is(kit: Kit, store: sealog.Store) -> None:
    for session_id in ("b", "a", "C", "10", "9"):
        store.create_session(session_id)
    (kit.path / "file").write_text("mine")
    (kit.path / "folder").mkdir()
    (kit.path / "with.dot").mkdir()
    (kit.path / "link").symlink_to(kit.path / "a")
    (kit.path / "a" / "log").write_bytes(b"damaged")
    shutil.rmtree(kit.path / "b")
    assert store.session_ids() == ["10", "9", "C", "a"]


def test_a_session_is_described_without_being_opened(kit: Kit, store: sealog.Store) -> None:
    session = store.create_session("s", "then", {"a": "b"})
    empty = store.describe("s")
    assert (empty.events, empty.sealed, empty.last_at, empty.status) == (0, False, None, "ok")
    session.append_many([sealog.Event("m", "x", at=5), sealog.Event("m", "y", at=7)])
    until_lending(session)
    live = store.describe("s")
    store.close()
    store = kit.store()
    dormant = store.describe("s")
    assert store.stats().live_sessions == 0
    for info in (live, dormant):
        assert info.session_id == "s"
        assert info.events == 2
        assert info.created_at == "then"
        assert info.labels == {"a": "b"}
        assert info.last_at == 7
        assert info.quarantine_bytes == 0
        assert info.reason is None
    assert dormant.size_bytes == (kit.path / "s" / "log").stat().st_size
    store.open_session("s").seal()
    assert store.describe("s").sealed


def test_a_description_is_the_callers_own(store: sealog.Store) -> None:
    store.create_session("s", labels={"a": "b"})
    store.describe("s").labels["a"] = "changed"
    assert store.describe("s").labels == {"a": "b"}


# -- delete


@pytest.mark.parametrize("live", [False, True])
def test_a_deleted_session_is_gone_with_all_that_belonged_to_it(
    kit: Kit, store: sealog.Store, live: bool
) -> None:
    session = store.create_session("s")
    session.append("m", "x")
    session.attach(b"bytes")
    if not live:
        store.close()
        store = kit.store()
    store.delete_session("s")
    assert sorted(entry.name for entry in kit.path.iterdir()) == [".sealog"]
    assert store.session_ids() == []
    with pytest.raises(sealog.SessionNotFoundError):
        store.delete_session("s")
    again = store.create_session("s")
    assert len(again) == 0
    assert again.append("m", "new") == 0


def test_every_call_of_a_handle_on_a_deleted_session_raises(kit: Kit, store: sealog.Store) -> None:
    session = store.create_session("s")
    session.append("m", "x")
    store.delete_session("s")
    store.create_session("s").append("m", "another")
    calls: list[Callable[[], Any]] = [
        lambda: session.append("m", "x"),
        lambda: session.append("m", "x", timeout=1),
        lambda: session.append_many([sealog.Event("m", "x")]),
        lambda: session.append_many([]),
        lambda: session.append_nowait("m", "x"),
        lambda: session.attach(b"x"),
        lambda: list(session.events()),
        lambda: len(session),
        lambda: session[0],
        lambda: session.tail(1),
        lambda: session.is_sealed,
        lambda: session.subscribe().get(0),
        lambda: session.read_attachment(0),
        session.seal,
        session.delete_abandoned,
        session.delete_committed,
    ]
    for number, call in enumerate(calls):
        with pytest.raises(sealog.SessionDeletedError) as caught:
            call()
        assert (caught.value.session_id, caught.value.path) == ("s", str(kit.path / "s")), number
        assert "open_session()" in str(caught.value)
    assert texts(store.open_session("s")) == ["another"]


def test_what_a_session_was_sent_is_committed_before_it_is_deleted(kit: Kit, store: sealog.Store) -> None:
    session = store.create_session("s")
    gate = kit.fs.hold("sync_data", "s/log")
    futures = [session.append_nowait("m", str(number)) for number in range(5)]
    gate.wait_reached()
    deleting = Task(store.delete_session, "s")
    gate.open()
    deleting.result()
    assert [future.result(0) for future in futures] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("call", ["delete_session", "delete_committed"])
def test_a_session_that_must_be_sealed_is_kept_until_it_is(kit: Kit, store: sealog.Store, call: str) -> None:
    session = store.create_session("s")
    session.append("m", "x")

    def delete() -> None:
        if call == "delete_session":
            store.delete_session("s", require_sealed=True)
        else:
            session.delete_committed()

    with pytest.raises(sealog.SessionNotSealedError) as caught:
        delete()
    assert caught.value.session_id == "s"
    assert "seal()" in str(caught.value)
    assert session.append("m", "y") == 1
    session.seal()
    delete()
    assert store.session_ids() == []


def test_an_abandoned_session_is_deleted_sealed_or_not(store: sealog.Store) -> None:
    store.create_session("open").delete_abandoned()
    sealed = store.create_session("sealed")
    sealed.seal()
    sealed.delete_abandoned()
    assert store.session_ids() == []


@pytest.mark.parametrize("damage", ["no log", "no lock", "garbage", "folder as log", "empty log"])
def test_a_session_that_cannot_be_read_can_be_deleted(kit: Kit, store: sealog.Store, damage: str) -> None:
    store.create_session("s").append("m", "x")
    store.close()
    store = kit.store()
    log = kit.path / "s" / "log"
    if damage == "no lock":
        (kit.path / "s" / "lock").unlink()
    elif damage == "garbage":
        log.write_bytes(os.urandom(500))
    else:
        log.unlink()
        if damage == "folder as log":
            (log / "inner").mkdir(parents=True)
        elif damage == "empty log":
            log.touch()
    store.delete_session("s")
    assert sorted(entry.name for entry in kit.path.iterdir()) == [".sealog"]


def test_a_delete_that_the_disk_refuses_leaves_the_session(kit: Kit, store: sealog.Store) -> None:
    session = store.create_session("s")
    session.append("m", "x")
    trash = kit.fs.fail("rename", "", times=None)
    trash.matches = lambda call, path: call == "rename" and "/.trash-" in path  # type: ignore[method-assign]
    with pytest.raises(OSError, match="Input/output"):
        store.delete_session("s")
    kit.fs.heal()
    assert session.append("m", "y") == 1
    assert texts(session) == ["x", "y"]


def test_nothing_outside_is_followed_when_a_session_is_deleted(
    kit: Kit, store: sealog.Store, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    store.create_session("s")
    (kit.path / "s" / "link").symlink_to(outside, target_is_directory=True)
    store.delete_session("s")
    assert (outside / "mine").read_text() == "mine"
