"""Projections that tests fold, and events for them."""

from __future__ import annotations

import sealog
from sealog.projections import Projection


class CountByKind(Projection[dict[str, int]]):
    """The example of the docs."""

    state_type = dict[str, int]

    def initial(self) -> dict[str, int]:
        return {}

    def apply(self, state: dict[str, int], event: sealog.Event, /) -> dict[str, int]:
        state[event.kind] = state.get(event.kind, 0) + 1
        return state


class Texts(Projection[list[str]]):
    """All texts of some kinds, and how often each event was folded."""

    state_type = list[str]

    def __init__(self, kinds: frozenset[str] | None = None, version: int = 1) -> None:
        self.kinds = kinds
        self.version = version
        self.applied = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Texts) and (self.kinds, self.version) == (other.kinds, other.version)

    def __hash__(self) -> int:
        return hash((self.kinds, self.version))

    def initial(self) -> list[str]:
        return []

    def apply(self, state: list[str], event: sealog.Event, /) -> list[str]:
        self.applied += 1
        return [*state, event.text] if len(state) < 5 else [*state[1:], event.text]


def fill(session: sealog.Session, count: int, kind: str = "x") -> None:
    for start in range(0, count, 100):
        session.append_many(
            [sealog.Event(kind, str(number)) for number in range(start, min(start + 100, count))]
        )
