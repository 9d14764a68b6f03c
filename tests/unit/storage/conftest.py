"""One store with sessions in it, seen from both sides: as its owner and as bytes on disk."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import io
import shutil
from typing import TYPE_CHECKING, Any, Self

import pytest

from sealog.storage.attachments import new_stage_name, publish_stages, stage_attachment
from sealog.storage.directory import (
    create_session,
    lock_session,
    open_session_directory,
    open_store_directory,
)
from sealog.storage.errors import CorruptionError, FormatError
from sealog.storage.events import Event, encode_event, encode_payload
from sealog.storage.format import (
    FILE_HEADER_SIZE,
    KIND_EVENTS,
    Frame,
    Head,
    encode_frame,
    first_previous,
    parse_file_header,
    parse_frame,
)
from sealog.storage.header import new_header
from sealog.storage.log import Log, open_log
from sealog.storage.reader import LogReader, open_log_file
from sealog.storage.vfs import OsDirectory, OsFile, OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from sealog.storage.format import FormatKeys, Receipt


class Faults:
    """Which file operations fail, and which were called, as `operation name`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._failing: dict[str, int] = {}

    def fail(self, call: str, code: int = errno.EIO) -> None:
        """Let a call fail until `clear`."""
        self._failing[call] = code

    def clear(self) -> None:
        """Let everything work again, and forget the calls."""
        self._failing.clear()
        self.calls.clear()

    def note(self, operation: str, path: str) -> None:
        """Note a call, and raise if it is to fail."""
        self.calls.append(f"{operation} {path.rpartition('/')[2]}")
        self.check(operation, path)

    def check(self, operation: str, path: str) -> None:
        """Raise if a call is to fail; reads are not noted."""
        code = self._failing.get(f"{operation} {path.rpartition('/')[2]}")
        if code is not None:
            raise OSError(code, "made to fail", path)


class FaultyFile(OsFile):
    """A file whose calls are noted and can fail."""

    faults: Faults

    def pread(self, size: int, offset: int) -> bytes:
        self.faults.check("pread", self.path)
        return super().pread(size, offset)

    def pwrite(self, data: bytes, offset: int) -> None:
        self.faults.note("pwrite", self.path)
        super().pwrite(data, offset)

    def sync_data(self) -> None:
        self.faults.note("sync_data", self.path)

    def truncate(self, size: int) -> None:
        self.faults.note("truncate", self.path)
        super().truncate(size)

    def allocate(self, offset: int, size: int) -> bool:
        self.faults.note("allocate", self.path)
        return super().allocate(offset, size)


class FaultyDirectory(OsDirectory):
    """A directory whose calls are noted and can fail."""

    faults: Faults

    def open(self, name: str, *, write: bool = False, create: bool = False) -> OsFile:
        self.faults.note("open", name)
        plain = super().open(name, write=write, create=create)
        file = FaultyFile(plain._fd, plain.path)
        file.faults = self.faults
        return file

    def open_directory(self, name: str) -> OsDirectory:
        plain = super().open_directory(name)
        return faulty_directory(plain, self.faults)

    def rename(self, name: str, target: Any, new_name: str) -> None:
        self.faults.note("rename", new_name)
        super().rename(name, target, new_name)

    def unlink(self, name: str) -> None:
        self.faults.note("unlink", name)
        super().unlink(name)

    def sync(self) -> None:
        self.faults.note("sync", self.path)


def faulty_directory(plain: OsDirectory, faults: Faults) -> FaultyDirectory:
    """Return the same directory with faults."""
    directory = FaultyDirectory(plain._fd, plain.path)
    directory.faults = faults
    return directory


class FaultyFileSystem(OsFileSystem):
    """The operating system with calls that are noted and can fail, and without waiting for the disk."""

    def __init__(self) -> None:
        self.faults = Faults()

    def open_directory(self, path: str) -> OsDirectory:
        return faulty_directory(super().open_directory(path), self.faults)


