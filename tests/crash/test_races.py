"""Two threads or processes at once: one stops between two operations, the other runs, the power fails."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from sealog.storage import directory as stores
from sealog.storage.attachments import new_stage_name, stage_attachment
from sealog.testing import SimulatedFileSystem, power_cuts

from .world import STORE, World, read_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from sealog.testing import Operation


def interrupt(fs: SimulatedFileSystem, call: str, path: str, action: Callable[[], None]) -> None:
    """Run `action` once, before the first such operation."""

    def before(operation: Operation) -> None:
        if operation.call == call and operation.path == path:
            fs.before_each(None)
            action()

    fs.before_each(before)


def test_attachment_survives_while_another_thread_makes_the_folder() -> None:
    fs = SimulatedFileSystem()
    world = World(fs)
    world.start()
    world.create("s")
    disks = []

    def attach() -> None:
        world.attach("s", b"acknowledged")
        disks.append(fs.disk())

    interrupt(fs, "sync", f"{STORE}/s", attach)
    stage_attachment(world.owners["s"].directory, new_stage_name(), io.BytesIO(b"slower"))
    assert disks
    for cut in power_cuts(disks[0]):
        assert read_session(SimulatedFileSystem(cut.disk), "s").files == {0: b"acknowledged"}, cut.label


def test_session_survives_while_another_process_makes_the_store() -> None:
    """The one that made the directory has not synced its parent yet; the other one finds it and goes on."""
    fs = SimulatedFileSystem()
    disks = []

    def work() -> None:
        world = World(fs)
        world.start()
        world.create("s")
        world.commit("s", "acknowledged")
        disks.append(fs.disk())

    interrupt(fs, "sync", "/data", work)
    stores.open_store_directory(fs, STORE, create=True).close()
    assert disks
    for cut in power_cuts(disks[0]):
        found = read_session(SimulatedFileSystem(cut.disk), "s")
        assert [event.text for event in found.events] == ["acknowledged"], cut.label
