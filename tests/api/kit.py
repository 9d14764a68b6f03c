"""What the tests of the actors and of the public API share: threads, gates, and a file system with faults."""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import sealog
from sealog.actors.mailbox import Sleep
from sealog.storage.vfs import FileStat, OsDirectory, OsFile, OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SAFETY_S: Final = 20.0
"""How long a wait may take before the test fails: only ever reached by a bug."""


class Task:
    """A call on a thread of its own; `result` waits for it and raises what it raised."""

    def __init__(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        self._call = lambda: call(*arguments, **named)
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # noqa: BLE001 — raised by `result`
            self._error = error

    @property
    def running(self) -> bool:
        """Whether the call has not returned yet."""
        return self._thread.is_alive()

    def wait(self) -> BaseException | None:
        """Wait for the end; return what the call raised."""
        self._thread.join(SAFETY_S)
        assert not self._thread.is_alive(), "a call never returned"
        return self._error

    def result(self) -> Any:
        """Wait for the value."""
        error = self.wait()
        if error is not None:
            raise error
        return self._value


class Gate:
    """A place where calls stop until it is opened."""

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._opened = threading.Event()

    def wait_reached(self) -> None:
        """Wait until a call stands here."""
        assert self._arrived.acquire(timeout=SAFETY_S), "nobody came to the gate"

    def open(self) -> None:
        """Let everybody through, now and later."""
        self._opened.set()

    def pass_through(self) -> None:
        """Stand here until it is opened."""
        self._arrived.release()
        assert self._opened.wait(SAFETY_S), "nobody opened the gate"


class Rule:
    """What happens to some calls of a file system.

    Args:
        call: name of the method.
        name: of the file or directory, the last parts of its path; `*` matches any.
        times: how many calls are hit; None for all.
        error: raised if not None.
        written: bytes of a failing `pwrite` that reach the file; None for none.
        gate: where the call waits first.
        skip: how many matching calls are let through before.
    """

    def __init__(
        self,
        call: str,
        name: str,
        times: int | None = 1,
        error: BaseException | None = None,
        written: int | None = None,
        gate: Gate | None = None,
        skip: int = 0,
    ) -> None:
        self.call = call
        self.name = name
        self.left = times
        self.error = error
        self.written = written
        self.gate = gate
        self.skip = skip

    def matches(self, call: str, path: str) -> bool:
        """Count a call; tell whether it is hit."""
        if self.call != call or self.left == 0:
            return False
        if self.name != "*" and not f"/{path}".endswith(f"/{self.name}"):
            return False
        self.skip -= 1
        return self.skip < 0


class FaultFileSystem(OsFileSystem):
    """The operating system with calls that fail or wait, and with an eye on who writes to logs.

    Nothing is really synced, for speed: no test here cuts the power.

    Attributes:
        calls: how often each method was called on each name.
        violations: what an owner did that was none any more (INV-4).
    """

    def __init__(self) -> None:
        self.calls: collections.Counter[tuple[str, str]] = collections.Counter()
        self.violations: list[str] = []
        self._rules: list[Rule] = []
        self._guard = threading.Lock()
        self._owners: dict[tuple[int, int], FaultFile] = {}
        self._writing: collections.Counter[FaultFile] = collections.Counter()

    def fail(
        self,
        call: str,
        name: str,
        code: int = errno.EIO,
        times: int | None = 1,
        written: int | None = None,
        skip: int = 0,
    ) -> Rule:
        """Let calls raise an OSError."""
        error = OSError(code, os.strerror(code), name)
        return self._add(Rule(call, name, times, error, written, skip=skip))

    def interrupt(self, call: str, name: str, error: BaseException, times: int | None = 1) -> Rule:
        """Let calls raise any exception."""
        return self._add(Rule(call, name, times, error))

    def hold(self, call: str, name: str, times: int | None = 1) -> Gate:
        """Let calls wait at a gate."""
        gate = Gate()
        self._add(Rule(call, name, times, gate=gate))
        return gate

    def _add(self, rule: Rule) -> Rule:
        with self._guard:
            self._rules.append(rule)
        return rule

    def heal(self) -> None:
        """Let everything work again."""
        with self._guard:
            self._rules.clear()

    def meet(self, call: str, path: str) -> None:
        """Count a call, and do to it what a rule says."""
        rule = self.find(call, path)
        if rule is not None and rule.error is not None:
            raise rule.error

    def find(self, call: str, path: str) -> Rule | None:
        """Count a call and wait at its gate; return the rule that hits it."""
        with self._guard:
            self.calls[call, path.rpartition("/")[2]] += 1
            rule = next((rule for rule in self._rules if rule.matches(call, path)), None)
            if rule is not None and rule.left is not None:
                rule.left -= 1
        if rule is not None and rule.gate is not None:
            rule.gate.pass_through()
        return rule

    def owned(self, file: FaultFile) -> None:
        """Note the newest owner of a log."""
        with self._guard:
            before = self._owners.get(file.identity)
            if before is not None and self._writing[before]:
                self.violations.append(f"{file.path}: opened while its owner was writing")
            self._owners[file.identity] = file

    @contextlib.contextmanager
    def writing(self, file: FaultFile) -> Iterator[None]:
        """Note a change of a log, which only its newest owner may make."""
        with self._guard:
            if self._owners.get(file.identity) is not file:
                self.violations.append(f"{file.path}: written by an owner that is none any more")
            self._writing[file] += 1
            if self._writing[file] > 1:
                self.violations.append(f"{file.path}: written by two threads at once")
        try:
            yield
        finally:
            with self._guard:
                self._writing[file] -= 1

    def open_directory(self, path: str) -> FaultDirectory:
        self.meet("open_directory", path)
        return FaultDirectory(super().open_directory(path)._fd, path, self)

    def stat(self, path: str) -> FileStat | None:
        self.meet("stat", path)
        return super().stat(path)


class FaultFile(OsFile):
    """A file of a `FaultFileSystem`."""

    def __init__(self, fd: int, path: str, fs: FaultFileSystem, *, owner: bool) -> None:
        super().__init__(fd, path)
        self._fs = fs
        found = os.fstat(fd)
        self.identity = (found.st_dev, found.st_ino)
        self._is_log = owner
        if owner:
            fs.owned(self)

    def _changing(self) -> contextlib.AbstractContextManager[None]:
        return self._fs.writing(self) if self._is_log else contextlib.nullcontext()

    def pread(self, size: int, offset: int) -> bytes:
        self._fs.meet("pread", self.path)
        return super().pread(size, offset)

    def pwrite(self, data: bytes, offset: int) -> None:
        with self._changing():
            rule = self._fs.find("pwrite", self.path)
            if rule is not None and rule.error is not None:
                if rule.written is not None:
                    super().pwrite(data[: rule.written], offset)
                raise rule.error
            super().pwrite(data, offset)

    def sync_data(self) -> None:
        with self._changing():
            self._fs.meet("sync_data", self.path)

    def truncate(self, size: int) -> None:
        with self._changing():
            self._fs.meet("truncate", self.path)
            super().truncate(size)

    def allocate(self, offset: int, size: int) -> bool:
        with self._changing():
            self._fs.meet("allocate", self.path)
            return super().allocate(offset, size)


class FaultDirectory(OsDirectory):
    """A directory of a `FaultFileSystem`."""

    def __init__(self, fd: int, path: str, fs: FaultFileSystem) -> None:
        super().__init__(fd, path)
        self._fs = fs

    def open(self, name: str, *, write: bool = False, create: bool = False) -> FaultFile:
        path = f"{self.path}/{name}"
        self._fs.meet("create" if create else "open-write" if write else "open", path)
        file = super().open(name, write=write, create=create)
        return FaultFile(file._fd, path, self._fs, owner=name == "log" and (write or create))

    def open_directory(self, name: str) -> FaultDirectory:
        path = f"{self.path}/{name}"
        self._fs.meet("open_directory", path)
        return FaultDirectory(super().open_directory(name)._fd, path, self._fs)

    def make_directory(self, name: str) -> None:
        self._fs.meet("make_directory", f"{self.path}/{name}")
        super().make_directory(name)

    def rename(self, name: str, target: Any, new_name: str) -> None:
        self._fs.meet("rename", f"{target.path}/{new_name}")
        super().rename(name, target, new_name)

    def unlink(self, name: str) -> None:
        self._fs.meet("unlink", f"{self.path}/{name}")
        super().unlink(name)

    def sync(self) -> None:
        self._fs.meet("sync", self.path)


class Kit:
    """A store on a file system with faults; closes what it opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fs = FaultFileSystem()
        self._stores: list[sealog.Store] = []

    def store(self, **options: Any) -> sealog.Store:
        """Open the store."""
        options.setdefault("file_system", self.fs)
        store = sealog.open(self.path, **options)
        self._stores.append(store)
        return store

    def close(self) -> None:
        """Close all stores; the file system works again."""
        self.fs.heal()
        for store in self._stores:
            store.close(SAFETY_S)
        assert self.fs.violations == []

    def snapshot(self) -> dict[str, bytes | None]:
        """Return the contents of every file of the store; None for folders."""
        return {
            str(path.relative_to(self.path)): None if path.is_dir() else path.read_bytes()
            for path in sorted(self.path.rglob("*"))
        }


def until(condition: Callable[[], object], what: str = "it") -> None:
    """Wait for what can only be looked at; fail if it never comes."""
    end = time.monotonic() + SAFETY_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < end, f"{what} never happened"
        pause.wait(0.0005)


def until_lending(session: sealog.Session) -> None:
    """Wait until the session's actor sleeps, so that the next blocking call borrows its turn."""
    until(lambda: isinstance(session._slot.mailbox.state, Sleep), "sleep")


def texts(session: sealog.Session | sealog.SealedSession) -> list[str]:
    """Return the texts of all events."""
    return [event.text for event in session.events()]
