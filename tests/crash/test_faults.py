"""Every call fails once, or from some call on for ever; the process gives up, and may crash on top of it."""

from __future__ import annotations

import errno

import msgspec
import pytest

from sealog.testing import Fault, FaultyFileSystem, SimulatedFileSystem, power_cuts

from . import scripts
from .explorer import Explorer, Moment, Plan, Script
from .model import check_found
from .world import World, read_session

PLAN = Plan(every=(0,), cuts=(4,))
FAULTS = {
    "once": Fault(errno.EIO),
    "for ever": Fault(errno.EIO, times=None),
    "full": Fault(errno.ENOSPC, "pwrite", written=100),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize(
    "script", [scripts.life, scripts.attachments, scripts.deletions], ids=lambda script: script.__name__
)
def test_a_failing_call_breaks_no_promise(script: Script, fault: Fault) -> None:
    explorer, number = Explorer(PLAN, sectors_whole=not fault.written), 0
    while True:
        number += 1
        moment = _run(script, msgspec.structs.replace(fault, number=number))
        if moment is None:
            break
        explorer.explore([moment], 0, ())
    assert number > 20
    print(f"{number:,} faults, {len(explorer.states):,} states")  # noqa: T201


def _run(script: Script, fault: Fault) -> Moment | None:
    """Run until the fault is raised; None if the script is over before it strikes."""
    machine = SimulatedFileSystem()
    world = World(machine)
    world.fs = faulty = FaultyFileSystem(machine, fault)
    try:
        script(world)
    except OSError:
        pass
    else:
        if not faulty.failed:
            return None
    return Moment(f"{fault} at {faulty.failed[0]}", machine.disk(), world.model)


def test_a_frame_whose_sync_failed_is_written_again_by_the_next_owner() -> None:
    """The cache of a failed sync calls clean what the disk does not hold; here the machine lives on."""
    machine = SimulatedFileSystem()
    dead = World(machine)
    dead.fs = faulty = FaultyFileSystem(machine)
    dead.start()
    dead.create("s")
    dead.commit("s", "acknowledged")
    faulty.add(Fault(errno.EIO, "sync_data", "/log", lossy=True))
    with pytest.raises(OSError, match="Input/output"):
        dead.commit("s", "of a failed sync")
    dead.owners["s"].log.unlock()
    dead.owners["s"].lock.close()
    world = World(machine, dead.model)
    world.start()
    shown = world.open("s").events
    assert len(shown) == 2
    world.commit("s", "acknowledged too")
    for cut in power_cuts(machine.disk()):
        found = read_session(SimulatedFileSystem(cut.disk), "s")
        check_found("s", world.model["s"], found)
