"""What a projection is, for `Session.project`; implementations live above, in `sealog.projections`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from ..storage.events import Event

S = TypeVar("S")


class Projection(Protocol[S]):
    """A state derived from a session's events. Runs in the thread that asks for it, never in the writer."""

    def initial(self) -> S:
        """Return the state of a session without events."""
        ...

    def apply(self, state: S, event: Event, /) -> S:
        """Return the state after one more event; it may change `state` and return it."""
        ...
