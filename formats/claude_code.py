"""Claude Code: one JSON record a line, and the files of its subagents.

A subagent's file is a session of its own, labelled with its `parent`: it has its own order and runs while the
main session goes on, the main agent never sees its messages, and so each session stays one file that can be
imported again when it has grown. With a main file `<id>.jsonl` come the files `agent-*.jsonl` in
`<id>/subagents/` and in `<id>/`, and those beside it that name the same session.
"""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING, Any, Final

from ..storage.events import Role
from .chat import as_list, as_object, block_text, blocks_text, call_text, text_of
from .jsontext import excerpt
from .lines import read_lines, write_lines
from .records import Part, Related, Transcript, clip, own_kind
from .source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..actors.readable import ReadableSession
    from .embedded import JsonPath
    from .target import Target, Written

__all__ = ["NAME", "SUFFIX", "detect", "read", "write"]

NAME: Final = "claude-code"
SUFFIX: Final = ".jsonl"

_ROLES: Final[dict[str, str]] = {"user": Role.USER_MESSAGE, "assistant": Role.ASSISTANT_MESSAGE}
_AGENT_PREFIX: Final = "agent-"
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_MARKS: Final = ("leafUuid", "isSnapshotUpdate", "sessionId", "parentUuid")


def detect(source: Source) -> bool:
    """Tell whether the first lines hold a record of Claude Code."""
    return any(_is_record(as_object(value)) for value in source.sample)


def _is_record(record: dict[str, Any]) -> bool:
    kind = text_of(record.get("type"))
    if kind in _ROLES:
        return text_of(as_object(record.get("message")).get("role")) in _ROLES
    return kind is not None and "payload" not in record and any(name in record for name in _MARKS)


def read(source: Source) -> Transcript:
    """Read a main file and find its subagents' files, or read one of those."""
    labels: dict[str, str] = {}
    related: tuple[Related, ...] = ()
    if source.stem.startswith(_AGENT_PREFIX):
        parent = _session_id(source)
        labels = _agent_labels(source) | ({"parent": parent} if parent else {})
    else:
        related = tuple(_subagents(source))
    return Transcript(read_lines(source, NAME, parts), labels, related=related)


def _session_id(source: Source) -> str | None:
    for value in source.sample:
        found = text_of(as_object(value).get("sessionId"))
        if found:
            return found
    return None


def _agent_labels(source: Source) -> dict[str, str]:
    return {"agent": source.stem.removeprefix(_AGENT_PREFIX)}


def _subagents(source: Source) -> Iterator[Related]:
    folder, name = os.path.split(os.path.abspath(source.path))
    own = os.path.join(folder, os.path.splitext(name)[0])
    for place in (os.path.join(own, "subagents"), own):
        for path in _agent_files(place):
            yield _related(Source(path, source.store))
    session_id = _session_id(source)
    if session_id is not None:
        for path in _agent_files(folder):
            beside = Source(path, source.store)
            if _session_id(beside) == session_id:
                yield _related(beside)


def _agent_files(folder: str) -> list[str]:
    pattern = os.path.join(glob.escape(folder), f"{_AGENT_PREFIX}*{SUFFIX}")
    return sorted(path for path in glob.glob(pattern) if os.path.isfile(path))


def _related(source: Source) -> Related:
    return Related(source, f"--{source.stem}", _agent_labels(source))


def parts(value: Any) -> list[Part]:
    """Tell the parts of a record."""
    record = as_object(value)
    kind = text_of(record.get("type"))
    if kind in _ROLES:
        message = as_object(record.get("message"))
        role = Role.SYSTEM_ERROR if record.get("isApiErrorMessage") is True else _ROLES[kind or ""]
        found = _content(role, message.get("content"))
        return found or [Part(own_kind(NAME, kind), clip(excerpt(record.get("message"))))]
    if kind == "system":
        return [_system(record)]
    if kind == "summary" and isinstance(record.get("summary"), str):
        return [Part(own_kind(NAME, kind), record["summary"], text_at=("summary",))]
    return [Part(own_kind(NAME, kind), clip(excerpt(value)))]


def _system(record: dict[str, Any]) -> Part:
    subtype, text = record.get("subtype"), record.get("content")
    if not isinstance(text, str):
        return Part(own_kind(NAME, subtype or "system"), clip(excerpt(record)))
    wrong = record.get("level") == "error" or subtype == "api_error"
    return Part(Role.SYSTEM_ERROR if wrong else Role.SYSTEM_MESSAGE, text, text_at=("content",))


def _content(role: str, content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Part(role, content, text_at=("message", "content"))]
    blocks = enumerate(as_list(content))
    return [_block(role, block, ("message", "content", index)) for index, block in blocks]


def _block(role: str, block: Any, at: JsonPath) -> Part:
    fields = as_object(block)
    kind = text_of(fields.get("type")) or ""
    if kind in _CALLS:
        name = text_of(fields.get("name"))
        text = call_text(name, fields.get("input", {}))
        return Part(Role.TOOL_CALL, text, at, call_id=text_of(fields.get("id")), tool=name)
    if kind.endswith("tool_result"):
        return _result(fields, at)
    text, field = block_text(block)
    text_at = None if field is None else (*at, field)
    if kind in {"thinking", "redacted_thinking"}:
        return Part(own_kind(NAME, kind), text, at, text_at)
    return Part(role, text, at, text_at)


def _result(fields: dict[str, Any], at: JsonPath) -> Part:
    content = fields.get("content")
    text_at: JsonPath | None = (*at, "content") if isinstance(content, str) else None
    text = blocks_text(content)
    items = as_list(content)
    if len(items) == 1 and block_text(items[0])[1] == "text":
        text_at = (*at, "content", 0, "text")
    failed = fields.get("is_error") is True
    return Part(
        Role.TOOL_ERROR if failed else Role.TOOL_RESULT,
        text,
        at,
        text_at,
        call_id=text_of(fields.get("tool_use_id")),
    )


def write(session: ReadableSession, target: Target) -> Written:
    """Write the records again.

    Raises:
        NotExportableError: the session holds none, or one is not whole.
        AttachmentMissingError, AttachmentCorruptError: an image cannot be read.
        OSError: the target cannot be written.
    """
    return write_lines(session, NAME, target)
