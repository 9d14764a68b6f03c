"""The simulator itself: it does what the operating system does, and loses what a disk may lose."""

from __future__ import annotations

import errno
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest

import sealog.testing
from sealog.storage.vfs import OsFileSystem
from sealog.testing import (
    CrashedError,
    Disk,
    Fault,
    FaultyFileSystem,
    SimulatedFileSystem,
    garbage_cuts,
    kills,
    power_cuts,
)

if TYPE_CHECKING:
    from pathlib import Path

    from sealog.storage.vfs import Directory, File, FileSystem


def test_public_names_are_exact() -> None:
    assert sorted(sealog.testing.__all__) == sealog.testing.__all__
    for name in sealog.testing.__all__:
        assert getattr(sealog.testing, name).__module__.startswith("sealog.testing.")


class _Driver:
    """Does random calls on a file system and notes what each gave."""

    def __init__(self, fs: FileSystem, root: str) -> None:
        self.results: list[Any] = []
        self._root = root
        top = fs.open_directory(root)
        for name in ("a", "b"):
            top.make_directory(name)
        self._folders: list[Directory] = [top, top.open_directory("a"), top.open_directory("b")]
        self._files: list[File] = []

    def step(self, rng: random.Random) -> None:
        folder, target = rng.choices(self._folders, k=2)
        name, new_name = rng.choices(("a", "b", "x", "y"), k=2)
        file = rng.choice(self._files) if self._files else None
        size, offset = rng.choices((0, 1, 7, 600, 5000), k=2)
        actions = [
            lambda: self._files.append(folder.open(name, create=True)),
            lambda: self._files.append(folder.open(name, write=True)),
            lambda: folder.make_directory(name),
            lambda: folder.rename(name, target, new_name),
            lambda: folder.unlink(name),
            lambda: folder.remove_directory(name),
            lambda: sorted(folder.names()),
            lambda: self._describe(folder.stat(f"{name}/{new_name}")),
            lambda: self._describe(folder.stat(name)),
            folder.sync,
        ]
        if file is not None:
            data = rng.randbytes(size)
            actions += [
                lambda: file.pwrite(data, offset),
                lambda: file.pwrite(data, offset),
                lambda: file.pread(size, offset),
                lambda: file.truncate(size),
                lambda: file.allocate(offset, size + 1),
                file.sync_data,
                lambda: self._describe(file.stat()),
            ]
        action = rng.choice(actions)
        try:
            self.results.append(action())
        except OSError as error:
            self.results.append(errno.errorcode[error.errno or 0])

    def _describe(self, found: Any) -> Any:
        return found and (found.is_directory, found.mode, 0 if found.is_directory else found.size_bytes)


