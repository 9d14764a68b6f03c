"""KSESSIONLOG sessions for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sealog.formats import ksessionlog

if TYPE_CHECKING:
    from pathlib import Path


def ksession(
    session_id: str = "s1", *, events: int = 4, sealed: bool = False, **header: Any
) -> ksessionlog.KSession:
    """Every third event from the second on is an object."""
    found: list[ksessionlog.KEvent] = []
    objects: dict[int, ksessionlog.KObject] = {}
    for position in range(events):
        if position % 3 == 1:
            found.append(ksessionlog.KEvent("pending-object", f"file {position}"))
            objects[position] = ksessionlog.KObject(
                f"{position}.bin", "application/x-thing", bytes([position]) * 9
            )
        else:
            found.append(ksessionlog.KEvent(ksessionlog.ROLES[position % 8], f"text {position}"))
    created_at = header.get("created_at", "long ago")
    return ksessionlog.KSession(ksessionlog.KHeader(session_id, created_at), tuple(found), sealed, objects)


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
