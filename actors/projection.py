"""What a projection is, for `Session.project`; implementations live above, in `sealog.projections`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from ..storage.events import Event

S = TypeVar("S")


class Projection(Protocol[S]):
    """A state derived from a session's events, folded in the thread that asks for it.

    Equal projections share what is cached. `sealog.projections.Projection` is a base to derive from.

    Attributes:
        name: of its checkpoint; letters, digits, `_`, `.` and `-`.
        version: raised whenever the same events would give another state: older checkpoints are dropped.
        kinds: the kinds of events it wants; None for all.
    """

    name: str
    version: int
    kinds: frozenset[str] | None

    def initial(self) -> S:
        """Return the state of a session without events."""
        ...

    def apply(self, state: S, event: Event, /) -> S:
        """Return the state after one more event; it may change `state` and return it."""
        ...

    def view(self, state: S, /) -> S:
        """Return what is handed out: immutable, or a copy that the caller may change."""
        ...

    def save(self, state: S, /) -> bytes:
        """Return the state as bytes, for a checkpoint."""
        ...

    def load(self, data: bytes, /) -> S:
        """Return the state that `save` turned into bytes.

        Raises:
            ValueError: these are no such bytes.
        """
        ...
