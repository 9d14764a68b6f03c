"""The operating system behind the interface: whole reads and writes, nothing followed, nothing odd opened."""

from __future__ import annotations

import errno
import os
import socket
import stat
from typing import TYPE_CHECKING, Any

import pytest

from sealog.storage.vfs import (
    FULL_ERRNOS,
    OsDirectory,
    OsFile,
    OsFileSystem,
    close_quietly,
    supported,
    sync_if_possible,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def fs() -> OsFileSystem:
    return OsFileSystem()


@pytest.fixture
def directory(fs: OsFileSystem, tmp_path: Path) -> Iterator[OsDirectory]:
    directory = fs.open_directory(str(tmp_path))
    yield directory
    directory.close()


@pytest.fixture
def file(directory: OsDirectory) -> Iterator[OsFile]:
    file = directory.open("file", create=True)
    yield file
    file.close()


@pytest.fixture(params=[0o000, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def put(tmp_path: Path, kind: str) -> None:
    """Put something that is no regular file at `x`."""
    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = os.open(".", os.O_RDONLY)
            os.chdir(tmp_path)  # the path of a socket is short
            try:
                server.bind("x")
            finally:
                os.fchdir(here)
                os.close(here)
    else:
        (tmp_path / "target").write_text("precious")
        path.symlink_to(tmp_path / ("target" if kind == "link" else "nowhere"))


class TestFile:
    def test_what_is_written_is_read(self, file: OsFile) -> None:
        file.pwrite(b"hello", 3)
        file.pwrite(b"J", 3)
        assert file.pread(100, 0) == b"\0\0\0Jello"
        assert file.pread(2, 4) == b"el"
        assert file.pread(5, 100) == b""
        assert file.pread(0, 0) == b""

    def test_short_reads_and_writes_are_completed(
        self, file: OsFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The system may do less than it was asked for."""
        pread, pwrite = os.pread, os.pwrite
        monkeypatch.setattr(os, "pread", lambda fd, size, offset: pread(fd, min(size, 3), offset))
        monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, bytes(data)[:2], offset))
        file.pwrite(b"0123456789", 5)
        assert file.pread(10, 5) == b"0123456789"
        assert file.pread(50, 5) == b"0123456789"
        assert file.pread(4, 6) == b"1234"

    def test_a_failing_write_raises(self, file: OsFile, monkeypatch: pytest.MonkeyPatch) -> None:
        written: list[int] = []

        def pwrite(fd: int, data: bytes, offset: int) -> int:
            if written:
                raise OSError(errno.ENOSPC, "full")
            written.append(offset)
            return 1

        monkeypatch.setattr(os, "pwrite", pwrite)
        with pytest.raises(OSError, match="full"):
            file.pwrite(b"ab", 7)
        assert written == [7]

    def test_truncate_sets_the_size_both_ways(self, file: OsFile) -> None:
        file.pwrite(b"0123456789", 0)
        file.truncate(4)
        assert (file.stat().size_bytes, file.pread(10, 0)) == (4, b"0123")
        file.truncate(6)
        assert file.pread(10, 0) == b"0123\0\0"

    def test_allocated_space_reads_as_zeros(self, file: OsFile) -> None:
        file.pwrite(b"ab", 0)
        if file.allocate(2, 5000):
            assert file.stat().size_bytes == 5002
            assert file.pread(6000, 0) == b"ab" + bytes(5000)
        else:
            assert file.stat().size_bytes == 2

    @pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL, *sorted(FULL_ERRNOS)])
    def test_space_that_cannot_be_allocated_is_no_error(
        self, file: OsFile, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        """The write itself says whether there is room."""

        def refuse(fd: int, offset: int, size: int) -> None:
            raise OSError(code, "no")

        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
        assert not file.allocate(0, 100)

    def test_a_failing_disk_is_an_error_of_allocation(
        self, file: OsFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(fd: int, offset: int, size: int) -> None:
            raise OSError(errno.EIO, "disk")

        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
        with pytest.raises(OSError, match="disk"):
            file.allocate(0, 100)

    def test_stat_describes_the_open_file_whatever_its_path_names(
        self, directory: OsDirectory, file: OsFile, tmp_path: Path
    ) -> None:
        before = file.stat()
        assert directory.stat("file") == before
        (tmp_path / "file").unlink()
        (tmp_path / "file").write_text("another")
        assert file.stat().identity == before.identity
        found = directory.stat("file")
        assert found is not None
        assert found.identity != before.identity
        assert (found.size_bytes, found.is_directory) == (7, False)

    def test_a_second_close_does_nothing(self, directory: OsDirectory) -> None:
        """In particular it does not close a descriptor that got the same number since."""
        file = directory.open("once", create=True)
        file.close()
        other = directory.open("other", create=True)
        file.close()
        other.pwrite(b"x", 0)
        other.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            file.pread(1, 0)


class TestLock:
    def test_exclusive_and_shared(self, directory: OsDirectory, file: OsFile) -> None:
        others = [directory.open("file", write=True) for _ in range(2)]
        assert file.lock(exclusive=True)
        assert not others[0].lock(exclusive=True)
        assert not others[0].lock(exclusive=False)
        file.unlock()
        assert others[0].lock(exclusive=False)
        assert others[1].lock(exclusive=False)
        assert not file.lock(exclusive=True)
        close_quietly(*others)
        assert file.lock(exclusive=True, wait=True)

    def test_closing_another_descriptor_of_the_file_keeps_the_lock(
        self, directory: OsDirectory, file: OsFile
    ) -> None:
        """With the other kind of lock it would be gone."""
        assert file.lock(exclusive=True)
        directory.open("file").close()
        other = directory.open("file", write=True)
        assert not other.lock(exclusive=True)
        other.close()


class TestDirectory:
    @pytest.mark.parametrize("write", [False, True])
    @pytest.mark.parametrize("kind", ["fifo", "directory", "link", "dangling", "socket"])
    def test_what_is_no_regular_file_is_refused(
        self, directory: OsDirectory, tmp_path: Path, kind: str, write: bool
    ) -> None:
        """At once, also a FIFO that nobody writes to; and no link is followed."""
        put(tmp_path, kind)
        descriptors = os.dup(0)
        os.close(descriptors)
        with pytest.raises(OSError) as caught:  # noqa: PT011 — the number is checked
            directory.open("x", write=write)
        assert caught.value.errno in (errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENXIO)
        assert os.dup(0) == descriptors
        os.close(descriptors)

    @pytest.mark.parametrize("kind", ["fifo", "directory", "link", "dangling"])
    def test_nothing_is_created_over_or_through_something(
        self, directory: OsDirectory, tmp_path: Path, kind: str
    ) -> None:
        put(tmp_path, kind)
        with pytest.raises(FileExistsError):
            directory.open("x", create=True)
        assert not (tmp_path / "nowhere").exists()

    def test_a_created_file_must_be_new(self, directory: OsDirectory, file: OsFile) -> None:
        with pytest.raises(FileExistsError):
            directory.open("file", create=True)

    def test_opening_never_creates(self, directory: OsDirectory, tmp_path: Path) -> None:
        for write in (False, True):
            with pytest.raises(FileNotFoundError):
                directory.open("x", write=write)
        assert list(tmp_path.iterdir()) == []

    def test_a_file_opened_for_reading_cannot_be_written(self, directory: OsDirectory, file: OsFile) -> None:
        reading = directory.open("file")
        with pytest.raises(OSError, match="Bad file descriptor"):
            reading.pwrite(b"x", 0)
        reading.close()

    @pytest.mark.parametrize("kind", ["fifo", "link", "dangling"])
    def test_what_is_no_directory_is_refused(self, directory: OsDirectory, tmp_path: Path, kind: str) -> None:
        put(tmp_path, kind)
        with pytest.raises(OSError) as caught:  # noqa: PT011 — the number is checked
            directory.open_directory("x")
        assert caught.value.errno in (errno.ENOTDIR, errno.ELOOP)

    def test_a_link_to_a_directory_is_not_followed(self, directory: OsDirectory, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "x").symlink_to(tmp_path / "real")
        with pytest.raises(OSError) as caught:  # noqa: PT011 — the number is checked
            directory.open_directory("x")
        assert caught.value.errno in (errno.ENOTDIR, errno.ELOOP)

    def test_modes_do_not_depend_on_the_umask(
        self, directory: OsDirectory, tmp_path: Path, umask: int
    ) -> None:
        directory.open("new", create=True).close()
        directory.make_directory("made")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700

    def test_stat_does_not_follow_a_link(self, directory: OsDirectory, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "inner").write_text("12345")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        found = directory.stat("link")
        assert found is not None
        assert not found.is_directory
        inner = directory.stat("real/inner")
        assert inner is not None
        assert (inner.size_bytes, inner.is_directory) == (5, False)
        assert directory.stat("nothing") is None
        assert directory.stat("real/nothing") is None

    def test_entries_are_moved_listed_and_removed(self, directory: OsDirectory, tmp_path: Path) -> None:
        directory.make_directory("a")
        inner = directory.open_directory("a")
        assert (inner.path, inner.names()) == (f"{tmp_path}/a", [])
        directory.open("one", create=True).close()
        directory.open("two", create=True).close()
        directory.rename("one", inner, "moved")
        directory.rename("two", inner, "moved")
        assert inner.names() == ["moved"]
        with pytest.raises(OSError, match="not empty"):
            directory.remove_directory("a")
        inner.unlink("moved")
        inner.sync()
        inner.close()
        directory.remove_directory("a")
        assert directory.names() == []

    def test_names_are_relative_to_the_open_directory(self, directory: OsDirectory, tmp_path: Path) -> None:
        directory.make_directory("a")
        inner = directory.open_directory("a")
        (tmp_path / "a").rename(tmp_path / "b")
        inner.open("file", create=True).close()
        assert (tmp_path / "b" / "file").exists()
        inner.close()

    def test_a_second_close_does_nothing(self, directory: OsDirectory, tmp_path: Path) -> None:
        directory.make_directory("a")
        inner = directory.open_directory("a")
        inner.close()
        other = directory.open("other", create=True)
        inner.close()
        other.pwrite(b"x", 0)
        other.close()


class TestFileSystem:
    def test_the_path_of_a_store_may_be_a_link(self, fs: OsFileSystem, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        fs.open_directory(str(tmp_path / "link")).close()
        found = fs.stat(str(tmp_path / "link"))
        assert found is not None
        assert found.is_directory

    @pytest.mark.parametrize("name", ["nothing", "file/inner", "nowhere/inner", "dangling"])
    def test_what_is_not_there_is_none(self, fs: OsFileSystem, tmp_path: Path, name: str) -> None:
        (tmp_path / "file").write_text("x")
        (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
        assert fs.stat(str(tmp_path / name)) is None

    def test_a_directory_is_made_for_its_owner_alone(
        self, fs: OsFileSystem, tmp_path: Path, umask: int
    ) -> None:
        fs.make_directory(str(tmp_path / "a"))
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
        with pytest.raises(FileExistsError):
            fs.make_directory(str(tmp_path / "a"))

    def test_this_platform_is_supported(self) -> None:
        assert supported()


class TestHelpers:
    def test_closing_quietly_closes_everything(self) -> None:
        closed: list[int] = []

        class Handle:
            def __init__(self, number: int) -> None:
                self.number = number

            def close(self) -> None:
                closed.append(self.number)
                if self.number == 1:
                    raise OSError(errno.EIO, "disk")

        handles: Any = [Handle(1), None, Handle(2)]
        close_quietly(*handles)
        assert closed == [1, 2]

    @pytest.mark.parametrize("code", [errno.EROFS, errno.EINVAL])
    def test_a_read_only_file_system_has_nothing_to_sync(self, code: int) -> None:
        class ReadOnly:
            synced = 0

            def sync_data(self) -> None:
                self.synced += 1
                raise OSError(code, "read-only")

        file: Any = ReadOnly()
        sync_if_possible(file)
        assert file.synced == 1

    def test_other_failures_of_a_sync_are_errors(self) -> None:
        class Failing:
            def sync_data(self) -> None:
                raise OSError(errno.EIO, "disk")

        file: Any = Failing()
        with pytest.raises(OSError, match="disk"):
            sync_if_possible(file)
