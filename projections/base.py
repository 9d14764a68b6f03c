"""A base for projections: name, version and copies from msgspec.

class CountByKind(Projection[dict[str, int]]):
    state_type = dict[str, int]

    def initial(self) -> dict[str, int]:
        return {}

    def apply(self, state: dict[str, int], event: Event) -> dict[str, int]:
        state[event.kind] = state.get(event.kind, 0) + 1
        return state

session.project(CountByKind())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from ..storage.events import Event

S = TypeVar("S")


class Projection(Generic[S]):
    """Derive from it, set `state_type`, write `initial` and `apply`.

    Two instances of one class are equal and share what is cached, unless the class has parameters and defines
    `__eq__` and `__hash__` itself.

    Attributes:
        state_type: the type of the state, which msgspec must be able to encode and decode.
        version: raise it whenever the same events would give another state.
        kinds: the kinds of events it wants; None for all.
        name: of its checkpoint; the class's module and name if not set.
    """

    state_type: ClassVar[Any]
    version: int = 1
    kinds: frozenset[str] | None = None
    name: str = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = f"{cls.__module__}.{cls.__qualname__}".replace("<locals>", "local")[-100:]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def initial(self) -> S:
        """Return the state of a session without events."""
        raise NotImplementedError

    def apply(self, state: S, event: Event, /) -> S:
        """Return the state after one more event; it may change `state` and return it."""
        raise NotImplementedError

    def view(self, state: S, /) -> S:
        """Return a copy for the caller. Override it to return `state` itself where that is immutable."""
        return self.load(self.save(state))

    def save(self, state: S, /) -> bytes:
        """Return the state as bytes."""
        return msgspec.msgpack.encode(state)

    def load(self, data: bytes, /) -> S:
        """Return the state that `save` turned into bytes.

        Raises:
            ValueError: these are no such bytes.
        """
        state: S = msgspec.msgpack.decode(data, type=self.state_type)
        return state
