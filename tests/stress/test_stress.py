"""The stress, bounded; and the mistakes that it must find."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .engine import Run
from .mutations import MUTATIONS
from .notes import Settings
from .run import FOUND

if TYPE_CHECKING:
    from collections.abc import Iterator

MUTATION_S = 30
RUNS = {
    "many sessions, few live": Settings(seconds=2.5, seed=1, threads=10, sessions=8, live=2, reopen_s=0.5),
    "one session, small mailbox": Settings(seconds=1.5, seed=2, sessions=1, messages_max=4, reopen_s=0.0),
    "faults only": Settings(seconds=1.5, seed=3, threads=6, sessions=3, live=3, faults=0.02, chaos=False),
    "fast switches": Settings(seconds=1.5, seed=4, sessions=4, live=2, switch_s=1e-6, reopen_s=0.2),
    "interrupts": Settings(seconds=2.5, seed=5, threads=3, sessions=3, live=2, signals=True, reopen_s=0.5),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    levels = {name: logging.getLogger(name).level for name in ("pykka", "sealog")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize("name", RUNS)
def test_under_stress_nothing_is_lost_repeated_or_unanswered(tmp_path: Path, name: str) -> None:
    result = Run(tmp_path / "store", RUNS[name]).run()
    assert result.violations == []
    assert result.acknowledged > 100
    assert result.stored >= result.acknowledged
    if RUNS[name].faults:
        assert result.counts["restarts"] > 0
    if RUNS[name].signals:
        assert result.counts["interrupts"] > 10


class Mutant:
    """A stress with a mistake put in, in a process of its own, since it leaves threads that hang."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._process = self._start(1)

    def _start(self, seed: int) -> subprocess.Popen[str]:
        script = Path(__file__).with_name("run.py")
        options = {"seconds": MUTATION_S, "mutation": self._name, "seed": seed, "path": self._path}
        arguments = [f"--{option}={value}" for option, value in options.items()]
        return subprocess.Popen(
            [sys.executable, str(script), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def is_found(self) -> bool:
        """Wait for the end; a race that did not show itself gets two more chances."""
        for seed in (2, 3, 4):
            try:
                output, _ = self._process.communicate(timeout=2 * MUTATION_S)
            except subprocess.TimeoutExpired:
                output = "it hangs"
            if self._process.returncode == FOUND:
                return True
            assert self._process.returncode in (0, None), output
            self.close()
            self._process = self._start(seed)
        return False

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def mutants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Mutant]]:
    """Start a stress for each mistake, all at once: they spend their time waiting for what never comes."""
    started = {name: Mutant(name, tmp_path_factory.mktemp("mutant")) for name in MUTATIONS}
    yield started
    for mutant in started.values():
        mutant.close()


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_stress_finds_a_known_mistake(mutants: dict[str, Mutant], name: str) -> None:
    assert mutants[name].is_found()