@pytest.mark.parametrize("seed", range(40))
def test_it_does_what_the_operating_system_does(seed: int, tmp_path: Path) -> None:
    simulated = SimulatedFileSystem()
    simulated.make_directory("/top")
    drivers = [_Driver(OsFileSystem(), str(tmp_path)), _Driver(simulated, "/top")]
    for step in range(120):
        for driver in drivers:
            driver.step(random.Random(f"{seed} {step}"))
        assert drivers[0].results[-1] == drivers[1].results[-1], f"step {step}"
    files = {
        f"/top/{path.relative_to(tmp_path)}": path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert simulated.disk().files() == files


def _disks(disk: Disk) -> list[dict[str, bytes]]:
    return [cut.disk.files() for cut in power_cuts(disk)]


def test_a_name_needs_a_sync_of_its_folder_and_the_data_one_of_the_file() -> None:
    fs = SimulatedFileSystem()
    root = fs.open_directory("/")
    file = root.open("f", create=True)
    file.pwrite(b"data", 0)
    assert {} in _disks(fs.disk())
    file.sync_data()
    assert _disks(fs.disk()) == [{}, {"/f": b"data"}]
    root.sync()
    assert _disks(fs.disk()) == [{"/f": b"data"}]
    file.pwrite(b"DATA", 2)
    found = {disk["/f"] for disk in _disks(fs.disk())}
    assert found == {b"data", b"daDA", b"data\0\0", b"daDATA"}


def test_a_write_is_torn_at_sectors_only() -> None:
    fs = SimulatedFileSystem()
    root = fs.open_directory("/")
    file = root.open("f", create=True)
    file.pwrite(b"-" * 1600, 0)
    file.sync_data()
    root.sync()
    file.pwrite(b"+" * 800, 400)
    pieces = {disk["/f"][at : at + 1] for disk in _disks(fs.disk()) for at in (399, 1200)}
    assert pieces == {b"-"}, "bytes that were not being written are not harmed"
    found = {tuple(disk["/f"][at] == ord("+") for at in (400, 600, 1100)) for disk in _disks(fs.disk())}
    assert len(found) == 8, "all combinations of three sectors"
    for disk in _disks(fs.disk()):
        for low, high in ((400, 512), (512, 1024), (1024, 1200)):
            assert len(set(disk["/f"][low:high])) == 1


def test_a_rename_happens_whole_or_not_at_all() -> None:
    fs = SimulatedFileSystem()
    root = fs.open_directory("/")
    for name, data in (("old", b"1"), ("new", b"2")):
        file = root.open(name, create=True)
        file.pwrite(data, 0)
        file.sync_data()
    root.sync()
    root.rename("new", root, "old")
    assert _disks(fs.disk()) == [{"/old": b"1", "/new": b"2"}, {"/old": b"2"}]


def test_a_rename_between_folders_is_synced_with_either() -> None:
    for synced in ("a", "b"):
        fs = SimulatedFileSystem()
        root = fs.open_directory("/")
        root.make_directory("a")
        root.make_directory("b")
        a, b = root.open_directory("a"), root.open_directory("b")
        a.open("f", create=True).sync_data()
        a.sync()
        root.sync()
        a.rename("f", b, "g")
        assert _disks(fs.disk()) == [{"/a/f": b""}, {"/b/g": b""}]
        (a if synced == "a" else b).sync()
        assert _disks(fs.disk()) == [{"/b/g": b""}]


def test_an_unsynced_truncate_may_or_may_not_have_happened() -> None:
    fs = SimulatedFileSystem()
    root = fs.open_directory("/")
    file = root.open("f", create=True)
    file.pwrite(b"abcdef", 0)
    file.sync_data()
    root.sync()
    file.truncate(2)
    file.pwrite(b"X", 3)
    found = {disk["/f"] for disk in _disks(fs.disk())}
    assert found == {b"abcdef", b"ab", b"abcXef", b"ab\0X", b"ab\0\0"}


def test_a_killed_process_leaves_what_it_wrote_unsynced() -> None:
    fs = SimulatedFileSystem()
    root = fs.open_directory("/")
    file = root.open("f", create=True)
    assert file.lock(exclusive=True)
    file.pwrite(b"x" * 1000, 0)
    sizes = set()
    for crash in kills(fs.disk()):
        again = SimulatedFileSystem(crash.disk)
        survivor = again.open_directory("/").open("f", write=True)
        assert survivor.lock(exclusive=True), "locks die with their process"
        sizes.add(survivor.stat().size_bytes)
        assert {} in _disks(again.disk())
    assert sizes == {512, 1000}


def test_garbage_stays_within_what_was_being_written() -> None:
    fs = SimulatedFileSystem()
    root = fs.open_directory("/")
    file = root.open("f", create=True)
    file.pwrite(b"-" * 100, 0)
    file.sync_data()
    root.sync()
    file.pwrite(b"+" * 50, 25)
    for cut in garbage_cuts(fs.disk()):
        data = cut.disk.files()["/f"]
        assert data[:25] + data[75:] == b"-" * 50


def test_locks_exclude_each_other_and_are_waited_for() -> None:
    fs = SimulatedFileSystem()
    root = fs.open_directory("/")
    first, second = root.open("f", create=True), root.open("f")
    assert first.lock(exclusive=True)
    assert not second.lock(exclusive=False)
    assert first.lock(exclusive=False), "a lock can be made weaker"
    assert second.lock(exclusive=False)
    assert not second.lock(exclusive=True)
    waiting = threading.Thread(target=lambda: second.lock(exclusive=True, wait=True))
    waiting.start()
    first.close()
    waiting.join(10)
    assert not waiting.is_alive()
    assert not root.open("f").lock(exclusive=False)


def test_after_a_crash_no_call_has_an_effect() -> None:
    fs = SimulatedFileSystem(crash_at=3)
    root = fs.open_directory("/")
    file = root.open("f", create=True)
    file.pwrite(b"1", 0)
    with pytest.raises(CrashedError):
        file.sync_data()
    for call in (lambda: file.pwrite(b"2", 0), root.sync, lambda: fs.stat("/f"), file.stat):
        with pytest.raises(CrashedError):
            call()
    assert fs.crashed
    assert fs.disk().files() == {"/f": b"1"}
    assert [operation.call for operation in fs.operations()] == ["create", "pwrite"]


def test_closed_and_read_only_files_refuse() -> None:
    fs = SimulatedFileSystem()
    root = fs.open_directory("/")
    file = root.open("f", create=True)
    reader = root.open("f")
    with pytest.raises(OSError, match="Bad file"):
        reader.pwrite(b"x", 0)
    file.close()
    root.close()
    for call in (lambda: file.pread(1, 0), root.names):
        with pytest.raises(OSError, match="Bad file"):
            call()


def test_faults_hit_the_calls_they_name() -> None:
    fs = FaultyFileSystem(
        SimulatedFileSystem(),
        Fault(errno.EIO, "pwrite", number=2, times=2, written=1),
        Fault(errno.EACCES, "open", "secret"),
    )
    root = fs.open_directory("/")
    file = root.open("f", create=True)
    results = []
    for data in (b"ab", b"cd", b"ef", b"gh"):
        try:
            file.pwrite(data, 0)
            results.append("done")
        except OSError as error:
            results.append(errno.errorcode[error.errno or 0])
    assert results == ["done", "EIO", "EIO", "done"]
    assert file.pread(2, 0) == b"gh"
    root.open("secret", create=True)
    with pytest.raises(PermissionError):
        root.open("secret")
    root.open("secret")
    assert fs.failed == [("pwrite", "//f"), ("pwrite", "//f"), ("open", "//secret")]


def test_a_full_disk_takes_what_fits() -> None:
    fs = FaultyFileSystem(SimulatedFileSystem(), free_bytes=10)
    file = fs.open_directory("/").open("f", create=True)
    file.pwrite(b"12345678", 0)
    with pytest.raises(OSError, match="No space"):
        file.pwrite(b"abcdef", 6)
    assert file.pread(20, 0) == b"123456abcd"
    assert not file.allocate(0, 100)
    file.truncate(4)
    file.pwrite(b"efghij", 4)
    with pytest.raises(OSError, match="No space"):
        file.pwrite(b"x", 10)
    fs.free_bytes = None
    file.pwrite(b"x", 10)


def test_a_lossy_sync_is_not_made_good_by_the_next() -> None:
    fs = SimulatedFileSystem()
    faulty = FaultyFileSystem(fs, Fault(errno.EIO, "sync_data", lossy=True))
    root = faulty.open_directory("/")
    file = root.open("f", create=True)
    root.sync()
    file.pwrite(b"lost", 0)
    with pytest.raises(OSError, match="Input/output"):
        file.sync_data()
    file.sync_data()
    assert file.pread(4, 0) == b"lost"
    assert _disks(fs.disk()) == [{"/f": bytes(4)}]
    file.pwrite(b"kept", 0)
    file.sync_data()
    assert _disks(fs.disk()) == [{"/f": b"kept"}]
