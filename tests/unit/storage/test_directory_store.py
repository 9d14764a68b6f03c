"""Stores as directories: made, found, marked, locked, swept and listed."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from sealog.storage.directory import (
    MARKER_TEXT,
    claim_store,
    open_store_directory,
    session_ids,
)
from sealog.storage.errors import StoreNotFoundError, UpgradeRequiredError
from sealog.storage.vfs import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import FaultyFileSystem, Kit


@pytest.fixture
def fs() -> OsFileSystem:
    return OsFileSystem()


@pytest.fixture(params=[0o000, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


class TestOpen:
    def test_it_is_made_with_its_parents(self, fs: OsFileSystem, tmp_path: Path, umask: int) -> None:
        path = tmp_path / "a" / "b" / "store"
        open_store_directory(fs, str(path), create=True).close()
        assert (path / ".sealog").read_bytes() == MARKER_TEXT == b"sealog store 1\n"
        assert stat.S_IMODE((path / ".sealog").stat().st_mode) == 0o600
        for made in (path, path.parent, path.parent.parent):
            assert stat.S_IMODE(made.stat().st_mode) == 0o700

    def test_the_way_to_it_is_synced_before_its_marker_is_there(self, kit: Kit, tmp_path: Path) -> None:
        """A store whose name is not synced would be lost."""
        kit.faults.clear()
        open_store_directory(kit.fs, str(tmp_path / "a" / "b"), create=True).close()
        calls = kit.faults.calls
        marked = calls.index("pwrite .sealog")
        assert max(calls.index("sync a"), calls.index(f"sync {tmp_path.name}")) < marked
        assert marked < calls.index("sync_data .sealog") < calls.index("sync b")

    @pytest.mark.parametrize("code", [errno.EROFS, errno.EINVAL, errno.EACCES])
    def test_what_is_above_it_may_be_read_only_or_not_ours(
        self, kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        above = str(tmp_path.parent)
        if code == errno.EACCES:
            plain = kit.fs.open_directory

            def open_directory(path: str) -> Any:
                if path == above:
                    raise PermissionError(code, "no", path)
                return plain(path)

            monkeypatch.setattr(kit.fs, "open_directory", open_directory)
        else:
            kit.faults.fail(f"sync {tmp_path.parent.name}", code)
        open_store_directory(kit.fs, str(tmp_path / "a"), create=True).close()
        assert (tmp_path / "a" / ".sealog").exists()

    def test_a_way_to_it_that_cannot_be_synced_is_an_error(self, kit: Kit, tmp_path: Path) -> None:
        kit.faults.fail(f"sync {tmp_path.parent.name}")
        with pytest.raises(OSError, match="made to fail"):
            open_store_directory(kit.fs, str(tmp_path / "a"), create=True)
        assert not (tmp_path / "a" / ".sealog").exists()

    def test_opening_it_again_changes_nothing(self, kit: Kit) -> None:
        before = kit.snapshot()
        for create in (True, False):
            open_store_directory(kit.fs, str(kit.path), create=create).close()
        assert kit.snapshot() == before

    def test_an_empty_directory_becomes_a_store_if_wanted(self, fs: OsFileSystem, tmp_path: Path) -> None:
        with pytest.raises(StoreNotFoundError, match=r"has no \.sealog file"):
            open_store_directory(fs, str(tmp_path), create=False)
        assert list(tmp_path.iterdir()) == []
        open_store_directory(fs, str(tmp_path), create=True).close()
        assert [path.name for path in tmp_path.iterdir()] == [".sealog"]

    def test_nothing_is_made_unasked(self, fs: OsFileSystem, tmp_path: Path) -> None:
        with pytest.raises(StoreNotFoundError, match="nothing is there") as caught:
            open_store_directory(fs, str(tmp_path / "no"), create=False)
        assert caught.value.path == str(tmp_path / "no")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("create", [True, False])
    def test_a_file_is_no_store(self, fs: OsFileSystem, tmp_path: Path, create: bool) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(StoreNotFoundError, match="a file is there"):
            open_store_directory(fs, str(tmp_path / "file"), create=create)
        assert (tmp_path / "file").read_text() == "x"

    def test_nothing_is_made_inside_a_file(self, fs: OsFileSystem, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(StoreNotFoundError, match="file is a file, so no directory can be made in it"):
            open_store_directory(fs, str(tmp_path / "file" / "a" / "store"), create=True)

    def test_the_path_may_be_a_link(self, kit: Kit, tmp_path: Path) -> None:
        """Whoever gave the path chose it; below it nothing is followed."""
        kit.create()
        (tmp_path / "link").symlink_to(kit.path)
        directory = open_store_directory(kit.fs, str(tmp_path / "link"), create=False)
        assert session_ids(directory) == ["s"]
        directory.close()

    def test_a_link_in_the_place_of_the_marker_is_not_followed(self, kit: Kit, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").write_bytes(MARKER_TEXT)
        (kit.path / ".sealog").unlink()
        (kit.path / ".sealog").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreNotFoundError, match="not a regular file"):
            open_store_directory(kit.fs, str(kit.path), create=True)


class TestMarker:
    @pytest.mark.parametrize("text", [b"sealog store 2\n", b"sealog store 1\nmore", b"sealog store 10\n"])
    def test_another_version_asks_for_an_upgrade(self, kit: Kit, text: bytes) -> None:
        (kit.path / ".sealog").write_bytes(text)
        with pytest.raises(UpgradeRequiredError) as caught:
            open_store_directory(kit.fs, str(kit.path), create=True)
        assert caught.value.path == str(kit.path / ".sealog")
        assert (kit.path / ".sealog").read_bytes() == text

    @pytest.mark.parametrize("text", [b"", b"\0" * 15, b"seal", b"sealog\0\0\0"])
    def test_a_half_made_one_is_completed(self, kit: Kit, text: bytes) -> None:
        """Its maker died over it, or is not done yet; a reader accepts it as it is."""
        (kit.path / ".sealog").write_bytes(text)
        open_store_directory(kit.fs, str(kit.path), create=False).close()
        assert (kit.path / ".sealog").read_bytes() == text
        open_store_directory(kit.fs, str(kit.path), create=True).close()
        assert (kit.path / ".sealog").read_bytes() == MARKER_TEXT

    @pytest.mark.parametrize("text", [b"hello", b"\xff" * 15])
    def test_a_damaged_one_is_named_and_not_replaced(self, kit: Kit, text: bytes) -> None:
        (kit.path / ".sealog").write_bytes(text)
        with pytest.raises(StoreNotFoundError, match="is damaged"):
            open_store_directory(kit.fs, str(kit.path), create=True)
        assert (kit.path / ".sealog").read_bytes() == text

    def test_two_that_make_it_at_once_make_the_same(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        """The second one finds the first one's and leaves it."""
        (kit.path / ".sealog").unlink()
        plain = type(kit.store).open

        def open_and_lose_the_race(self: Any, name: str, **how: bool) -> Any:
            if how.get("create"):
                monkeypatch.undo()
                open_store_directory(kit.fs, str(kit.path), create=True).close()
            return plain(self, name, **how)

        monkeypatch.setattr(type(kit.store), "open", open_and_lose_the_race)
        open_store_directory(kit.fs, str(kit.path), create=True).close()
        assert [path.name for path in kit.path.iterdir()] == [".sealog"]
        assert (kit.path / ".sealog").read_bytes() == MARKER_TEXT


