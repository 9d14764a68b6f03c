"""The state files of the older harness memory: `sessions/<hex of the session id>.json`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from . import state_json
from .harness_fold import checkpoint_data
from .harness_types import (
    NS,
    FeatureRecord,
    InitShell,
    Message,
    MessageRole,
    ProgressEntry,
    RunCheckpoint,
    RunStatus,
    SessionManifest,
)
from .state_json import Field, Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .harness_types import BootstrapState


class OldState(msgspec.Struct):
    """What a state file holds. The manifest names no session."""

    manifest: SessionManifest | None
    feature_list: list[FeatureRecord]
    recent_progress: list[ProgressEntry]
    checkpoints: list[RunCheckpoint]
    transcript: list[Message]


def state_file(session_id: str) -> str:
    """Return the name of a session's state file."""
    return f"sessions/{session_id.encode().hex()}.json"


_TEXT: Final = Field(state_json.text)
_MAYBE_TEXT: Final = Field(state_json.optional(state_json.text), lambda: None, in_array=False)
_TEXTS: Final = Field(state_json.array(state_json.text))
_INT: Final = Field(state_json.signed)
_MAYBE_INT: Final = Field(state_json.optional(state_json.signed), lambda: None, in_array=False)

_shell_step: Final = state_json.struct(
    {"shell": Field(state_json.named("shell", list(InitShell))), "script": _TEXT}
)
_step: Final = state_json.tagged(
    "kind", {"command": state_json.struct({"program": _TEXT, "args": _TEXTS}), "shell": _shell_step}
)
_manifest: Final = state_json.struct(
    {
        "schema_version": Field(state_json.unsigned),
        "harness_version": _TEXT,
        "active_branch": _TEXT,
        "current_objective": _TEXT,
        "last_known_good_commit": _MAYBE_TEXT,
        "init_plan": Field(
            state_json.optional(state_json.struct({"steps": Field(state_json.array(_step))})),
            lambda: None,
            in_array=False,
        ),
        "metadata": Field(state_json.mapping(state_json.text)),
    }
)
_feature: Final = state_json.struct(
    {
        "id": _TEXT,
        "category": _TEXT,
        "description": _TEXT,
        "steps": _TEXTS,
        "passes": Field(state_json.boolean),
    }
)
_progress_fields: Final = state_json.struct(
    {"run_id": _TEXT, "summary": _TEXT, "created_at_secs": _INT, "created_at_nanos": _INT}
)
_checkpoint_fields: Final = state_json.struct(
    {
        "run_id": _TEXT,
        "started_at_secs": _INT,
        "started_at_nanos": _INT,
        "completed_at_secs": _MAYBE_INT,
        "completed_at_nanos": _MAYBE_INT,
        "status": Field(state_json.named("run status", list(RunStatus))),
        "note": _MAYBE_TEXT,
    }
)
_message: Final = state_json.struct(
    {"role": Field(state_json.named("transcript role", list(MessageRole))), "content": _TEXT}
)


def _time_ns(fields: dict[str, Any], name: str, place: Place) -> int:
    secs, nanos = fields[f"{name}_secs"], fields[f"{name}_nanos"]
    if secs < 0:
        place.field(f"{name}_secs").refuse(f"seconds must not be negative, got {secs}")
    if not 0 <= nanos < NS:
        place.field(f"{name}_nanos").refuse(f"nanos must be in [0, 1_000_000_000), got {nanos}")
    time_ns: int = secs * NS + nanos
    return time_ns


def _progress(value: Any, place: Place) -> ProgressEntry:
    fields = _progress_fields(value, place)
    return ProgressEntry(fields["run_id"], fields["summary"], _time_ns(fields, "created_at", place))


def _checkpoint(value: Any, place: Place) -> RunCheckpoint:
    fields = _checkpoint_fields(value, place)
    halves = [name for name in ("completed_at_secs", "completed_at_nanos") if fields[name] is None]
    if len(halves) == 1:
        place.field(halves[0]).refuse("is missing: a time has both seconds and nanos")
    return RunCheckpoint(
        fields["run_id"],
        _time_ns(fields, "started_at", place),
        completed_at_ns=None if halves else _time_ns(fields, "completed_at", place),
        status=RunStatus(fields["status"]),
        note=fields["note"],
    )


_state: Final = state_json.struct(
    {
        "manifest": Field(state_json.optional(_manifest), lambda: None, in_array=False),
        "feature_list": Field(state_json.array(_feature)),
        "recent_progress": Field(state_json.array(_progress)),
        "checkpoints": Field(state_json.array(_checkpoint)),
        "transcript": Field(state_json.array(_message)),
    }
)


def read_state(data: bytes, file: str) -> OldState:
    """Read a state file.

    Args:
        data: its bytes.
        file: what to call it in errors.

    Raises:
        InvalidStateError: names the field that the older program, or one of its loads, would have refused.
    """
    fields = _state(*state_json.parse(data, file, all_text=False))
    if fields["manifest"] is not None:
        fields["manifest"]["session_id"] = ""
    return msgspec.convert(msgspec.to_builtins(fields), OldState)


def write_state(state: BootstrapState, transcript: Iterable[Message]) -> bytes:
    """Return a state file, byte for byte as the older program writes it."""
    document = msgspec.to_builtins(
        {
            "manifest": state.manifest,
            "feature_list": state.feature_list,
            "recent_progress": [_progress_fields_of(entry) for entry in state.recent_progress],
            "checkpoints": [
                msgspec.structs.asdict(checkpoint_data(checkpoint)) for checkpoint in state.checkpoints
            ],
            "transcript": list(transcript),
        }
    )
    if document["manifest"] is not None:
        del document["manifest"]["session_id"]
    return json.dumps(document, ensure_ascii=False, indent=2).encode()


def _progress_fields_of(entry: ProgressEntry) -> dict[str, Any]:
    secs, nanos = divmod(entry.created_at_ns, NS)
    return {
        "run_id": entry.run_id,
        "summary": entry.summary,
        "created_at_secs": secs,
        "created_at_nanos": nanos,
    }
