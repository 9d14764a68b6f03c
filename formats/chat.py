"""Chat messages as OpenAI's interface has them: a role, content in text or blocks, tool calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from ..storage.events import Role
from .jsontext import excerpt
from .records import Part, clip, own_kind

if TYPE_CHECKING:
    from .embedded import JsonPath

__all__ = [
    "ROLES",
    "as_list",
    "as_object",
    "block_parts",
    "block_text",
    "blocks_text",
    "call_text",
    "message_parts",
    "text_of",
]

ROLES: Final[dict[str, str]] = {
    "system": Role.SYSTEM_MESSAGE,
    "developer": Role.SYSTEM_MESSAGE,
    "user": Role.USER_MESSAGE,
    "human": Role.USER_MESSAGE,
    "assistant": Role.ASSISTANT_MESSAGE,
    "model": Role.ASSISTANT_MESSAGE,
    "ai": Role.ASSISTANT_MESSAGE,
    "tool": Role.TOOL_RESULT,
    "function": Role.TOOL_RESULT,
}
"""Kinds of messages, by the role."""

_TEXT_FIELDS: Final = ("text", "refusal", "input_text", "output_text", "thinking")
_REASONING_FIELDS: Final = ("reasoning_content", "reasoning")


def as_object(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a value if it is an array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_of(value: Any) -> str | None:
    """Return a value if it is text."""
    return value if isinstance(value, str) else None


def block_text(block: Any) -> tuple[str, str | None]:
    """Return what a block of content says, and the field that says exactly that."""
    if isinstance(block, str):
        return block, None
    fields = as_object(block)
    for name in _TEXT_FIELDS:
        if isinstance(fields.get(name), str):
            return fields[name], name
    kind = fields.get("type")
    return f"[{kind}]" if isinstance(kind, str) else clip(excerpt(block)), None


def blocks_text(content: Any) -> str:
    """Return what content says, whether it is text, blocks or something else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(block_text(block)[0] for block in as_list(content))
    return excerpt(content)


def call_text(name: str | None, arguments: Any) -> str:
    """Return a tool call as a person reads it: the name and the arguments."""
    shown = arguments if isinstance(arguments, str) else excerpt(arguments, 2**31)
    return clip(f"{name or '?'} {shown}")


def message_parts(format_name: str, message: dict[str, Any], call_id: str | None = None) -> list[Part]:
    """Tell the parts of a message: its reasoning, its content, its tool calls.

    Args:
        format_name: of the format, for kinds of its own.
        message: the message.
        call_id: of the call that it answers, if the format says it elsewhere.
    """
    role = text_of(message.get("role")) or ""
    kind = ROLES.get(role) or own_kind(format_name, role)
    parts = [
        Part(own_kind(format_name, "reasoning"), message[name], text_at=(name,))
        for name in _REASONING_FIELDS
        if message.get(name) and isinstance(message[name], str)
    ]
    if kind == Role.TOOL_RESULT:
        parts.append(_result(message, call_id))
    else:
        parts.extend(_content(kind, message.get("content")))
        parts.extend(_calls(message))
    return parts or [Part(kind, blocks_text(message.get("content")))]


def _result(message: dict[str, Any], call_id: str | None) -> Part:
    content = message.get("content")
    return Part(
        Role.TOOL_RESULT,
        blocks_text(content),
        text_at=("content",) if isinstance(content, str) else None,
        call_id=text_of(message.get("tool_call_id")) or call_id,
        tool=text_of(message.get("name")),
    )


def _content(kind: str, content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Part(kind, content, at=("content",), text_at=("content",))] if content else []
    return block_parts(kind, content, ("content",))


def block_parts(kind: str, blocks: Any, at: JsonPath) -> list[Part]:
    """Tell the parts of a list of content blocks, all of one kind."""
    found: list[Part] = []
    for index, block in enumerate(as_list(blocks)):
        text, field = block_text(block)
        found.append(Part(kind, text, (*at, index), None if field is None else (*at, index, field)))
    return found


def _calls(message: dict[str, Any]) -> list[Part]:
    parts = [
        _call(as_object(call), ("tool_calls", index))
        for index, call in enumerate(as_list(message.get("tool_calls")))
    ]
    legacy = as_object(message.get("function_call"))
    if legacy:
        parts.append(_call({"function": legacy}, ("function_call",)))
    return parts


def _call(call: dict[str, Any], at: JsonPath) -> Part:
    function = as_object(call.get("function") or call.get("custom"))
    name = text_of(function.get("name"))
    text = call_text(name, function.get("arguments", function.get("input", {})))
    return Part(Role.TOOL_CALL, text, at, call_id=text_of(call.get("id")), tool=name)
