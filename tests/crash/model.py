"""What may be found after a crash: the reference that recovered sessions are compared with."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

from sealog.storage.events import Event

if TYPE_CHECKING:
    from collections.abc import Mapping


class Violation(AssertionError):  # noqa: N818 — what the explorer looks for, and no error of the library
    """A promise that a crash broke."""


class Sure(enum.Enum):
    """How sure the model is of a fact: an operation in flight may have happened or not."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"

    def check(self, fact: bool, what: str) -> None:
        """Raise if the fact is the other way round."""
        if self is not Sure.MAYBE and fact != (self is Sure.YES):
            raise Violation(f"{what}: expected {self.value}, found {fact}")


class Tail(msgspec.Struct, frozen=True):
    """Bytes that a recovery found behind the valid frames: in the log, or from now on in quarantine."""

    start: int
    data: bytes


class Expected(msgspec.Struct, frozen=True):
    """What may be found of one session.

    Args:
        there: whether it exists.
        events: acknowledged to a writer, or shown to a reader.
        in_flight: a batch that is there as a whole or not at all.
        sealed: whether there is a seal.
        files: bytes of the attachments, by position.
        tails: what recoveries cut off.
    """

    there: Sure
    events: tuple[Event, ...] = ()
    in_flight: tuple[Event, ...] = ()
    sealed: Sure = Sure.NO
    files: dict[int, bytes] = {}
    tails: tuple[Tail, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """What a reader or an owner found of one session."""

    events: tuple[Event, ...]
    sealed: bool
    files: dict[int, bytes] = {}


Model = dict[str, Expected]
"""All sessions of a store by id."""


def model_key(model: Mapping[str, Expected]) -> bytes:
    """Return bytes that are equal for equal models."""
    return msgspec.msgpack.encode(model)


def check_found(session_id: str, expected: Expected, found: Found) -> None:
    """Compare a session with the model.

    Raises:
        Violation: an event is missing, changed, doubled or out of order, a batch is not whole, or a seal or a
            file differs.
    """
    if expected.there is Sure.NO:
        raise Violation(f"session {session_id} is there after it was deleted, or before it was made")
    wanted = [expected.events]
    if expected.in_flight:
        wanted.append(expected.events + expected.in_flight)
    if found.events not in wanted:
        raise Violation(
            f"session {session_id}: {_differences(expected.events, found.events)}; "
            f"{len(expected.in_flight)} in flight"
        )
    expected.sealed.check(found.sealed, f"session {session_id} sealed")
    for position, event in enumerate(found.events):
        if event.kind == "attachment" and found.files.get(position) != expected.files[position]:
            raise Violation(f"session {session_id}: attachment {position} is not what was attached")


def _differences(wanted: tuple[Event, ...], found: tuple[Event, ...]) -> str:
    for position, (one, other) in enumerate(zip(wanted, found, strict=False)):
        if one != other:
            return f"event {position} is another one: {other.text[:40]!r}"
    return f"{len(found)} events where {len(wanted)} were acknowledged"


def exactly(expected: Expected, found: Found) -> Expected:
    """Return what must be found from now on, when this was shown to somebody."""
    return msgspec.structs.replace(
        expected,
        there=Sure.YES,
        events=found.events,
        in_flight=(),
        sealed=Sure.YES if found.sealed else Sure.NO,
    )
