"""Damaged, foreign and newer files: each its own error, nothing touched, and the rest of the store works."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.storage.format import Head, encode_frame, first_previous, parse_file_header

from .kit import Kit, texts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def spoil(change: Callable[[bytearray], None]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        data = bytearray((folder / "log").read_bytes())
        change(data)
        (folder / "log").write_bytes(data)

    return apply


def flip(at: int) -> Callable[[Path], None]:
    def change(data: bytearray) -> None:
        data[at] ^= 0xFF

    return spoil(change)


def flip_in(text: str) -> Callable[[Path], None]:
    def change(data: bytearray) -> None:
        data[data.index(text.encode())] ^= 0xFF

    return spoil(change)


def cut(size: int) -> Callable[[Path], None]:
    def change(data: bytearray) -> None:
        del data[size:]

    return spoil(change)


def remove_log(folder: Path) -> None:
    (folder / "log").unlink()


def log_is_a_folder(folder: Path) -> None:
    (folder / "log").unlink()
    (folder / "log").mkdir()


def log_is_a_link(folder: Path) -> None:
    (folder / "log").rename(folder / "other")
    (folder / "log").symlink_to(folder / "other")


def log_is_a_pipe(folder: Path) -> None:
    (folder / "log").unlink()
    os.mkfifo(folder / "log")


def log_is_json(folder: Path) -> None:
    (folder / "log").write_text('{"kind": "user-message", "text": "hello"}\n' * 10)


def log_of_another_session(folder: Path) -> None:
    shutil.copy(folder.parent / "other" / "log", folder / "log")


def bytes_behind_the_seal(folder: Path) -> None:
    with (folder / "log").open("ab") as log:
        log.write(b"more")


DAMAGE: dict[str, Callable[[Path], None]] = {
    "first byte": flip(0),
    "salt": flip(20),
    "session header": flip(80),
    "an early event": flip(200),
    "cut to nothing": cut(0),
    "cut in the header": cut(20),
    "cut behind the header": cut(32),
    "cut in the middle": cut(260),
    "no log": remove_log,
    "folder": log_is_a_folder,
    "link": log_is_a_link,
    "pipe": log_is_a_pipe,
    "json": log_is_json,
    "another session": log_of_another_session,
    "behind the seal": bytes_behind_the_seal,
}


@pytest.fixture
def store(kit: Kit) -> sealog.Store:
    """Return a store with a sealed session `s` and another one, both closed before."""
    store = kit.store()
    session = store.create_session("s")
    for number in range(8):
        session.append("m", f"{number}" * 50)
    session.seal()
    store.create_session("other").append("m", "x")
    store.close()
    return kit.store()


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_session_is_refused_described_and_left_alone(
    kit: Kit, store: sealog.Store, name: str
) -> None:
    DAMAGE[name](kit.path / "s")
    before = listing(kit.path / "s")
    for call in (
        lambda: store.open_session("s", verify="full"),
        lambda: list(reader(kit).open_session("s", verify="full").events()),
    ):
        with pytest.raises(sealog.CorruptionError) as caught:
            call()
        error = caught.value
        assert error.path == str(kit.path / "s" / "log")
        assert error.path in str(error)
        assert error.offset >= 0
        assert error.position >= 0
        assert error.reason
        assert "sealog repair" in str(error)
    report = store.verify("s")
    assert not report.ok
    assert report.problems
    assert store.session_ids() == ["other", "s"]
    assert listing(kit.path / "s") == before
    assert texts(store.open_session("other")) == ["x"]
    assert store.open_session("other").append("m", "y") == 1


def reader(kit: Kit) -> sealog.Store:
    return kit.store(read_only=True)


def listing(folder: Path) -> dict[str, Any]:
    """Return what is in a folder; the lock file says who looked last, which is no content."""
    return {
        entry.name: entry.read_bytes() if entry.is_file() else None
        for entry in folder.iterdir()
        if entry.name != "lock"
    }


@pytest.mark.parametrize("name", ["first byte", "session header", "no log", "json", "another session"])
def test_a_damaged_session_is_described_and_reported_and_does_not_stop_the_others(
    kit: Kit, store: sealog.Store, name: str
) -> None:
    DAMAGE[name](kit.path / "s")
    info = store.describe("s")
    assert info.status == "damaged"
    assert info.events is None
    assert info.created_at is None
    assert info.reason
    reports = {report.session_id: report for report in store.recover_all()}
    assert reports["s"].status == "damaged"
    assert reports["s"].reason
    assert reports["other"].status == "clean"


@pytest.mark.parametrize("live", [False, True])
def test_a_session_damaged_in_the_middle_opens_and_fails_where_it_is_read(
    kit: Kit, store: sealog.Store, live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening checks the end of a log; the rest is checked when it is read, or by verify="full"."""
    monkeypatch.setattr("sealog.storage.recovery.VERIFY_TAIL_BYTES", 100)
    if live:
        session = store.open_session("s")
    flip_in("2222")(kit.path / "s")
    if not live:
        session = store.open_session("s")
    assert len(session) == 8
    assert session[7].text == "7" * 50
    with pytest.raises(sealog.CorruptionError) as caught:
        list(session.events())
    assert caught.value.position == 2
    with pytest.raises(sealog.CorruptionError):
        session[caught.value.position]
    with pytest.raises(sealog.CorruptionError):
        store.open_session("s", verify="full")


