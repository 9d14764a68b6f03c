"""The disks that a crash may leave.

A power cut keeps what is synced, and any part of what was written since: each sector of each write, each
growth of a file, each change of a directory for itself. All subsets of a few changes are tried; of many
changes those that real disks and file systems leave (nothing, everything, any prefix, any suffix, one alone,
one missing, names without data, sizes without data, data without sizes), each with the changes of other files
done, not done or done as far as they came before, and some subsets at random.

A killed process leaves everything that was written, only not synced, and may die inside a write.
"""

from __future__ import annotations

import random
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from .disk import Change, Disk, Grow, Link, Rename, Truncate, Unlink, Write, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

SECTOR_BYTES: Final = 512
"""What a disk writes whole or not at all."""

PAGE_BYTES: Final = 4096
"""What a file system writes, and grows a file by, at a time."""

SUBSETS_OF: Final = 5
"""So many changes of one file or directory are tried in all combinations."""

SPREAD: Final = 12
"""Of a longer list of changes, so many places are tried for each way to tear it."""


class Crash(msgspec.Struct, frozen=True):
    """A disk that a crash may leave.

    Args:
        label: how it came about.
        disk: what it holds.
        digest: of the disk, as `Disk.digest` gives it.
    """

    label: str
    disk: Disk
    digest: bytes


def _crash(label: str, disk: Disk) -> Crash:
    return Crash(label, disk, disk.digest())


def kills(disk: Disk) -> Iterator[Crash]:
    """Yield the disks that SIGKILL may leave: everything as it is, or the last write cut short."""
    yield _crash("killed", disk)
    at = len(disk.pending) - 1
    grow = disk.pending[at] if at >= 0 else None
    if isinstance(grow, Grow):
        at -= 1
    write = disk.pending[at] if at >= 0 else None
    if not isinstance(write, Write):
        return
    for length in _cut_lengths(write):
        changes: list[Change] = [msgspec.structs.replace(write, data=write.data[:length])]
        if isinstance(grow, Grow) and write.offset + length > grow.before:
            changes.append(msgspec.structs.replace(grow, size=write.offset + length))
        label = f"killed in a write, after {length} of {len(write.data)} bytes"
        yield _crash(label, Disk(disk.synced, (*disk.pending[:at], *changes)))


def _cut_lengths(write: Write) -> list[int]:
    """Kernels copy pages; a few sector borders stand for them."""
    borders = _borders(write.offset, write.offset + len(write.data), SECTOR_BYTES)
    return [borders[place] - write.offset for place in _spread(len(borders), 4)]


def power_cuts(disk: Disk, *, seed: int = 0, extra: int = 4, limit: int | None = None) -> Iterator[Crash]:
    """Yield the disks that a power cut may leave, each once.

    Args:
        disk: what the disk holds when the power fails.
        seed: of the random choices.
        extra: number of random subsets of the pending changes.
        limit: keep so many at random, beside nothing and everything that was written.
    """
    parts = _split(disk.pending)
    rng = random.Random(seed)
    paths = {node: path for path, node in disk.tree().walk()}
    chosen = _without_repeats(_choices(parts, paths, rng, extra))
    if limit is not None and len(chosen) > limit + 2:
        chosen = chosen[:2] + rng.sample(chosen[2:], limit)
    seen: set[bytes] = set()
    for label, mask in chosen:
        image = _image(disk, (part for index, part in enumerate(parts) if mask >> index & 1))
        crash = _crash(f"power cut, {label}", image)
        if crash.digest not in seen:
            seen.add(crash.digest)
            yield crash


def garbage_cuts(disk: Disk, *, seed: int = 0, extra: int = 4) -> Iterator[Crash]:
    """Yield disks where sectors of unsynced writes hold garbage: what stood there once, or broken bits.

    Bytes that were not being written are never harmed.

    Args:
        disk: what the disk holds when the power fails.
        seed: of the garbage.
        extra: number of random mixtures.
    """
    parts = _split(disk.pending)
    rng = random.Random(seed)
    writes = [index for index, part in enumerate(parts) if isinstance(part, Write)]
    if not writes:
        return
    everything = set(range(len(parts)))
    mixtures: list[tuple[str, set[int], set[int]]] = [("in all sectors", everything, set(writes))]
    mixtures.extend(
        (f"in sector {place + 1} of {len(writes)}", everything, {writes[place]})
        for place in _spread(len(writes), SPREAD)
    )
    for number in range(extra):
        kept = set(rng.sample(range(len(parts)), rng.randrange(len(parts) + 1)))
        spoilt = set(rng.sample(writes, rng.randrange(len(writes) + 1)))
        mixtures.append((f"in some sectors, random mixture {number}", kept, spoilt))
    for label, kept, spoilt in mixtures:
        changes = (
            _spoil(part, rng) if index in spoilt else part
            for index, part in enumerate(parts)
            if index in kept
        )
        yield _crash(f"power cut, garbage {label}", _image(disk, changes))


