"""What the tests of projections share: a file system that counts, threads that start together, samples."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from sealog.projections.harness import (
    FeatureRecord,
    Message,
    MessageRole,
    ProgressEntry,
    RunCheckpoint,
    RunStatus,
    SessionManifest,
)
from sealog.storage.vfs import OsDirectory, OsFile, OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable

SAFETY_S: Final = 120.0
"""How long a wait may take before the test fails: only ever reached by a bug."""

MANIFEST: Final = SessionManifest("any", active_branch="main", current_objective="work")
PROGRESS: Final = ProgressEntry("run-1", "did it", 1_700_000_000_123_456_789)
CHECKPOINT: Final = RunCheckpoint("run-1", 5, status=RunStatus.IN_PROGRESS)
HELLO: Final = Message(MessageRole.USER, "hello")


def feature(name: str, *, passes: bool = False) -> FeatureRecord:
    return FeatureRecord(name, "functional", "does a thing", ["one", "two"], passes)


def together(count: int, call: Callable[[int], Any]) -> list[Any]:
    """Run a call on many threads that start at once; return the results by number, errors as they are."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        barrier.wait(SAFETY_S)
        try:
            results[number] = call(number)
        except BaseException as error:  # noqa: BLE001 — the test looks at it
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SAFETY_S)
        assert not thread.is_alive(), "a call never returned"
    return results


class CountingFileSystem(OsFileSystem):
    """The operating system, with an eye on what is read and written of files.

    Attributes:
        read: bytes read, by file name.
        written: bytes written, by file name.
    """

    def __init__(self) -> None:
        self.read: dict[str, int] = {}
        self.written: dict[str, int] = {}

    def reset(self) -> None:
        self.read.clear()
        self.written.clear()

    def open_directory(self, path: str) -> CountingDirectory:
        return CountingDirectory(super().open_directory(path)._fd, path, self)


class CountingFile(OsFile):
    """A file of a `CountingFileSystem`."""

    def __init__(self, fd: int, path: str, fs: CountingFileSystem) -> None:
        super().__init__(fd, path)
        self._fs = fs
        self._name = path.rpartition("/")[2]

    def pread(self, size: int, offset: int) -> bytes:
        data = super().pread(size, offset)
        self._fs.read[self._name] = self._fs.read.get(self._name, 0) + len(data)
        return data

    def pwrite(self, data: bytes, offset: int) -> None:
        self._fs.written[self._name] = self._fs.written.get(self._name, 0) + len(data)
        super().pwrite(data, offset)


class CountingDirectory(OsDirectory):
    """A directory of a `CountingFileSystem`."""

    def __init__(self, fd: int, path: str, fs: CountingFileSystem) -> None:
        super().__init__(fd, path)
        self._fs = fs

    def open(self, name: str, *, write: bool = False, create: bool = False) -> CountingFile:
        path = f"{self.path}/{name}"
        return CountingFile(super().open(name, write=write, create=create)._fd, path, self._fs)

    def open_directory(self, name: str) -> CountingDirectory:
        return CountingDirectory(super().open_directory(name)._fd, f"{self.path}/{name}", self._fs)
