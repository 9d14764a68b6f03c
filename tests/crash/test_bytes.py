"""Damage of every byte and bit of small logs: loud, or a torn tail where docs/recovery.md allows that."""

from __future__ import annotations

import pytest

from sealog.storage import reader, recovery
from sealog.storage.errors import CorruptionError, FormatError
from sealog.storage.events import Event
from sealog.testing import Disk, SimulatedFileSystem

from .model import Expected, Sure
from .samples import (
    INDEX,
    LOCK,
    LOG,
    NO_MARK,
    Outcome,
    Sample,
    append_and_read,
    make_sample,
    open_damaged,
    with_file,
)
from .world import World, text


def _commit(*texts: str):
    return lambda world: world.commit("s", *texts)


def _seal(world: World) -> None:
    world.seal("s")


@pytest.fixture
def small() -> Sample:
    """Three frames of events, all within a few hundred bytes."""
    return make_sample(_commit("zero"), _commit("one", "two"), _commit("three, the last"))


@pytest.fixture
def sealed() -> Sample:
    return make_sample(_commit("zero"), _commit("one", "two"), _seal)


@pytest.fixture
def sectors() -> Sample:
    """Frames that begin and end inside sectors, and one of several sectors at the end."""
    return make_sample(_commit(text(700, 1)), _commit(text(900, 2)), _commit(text(1300, 3)))


def without_mark(disk: Disk) -> Disk:
    return with_file(disk, LOCK, NO_MARK, 0)


def unproven(disk: Disk) -> Disk:
    """Return the disk without a mark or a checkpoint that tell how far the log once went."""
    return with_file(without_mark(disk), INDEX, b"") if INDEX in disk.files() else without_mark(disk)


def check_refused(disk: Disk, what: str) -> None:
    """A damaged log must be refused and nothing touched but the note of who holds the lock."""
    outcome = open_damaged(disk)
    assert outcome.error is not None, f"{what}: {outcome.report}"
    before, after = disk.files(), outcome.disk.files()
    before.pop(LOCK), after.pop(LOCK)
    assert before == after, f"{what}: something was touched"


def check_cut(sample: Sample, outcome: Outcome, tail: bytes, what: str) -> None:
    """The last frame must be cut off, with a report and a copy, and appending goes on from there."""
    assert outcome.events == sample.before_last(), what
    assert outcome.report is not None
    assert outcome.report.status == "recovered", what
    assert outcome.report.dropped_bytes == len(tail), what
    assert outcome.quarantined() == tail, what
    assert outcome.disk.files()[LOG] == sample.log[: sample.last], what
    appended = append_and_read(outcome.disk, sample.before_last())
    assert appended[:-1] == sample.before_last(), what
    assert appended[-1].text == "after the recovery", what


@pytest.mark.parametrize("zeros", [0, 1, 5000])
@pytest.mark.parametrize("marked", [True, False])
def test_a_tail_torn_at_any_byte_is_cut_off(small: Sample, zeros: int, marked: bool) -> None:
    disk = with_file(small.disk, LOCK, small.early_lock) if marked else without_mark(small.disk)
    for cut in range(small.last, small.end + 1):
        outcome = open_damaged(with_file(disk, LOG, small.log[:cut] + bytes(zeros)))
        if cut == small.end:
            assert outcome.events == small.events
        elif cut == small.last:
            assert outcome.report is not None
            assert (outcome.report.status, outcome.events) == ("clean", small.before_last())
        else:
            check_cut(small, outcome, small.log[small.last : cut].rstrip(b"\0"), f"cut at {cut}")
            assert outcome.report is not None
            if not zeros:
                assert outcome.report.reason == "incomplete"


def test_any_truncation_of_a_marked_log_is_refused(small: Sample, sealed: Sample) -> None:
    for sample in (small, sealed):
        for cut in range(sample.end):
            for zeros in (0, 4096):
                disk = with_file(sample.disk, LOG, sample.log[:cut] + bytes(zeros))
                check_refused(disk, f"{cut} bytes left, {zeros} zeros")


