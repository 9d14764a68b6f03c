"""Long random lives: a few steps, a crash, a few steps on what it left, a crash, and so on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from sealog.storage.errors import SealogError
from sealog.testing import SimulatedFileSystem, kills, power_cuts

from .model import Sure
from .world import World, text

if TYPE_CHECKING:
    from sealog.testing import Disk

    from .model import Model

WALKS = 60
ROUNDS = 12


def _live(world: World, rng: random.Random) -> None:
    """Open what is there and do some steps, until the machine crashes or they are over."""
    ids = world.start()
    for session_id in ids:
        if not world.machine.disk().pending:
            world.expected_tail(session_id)
        world.open(session_id)
    for _ in range(rng.randrange(12)):
        _step(world, rng)


def _step(world: World, rng: random.Random) -> None:
    session_id = rng.choice("abc")
    expected = world.model.get(session_id)
    if session_id not in world.owners:
        if expected is None or expected.there is Sure.NO:
            world.create(session_id)
        elif expected.there is Sure.YES:
            world.open(session_id)
        return
    action = rng.random()
    if action < 0.15:
        world.close(session_id)
    elif action < 0.22:
        world.delete(session_id)
    elif expected is None or expected.sealed is Sure.YES:
        return
    elif action < 0.25:
        world.seal(session_id)
    elif action < 0.45:
        world.attach(session_id, text(rng.choice((0, 10, 700, 5000)), rng.randrange(9)).encode())
    else:
        sizes = rng.choices((5, 100, 600, 1500, 5000), k=rng.choice((1, 1, 1, 2, 3)))
        world.commit(session_id, *(text(size, rng.randrange(9)) for size in sizes))


def _walk(seed: int) -> int:
    """Return the number of events that were there in the end."""
    rng = random.Random(seed)
    disk: Disk | None = None
    model: Model = {}
    for _ in range(ROUNDS):
        crash_at = rng.randrange(1, 90)
        machine = SimulatedFileSystem(disk, preallocates=rng.random() < 0.8, crash_at=crash_at)
        world = World(machine, model)
        try:
            _live(world, rng)
        except (OSError, SealogError):
            if not machine.crashed:
                raise
        last = machine.crash()
        model = world.model
        crashes = [*kills(last), *power_cuts(last, seed=rng.randrange(100), limit=8)]
        disk = rng.choice(crashes).disk
    return sum(len(expected.events) for expected in model.values())


@pytest.mark.slow
def test_walks_from_crash_to_crash() -> None:
    events = [_walk(seed) for seed in range(WALKS)]
    assert sum(events) > WALKS
