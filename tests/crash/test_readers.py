"""A reader that follows a live owner never shows what a power cut at that moment takes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealog.storage.reader import LogReader
from sealog.testing import SimulatedFileSystem, power_cuts

from .world import STORE, World, read_session, text

if TYPE_CHECKING:
    from sealog.storage.events import Event
    from sealog.testing import Operation


class _Follower:
    """Refreshes a reader before each operation of the owner, and cuts the power then."""

    def __init__(self, machine: SimulatedFileSystem) -> None:
        self.shown = 0
        self.cuts = 0
        self._machine = machine
        self._reader = LogReader(machine, machine.open_directory(f"{STORE}/s"), "s")

    def before(self, _: Operation) -> None:
        self._machine.before_each(None)  # the reader's own sync is not followed
        self.follow()
        self._machine.before_each(self.before)

    def follow(self) -> None:
        self._reader.refresh()
        head = self._reader.head
        shown: tuple[Event, ...] = tuple(self._reader.view.events(0, head.position, head))
        sealed = self._reader.receipt is not None
        self.shown = max(self.shown, len(shown))
        for cut in power_cuts(self._machine.disk(), limit=10):
            found = read_session(SimulatedFileSystem(cut.disk), "s")
            assert found.events[: len(shown)] == shown, cut.label
            assert found.sealed >= sealed, cut.label
            self.cuts += 1


def test_a_reader_that_follows_is_never_ahead_of_the_disk() -> None:
    machine = SimulatedFileSystem()
    world = World(machine)
    world.start()
    world.create("s")
    follower = _Follower(machine)
    machine.before_each(follower.before)
    world.commit("s", "one")
    world.commit("s", text(700, 1), text(5000, 2))
    world.close("s")
    world.open("s")
    world.commit("s", "two")
    world.seal("s")
    world.close("s")
    follower.follow()
    assert follower.shown == 4
    assert follower.cuts > 200