def _flips(sample: Sample, disk: Disk, start: int = 0, stop: int | None = None):
    for offset in range(start, sample.end if stop is None else stop):
        for bit in range(8):
            flipped = bytes([sample.log[offset] ^ 1 << bit])
            yield f"bit {bit} of byte {offset}", with_file(disk, LOG, flipped, offset)


@pytest.mark.slow
def test_any_flipped_bit_of_a_marked_log_is_refused(small: Sample, sealed: Sample) -> None:
    for sample in (small, sealed):
        for what, disk in _flips(sample, sample.disk):
            check_refused(disk, what)


@pytest.mark.slow
def test_without_a_mark_only_the_last_frame_can_be_taken_for_torn(small: Sample) -> None:
    disk = without_mark(small.disk)
    for what, damaged in _flips(small, disk, 0, small.last):
        check_refused(damaged, what)
    for what, damaged in _flips(small, disk, small.last):
        outcome = open_damaged(damaged)
        check_cut(small, outcome, damaged.files()[LOG][small.last :], what)
        assert outcome.report is not None
        assert outcome.report.reason == "damaged", "it may have been acknowledged, and must say so"


def test_without_a_mark_a_damaged_seal_is_cut_off_and_reported(sealed: Sample) -> None:
    for what, damaged in _flips(sealed, without_mark(sealed.disk), sealed.last):
        outcome = open_damaged(damaged)
        assert outcome.events == sealed.events, what
        assert outcome.report is not None
        assert (outcome.report.reason, outcome.sealed) == ("damaged", False), what
        assert outcome.quarantined() == damaged.files()[LOG][sealed.last :], what


def test_bytes_behind_a_seal_are_refused(sealed: Sample) -> None:
    for gap in (0, 1, 600):
        disk = with_file(without_mark(sealed.disk), LOG, b"x", sealed.end + gap)
        check_refused(disk, f"{gap} zeros and a byte behind the seal")


@pytest.mark.slow
def test_damage_outside_the_verified_tail_is_found_when_it_is_read(
    small: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "VERIFY_TAIL_BYTES", 0)
    monkeypatch.setattr(reader, "VERIFY_TAIL_BYTES", 0)
    opened = 0
    for what, damaged in _flips(small, small.disk, 0, small.last):
        outcome = open_damaged(damaged)
        assert outcome.error is not None, what
        opened += outcome.report is not None
    assert opened > 100, "payloads of old frames are not read at open"


@pytest.mark.slow
def test_damage_behind_a_checkpoint_is_found_when_it_is_read(sectors: Sample) -> None:
    assert INDEX in sectors.disk.files()
    for offset in range(sectors.end):
        flipped = bytes([sectors.log[offset] ^ 1 << offset % 8])
        for disk in (sectors.disk, without_mark(sectors.disk)):
            outcome = open_damaged(with_file(disk, LOG, flipped, offset))
            assert outcome.error is not None, f"byte {offset}"


@pytest.mark.parametrize("path", [LOCK, INDEX])
def test_damage_of_the_mark_or_a_checkpoint_harms_nothing(sectors: Sample, path: str) -> None:
    data = sectors.disk.files()[path]
    for offset, byte in enumerate(data):
        for bit in range(8):
            outcome = open_damaged(with_file(sectors.disk, path, bytes([byte ^ 1 << bit]), offset))
            assert outcome.events == sectors.events, f"bit {bit} of byte {offset}"
            assert outcome.report is not None
            assert outcome.report.status == "clean"


@pytest.mark.parametrize("size", [1, 31, 32, 33, 511, 512, 4096, 70_000, 1024 * 1024])
@pytest.mark.parametrize("marked", [True, False])
def test_zeros_behind_a_log_are_a_clean_end(small: Sample, size: int, marked: bool) -> None:
    disk = small.disk if marked else without_mark(small.disk)
    outcome = open_damaged(with_file(disk, LOG, small.log + bytes(size)))
    assert outcome.events == small.events
    assert outcome.report is not None
    assert outcome.report.status == "clean"
    assert append_and_read(outcome.disk, small.events)[:-1] == small.events