class Owner:
    """A session opened for writing, as a session actor would hold it."""

    def __init__(self, kit: Kit, session_id: str, **options: Any) -> None:
        self._kit = kit
        self.directory = open_session_directory(kit.store, session_id)
        try:
            self.lock = lock_session(kit.fs, kit.store, session_id)
            try:
                self.log: Log = open_log(kit.fs, kit.store, self.directory, self.lock, **options)
            except BaseException:
                self.lock.close()
                raise
        except BaseException:
            self.directory.close()
            raise
        self._open = True

    def append(self, *events: Event | str) -> int:
        """Commit events as one frame; a text is a user message."""
        bodies = [
            encode_event(event.kind, event.text, event.data, 1 if event.at is None else event.at, event.key)
            for event in (
                Event("user-message", event) if isinstance(event, str) else event for event in events
            )
        ]
        return self.log.commit(encode_payload(bodies), len(bodies))

    def seal(self) -> Receipt:
        """Seal the log."""
        return self.log.seal(hashlib.sha256(), 0)

    def events(self, start: int = 0, stop: int | None = None) -> list[Event]:
        """Read events back through the log's own view."""
        head = self.log.head
        return list(self.log.view.events(start, head.position if stop is None else stop, head))

    def texts(self) -> list[str]:
        """Read the texts of all events."""
        return [event.text for event in self.events()]

    def finish(self) -> None:
        """Close as a store does that is closed in order."""
        self.log.finish(self.directory)
        self.crash()

    def crash(self) -> None:
        """Close as a process does that dies: nothing trimmed, nothing marked."""
        if self._open:
            self._open = False
            self.log.close()
            self.lock.close()
            self.directory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.crash()


