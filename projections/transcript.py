"""The transcript of a session: messages in the form that providers of language models take.

A call of a tool and its answer are told by an id in their events' data:

    tool-call                  {"call_id": "c1", "tool": "ls", ...}
    tool-result, tool-error    {"call_id": "c1", ...}

The names that others use for it are taken too (`CALL_ID_FIELDS`), and an assistant message may carry its
calls in a list `tool_calls`. An answer without an id belongs to the oldest open call that has none either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec

from .base import Projection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..storage.events import Event

CALL_ID_FIELDS: Final = ("call_id", "tool_call_id", "tool_use_id", "toolCallId", "id")
OPEN_CALLS_MAX: Final = 1000
"""Of calls without an answer only the newest are remembered: an answer that comes later still finds none."""
INTERRUPTED: Final = "interrupted: there is no result of this call"

MessageRole = Literal["system", "user", "assistant", "tool"]

_ROLES: Final[dict[str, MessageRole]] = {
    "system-message": "system",
    "user-message": "user",
    "attachment": "user",
    "assistant-message": "assistant",
    "tool-call": "assistant",
    "tool-result": "tool",
    "tool-error": "tool",
}

_copy_out: Final = msgspec.msgpack.Encoder().encode
_copy_in: Final = msgspec.msgpack.Decoder().decode


class TranscriptMessage(msgspec.Struct, frozen=True):
    """One message for a provider.

    Args:
        role: who says it.
        kind: of its event.
        text: of its event.
        position: of its event; that of the call, if `is_interrupted`.
        call_id: of the call that this is or answers; `call-<position>` for a call that came without one.
        is_error: whether it says that a tool failed.
        is_interrupted: whether it stands for an answer that is not in the log.
        data: of its event.
    """

    role: MessageRole
    kind: str
    text: str
    position: int
    call_id: str | None = None
    is_error: bool = False
    is_interrupted: bool = False
    data: Any = None


class _Item(msgspec.Struct, array_like=True):
    """A message as it is kept.

    Args:
        message: the message.
        calls: ids of the calls in it.
        call: position of the message with the call that it answers; None if it answers none.
    """

    message: TranscriptMessage
    calls: list[str] = []
    call: int | None = None


class _Open(msgspec.Struct, array_like=True):
    position: int
    call_id: str
    had_id: bool


class TranscriptState(msgspec.Struct):
    """What is kept between events: messages, and the calls that have no answer yet."""

    position: int = 0
    items: list[_Item] = []
    open_calls: list[_Open] = []


class Transcript(Projection[Any]):
    """The messages of a session, oldest first: `session.project(Transcript())`.

    System errors, objects and kinds of your own are left out.

    Args:
        close_dangling: give what a provider accepts: every call is followed by exactly one answer, and every
            answer follows a call. An answer that came late is put behind its call, one that is not there is
            made up and says so, one without a call is left out. The log stays as it is, and the answer is the
            real one as soon as the log has it.
        limit: so many messages at most, the newest; never an answer without its call. None for all of them.

    Raises:
        ValueError: a limit below 1.
    """

    state_type = TranscriptState

    def __init__(self, *, close_dangling: bool = False, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            msg = f"a transcript of {limit} messages"
            raise ValueError(msg)
        self.close_dangling = close_dangling
        self.limit = limit
        self.name = "sealog.transcript" if limit is None else f"sealog.transcript-{limit}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and self._parameters == other._parameters

    def __hash__(self) -> int:
        return hash(self._parameters)

    @property
    def _parameters(self) -> tuple[type[Transcript], bool, int | None]:
        return type(self), self.close_dangling, self.limit

    def initial(self) -> TranscriptState:
        """Return the state of a session without events."""
        return TranscriptState()

    def apply(self, state: TranscriptState, event: Event, /) -> TranscriptState:
        """Return the state after one more event."""
        role = _ROLES.get(event.kind)
        if role is not None:
            state.items.append(_item(state, role, event))
            del state.open_calls[:-OPEN_CALLS_MAX]
            if self.limit is not None:
                del state.items[: -self.limit]
        state.position += 1
        return state

    def view(self, state: TranscriptState, /) -> list[TranscriptMessage]:
        """Return the messages; they are the caller's own."""
        items = list(_closed(state.items)) if self.close_dangling else state.items
        if self.limit is not None:
            items = items[-self.limit :]
            kept = {item.message.position for item in items if item.calls}
            items = [item for item in items if item.message.role != "tool" or item.call in kept]
        return [_own(item.message) for item in items]

    def save(self, state: TranscriptState, /) -> bytes:
        """Return the state as bytes."""
        return msgspec.msgpack.encode(state)

    def load(self, data: bytes, /) -> TranscriptState:
        """Return the state that `save` turned into bytes.

        Raises:
            ValueError: these are no such bytes.
        """
        return msgspec.msgpack.decode(data, type=TranscriptState)


