"""What is refused leaves nothing behind, and says which session and what to do."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sealog
from sealog.storage.reader import LogView


@pytest.fixture
def store(tmp_path: Path):
    with sealog.open(tmp_path / "store") as opened:
        yield opened


def test_a_fifo_is_no_attachment(store: sealog.Store, tmp_path: Path) -> None:
    """Opening it would wait for a writer for ever."""
    os.mkfifo(tmp_path / "fifo")
    session = store.create_session("s")
    with pytest.raises(sealog.InvalidEventError, match="not a regular file"):
        session.attach(tmp_path / "fifo")
    assert session.append("note", "still usable") == 0


def test_a_sealed_session_gets_no_folder_for_a_refused_file(store: sealog.Store) -> None:
    session = store.create_session("s")
    session.seal()
    with pytest.raises(sealog.SessionSealedError):
        session.attach(b"x")
    assert not (Path(session.path) / "attachments").exists()


def test_repairing_what_is_not_there_makes_no_store(store: sealog.Store, tmp_path: Path) -> None:
    with pytest.raises(sealog.SessionNotFoundError):
        store.repair("nope", tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_an_invalid_event_names_its_session(store: sealog.Store) -> None:
    session = store.create_session("s-1")
    for call in (
        lambda: session.append(" ", "text"),
        lambda: session.append_nowait("note", "text", {1: 2}),
        lambda: session.append_many([sealog.Event("note", "\ud800")]),
        lambda: session.attach(b"x", file_name=" "),
    ):
        with pytest.raises(sealog.InvalidEventError, match="session 's-1'") as caught:
            call()
        assert caught.value.session_id == "s-1"
    with pytest.raises(sealog.LimitExceededError, match="session 's-1'"):
        session.append_many([sealog.Event("note", "")] * 65_536)
    assert len(session) == 0


def test_an_expected_position_that_is_none_is_no_conflict(store: sealog.Store) -> None:
    """A retry loop over conflicts would never end."""
    session = store.create_session("s")
    with pytest.raises(sealog.InvalidEventError, match="expected must be a position"):
        session.append("note", "text", expected="0")  # type: ignore[arg-type]


def test_a_created_at_that_is_too_long_is_named(store: sealog.Store) -> None:
    with pytest.raises(sealog.InvalidHeaderError, match="created_at is over"):
        store.create_session("s", "x" * 70_000)


def test_a_store_path_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(sealog.StoreNotFoundError, match="leads nowhere"):
        sealog.open(tmp_path / "link")
    (tmp_path / "marked").mkdir()
    (tmp_path / "marked" / ".sealog").mkdir()
    with pytest.raises(sealog.StoreNotFoundError, match="not a regular file"):
        sealog.open(tmp_path / "marked")
    with pytest.raises(sealog.StoreNotFoundError, match="the path is empty"):
        sealog.open("")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = os.open

    def refuse(path, flags, mode=0o777, *, dir_fd=None):
        if path == ".sealog":
            raise PermissionError(13, "Permission denied", path)
        return plain(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(sealog.StoreReadOnlyError, match="cannot be written") as caught:
        sealog.open(tmp_path / "store")
    assert str(tmp_path / "store" / ".sealog") in str(caught.value)


def test_a_lock_file_that_was_removed_lets_nobody_else_in(store: sealog.Store, tmp_path: Path) -> None:
    """People remove lock files that they take for stale: the log is locked as well."""
    session = store.create_session("s")
    session.append("note", "mine 0")
    Path(session.path, "lock").unlink()
    program = (
        "import sys, sealog\n"
        "with sealog.open(sys.argv[1]) as store:\n"
        "    try: store.open_session('s').append('note', 'other')\n"
        "    except sealog.SessionLockedError: print('locked')\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, store.path], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "locked\n"
    assert session.append("note", "mine 1") == 1


def test_a_log_that_was_cut_short_under_its_owner_takes_nothing(store: sealog.Store) -> None:
    session = store.create_session("s")
    for number in range(3):
        session.append("note", f"{number}")
    os.truncate(Path(session.path, "log"), 200)
    with pytest.raises(sealog.CorruptionError, match="cut short"):
        session.append("note", "into a hole")


def test_a_quarantine_that_is_no_folder_hides_no_session(store: sealog.Store) -> None:
    store.create_session("bad")
    store.create_session("good")
    Path(store.path, "bad", "quarantine").touch()
    assert [(info.session_id, info.status) for info in store.overview()] == [
        ("bad", "damaged"),
        ("good", "ok"),
    ]


def test_the_log_of_another_session_is_not_salvaged_as_this_one(store: sealog.Store, tmp_path: Path) -> None:
    for name in ("mine", "other"):
        store.create_session(name).append("note", name)
    store.close()
    with sealog.open(store.path) as again:
        Path(store.path, "mine", "log").write_bytes(Path(store.path, "other", "log").read_bytes())
        with pytest.raises(sealog.CorruptionError, match="log of session 'other'"):
            again.repair("mine", tmp_path / "into")


def test_a_folder_without_a_log_gets_no_lock(store: sealog.Store) -> None:
    Path(store.path, "empty").mkdir()
    with pytest.raises(sealog.CorruptionError, match="log is missing"):
        store.open_session("empty")
    assert store.session_ids() == []


def test_a_store_that_was_removed_is_named(store: sealog.Store) -> None:
    shutil.rmtree(store.path)
    with pytest.raises(sealog.StoreNotFoundError, match="removed while the store was open"):
        store.create_session("s")


def test_listing_by_many_threads_at_once_is_complete(store: sealog.Store) -> None:
    names = [f"s{number:03}" for number in range(200)]
    for name in names:
        Path(store.path, name).mkdir()
        Path(store.path, name, "log").touch()
    with ThreadPoolExecutor(8) as pool:
        for listed in pool.map(lambda _: store.session_ids(), range(64)):
            assert listed == names


def test_damage_behind_what_was_asked_for_is_nobodys_business(store: sealog.Store) -> None:
    session = store.create_session("s")
    for number in range(3):
        session.append("note", f"text {number}")
    log = Path(session.path, "log")
    data = bytearray(log.read_bytes())
    data[data.index(b"text 1")] ^= 1
    log.write_bytes(data)
    assert [event.text for event in session[0:1]] == ["text 0"]
    with pytest.raises(sealog.CorruptionError):
        session[0:2]


def test_a_batch_that_is_repeated_decodes_its_frame_once(
    store: sealog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once for each of its events and keys: the session would be busy for hours."""
    session = store.create_session("s")
    batch = [sealog.Event("note", f"text {number}", key=f"key {number}") for number in range(500)]
    assert session.append_many(batch) == range(500)
    decoded: list[int] = []
    plain = LogView.frame_at

    def counted(self, position, head):
        decoded.append(position)
        return plain(self, position, head)

    monkeypatch.setattr(LogView, "frame_at", counted)
    assert session.append_many(batch) == range(500)
    assert len(decoded) == 1


