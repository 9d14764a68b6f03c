"""SWE-agent trajectories: one JSON object with the `history` of messages and the `trajectory` of steps.

The history is the transcript. Steps, `info` and all other members are events of kinds of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .chat import as_list, as_object, message_parts, text_of
from .documents import read_document, write_document
from .jsontext import excerpt
from .records import Part, Transcript, clip, own_kind

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from .embedded import JsonPath
    from .source import Source
    from .target import Target, Written

__all__ = ["NAME", "SUFFIX", "detect", "read", "write"]

NAME: Final = "swe-agent"
SUFFIX: Final = ".traj"

_STEP_FIELDS: Final = frozenset({"action", "observation", "thought", "response"})


def detect(source: Source) -> bool:
    """Tell whether the file is an object with a history of messages or a trajectory of steps."""
    outline = as_object(source.outline)
    steps = as_list(outline.get("trajectory"))
    if steps and not _STEP_FIELDS.isdisjoint(as_object(steps[0])):
        return True
    history = as_list(outline.get("history"))
    return bool(history) and isinstance(as_object(history[0]).get("role"), str)


def read(source: Source) -> Transcript:
    """Read the history, the steps and the rest."""
    return Transcript(read_document(source, NAME, parts))


def parts(path: JsonPath, value: Any) -> list[Part]:
    """Tell the parts of a record."""
    fields = as_object(value)
    if path[:1] == ("history",) and text_of(fields.get("role")):
        calls = as_list(fields.get("tool_call_ids"))
        return message_parts(NAME, fields, text_of(calls[0]) if calls else None)
    if path[:1] == ("trajectory",) and isinstance(fields.get("action"), str):
        return [Part(own_kind(NAME, "step"), fields["action"], text_at=("action",))]
    name = path[0] if path else "record"
    return [Part(own_kind(NAME, name), clip(excerpt(value)))]


def write(session: ReadableSession, target: Target) -> Written:
    """Write the trajectory again.

    Raises:
        NotExportableError: the session holds none, or a record is not whole.
        AttachmentMissingError, AttachmentCorruptError: an image cannot be read.
        OSError: the target cannot be written.
    """
    return write_document(session, NAME, target)