class Kit:
    """A store in a temporary folder; closes what it opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fs = FaultyFileSystem()
        self.faults = self.fs.faults
        self.store = open_store_directory(self.fs, str(path), create=True)
        self._closing = contextlib.ExitStack()
        self._closing.callback(self.store.close)

    def close(self) -> None:
        """Close everything, in reverse order."""
        self._closing.close()

    def create(self, session_id: str = "s", **labels: str) -> None:
        """Make an empty session."""
        create_session(self.store, new_header(session_id, "2026-01-01T00:00:00Z", labels)).close()

    def owner(self, session_id: str = "s", **options: Any) -> Owner:
        """Open a session for writing."""
        owner = Owner(self, session_id, **options)
        self._closing.callback(owner.crash)
        return owner

    def reader(self, session_id: str = "s", *, full: bool = False) -> LogReader:
        """Open a session for reading."""
        directory = open_session_directory(self.store, session_id)
        try:
            reader = LogReader(self.fs, directory, session_id, full=full)
        finally:
            directory.close()
        self._closing.callback(reader.close)
        return reader

    def session(self, session_id: str = "s") -> OsDirectory:
        """Open the directory of a session."""
        directory = open_session_directory(self.store, session_id)
        self._closing.callback(directory.close)
        return directory

    def log_file(self, session_id: str = "s", *, write: bool = False) -> OsFile:
        """Open the log of a session as a file."""
        file = open_log_file(self.session(session_id), write=write)
        self._closing.callback(file.close)
        return file

    def make(self, *texts: str, session_id: str = "s", seal: bool = False) -> None:
        """Make a session with one frame for each text, and close it in order."""
        self.create(session_id)
        with self.owner(session_id) as owner:
            for text in texts:
                owner.append(text)
            if seal:
                owner.seal()
            owner.finish()

    def attach(self, owner: Owner, data: bytes) -> int:
        """Attach bytes to an open session, as its actor does."""
        stage = stage_attachment(owner.directory, new_stage_name(), io.BytesIO(data))
        position = owner.log.head.position
        publish_stages(owner.directory, [(stage, position)])
        described = {
            "file_name": f"{position}.bin",
            "media_type": "application/octet-stream",
            "size_bytes": stage.size_bytes,
            "sha256": stage.sha256,
        }
        return owner.append(Event("attachment", "", described))

    def log_path(self, session_id: str = "s") -> Path:
        """Return the path of a log."""
        return self.path / session_id / "log"

    def forget_mark(self, session_id: str = "s") -> None:
        """Remove the lock file, and with it the head mark."""
        (self.path / session_id / "lock").unlink()

    def keys(self, session_id: str = "s") -> FormatKeys:
        """Return the keys of a log."""
        keys = parse_file_header(self.log_path(session_id).read_bytes(), "log")
        assert keys is not None
        return keys

    def frames(self, session_id: str = "s") -> list[Frame]:
        """Return the frames of an intact log."""
        data, keys = self.log_path(session_id).read_bytes(), self.keys(session_id)
        frames: list[Frame] = []
        offset = FILE_HEADER_SIZE
        while offset < len(data) and (frame := parse_frame(keys, data, offset, offset, "log")) is not None:
            frames.append(frame)
            offset = frame.end
        return frames

    def first_head(self, session_id: str = "s") -> Head:
        """Return the head behind which the first frame goes."""
        return Head(FILE_HEADER_SIZE, 0, first_previous(self.keys(session_id)))

    def edit(self, change: Callable[[bytearray], None], session_id: str = "s") -> bytes:
        """Change the bytes of a log; return them as they are then."""
        data = bytearray(self.log_path(session_id).read_bytes())
        change(data)
        self.log_path(session_id).write_bytes(data)
        return bytes(data)

    def flip(self, offset: int, session_id: str = "s") -> bytes:
        """Flip all bits of one byte of a log."""

        def change(data: bytearray) -> None:
            data[offset] ^= 0xFF

        return self.edit(change, session_id)

    def cut(self, size: int, session_id: str = "s") -> None:
        """Cut a log to a size."""
        self.log_path(session_id).write_bytes(self.log_path(session_id).read_bytes()[:size])

    def add(self, tail: bytes, session_id: str = "s") -> None:
        """Add bytes to a log."""
        self.log_path(session_id).write_bytes(self.log_path(session_id).read_bytes() + tail)

    def copy(self, source: str, target: str) -> None:
        """Copy the files of a session to another id."""
        shutil.copytree(self.path / source, self.path / target)

    def stray_frame(self, offset: int, position: int, *, kind: int = KIND_EVENTS, previous: int = 0) -> bytes:
        """Return an intact frame for an offset, which does not continue the chain."""
        payload = b"\x91\x94\x03\xa1x\xc0\x01"
        return encode_frame(self.keys(), Head(offset, position, previous), kind, 1, payload)[0]

    def refused(self, error: type[FormatError] = CorruptionError) -> FormatError:
        """Open session `s` for writing and reading; both refuse in the same way, and nothing is touched."""
        before = self.snapshot()
        with pytest.raises(error) as writing:
            self.owner()
        after = self.snapshot()
        after["s/lock"] = before["s/lock"] = None
        assert after == before
        with pytest.raises(error) as reading:
            self.reader()
        assert type(writing.value) is error
        assert str(reading.value) == str(writing.value)
        assert writing.value.path == str(self.log_path())
        return writing.value

    def recovered(self, texts: list[str], reason: str, dropped: int) -> None:
        """Open session `s` for reading, then for writing: the owner cuts off what the reader saw."""
        reader = self.reader()
        found = (reader.head.position, reader.reason, reader.tail_bytes)
        assert found == (len(texts), reason, dropped)
        with self.owner() as owner:
            report = owner.log.recovered
            assert (report.status, report.reason, report.dropped_bytes) == ("recovered", reason, dropped)
            assert (report.session_id, report.events) == ("s", len(texts))
            assert owner.texts() == texts

    def clean(self, texts: list[str]) -> None:
        """Open session `s` for reading and for writing: there is no tail."""
        reader = self.reader()
        found = (reader.head.position, reader.reason, reader.tail_bytes)
        assert found == (len(texts), "clean", 0)
        with self.owner() as owner:
            report = owner.log.recovered
            assert (report.status, report.reason, report.dropped_bytes) == ("clean", None, 0)
            assert report.quarantined is None
            assert owner.texts() == texts

    def snapshot(self) -> dict[str, bytes | None]:
        """Return the contents of every file of the store; None for what is no file."""
        return {
            str(path.relative_to(self.path)): path.read_bytes() if path.is_file() else None
            for path in sorted(self.path.rglob("*"))
        }


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    """Return an empty store."""
    kit = Kit(tmp_path / "store")
    yield kit
    kit.close()


@pytest.fixture(scope="session")
def golden_maker(golden: Path) -> ModuleType:
    """Return the script that writes the golden files, as a module."""
    spec = importlib.util.spec_from_file_location("golden_maker", golden / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
