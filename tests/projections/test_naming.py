"""Keys of any owner are mapped to session ids that no other key has."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sealog
from sealog.projections import AcpSessions, HarnessMemory, KeySpace, WorkerState
from sealog.projections.harness import SESSIONS
from sealog.projections.naming import encode_key

from .kit import MANIFEST

if TYPE_CHECKING:
    from pathlib import Path

KEYS = st.text(st.characters(exclude_categories=("Cs",)), max_size=80) | st.from_regex(
    r"(k--)?[a-z0-9_-]{0,210}", fullmatch=True
)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("s1", "s1"),
        ("a_b-c", "a_b-c"),
        ("-", "-"),
        ("k-", "k-"),
        ("k--", "k--nmws2"),
        ("k--s1", "k--nmws24zr"),
        ("", "k--"),
        ("S1", "k--kmyq"),
        ("../../x", "k--fyxc6lrof54a"),
        ("ü ☃", "k--yo6cbyuyqm"),
        ("a\0b", "k--meage"),
        ("a" * 200, "a" * 200),
        ("a" * 201, "k--h-" + hashlib.sha256(b"a" * 201).hexdigest()),
        ("A" * 123, "k--" + "ifaucqkb" * 24 + "ifauc"),
        ("A" * 124, "k--h-" + hashlib.sha256(b"A" * 124).hexdigest()),
    ],
)
def test_a_key_becomes_a_name(key: str, name: str):
    assert encode_key(key) == name


@given(KEYS, KEYS)
def test_two_keys_never_share_a_name(one: str, other: str):
    names = [
        space.session_id(key)
        for space in (SESSIONS, KeySpace("acp"), KeySpace("acp2"))
        for key in {one, other, encode_key(one), KeySpace("acp").session_id(one)}
    ]
    assert len({name.lower() for name in names}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_-]{1,255}", name) for name in names)


@pytest.mark.parametrize("key", [5, None, b"x", "\ud800"])
def test_what_is_no_text_is_no_key(store: sealog.Store, key: str):
    memory = HarnessMemory(store)
    for call in (memory.is_initialized, memory.load_transcript_messages, memory.export_state):
        with pytest.raises(sealog.InvalidHeaderError, match="its key"):
            call(key)
    with pytest.raises(sealog.InvalidHeaderError, match="its key"):
        AcpSessions(store).persist_session_id(key, "sid")
    assert store.session_ids() == []


@pytest.mark.parametrize("owner", ["", "h", "a-b", "Acp", "x" * 41])
def test_an_owner_has_a_name_that_keeps_ids_apart(owner: str):
    with pytest.raises(ValueError, match="an owner is"):
        KeySpace(owner)


def test_long_keys_are_told_apart(store: sealog.Store):
    memory = HarnessMemory(store)
    memory.save_manifest("x" * 60_000, MANIFEST)
    assert memory.is_initialized("x" * 60_000)
    assert not memory.is_initialized("x" * 59_999)
    assert memory.session_ids() == ["x" * 60_000]
    with pytest.raises(sealog.InvalidHeaderError):
        memory.save_manifest("x" * 70_000, MANIFEST)


def test_owners_with_one_key_have_logs_of_their_own(store: sealog.Store):
    memory, acp, threads = HarnessMemory(store), AcpSessions(store), KeySpace("threads")
    for key in ("s1", "", "k--acp-s1", "Ü"):
        memory.save_manifest(key, MANIFEST)
        acp.persist_session_id(key, f"sid of {key}")
        threads.open(store, key).append("user-message", "hi")
    assert len(store.session_ids()) == 12
    for key in ("s1", "", "k--acp-s1", "Ü"):
        thread = threads.find(store, key)
        assert thread is not None
        thread.delete_abandoned()
        assert memory.is_initialized(key)
        assert acp.load_session_id(key) == f"sid of {key}"
    assert list(threads.keys(store)) == []
    assert sorted(memory.session_ids()) == sorted(acp.targets()) == ["", "k--acp-s1", "s1", "Ü"]


def test_a_session_of_somebody_else_is_left_alone(store: sealog.Store):
    own = store.create_session("s1")
    own.append("user-message", "mine")
    for labels in ({"key": "other", "owner": "harness"}, {"key": "s2", "owner": "acp"}, {"key": "s2"}):
        store.create_session("s2", labels=labels)
        memory = HarnessMemory(store)
        for key in ("s1", "s2"):
            with pytest.raises(sealog.SessionExistsError):
                memory.is_initialized(key)
            with pytest.raises(sealog.SessionExistsError):
                memory.save_manifest(key, MANIFEST)
        assert memory.session_ids() == []
        store.delete_session("s2")
    assert [event.text for event in own] == ["mine"]


def test_something_else_in_the_place_of_a_session_is_not_waited_for(store: sealog.Store, tmp_path: Path):
    (tmp_path / "store" / "s1").write_text("a file")
    with pytest.raises((sealog.SealogError, OSError)):
        HarnessMemory(store).save_manifest("s1", MANIFEST)


def test_damaged_sessions_do_not_hide_the_others(store: sealog.Store, tmp_path: Path):
    acp = AcpSessions(store)
    acp.persist_session_id("a", "1")
    acp.persist_worker_state("b", "2", WorkerState.BUSY)
    (tmp_path / "store" / "k--acp-c").mkdir()
    assert acp.targets() == ["a", "b"]


def test_a_race_for_a_session_that_never_ends_is_given_up(
    store: sealog.Store, monkeypatch: pytest.MonkeyPatch
):
    store.create_session("s1", labels=SESSIONS.labels("s1"))
    monkeypatch.setattr(KeySpace, "find", lambda *_: None)
    with pytest.raises(sealog.SessionExistsError):
        SESSIONS.open(store, "s1")


def test_a_session_that_is_deleted_while_keys_are_listed_is_left_out(
    store: sealog.Store, monkeypatch: pytest.MonkeyPatch
):
    for key in ("a", "b"):
        SESSIONS.open(store, key)
    ids = store.session_ids()
    monkeypatch.setattr(store, "session_ids", lambda: ids)
    store.delete_session("a")
    assert list(SESSIONS.keys(store)) == ["b"]