class TestClaim:
    @pytest.fixture
    def dead(self, kit: Kit) -> set[str]:
        """Leave half-made and half-deleted sessions, and things that are not ours."""
        for name in (".new-1", ".trash-2"):
            (kit.path / name / "attachments").mkdir(parents=True)
            (kit.path / name / "attachments" / "0").write_text("x")
        (kit.path / ".new-marker").write_text("x")
        (kit.path / ".hidden").write_text("x")
        (kit.path / "new-3").mkdir()
        kit.create()
        return {".new-1", ".trash-2", ".new-marker"}

    def entries(self, kit: Kit) -> set[str]:
        return {path.name for path in kit.path.iterdir()}

    def test_the_first_one_sweeps_what_is_ours_and_dead(self, kit: Kit, dead: set[str]) -> None:
        """INV-6"""
        before = self.entries(kit)
        kit.faults.clear()
        claim_store(kit.store).close()
        assert self.entries(kit) == before - dead
        assert kit.faults.calls.index("sync store") < kit.faults.calls.index("unlink 0")

    def test_nothing_is_swept_while_another_one_is_there(self, kit: Kit, dead: set[str]) -> None:
        """What it is making looks the same as what a dead one left."""
        first = claim_store(kit.store)
        (kit.path / ".new-live").mkdir()
        claim_store(kit.store).close()
        assert ".new-live" in self.entries(kit)
        first.close()
        claim_store(kit.store).close()
        assert ".new-live" not in self.entries(kit)

    def test_many_may_hold_it(self, kit: Kit) -> None:
        claims = [claim_store(kit.store) for _ in range(3)]
        for claim in claims:
            claim.close()

    def test_an_abandoned_claim_stays_with_its_owner(self, kit: Kit, dead: set[str]) -> None:
        claim = claim_store(kit.store)
        copy = os.dup(claim._file._fd)  # type: ignore[attr-defined]
        claim.abandon()
        (kit.path / ".new-live").mkdir()
        claim_store(kit.store).close()
        assert ".new-live" in self.entries(kit)
        os.close(copy)

    def test_a_failing_sweep_is_said_and_tried_again(
        self, kit: Kit, dead: set[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        """What cannot be removed keeps nobody from the sessions."""
        kit.faults.fail("unlink 0")
        claim_store(kit.store).close()
        assert "cannot be removed" in caplog.text
        assert self.entries(kit) & dead
        kit.faults.clear()
        claim_store(kit.store).close()
        assert not self.entries(kit) & dead

    def test_a_file_system_without_locks_is_named(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        def flock(fd: int, operation: int) -> None:
            raise OSError(errno.ENOLCK, "no locks")

        monkeypatch.setattr("fcntl.flock", flock)
        with pytest.raises(OSError, match="put the store on a local file system"):
            claim_store(kit.store)


class TestSessionIds:
    def test_they_are_sorted(self, kit: Kit) -> None:
        for session_id in ("b", "a-1", "A", "_x", "10", "9"):
            kit.create(session_id)
        assert session_ids(kit.store) == ["10", "9", "A", "_x", "a-1", "b"]

    def test_what_is_no_session_is_not_listed(self, kit: Kit) -> None:
        kit.create()
        (kit.path / "file").write_text("x")
        (kit.path / "empty").mkdir()
        (kit.path / "link").symlink_to(kit.path / "s")
        (kit.path / ".new-1").mkdir()
        (kit.path / ".new-1" / "log").write_text("x")
        (kit.path / "dotted.name").mkdir()
        (kit.path / "dotted.name" / "log").write_text("x")
        assert session_ids(kit.store) == ["s"]

    @pytest.mark.parametrize("left", ["log", "lock"])
    def test_a_damaged_session_is_listed(self, kit: Kit, left: str) -> None:
        """It is there, and describing it says what is wrong."""
        (kit.path / "s").mkdir()
        (kit.path / "s" / left).write_bytes(bytes(413))
        assert session_ids(kit.store) == ["s"]

    def test_one_that_may_not_be_looked_into_is_listed(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kit.create("a")
        kit.create("b")
        plain = type(kit.store).stat

        def forbidden(self: Any, name: str) -> Any:
            if name.startswith("a/"):
                raise PermissionError(errno.EACCES, "no", name)
            return plain(self, name)

        monkeypatch.setattr(type(kit.store), "stat", forbidden)
        assert session_ids(kit.store) == ["a", "b"]


def test_a_store_made_with_faults_is_one_for_users(kit: Kit) -> None:
    """What these tests inject faults into is the file system that users run on."""
    faulty: FaultyFileSystem = kit.fs
    assert isinstance(faulty, OsFileSystem)
    kit.make("a")
    plain = open_store_directory(OsFileSystem(), str(kit.path), create=False)
    assert session_ids(plain) == session_ids(kit.store)
    plain.close()
