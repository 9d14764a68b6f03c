"""A clock, and entries of ACP targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sealog.projections.acp import AgentEntry

if TYPE_CHECKING:
    from sealog.projections.acp import LookSnapshot, SnapshotEntry

NOW = 1_700_000_000_000


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now_ms: Any = NOW

    def __call__(self) -> Any:
        return self.now_ms


def lines(look: LookSnapshot) -> list[str]:
    return [line for entry in look.snapshot_entries for line in msgspec.to_builtins(entry)["lines"]]


def agents(*texts: object) -> list[SnapshotEntry]:
    return [AgentEntry([str(text)]) for text in texts]