def test_a_known_key_in_another_batch_is_named_as_what_it_is(store: sealog.Store) -> None:
    session = store.create_session("s")
    session.append("note", "first", key="k")
    session.append("note", "second")
    with pytest.raises(sealog.KeyConflictError, match="key 'k' is known, but position 1") as caught:
        session.append_many([sealog.Event("note", "first", key="k"), sealog.Event("note", "other")])
    assert caught.value.position == 0


def test_events_without_an_end_are_refused(store: sealog.Store) -> None:
    session = store.create_session("s")
    with pytest.raises(sealog.LimitExceededError):
        session.append_many(itertools.repeat(sealog.Event("note", "")))


def test_a_session_made_anew_by_others_is_recovered_and_described(store: sealog.Store) -> None:
    """What this process remembers is an earlier session of that id."""
    store.create_session("s").append("note", "old")
    with sealog.open(store.path) as same:
        handle = same.open_session("s")
    store.close()
    program = (
        "import sys, sealog\n"
        "with sealog.open(sys.argv[1]) as store:\n"
        "    store.delete_session('s')\n"
        "    store.create_session('s').append_many([sealog.Event('note', 'new')] * 2)\n"
    )
    with sealog.open(store.path, max_live_sessions=1) as again:
        handle = again.open_session("s")
        again.create_session("other")  # puts the first one to sleep
        subprocess.run([sys.executable, "-c", program, again.path], check=True)
        assert again.describe("s").events == 2
        assert {report.session_id: report.events for report in again.recover_all()}["s"] == 2
        with pytest.raises(sealog.SessionDeletedError):
            handle.append("note", "to the old one")


def test_a_folder_that_cannot_be_read_hides_no_session(
    store: sealog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_session("good")
    Path(store.path, "theirs").mkdir()
    Path(store.path, "theirs", "log").touch()
    plain = os.open

    def refuse(path, flags, mode=0o777, *, dir_fd=None):
        if str(path).startswith("theirs"):
            raise PermissionError(13, "Permission denied", path)
        return plain(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    assert {info.session_id: info.status for info in store.overview()} == {
        "good": "ok",
        "theirs": "damaged",
    }
