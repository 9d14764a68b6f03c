"""What formats have in common that keep many sessions in one folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from ..actors.store import Store
    from .reports import ImportReport
    from .source import Source
    from .target import Target, Written

__all__ = ["Archive", "Unit", "same_file"]


class Unit(msgspec.Struct, frozen=True):
    """One session of a folder.

    Args:
        path: its main file.
        size_bytes: of all its files.
        name: of that file, from the folder that holds all sessions on.
    """

    path: str
    size_bytes: int
    name: str


class Archive(Protocol):
    """A format that keeps many sessions in one folder."""

    @property
    def NAME(self) -> str:  # noqa: N802 — a constant of the module
        """What the format is called."""
        ...

    @property
    def SUFFIX(self) -> str:  # noqa: N802
        """How the name ends of what one session is exported to."""
        ...

    def detect(self, source: Source) -> bool:
        """Tell from the content whether a source is of this format."""
        ...

    def units(self, source: Source) -> list[Unit]:
        """List the sessions of a folder, or the one whose file the source is."""
        ...

    def take(self, store: Store, unit: Unit, name: str | None = None) -> ImportReport:
        """Import one session.

        Args:
            store: where to.
            unit: which.
            name: what the user calls it; what its file is called after if None.
        """
        ...

    def session_ids(self, store: Store) -> list[str]:
        """List the sessions of a store that an export of all of them means."""
        ...

    def write(self, session: ReadableSession, target: Target) -> Written:
        """Write a session to a file or folder of its own."""
        ...

    def put(self, store: Store, session_id: str, directory: str, *, overwrite: bool) -> Written:
        """Write a session to a folder that may hold others, or that session as it was exported before."""
        ...


def same_file(path: str, data: bytes) -> bool:
    """Tell whether a file is there and holds exactly these bytes."""
    try:
        if os.path.getsize(path) != len(data):
            return False
        with open(path, "rb") as file:
            return file.read(len(data) + 1) == data
    except OSError:
        return False
