"""Reading the kind and the text of a transcript's record, without knowing whose format it is."""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeGuard

_ROLES: Final = {
    "user": "user-message",
    "human": "user-message",
    "assistant": "assistant-message",
    "ai": "assistant-message",
    "system": "system-message",
    "developer": "system-message",
    "tool": "tool-result",
    "function": "tool-result",
    "tool_use": "tool-call",
    "tool_call": "tool-call",
    "function_call": "tool-call",
    "tool_result": "tool-result",
    "function_call_output": "tool-result",
    "error": "system-error",
}
_TEXT_FIELDS: Final = ("content", "text", "summary", "output", "error")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_EXCERPT_CHARS: Final = 500


def kind_and_text(record: Any) -> tuple[str, str]:
    """Return the kind and the readable text of a decoded record; of any value, in some way."""
    if not _is_object(record):
        return "transcript.value", record if isinstance(record, str) else _excerpt(record)
    message = record.get("message")
    body = message if _is_object(message) else record
    blocks = _blocks(body)
    text = "\n".join(part for block in blocks if (part := _block_text(block)))
    return _kind(record, body, blocks), text or _other_text(record, body)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _kind(record: dict[str, Any], body: dict[str, Any], blocks: list[dict[str, Any]]) -> str:
    types = {name if isinstance(name := block.get("type"), str) else "" for block in blocks}
    if "tool_result" in types:
        failed = any(block.get("is_error") is True for block in blocks)
        return "tool-error" if failed else "tool-result"
    if body.get("tool_calls") or types == {"tool_use"}:
        return "tool-call"
    if record.get("type") == "system" and record.get("level") == "error":
        return "system-error"
    names = [body.get("role"), record.get("type"), record.get("role")]
    for name in names:
        if isinstance(name, str) and name in _ROLES:
            return _ROLES[name]
    own = next((name for name in names if isinstance(name, str) and _NAME.fullmatch(name)), "record")
    return f"transcript.{own}"


def _blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    content = body.get("content")
    return [item for item in content if _is_object(item)] if _is_list(content) else []


def _block_text(block: dict[str, Any]) -> str:
    for name in ("text", "thinking"):
        if isinstance(found := block.get(name), str):
            return found
    if block.get("type") == "tool_use":
        return f"{block.get('name')}({_excerpt(block.get('input'))})"
    if parts := _blocks(block):
        return "\n".join(map(_block_text, parts))
    content = block.get("content")
    return content if isinstance(content, str) else f"[{block.get('type')}]"


def _other_text(record: dict[str, Any], body: dict[str, Any]) -> str:
    for holder in (body, record):
        for name in _TEXT_FIELDS:
            if isinstance(found := holder.get(name), str) and found:
                return found
    if isinstance(message := record.get("message"), str) and message:
        return message
    calls = body.get("tool_calls")
    return _excerpt(calls or record)


def _excerpt(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS] + "…"
