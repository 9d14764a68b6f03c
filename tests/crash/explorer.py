"""Runs a script on a simulated disk, crashes it at every operation, and checks what each crash may leave.

Every disk is opened by a reader and then by an owner, who appends; opening and appending are crashed at every
operation in turn, as many crashes one after the other as the plan says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from sealog.testing import Disk, SimulatedFileSystem, kills, power_cuts

from .model import Model, Sure, Violation, check_found, model_key
from .world import STORE, World, check_tails, read_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sealog.testing import Crash, Operation

Script = Callable[[World], None]


class Moment(msgspec.Struct, frozen=True):
    """The disk and the model at one moment of a run."""

    where: str
    disk: Disk
    model: Model


class Recorder:
    """Keeps the moments of a run: before each operation, and whenever the model changes."""

    def __init__(self, world: World) -> None:
        self.moments: list[Moment] = []
        self._world = world
        world.machine.before_each(self._before)
        world.step = self.note

    def _before(self, operation: Operation) -> None:
        self.note(f"before {operation}")

    def note(self, where: str) -> None:
        """Keep this moment."""
        self.moments.append(Moment(where, self._world.machine.disk(), dict(self._world.model)))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Do not record."""
        self._world.machine.before_each(None)
        yield
        self._world.machine.before_each(self._before)


def record(
    script: Script,
    disk: Disk | None = None,
    model: Model | None = None,
    *,
    preallocates: bool = True,
) -> list[Moment]:
    """Run a script without a crash; return its moments."""
    world = World(SimulatedFileSystem(disk, preallocates=preallocates), model)
    recorder = Recorder(world)
    script(world)
    recorder.note("at the end")
    return recorder.moments


def settled(script: Script) -> tuple[Disk, Model]:
    """Run a script without a crash; return its disk, all synced, and its model."""
    last = record(script)[-1]
    return Disk(last.disk.tree().contents()), last.model


class Plan(msgspec.Struct, frozen=True):
    """How much is tried.

    Args:
        every: at each depth, one of so many disks is opened and crashed again; as many entries as depths.
        cuts: at each depth, how many power cuts of one moment are tried, None for all.
    """

    every: tuple[int, ...] = (12, 0)
    cuts: tuple[int | None, ...] = (None, 6)


THOROUGH = Plan(every=(1, 12, 0), cuts=(None, 8, 4))


class Explorer:
    """Explores what crashes of a script leave.

    Attributes:
        states: digests of the distinct disks that were opened.
        recovered: how many of them had a torn tail.
    """

    def __init__(
        self, plan: Plan | None = None, *, preallocates: bool = True, sectors_whole: bool = True
    ) -> None:
        """Prepare.

        Args:
            plan: how much is tried.
            preallocates: whether the file system reserves space.
            sectors_whole: no write stops inside a sector, so that recovery must not speak of damage.
        """
        self.plan = Plan() if plan is None else plan
        self.states: set[bytes] = set()
        self.recovered = 0
        self._preallocates = preallocates
        self._sectors_whole = sectors_whole
        self._seen: dict[tuple[bytes, bytes], int] = {}

    def run(self, script: Script, disk: Disk | None = None, model: Model | None = None) -> None:
        """Run a script and explore every crash of it.

        Raises:
            Violation: with the way that leads there.
        """
        try:
            moments = record(script, disk, model, preallocates=self._preallocates)
        except Exception as error:
            msg = f"{error!r}, without any crash"
            raise Violation(msg) from error
        self.explore(moments, 0, ())

    def explore(self, moments: list[Moment], depth: int, trail: tuple[str, ...]) -> None:
        """Try the crashes of all moments."""
        previous: tuple[object, ...] = ()
        for moment in moments:
            same = (moment.disk.pending, moment.model, moment.disk.synced)
            if same == previous:
                continue
            previous = same
            key = model_key(moment.model)
            for crash in self._crashes(moment.disk, depth):
                if self._seen.get((crash.digest, key), depth + 1) <= depth:
                    continue
                self._seen[crash.digest, key] = depth
                self.states.add(crash.digest)
                self._try(crash, moment, depth, (*trail, f"{moment.where}: {crash.label}"))

    def check_disk(self, disk: Disk) -> None:
        """Check what must hold on every disk; for subclasses."""

    def _crashes(self, disk: Disk, depth: int) -> Iterator[Crash]:
        yield from kills(disk)
        yield from power_cuts(disk, seed=len(self.states), limit=self.plan.cuts[depth])

    def _try(self, crash: Crash, moment: Moment, depth: int, trail: tuple[str, ...]) -> None:
        try:
            self.check_disk(crash.disk)
            check_tails(crash.disk, moment.model)
            self._read(crash.disk, moment.model)
            moments = self._own(crash.disk, moment.model)
        except Exception as error:
            way = "".join(f"\n  crash {number}: {step}" for number, step in enumerate(trail, 1))
            msg = f"{error!r}{way}"
            raise Violation(msg) from error
        every = self.plan.every[depth]
        if every and int.from_bytes(crash.digest[:4], "little") % every == 0:
            self.explore(moments, depth + 1, trail)

    def _read(self, disk: Disk, model: Model) -> None:
        """Read every session without owning it; nothing that was shown may be lost by a power cut."""
        fs = SimulatedFileSystem(disk, preallocates=self._preallocates)
        before = disk.tree().digest()
        shown = {}
        for session_id, expected in model.items():
            if expected.there is Sure.YES:
                shown[session_id] = read_session(fs, session_id)
                check_found(session_id, expected, shown[session_id])
        after = fs.disk()
        if after.tree().digest() != before:
            raise Violation("reading has changed something")
        if disk.pending:
            for cut in power_cuts(after, limit=4):
                for session_id, found in shown.items():
                    again = read_session(SimulatedFileSystem(cut.disk), session_id)
                    if again.events[: len(found.events)] != found.events or again.sealed < found.sealed:
                        raise Violation(f"session {session_id}: a reader had seen more: {cut.label}")

    def _own(self, disk: Disk, model: Model) -> list[Moment]:
        """Open every session for writing and append to it; return the moments of that."""
        world = World(SimulatedFileSystem(disk, preallocates=self._preallocates), model)
        recorder = Recorder(world)
        ids = world.start()
        for session_id in ids:
            self._own_one(world, recorder, session_id)
        if not ids:
            world.create("new")
            world.commit("new", "in a store that was just made or emptied")
        recorder.note("at the end")
        return recorder.moments

    def _own_one(self, world: World, recorder: Recorder, session_id: str) -> None:
        if not world.machine.disk().pending:
            with recorder.paused():
                world.expected_tail(session_id)
        found = world.open(session_id, torn=self._sectors_whole)
        self.recovered += world.owners[session_id].log.recovered.status == "recovered"
        if not found.sealed:
            world.commit(session_id, f"after the crash, at {len(found.events)}")
        world.close(session_id)
        with recorder.paused():
            again = world.open(session_id)
            world.close(session_id)
        check_found(session_id, world.model[session_id], again)
        if world.model[session_id].there is not Sure.YES:
            raise Violation(f"session {session_id} was opened and is not sure to exist")


def quarantined(disk: Disk, session_id: str) -> list[bytes]:
    """Return what is in quarantine of a session."""
    folder = f"{STORE}/{session_id}/quarantine/"
    return [data for path, data in disk.files().items() if path.startswith(folder)]
