"""Small logs to be damaged byte by byte, and what opening and reading a damaged one gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sealog.storage import directory as stores
from sealog.storage.errors import FormatError
from sealog.storage.events import Event
from sealog.storage.log import open_log
from sealog.storage.recovery import RecoveryReport
from sealog.testing import Disk, SimulatedFileSystem

from .model import Expected, Sure
from .world import STORE, World, read_session

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = f"{STORE}/s/log"
LOCK = f"{STORE}/s/lock"
INDEX = f"{STORE}/s/checkpoints/index"
NO_MARK = bytes(32)


class Sample(msgspec.Struct, frozen=True):
    """A log that was closed properly.

    Args:
        disk: with its mark, without a checkpoint.
        events: of the session.
        ends: where the frames end, in order, the session header first.
        early_lock: the lock file with the mark that stood there before the last frame.
    """

    disk: Disk
    events: tuple[Event, ...]
    ends: tuple[int, ...]
    early_lock: bytes

    @property
    def log(self) -> bytes:
        """All bytes of the log."""
        return self.disk.files()[LOG]

    @property
    def end(self) -> int:
        """Where the last frame ends."""
        return self.ends[-1]

    @property
    def last(self) -> int:
        """Where the last frame starts."""
        return self.ends[-2]

    def before_last(self) -> tuple[Event, ...]:
        """Return the events of all frames but the last, which has one event."""
        return self.events[:-1]


def make_sample(*steps: Callable[[World], None]) -> Sample:
    """Make a log by these steps, each of which commits one frame."""
    world = World(SimulatedFileSystem())
    world.start()
    world.create("s")
    log = world.owners["s"].log
    ends = [log.head.end]
    for step in steps:
        early_lock = world.machine.disk().files()[LOCK]
        step(world)
        ends.append(log.head.end)
    world.close("s")
    return Sample(_image(world.machine), world.model["s"].events, tuple(ends), early_lock)


def with_file(disk: Disk, path: str, data: bytes, offset: int | None = None) -> Disk:
    """Return the disk with other bytes in a file: all of it, or those at an offset."""
    fs = SimulatedFileSystem(disk)
    folder, _, name = path.rpartition("/")
    file = fs.open_directory(folder).open(name, write=True)
    if offset is None:
        file.truncate(0)
    file.pwrite(data, offset or 0)
    return Disk(fs.disk().tree().contents())


class Outcome(msgspec.Struct, frozen=True):
    """What opening and reading gave.

    Args:
        disk: afterwards.
        events: that were read; None if opening or reading was refused.
        report: of the recovery; None if opening was refused.
        sealed: whether there is a seal.
        error: of opening or reading.
    """

    disk: Disk
    events: tuple[Event, ...] | None = None
    report: RecoveryReport | None = None
    sealed: bool = False
    error: FormatError | None = None

    def quarantined(self) -> bytes:
        """Return the bytes that were cut off."""
        assert self.report is not None
        assert self.report.quarantined is not None
        return self.disk.files()[self.report.quarantined]


def open_damaged(disk: Disk) -> Outcome:
    """Open a session as its owner and read all of it; a reader must come to the same."""
    fs = SimulatedFileSystem(disk)
    try:
        read = read_session(SimulatedFileSystem(disk), "s").events
    except FormatError:
        read = None
    store = fs.open_directory(STORE)
    lock = stores.lock_session(fs, store, "s")
    report = None
    try:
        log = open_log(fs, store, store.open_directory("s"), lock)
        report = log.recovered
        events = tuple(log.view.events(0, log.head.position, log.head))
    except FormatError as error:
        assert read is None, "a reader shows what its owner refuses"
        return Outcome(_image(fs), error=error, report=report)
    assert events == read, "a reader shows something else than the owner"
    return Outcome(_image(fs), events, report, log.receipt is not None)


def _image(fs: SimulatedFileSystem) -> Disk:
    return Disk(fs.disk().tree().contents())


def append_and_read(disk: Disk, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Append to a recovered log with these events, close it, and read it as another process does."""
    world = World(SimulatedFileSystem(disk), {"s": Expected(Sure.YES, events)})
    world.start()
    world.open("s")
    assert world.owners["s"].log.recovered.status == "clean", "recovery is not idempotent"
    world.commit("s", "after the recovery")
    world.close("s")
    return read_session(world.fs, "s").events
