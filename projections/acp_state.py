"""The state files of the older ACP relay: `sessions/<target>/state.json`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from ..storage.events import is_blank
from . import state_json
from .acp_fold import WholeState
from .acp_types import InvocationStatus, WorkerState
from .state_json import Field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .acp_fold import AcpState
    from .acp_types import SnapshotEntry

SCHEMA_VERSION: Final = 1


def state_file(target: str) -> str:
    """Return the name of a target's state file."""
    return f"sessions/{target}/state.json"


_TEXT: Final = Field(state_json.text)
_TEXTS: Final = Field(state_json.array(state_json.text))
_MAYBE_INT: Final = Field(state_json.optional(state_json.signed), lambda: None)

_lines: Final = state_json.struct({"lines": _TEXTS})
_entry: Final = state_json.tagged(
    "kind",
    {
        "user": _lines,
        "agent": _lines,
        "cognition": _lines,
        "invocation": state_json.struct(
            {
                "call_id": _TEXT,
                "status": Field(state_json.unit_enum(list(InvocationStatus))),
                "invocation": Field(state_json.json_value),
                "result": Field(state_json.optional(state_json.json_value), lambda: None, in_array=False),
            }
        ),
        "update": state_json.struct({"update_kind": _TEXT, "lines": _TEXTS}),
    },
)
_state: Final = state_json.struct(
    {
        "schema_version": Field(state_json.unsigned),
        "acp_session_id": _TEXT,
        "worker_state": Field(state_json.unit_enum(list(WorkerState)), lambda: None),
        "snapshot_lines": Field(state_json.array(state_json.text), list),
        "snapshot_entries": Field(state_json.array(_entry), list),
        "last_acp_frame_observed_at_ms": _MAYBE_INT,
        "last_snapshot_update_ms": _MAYBE_INT,
    }
)


def read_state(data: bytes, file: str) -> WholeState:
    """Read a state file.

    Args:
        data: its bytes.
        file: what to call it in errors.

    Raises:
        InvalidStateError: names the field that the older program would have refused.
    """
    value, place = state_json.parse(data, file, all_text=True)
    fields = _state(value, place)
    if fields["schema_version"] != SCHEMA_VERSION:
        place.field("schema_version").refuse(
            f"is {fields['schema_version']}; only {SCHEMA_VERSION} is supported"
        )
    if is_blank(fields["acp_session_id"]):
        place.field("acp_session_id").refuse("is blank")
    return WholeState(
        fields["acp_session_id"],
        None if fields["worker_state"] is None else WorkerState(fields["worker_state"]),
        fields["snapshot_lines"],
        fields["snapshot_entries"],
        fields["last_acp_frame_observed_at_ms"],
        fields["last_snapshot_update_ms"],
    )


def write_state(state: AcpState, entries: Iterable[SnapshotEntry]) -> bytes:
    """Return a state file as the older program writes it."""
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "acp_session_id": state.acp_session_id,
        "worker_state": state.worker_state,
        "snapshot_lines": state.lines,
        "snapshot_entries": [_entry_fields(entry) for entry in entries],
        "last_acp_frame_observed_at_ms": state.frame_ms,
        "last_snapshot_update_ms": state.update_ms,
    }
    kept = {name: value for name, value in document.items() if value is not None and value != []}
    return json.dumps(kept, ensure_ascii=False, indent=2).encode()


def _entry_fields(entry: SnapshotEntry) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    return {name: _sorted(value) for name, value in fields.items()}


def _sorted(value: Any) -> Any:
    """Return a JSON value with all keys in order."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _sorted(fields[name]) for name in sorted(fields)}
    return [_sorted(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
