"""Sectors that were being written hold garbage after a power cut: beyond what the format assumes of a disk.

Then either the log opens with every acknowledged event, or it refuses, touches nothing, and repair gives
every acknowledged event back.
"""

from __future__ import annotations

import pytest

from sealog.storage import directory as stores
from sealog.storage.errors import CorruptionError
from sealog.storage.repair import repair_session
from sealog.testing import Disk, SimulatedFileSystem, garbage_cuts

from . import scripts
from .explorer import Script, record
from .model import Expected, Model, Sure, check_found
from .world import STORE, World, read_session

# Not `failures`: after a failed sync the last page is written again, acknowledged bytes and all.
SCRIPTS = (scripts.life, scripts.attachments, scripts.deletions)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_garbage_in_unsynced_sectors(script: Script) -> None:
    states, refused = set(), 0
    for number, moment in enumerate(record(script)):
        for crash in garbage_cuts(moment.disk, seed=number):
            if crash.digest in states:
                continue
            states.add(crash.digest)
            for session_id, expected in moment.model.items():
                if expected.there is Sure.YES:
                    refused += not _opens_or_refuses(crash.disk, session_id, moment.model)
    print(f"{len(states):,} disks with garbage, {refused:,} refused")  # noqa: T201
    assert len(states) > 100


def _opens_or_refuses(disk: Disk, session_id: str, model: Model) -> bool:
    world = World(SimulatedFileSystem(disk), model)
    world.start()
    try:
        found = world.open(session_id, torn=False)
    except CorruptionError:
        _check_untouched(disk, world.machine.disk(), session_id)
        _check_repairable(disk, session_id, model[session_id])
        return False
    if not found.sealed:
        world.commit(session_id, "after the garbage")
    world.close(session_id)
    check_found(session_id, world.model[session_id], read_session(world.fs, session_id))
    return True


def _check_untouched(before: Disk, after: Disk, session_id: str) -> None:
    folder, lock = f"{STORE}/{session_id}/", f"{STORE}/{session_id}/lock"
    old, new = before.files(), after.files()
    for path in old.keys() | new.keys():
        if path.startswith(folder) and path != lock:
            assert old.get(path) == new.get(path), f"{path} was touched"


def _check_repairable(disk: Disk, session_id: str, expected: Expected) -> None:
    fs = SimulatedFileSystem(disk)
    into = stores.open_store_directory(fs, "/data/rescue", create=True)
    report = repair_session(fs.open_directory(STORE), session_id, into)
    assert report.events >= len(expected.events)
    rescued = read_session(fs, session_id, "/data/rescue")
    assert rescued.events[: len(expected.events)] == expected.events
