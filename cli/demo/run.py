"""The demo itself: measure, write, kill, recover in a new process, compare."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from ...storage.recovery import RecoveryReport
from ...storage.vfs import OsFileSystem
from .check import Comparison, compare, parse_acknowledgements
from .process import last_line, start, stop
from .recover import RecoverJob, RecoverLine
from .writer import SessionPlan, WriterJob

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

START_SECONDS_MAX: Final = 120.0


class DemoError(Exception):
    """The demo could not be carried out; nothing was found out."""


class Settings(msgspec.Struct, frozen=True):
    """What to run.

    Args:
        store: absolute path of a folder that is empty or missing.
        sessions: the sessions to make.
        text_bytes: mean size of an event, for the plain loop.
        seconds: how long to append before the kill.
        threads: how many append.
        seed: of everything that is random.
        floor_seconds: how long the plain loop is measured, before and again after.
    """

    store: str
    sessions: list[SessionPlan]
    text_bytes: int
    seconds: float = 4.0
    threads: int = 16
    seed: int = 1
    floor_seconds: float = 0.5


class Result(msgspec.Struct, frozen=True):
    """What came out.

    Args:
        store: where the sessions are.
        sessions: how many.
        comparison: acknowledged against found.
        torn_tails: logs that ended in an interrupted write, which recovery cut off.
        cut_bytes: size of all these tails; they are kept in quarantine.
        leftovers: half-made attachment files that were removed.
        recovery_seconds: for opening and recovering all sessions.
        appends_per_s: acknowledged until the kill.
        floor_per_s: of a loop of write and fdatasync in one thread: same size, same run, same disk. The
            better of before and after, so that other programs do not flatter the ratio.
    """

    store: str
    sessions: int
    comparison: Comparison
    torn_tails: int
    cut_bytes: int
    leftovers: int
    recovery_seconds: float
    appends_per_s: float
    floor_per_s: float

    @property
    def ratio(self) -> float:
        """Appends for each write of the plain loop."""
        return self.appends_per_s / self.floor_per_s

    @property
    def ok(self) -> bool:
        """Whether everything acknowledged was found, and nothing else is wrong."""
        return self.comparison.lost == 0 and self.comparison.faults == 0


class Watcher:
    """Is told how far the demo is; shows nothing by itself."""

    def phase(self, text: str, total: float) -> None:
        """Something new begins that ends at `total`."""

    def advance(self, done: float) -> None:
        """It is so far."""


def run_demo(settings: Settings, watcher: Watcher, after_kill: Callable[[], None] = lambda: None) -> Result:
    """Run the demo.

    Args:
        settings: what to run.
        watcher: told about progress.
        after_kill: called between the kill and recovery; a test damages the store there.

    Raises:
        DemoError: a process did not do its part.
        OSError: the disk refused.
    """
    folder = Path(settings.store)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    watcher.phase("measuring a plain write + fdatasync loop", 0)
    floor = [_measure_floor(folder.parent, settings)]
    report, seconds = _write_and_kill(settings, watcher)
    after_kill()
    watcher.phase("recovering in a new process", len(settings.sessions))
    reports, recovery_seconds = _recover(settings.store, watcher)
    lanes, failure = parse_acknowledgements(report, len(settings.sessions))
    if not any(len(lane) for lane in lanes):
        raise DemoError("nothing was acknowledged before the kill; give it more --seconds")
    watcher.phase("comparing with what was acknowledged", len(settings.sessions))
    done = iter(range(1, len(lanes) + 1))
    comparison = compare(
        settings.store,
        zip(settings.sessions, lanes, strict=True),
        settings.threads,
        lambda: watcher.advance(next(done)),
    )
    if failure is not None:
        comparison.add_fault(f"the writing process: {failure}")
    for found in reports:
        if found.status not in ("clean", "recovered"):
            comparison.add_fault(f"{found.session_id}: {found.status} after the kill: {found.reason}")
    watcher.phase("measuring the plain loop again", 0)
    floor.append(_measure_floor(folder.parent, settings))
    return Result(
        settings.store,
        len(settings.sessions),
        comparison,
        sum(found.status == "recovered" for found in reports),
        sum(found.dropped_bytes for found in reports),
        sum(len(found.leftovers) for found in reports),
        recovery_seconds,
        comparison.acknowledged / seconds,
        max(floor),
    )


def _measure_floor(folder: Path, settings: Settings) -> float:
    """Return how many writes of one event, each followed by a data sync, one thread does in a second."""
    size = settings.text_bytes
    body = os.urandom(size)
    directory = OsFileSystem().open_directory(str(folder))
    name = f".sealog-demo-floor-{os.getpid()}"
    try:
        file = directory.open(name, create=True)
        try:
            count, started = 0, time.perf_counter()
            while (seconds := time.perf_counter() - started) < settings.floor_seconds or not count:
                file.pwrite(body, count * size)
                file.sync_data()
                count += 1
        finally:
            file.close()
            directory.unlink(name)
    finally:
        directory.close()
    return count / seconds


@contextlib.contextmanager
def _process(module: str, job: msgspec.Struct) -> Generator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    with tempfile.TemporaryFile() as errors:
        process = start(module, job, errors)
        try:
            yield process, errors
        finally:
            stop(process)


def _write_and_kill(settings: Settings, watcher: Watcher) -> tuple[bytes, float]:
    """Return what the writing process reported until it was killed, and the seconds it had."""
    watcher.phase("creating sessions", 0)
    job = WriterJob(settings.store, settings.sessions, settings.threads, settings.seconds, settings.seed)
    with _process("writer", job) as (process, errors):
        report = _Pipe(process)
        if not report.read_until(b"ready\n", START_SECONDS_MAX):
            raise DemoError(f"the writing process did not start: {report.failure(errors)}")
        watcher.phase("appending until the kill", settings.seconds)
        started = time.monotonic()
        while (passed := time.monotonic() - started) < settings.seconds and not report.ended:
            report.read(min(0.1, settings.seconds - passed))
            watcher.advance(time.monotonic() - started)
        process.kill()
        seconds = time.monotonic() - started
        process.wait()
        if process.returncode != -signal.SIGKILL:
            raise DemoError(f"the writing process ended before the kill: {report.failure(errors)}")
        while not report.ended:  # what was in the pipe had been acknowledged
            report.read(1.0)
        return bytes(report.data), seconds


class _Pipe:
    """What a process writes to its standard output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        stdout: Any = process.stdout
        self._fd: int = stdout.fileno()
        self.data = bytearray()
        self.ended = False

    def read(self, timeout_s: float) -> None:
        """Take what is there, waiting for it."""
        ready, _, _ = select.select([self._fd], [], [], max(timeout_s, 0))
        if ready:
            chunk = os.read(self._fd, 1 << 18)
            self.data += chunk
            self.ended = not chunk

    def read_until(self, mark: bytes, timeout_s: float) -> bool:
        """Read until a line is there; False if it does not come."""
        deadline = time.monotonic() + timeout_s
        while mark not in self.data:
            if self.ended or time.monotonic() > deadline:
                return False
            self.read(deadline - time.monotonic())
        return True

    def failure(self, errors: IO[bytes]) -> str:
        """Return why the process ended, as far as it said."""
        lines = self.data.decode("ascii", "replace").split("\n")
        told = [line.removeprefix("x ") for line in lines if line.startswith("x ")]
        return told[0] if told else last_line(errors)


def _recover(store: str, watcher: Watcher) -> tuple[list[RecoveryReport], float]:
    """Have a new process recover all sessions; return its reports and the seconds it took."""
    reports: list[RecoveryReport] = []
    decode = msgspec.json.Decoder(RecoverLine).decode
    with _process("recover", RecoverJob(store)) as (process, errors):
        stdout: Any = process.stdout
        line = None
        for text in stdout:
            line = decode(text)
            if line.report is not None:
                reports.append(line.report)
            watcher.advance(line.done)
        if process.wait() != 0 or line is None or line.report is not None:
            raise DemoError(f"recovery ended early: {last_line(errors)}")
        return reports, line.seconds