def _spoil(change: Change, rng: random.Random) -> Change:
    assert isinstance(change, Write)
    return msgspec.structs.replace(change, data=rng.randbytes(len(change.data)))


def _image(disk: Disk, changes: Iterable[Change]) -> Disk:
    return Disk(settle(disk.synced, changes).contents())


def _split(changes: Iterable[Change]) -> list[Change]:
    """Split changes into the parts that reach a disk, or not, each for itself."""
    parts: list[Change] = []
    for change in changes:
        if isinstance(change, Write):
            start, end = change.offset, change.offset + len(change.data)
            cuts = [start, *_borders(start, end, SECTOR_BYTES), end]
            parts.extend(
                Write(change.number, change.node, low, change.data[low - start : high - start])
                for low, high in pairwise(cuts)
            )
        elif isinstance(change, Grow):
            sizes = [*_borders(change.before, change.size, PAGE_BYTES), change.size]
            parts.extend(Grow(change.number, change.node, change.before, size) for size in sizes)
        else:
            parts.append(change)
    return parts


def _borders(start: int, end: int, step: int) -> range:
    """Return the multiples of `step` between two offsets."""
    return range(start - start % step + step, end, step)


_Choice = tuple[str, int]
"""A description, and a bit for each change that reached the disk."""


def _choices(
    parts: Sequence[Change], paths: Mapping[int, str], rng: random.Random, extra: int
) -> Iterator[_Choice]:
    everything = (1 << len(parts)) - 1
    yield "nothing of the unsynced there", 0
    yield "everything there", everything
    for place in _spread(len(parts), SPREAD * 2):
        yield f"the first {place + 1} of {len(parts)} changes there", (2 << place) - 1
    names = _mask(parts, lambda part: isinstance(part, (Link, Unlink, Rename)))
    sizes = _mask(parts, lambda part: isinstance(part, (Grow, Truncate)))
    yield "only names", names
    yield "only contents and sizes", everything & ~names
    yield "names and sizes without contents", names | sizes
    yield "names and contents without sizes", everything & ~sizes
    by_node = sorted(range(len(parts)), key=lambda index: parts[index].node)
    for node, indexes in groupby(by_node, key=lambda index: parts[index].node):
        path = paths.get(node, "what has lost its name")
        for label, mask in _choices_of_one(parts, list(indexes)):
            yield f"of {path or '/'}: {label}", mask
    for number in range(extra):
        yield f"random subset {number}", rng.getrandbits(len(parts)) if parts else 0


def _choices_of_one(parts: Sequence[Change], indexes: list[int]) -> Iterator[_Choice]:
    """Yield ways to tear the changes of one file or directory, with those of the others in three ways."""
    own = _bits(indexes)
    others = (1 << len(parts)) - 1 & ~own
    for label, mask in _tear(parts, indexes):
        yield f"{label}; others not there", mask
        yield f"{label}; others there", mask | others
        earlier = (1 << mask.bit_length()) - 1 & others
        yield f"{label}; others there if earlier", mask | earlier


def _tear(parts: Sequence[Change], indexes: list[int]) -> Iterator[_Choice]:
    count = len(indexes)
    if count <= SUBSETS_OF:
        for subset in range(1 << count):
            chosen = [index for place, index in enumerate(indexes) if subset >> place & 1]
            yield f"subset {subset:0{count}b}", _bits(chosen)
        return
    for place in _spread(count, SPREAD):
        one = 1 << indexes[place]
        yield f"the first {place + 1} of {count}", _bits(indexes[: place + 1])
        yield f"all but the first {place} of {count}", _bits(indexes[place:])
        yield f"only number {place + 1} of {count}", one
        yield f"all but number {place + 1} of {count}", _bits(indexes) & ~one
    sizes = _mask(parts, lambda part: isinstance(part, (Grow, Truncate)))
    yield "sizes only", _bits(indexes) & sizes
    yield "no sizes", _bits(indexes) & ~sizes


def _bits(indexes: Iterable[int]) -> int:
    return sum(1 << index for index in indexes)


def _mask(parts: Sequence[Change], wanted: Callable[[Change], bool]) -> int:
    return _bits(index for index, part in enumerate(parts) if wanted(part))


def _spread(count: int, limit: int) -> list[int]:
    """Return up to `limit` places among `count`, evenly spread, the first and the last among them."""
    if count <= limit:
        return list(range(count))
    return sorted({round(step * (count - 1) / (limit - 1)) for step in range(limit)})


def _without_repeats(choices: Iterable[_Choice]) -> list[_Choice]:
    labels: dict[int, str] = {}
    for label, mask in choices:
        labels.setdefault(mask, label)
    return [(label, mask) for mask, label in labels.items()]
