"""Crashes while a damaged session is salvaged: the copy is there or not, and the original is only read."""

from __future__ import annotations

from sealog.storage.repair import LOST_KIND, repair_session
from sealog.testing import Disk, SimulatedFileSystem

from .explorer import Explorer, Plan
from .model import Expected, Sure, Violation
from .samples import with_file
from .world import World, read_session, text

SOURCE = "/data/source"


class _RepairExplorer(Explorer):
    """Also checks that the original stays as it is."""

    def __init__(self, plan: Plan, original: Disk) -> None:
        super().__init__(plan)
        self._original = original.files()

    def check_disk(self, disk: Disk) -> None:
        files = disk.files()
        if any(files.get(path) != data for path, data in self._original.items()):
            raise Violation("the damaged original was touched")


def _damaged() -> Disk:
    """Return a disk with a session whose second event is damaged."""
    world = World(SimulatedFileSystem(), path=SOURCE)
    world.start()
    world.create("s")
    world.commit("s", "zero")
    start = world.owners["s"].log.head.end
    world.commit("s", text(600, 1))
    world.commit("s", "two", text(700, 2))
    world.attach("s", text(900, 3).encode())
    world.close("s")
    disk = Disk(world.machine.disk().tree().contents())
    return with_file(disk, f"{SOURCE}/s/log", b"?", start + 300)


def test_a_repair_that_crashes_leaves_a_whole_copy_or_none() -> None:
    disk = _damaged()
    rehearsal = World(SimulatedFileSystem(disk))
    rehearsal.start()
    repair_session(rehearsal.fs.open_directory(SOURCE), "s", rehearsal.store)
    copy = read_session(rehearsal.fs, "s")
    assert [event.kind for event in copy.events].count(LOST_KIND) == 1
    assert [copy.events[0].text, copy.events[2].text] == ["zero", "two"]
    assert copy.files == {4: text(900, 3).encode()}

    def script(world: World) -> None:
        world.start()
        world.model["s"] = Expected(Sure.MAYBE, copy.events, files=copy.files)
        repair_session(world.fs.open_directory(SOURCE), "s", world.store)
        world.model["s"] = Expected(Sure.YES, copy.events, files=copy.files)

    explorer = _RepairExplorer(Plan(every=(10, 0), cuts=(None, 4)), disk)
    explorer.run(script, disk)
    assert len(explorer.states) > 100