def test_zeroed_sectors_are_never_taken_for_a_shorter_log(sectors: Sample) -> None:
    for offset in range(0, sectors.end, 512):
        zeros = bytes(min(512, sectors.end - offset))
        check_refused(with_file(sectors.disk, LOG, zeros, offset), f"sector at {offset}")
    for disk in (without_mark(sectors.disk), unproven(sectors.disk)):
        for offset in range(0, sectors.last - sectors.last % 512, 512):
            check_refused(with_file(disk, LOG, bytes(512), offset), f"sector at {offset}, no mark")


def test_a_lost_sector_of_the_frame_in_flight_is_an_incomplete_write(sectors: Sample) -> None:
    disk = unproven(sectors.disk)
    first = sectors.last - sectors.last % 512
    for offset in range(first, sectors.end, 512):
        start, stop = max(offset, sectors.last), min(offset + 512, sectors.end)
        damaged = with_file(disk, LOG, bytes(stop - start), start)
        outcome = open_damaged(damaged)
        check_cut(sectors, outcome, damaged.files()[LOG][sectors.last :].rstrip(b"\0"), f"sector at {offset}")
        assert outcome.report is not None
        assert outcome.report.reason == "incomplete"


def test_a_log_inside_an_event_is_never_taken_for_frames() -> None:
    """An agent that reads its own log file puts all of its frames into the next event."""

    def read_own_log(world: World) -> None:
        own = world.machine.disk().files()[LOG]
        data = {"file": own, "again": [own[32:], own[:-1]]}
        world.append("s", Event("tool-result", own.decode("latin-1"), data, 1))

    sample = make_sample(_commit("zero"), _commit("one", "two"), read_own_log)
    assert sample.log.count(sample.log[: sample.last]) > 1
    disk = unproven(sample.disk)
    assert open_damaged(disk).events == sample.events
    for cut in range(sample.last + 1, sample.end, 199):
        for zeros in (0, 3000):
            outcome = open_damaged(with_file(disk, LOG, sample.log[:cut] + bytes(zeros)))
            assert outcome.events == sample.before_last(), f"cut at {cut}"
            assert outcome.report is not None
            assert outcome.report.status == "recovered"


@pytest.mark.parametrize("marked", [True, False])
def test_a_frame_that_is_lost_moved_or_repeated_is_noticed(small: Sample, marked: bool) -> None:
    disk = small.disk if marked else without_mark(small.disk)
    log, (header, first, second, third) = small.log, small.ends
    moved = log[:header] + log[first:second] + log[header:first] + log[second:]
    zeroed = log[:first] + bytes(second - first) + log[second:]
    for data in (moved, zeroed):
        assert isinstance(open_damaged(with_file(disk, LOG, data)).error, CorruptionError)
    outcome = open_damaged(with_file(disk, LOG, log[:first] + log[second:]))
    if marked:
        assert isinstance(outcome.error, CorruptionError)
    else:
        assert outcome.report is not None
        assert outcome.report.reason == "damaged", "nothing behind it stands at its own place"
    repeated = open_damaged(with_file(disk, LOG, log + log[second:third]))
    assert repeated.events == small.events, "what is no frame at its place was never acknowledged"


def test_a_log_of_another_session_is_refused(small: Sample) -> None:
    world = World(SimulatedFileSystem(small.disk), {"s": Expected(Sure.YES, small.events)})
    world.start()
    world.create("other")
    world.commit("other", "of another session")
    other = world.machine.disk().files()["/data/store/other/log"]
    for data in (other, small.log[:32] + other[32:]):
        outcome = open_damaged(with_file(small.disk, LOG, data))
        assert isinstance(outcome.error, FormatError)
