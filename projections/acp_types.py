"""What is known of an agent that speaks ACP: its snapshot's entries, its readiness, what a look shows."""

from __future__ import annotations

import enum
import math
from typing import Any, Final, TypeVar, cast

import msgspec

from ..storage.errors import InvalidEventError

E = TypeVar("E", bound=enum.StrEnum)

ACP_LOOK_PRIME_TIMEOUT_MS: Final = 750
"""How long a caller lets a fresh worker fill its snapshot before it looks with `prime_timed_out`."""
ACP_STREAM_STALLED_AFTER_MS: Final = 5000
SNAPSHOT_ENTRIES_MAX: Final = 1000


class WorkerState(enum.StrEnum):
    """Whether the worker of a target takes prompts."""

    INITIALIZING = "initializing"
    AVAILABLE = "available"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"


class InvocationStatus(enum.StrEnum):
    """How a tool call stands."""

    PENDING = "Pending"
    COMPLETED = "Completed"


class UserEntry(msgspec.Struct, tag_field="kind", tag="user"):
    """What the user said.

    Args:
        lines: the text.
    """

    lines: list[str]


class AgentEntry(msgspec.Struct, tag_field="kind", tag="agent"):
    """What the agent said.

    Args:
        lines: the text.
    """

    lines: list[str]


class CognitionEntry(msgspec.Struct, tag_field="kind", tag="cognition"):
    """What the agent thought.

    Args:
        lines: the text.
    """

    lines: list[str]


class InvocationEntry(msgspec.Struct, tag_field="kind", tag="invocation"):
    """A tool call.

    Args:
        call_id: its id.
        status: how it stands.
        invocation: what was called, as JSON.
        result: what came of it, as JSON; None if nothing has yet.
    """

    call_id: str
    status: InvocationStatus
    invocation: Any
    result: Any = None


class UpdateEntry(msgspec.Struct, tag_field="kind", tag="update"):
    """Another update of the session.

    Args:
        update_kind: what kind of update.
        lines: the text.
    """

    update_kind: str
    lines: list[str]


SnapshotEntry = UserEntry | AgentEntry | CognitionEntry | InvocationEntry | UpdateEntry


class LookFreshness(enum.StrEnum):
    """Whether a look shows what is going on now."""

    FRESH = "fresh"
    STALE = "stale"


class SnapshotSource(enum.StrEnum):
    """Where the entries of a look come from."""

    LIVE_BUFFER = "live_buffer"
    NONE = "none"


class StaleReason(enum.StrEnum):
    """Why a look is stale."""

    WORKER_INITIALIZING = "acp_worker_initializing"
    WORKER_UNAVAILABLE = "acp_worker_unavailable"
    SNAPSHOT_PRIME_TIMEOUT = "acp_snapshot_prime_timeout"
    STREAM_STALLED = "acp_stream_stalled"


class LookSnapshot(msgspec.Struct):
    """What a look at a target shows.

    Args:
        snapshot_entries: the newest entries, oldest first.
        freshness: whether they show what is going on now.
        snapshot_source: where they come from.
        stale_reason_code: why they are stale; None if they are fresh.
        snapshot_age_ms: time since the last frame; None if it is not known or nothing is shown.
    """

    snapshot_entries: list[SnapshotEntry]
    freshness: LookFreshness
    snapshot_source: SnapshotSource
    stale_reason_code: StaleReason | None
    snapshot_age_ms: int | None


def checked_entry(place: str, value: Any) -> SnapshotEntry:
    """Return a copy of an entry whose every field is what its type says.

    Args:
        place: what to call it in an error.
        value: the entry, or a dict of its fields; what it has besides is dropped.

    Raises:
        InvalidEventError: names the place and what is wrong there.
    """
    try:
        fields = msgspec.to_builtins(value, builtin_types=(bytes,))
        entry = msgspec.convert(fields, cast("type[SnapshotEntry]", SnapshotEntry))
    except (msgspec.ValidationError, TypeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidEventError(place, f"is no SnapshotEntry: {error}") from None
    if isinstance(entry, InvocationEntry):
        entry.invocation = _json(entry.invocation, f"{place}.invocation")
        entry.result = _json(entry.result, f"{place}.result")
    return entry


def checked_enum(place: str, value: str, kind: type[E]) -> E:
    """Return the member that a value is or names.

    Raises:
        InvalidEventError: there is none.
    """
    try:
        return kind(value)
    except ValueError:
        raise InvalidEventError(place, f"is {value!r}; known are {', '.join(kind)}") from None


def _json(value: Any, place: str) -> Any:
    """Return a value as JSON has it: integers that do not fit 64 bits are floats."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        for name in fields:
            if not isinstance(name, str):
                raise InvalidEventError(place, f"has the key {name!r}; JSON has text only")
        return {name: _json(item, f"{place}.{name}") for name, item in fields.items()}
    if isinstance(value, list):
        return [_json(item, f"{place}[{at}]") for at, item in enumerate(cast("list[Any]", value))]
    try:
        if isinstance(value, int):
            return value if -(2**63) <= value < 2**64 else float(value)
        if isinstance(value, float) and math.isfinite(value):
            return value
    except OverflowError:
        pass
    raise InvalidEventError(place, f"is {type(value).__name__} {value!r:.60}, which JSON does not have")
