"""What a projection is, for `Session.project`; implementations live above, in `sealog.projections`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from ..storage.events import Event

S_co = TypeVar("S_co", covariant=True)


class Projection(Protocol[S_co]):
    """A state derived from a session's events, folded in the thread that asks for it.

    Equal projections share what is cached. `sealog.projections.Projection` is a base to derive from.

    Attributes:
        name: of its checkpoint; letters, digits, `_`, `.` and `-`.
        version: raised whenever the same events would give another state: older checkpoints are dropped.
        kinds: the kinds of events it wants; None for all.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 — see above; read-only, so that a class may narrow the type

    @property
    def version(self) -> int: ...  # noqa: D102

    @property
    def kinds(self) -> frozenset[str] | None: ...  # noqa: D102

    def initial(self) -> Any:
        """Return the state of a session without events."""
        ...

    def apply(self, state: Any, event: Event, /) -> Any:
        """Return the state after one more event; it may change `state` and return it."""
        ...

    def view(self, state: Any, /) -> S_co:
        """Return what is handed out: immutable, or a copy that the caller may change."""
        ...

    def save(self, state: Any, /) -> bytes:
        """Return the state as bytes, for a checkpoint."""
        ...

    def load(self, data: bytes, /) -> Any:
        """Return the state that `save` turned into bytes.

        Raises:
            ValueError: these are no such bytes.
        """
        ...