def _own(message: TranscriptMessage) -> TranscriptMessage:
    if message.data is None:
        return message
    return msgspec.structs.replace(message, data=_copy_in(_copy_out(message.data)))


def _item(state: TranscriptState, role: MessageRole, event: Event) -> _Item:
    """Return the item of an event; note its calls as open, or the one it answers as answered."""
    position, kind = state.position, event.kind
    call_id = call_id_of(event.data)
    message = TranscriptMessage(role, kind, event.text, position, data=event.data)
    if kind == "attachment" and not event.text:
        message = msgspec.structs.replace(message, text=_attachment_text(event.data))
    if kind == "tool-call":
        call = _Open(position, call_id or f"call-{position}", call_id is not None)
        state.open_calls.append(call)
        return _Item(msgspec.structs.replace(message, call_id=call.call_id), [call.call_id])
    if role == "tool":
        answered = _answered(state.open_calls, call_id)
        call_id = call_id if answered is None else answered.call_id
        message = msgspec.structs.replace(message, call_id=call_id, is_error=kind == "tool-error")
        return _Item(message, call=None if answered is None else answered.position)
    calls = _calls_within(event.data) if role == "assistant" else []
    state.open_calls += [_Open(position, call, had_id=True) for call in calls]
    return _Item(message, calls)


def _answered(open_calls: list[_Open], call_id: str | None) -> _Open | None:
    """Take the call that an answer belongs to out of the open ones.

    Of several with its id the newest: an id may be used again after its call was interrupted.
    """
    places = range(len(open_calls)) if call_id is None else range(len(open_calls) - 1, -1, -1)
    for at in places:
        call = open_calls[at]
        if not call.had_id if call_id is None else call.had_id and call.call_id == call_id:
            return open_calls.pop(at)
    return None


def call_id_of(data: Any) -> str | None:
    """Return the id that the data of a call or an answer names its call by; None if it names none."""
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        for name in CALL_ID_FIELDS:
            found = fields.get(name)
            if isinstance(found, (str, int)) and found != "":
                return str(found)
    return None


def _calls_within(data: Any) -> list[str]:
    calls: Any = cast("dict[str, Any]", data).get("tool_calls") if isinstance(data, dict) else None
    if not isinstance(calls, list):
        return []
    found = [call_id_of(call) for call in cast("list[Any]", calls)]
    return [call_id for call_id in found if call_id is not None]


def _attachment_text(data: Any) -> str:
    fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return f"[attachment {fields.get('file_name')}, {fields.get('media_type')}]"


def _closed(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield the items so that every call is followed by one answer.

    Calls that stand together stay together, with their answers behind them.
    """
    items = list(items)
    answers: dict[tuple[int, str | None], _Item] = {}
    for item in items:
        if item.call is not None:
            answers.setdefault((item.call, item.message.call_id), item)
    waiting: list[_Item] = []
    for item in items:
        if item.calls:
            waiting.append(item)
        elif item.message.role != "tool":
            yield from _with_answers(waiting, answers)
            waiting = []
            yield item
        elif item.call is not None:
            yield from _with_answers(waiting, answers)
            waiting = []
    yield from _with_answers(waiting, answers)


def _with_answers(calls: list[_Item], answers: dict[tuple[int, str | None], _Item]) -> Iterator[_Item]:
    yield from calls
    for item in calls:
        for call_id in item.calls:
            yield answers.get((item.message.position, call_id)) or _interrupted(item, call_id)


def _interrupted(item: _Item, call_id: str) -> _Item:
    position = item.message.position
    message = TranscriptMessage(
        "tool",
        "tool-error",
        INTERRUPTED,
        position,
        call_id,
        is_error=True,
        is_interrupted=True,
    )
    return _Item(message, call=position)
