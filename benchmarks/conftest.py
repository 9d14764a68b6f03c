"""Benchmarks measure each workload beside a plain one on the same disk, round by round, and report the ratio.

    pytest benchmarks                          the figures
    pytest benchmarks --basetemp DIR           on the disk of DIR, which is emptied
    pytest benchmarks --benchmark-disable      each once and small, to see that they run

A ratio of 2 means: twice as many operations per second as the plain loop, which is what a program would do
without sealog. It says more than the times, since disks and machines differ. Measure on an idle machine.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import sealog
from sealog.storage.events import encode_event
from sealog.storage.vfs import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

TEXT = "The cause is in line 217: the token is compared before it is normalised. I added a test. " * 5
DATA = {"turn": 7, "id": "call_5dfeacf424d9", "name": "read_file", "arguments": {"path": "src/cache.py"}}
EVENT = sealog.Event("assistant-message", TEXT, DATA, at=1_700_000_000_000_000_000)

_LINES = pytest.StashKey[list["Line"]]()


class Line(NamedTuple):
    """One workload in the summary."""

    name: str
    per_s: float
    floor_per_s: float


class Beside:
    """Runs a workload as a benchmark, with the plain one before each round of it."""

    def __init__(self, benchmark: BenchmarkFixture, name: str, lines: list[Line]) -> None:
        self._benchmark = benchmark
        self._name = name
        self._lines = lines

    def scaled(self, count: int, quick: int) -> int:
        """Return how much to do: the first when measuring, the second when only trying."""
        return count if self._benchmark.enabled else quick

    def __call__(
        self,
        work: Callable[..., object],
        floor: Callable[[], int],
        operations: int = 1,
        prepare: Callable[[], tuple[Any, ...]] = tuple,
        rounds: int = 7,
    ) -> None:
        """Measure.

        Args:
            work: takes what `prepare` returned.
            floor: the plain workload; returns how many operations it did.
            operations: how many `work` does.
            prepare: called before each round, not measured.
            rounds: how many.
        """
        floor_s: list[float] = []

        def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
            started = time.perf_counter()
            count = floor()
            floor_s.append((time.perf_counter() - started) / count)
            return prepare(), {}

        self._benchmark.pedantic(work, setup=setup, rounds=rounds)
        if self._benchmark.enabled:
            each_s = self._benchmark.stats.stats.median / operations
            line = Line(self._name, 1 / each_s, 1 / statistics.median(floor_s))
            self._benchmark.extra_info.update(
                operations=operations,
                per_s=round(line.per_s, 1),
                floor_per_s=round(line.floor_per_s, 1),
                ratio=round(line.per_s / line.floor_per_s, 3),
            )
            self._lines.append(line)


@pytest.fixture
def beside(benchmark: BenchmarkFixture, request: pytest.FixtureRequest) -> Beside:
    """Return what measures a workload beside a plain one."""
    return Beside(benchmark, request.node.name, request.config.stash.setdefault(_LINES, []))


@pytest.fixture
def event() -> sealog.Event:
    """Return what an agent says."""
    return EVENT


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sealog.Store]:
    """Return an empty store."""
    with sealog.open(tmp_path / "store") as opened:
        yield opened


class WriteLoop:
    """One thread that writes an event's worth of bytes and waits for the disk, over and over."""

    def __init__(self, folder: Path, count: int) -> None:
        self._directory = OsFileSystem().open_directory(str(folder))
        self._file = self._directory.open("plain", create=True)
        self._count = count
        self._end = 0

    def __call__(self) -> int:
        body = encode_event(EVENT.kind, EVENT.text, EVENT.data, EVENT.at or 0, None)
        for _ in range(self._count):
            self._file.pwrite(body, self._end)
            self._file.sync_data()
            self._end += len(body)
        return self._count

    def close(self) -> None:
        self._file.close()
        self._directory.close()


@pytest.fixture
def write_loop(tmp_path: Path, beside: Beside) -> Iterator[WriteLoop]:
    """Return the floor of everything that appends: write + fdatasync, as the library syncs."""
    loop = WriteLoop(tmp_path, beside.scaled(500, 5))
    yield loop
    loop.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the ratios, which the table of pytest-benchmark does not show."""
    lines = config.stash.get(_LINES, [])
    if not lines:
        return
    terminalreporter.section("beside the plain loop")
    width = max(len(line.name) for line in lines)
    terminalreporter.line(f"{'':{width}} {'per second':>14} {'plain':>14} {'ratio':>8}")
    for line in lines:
        ratio = line.per_s / line.floor_per_s
        terminalreporter.line(
            f"{line.name:{width}} {line.per_s:14,.1f} {line.floor_per_s:14,.1f} {ratio:8.2f}"
        )
