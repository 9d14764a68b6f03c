"""Crashes and faults for tests: of sealog itself, and of programs that embed it.

A `SimulatedFileSystem` keeps what was written and what was synced apart. `power_cuts` and `kills` give the
disks that a crash may leave at one moment; a new `SimulatedFileSystem` goes on from each. The calls of a
`FaultyFileSystem` fail as planned.

    for crash in power_cuts(fs.disk()):
        survivor = SimulatedFileSystem(crash.disk)
        ...  # open what is there, and compare it with what had been acknowledged
"""

from __future__ import annotations

from .crashes import Crash, garbage_cuts, kills, power_cuts
from .disk import Disk
from .faults import Fault, FaultyFileSystem
from .machine import CrashedError, Operation
from .simulated import SimulatedFileSystem

__all__ = [
    "Crash",
    "CrashedError",
    "Disk",
    "Fault",
    "FaultyFileSystem",
    "Operation",
    "SimulatedFileSystem",
    "garbage_cuts",
    "kills",
    "power_cuts",
]