def newer_major(folder: Path) -> None:
    from sealog.storage.format import FILE_HEADER, MAGIC, _file_check

    data = bytearray((folder / "log").read_bytes())
    salt = bytes(data[16:32])
    data[:32] = FILE_HEADER.pack(MAGIC, 2, 0, _file_check(2, 0, salt), salt)
    (folder / "log").write_bytes(data)


def newer_frame(folder: Path) -> None:
    data = (folder / "log").read_bytes()[:32]
    keys = parse_file_header(data, "log")
    assert keys is not None
    frame, _ = encode_frame(keys, Head(32, 0, first_previous(keys)), 9, 0, b"\x80")
    (folder / "log").write_bytes(data + frame)


@pytest.mark.parametrize("newer", [newer_major, newer_frame])
def test_a_log_of_a_newer_version_is_never_called_damaged(
    kit: Kit, store: sealog.Store, newer: Callable[[Path], None]
) -> None:
    newer(kit.path / "s")
    before = listing(kit.path / "s")
    for call in (lambda: store.open_session("s"), lambda: reader(kit).open_session("s")):
        with pytest.raises(sealog.UpgradeRequiredError) as caught:
            call()
        assert caught.value.path == str(kit.path / "s" / "log")
        assert "newer version" in str(caught.value)
        assert not isinstance(caught.value, sealog.CorruptionError)
    assert listing(kit.path / "s") == before
    assert "newer" in str(store.describe("s").reason)
    assert [report.session_id for report in store.recover_all() if report.status == "clean"] == ["other"]


# -- recovery


def tear(folder: Path) -> None:
    with (folder / "log").open("ab") as log:
        log.write(b"the beginning of a write that was interrupted")


def test_a_torn_tail_is_cut_off_kept_and_reported(kit: Kit, store: sealog.Store) -> None:
    tear(kit.path / "other")
    info = store.describe("other")
    assert info.status == "torn"
    assert info.events == 1
    assert "45 bytes" in str(info.reason)
    session = store.open_session("other")
    report = session.recovered
    assert report is not None
    assert (report.session_id, report.status, report.events, report.dropped_bytes) == (
        "other",
        "recovered",
        1,
        45,
    )
    assert report.quarantined is not None
    with open(report.quarantined, "rb") as kept:
        assert kept.read() == b"the beginning of a write that was interrupted"
    assert session.append("m", "y") == 1
    assert store.describe("other").quarantine_bytes == 45
    assert store.describe("other").status == "ok"
    store.close()
    again = kit.store().open_session("other")
    assert again.recovered is None
    assert texts(again) == ["x", "y"]


def test_reading_a_torn_session_changes_nothing(kit: Kit, store: sealog.Store) -> None:
    tear(kit.path / "other")
    before = kit.snapshot()
    session = reader(kit).open_session("other")
    assert texts(session) == ["x"]
    assert session.recovered is None
    assert kit.snapshot() == before


def test_all_sessions_are_recovered_with_progress(kit: Kit, store: sealog.Store) -> None:
    for number in range(3):
        store.create_session(f"t{number}").append("m", "x")
    store.close()
    store = kit.store()
    tear(kit.path / "t1")
    remove_log(kit.path / "t2")
    told: list[tuple[int, int, sealog.RecoveryReport]] = []
    reports = store.recover_all(lambda *progress: told.append(progress))
    assert (
        [report.session_id for report in reports] == store.session_ids() == ["other", "s", "t0", "t1", "t2"]
    )
    assert [report.status for report in reports] == ["clean", "clean", "clean", "recovered", "damaged"]
    assert told == [(done, 5, report) for done, report in enumerate(reports, 1)]
    assert store.stats().live_sessions == 0
    assert [report.status for report in store.recover_all()][3] == "clean"


def test_recovery_of_a_live_session_only_looks(kit: Kit, store: sealog.Store) -> None:
    session = store.open_session("other")
    session.append("m", "y")
    reports = {report.session_id: report for report in store.recover_all()}
    assert (reports["other"].status, reports["other"].events) == ("clean", 2)
    assert session.append("m", "z") == 2


def test_a_progress_that_raises_ends_the_recovery_and_nothing_else(kit: Kit, store: sealog.Store) -> None:
    def raising(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.recover_all(raising)
    assert store.open_session("other").append("m", "y") == 1


def test_a_damaged_session_is_repaired_into_a_copy(kit: Kit, store: sealog.Store, tmp_path: Path) -> None:
    flip(330)(kit.path / "s")
    before = listing(kit.path / "s")
    report = store.repair("s", tmp_path / "copy")
    assert report.gaps
    assert listing(kit.path / "s") == before
    with sealog.open(tmp_path / "copy") as copy:
        session = copy.open_session("s")
        assert len(session) == 8
        assert [event.kind for event in session].count("sealog.lost") == report.gaps[0].events
        with pytest.raises(sealog.SessionExistsError):
            store.repair("s", tmp_path / "copy")
