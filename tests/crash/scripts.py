"""What is crashed: short lives of sessions, each with its own dangers."""

from __future__ import annotations

import errno

from sealog.testing import Fault, FaultyFileSystem

from .world import World, text


def life(world: World) -> None:
    """Create, append small and large over sectors and pages, batch, close, reopen, seal, close, reopen."""
    world.start()
    world.create("s")
    world.commit("s", "one")
    world.commit("s", text(700, 1))
    world.commit("s", text(40, 2), text(60, 3), text(30, 4))
    world.commit("s", text(4500, 5))
    world.close("s")
    world.open("s")
    world.commit("s", text(300, 6))
    world.commit("s", *(text(900, 10 + n) for n in range(4)))
    world.close("s")
    world.open("s")
    world.commit("s", "last")
    world.seal("s")
    world.close("s")
    world.open("s")
    world.close("s")


def short(world: World) -> None:
    """Create, append, close."""
    world.start()
    world.create("s")
    world.commit("s", "one")
    world.close("s")


def short_append(world: World) -> None:
    """Append over several sectors to what `short` has left."""
    world.start()
    world.open("s")
    world.commit("s", text(1500))


def attachments(world: World) -> None:
    """Attach small, empty and large files between events, then seal."""
    world.start()
    world.create("a")
    world.commit("a", "zero")
    world.attach("a", b"small")
    world.attach("a", text(1500, 1).encode())
    world.commit("a", "between")
    world.attach("a", b"")
    world.close("a")
    world.open("a")
    world.attach("a", text(5000, 2).encode())
    world.seal("a")
    world.close("a")


def deletions(world: World) -> None:
    """Delete one session of two, make it anew, delete it sealed and with attachments."""
    world.start()
    world.create("keep")
    world.commit("keep", "kept")
    world.create("d")
    world.commit("d", "first life", text(600))
    world.delete("d")
    world.create("d")
    world.attach("d", b"second life")
    world.seal("d")
    world.commit("keep", "still here")
    world.delete("d")
    world.close("keep")


def failures(world: World) -> None:
    """Writes and syncs that fail and are rolled back, and appends that follow them."""
    faulty = world.fs = FaultyFileSystem(world.machine)
    world.start()
    world.create("f")
    world.commit("f", "before")
    cut_short = Fault(errno.ENOSPC, "pwrite", "/log", written=300)
    world.commit_failing("f", cut_short, text(900, 1))
    world.commit("f", "after a full disk")
    world.commit_failing("f", Fault(errno.EIO, "sync_data", "/log"), text(900, 2))
    world.commit("f", "after a failed sync")
    world.commit_failing("f", Fault(errno.EIO, "sync_data", "/log", lossy=True), text(600, 3))
    world.commit("f", text(200, 4))
    world.commit_failing("f", Fault(errno.EIO, "pwrite", "/log", written=700), text(900, 5), text(100, 6))
    faulty.free_bytes = 200
    world.commit_failing("f", NO_FAULT, text(9000, 7))
    faulty.free_bytes = None
    world.commit("f", "space again")
    world.close("f")


NO_FAULT = Fault(0, "nothing")

ALL = (life, attachments, deletions, failures)
