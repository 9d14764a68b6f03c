"""Events: what a session is made of, and their bytes.

An event is checked and encoded in the caller's thread, at the call: what the caller mutates later is not
stored, and what cannot be stored is refused before anything is written. The encoding is docs/format.md,
"Payloads".
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from .errors import InvalidEventError, LimitExceededError
from .format import FRAME_EVENTS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")

TEXT_BYTES_MAX = 32 * 1024 * 1024
KIND_BYTES_MAX = 255
KEY_BYTES_MAX = 4096
DATA_DEPTH_MAX = 200
"""Containers inside containers; deeper data could not be decoded on a small stack."""
BATCH_EVENTS_MAX = FRAME_EVENTS_MAX
"""Events of one append_many: a batch is one frame, and a frame counts its events in a u16."""

_WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


class Role(enum.StrEnum):
    """The kinds of a transcript. All other kinds are the application's own, namespaced: `myapp.note`."""

    SYSTEM_MESSAGE = "system-message"
    SYSTEM_ERROR = "system-error"
    USER_MESSAGE = "user-message"
    ASSISTANT_MESSAGE = "assistant-message"
    TOOL_CALL = "tool-call"
    TOOL_RESULT = "tool-result"
    TOOL_ERROR = "tool-error"
    OBJECT = "object"
    ATTACHMENT = "attachment"


KIND_CODES: dict[str, int] = {
    "system-message": 1,
    "system-error": 2,
    "user-message": 3,
    "assistant-message": 4,
    "tool-call": 5,
    "tool-result": 6,
    "tool-error": 7,
    "object": 8,
    "attachment": 9,
}
"""Built-in kinds on disk. Codes are never reused or changed."""

_KINDS: dict[int | str, str] = {code: kind for kind, code in KIND_CODES.items()}


class Event(msgspec.Struct, frozen=True):
    """One entry of a session.

    Args:
        kind: a `Role`, or a kind of your own such as `"myapp.note"`; not blank, at most 255 bytes.
        text: what a person would read; at most 32 MiB of UTF-8.
        data: None, bool, 64-bit int, finite float, str, bytes, list, tuple, str-keyed dict, or
            msgspec Structs of these. It comes back as plain values; see `decode`.
        at: nanoseconds since the epoch; set by the library when left out. Never used for order.
        key: idempotency key; the same key with the same content is stored once.
    """

    kind: str
    text: str
    data: Any = None
    at: int | None = None
    key: str | None = None

    def decode(self, type: type[T]) -> T:  # noqa: A002 — the name msgspec gives this argument
        """Convert `data` to a msgspec Struct, dataclass or any type msgspec knows.

        Args:
            type: the wanted type.

        Returns:
            A new object.

        Raises:
            msgspec.ValidationError: `data` does not fit the type.
        """
        return msgspec.convert(self.data, type)


class AttachmentData(msgspec.Struct, frozen=True):
    """`data` of an attachment event: what the file beside the log must be; `sha256` in hexadecimal."""

    file_name: str
    media_type: str
    size_bytes: int
    sha256: str


_encode = msgspec.msgpack.Encoder().encode
_encode_canonical = msgspec.msgpack.Encoder(order="sorted").encode


class _WireEvent(msgspec.Struct, array_like=True):
    """The bytes of one event; later minor versions may append fields, which are ignored here."""

    kind: int | str
    text: str
    data: Any
    at: int
    key: str | None = None


_decode_wire = msgspec.msgpack.Decoder(list[_WireEvent]).decode


class _WireKey(msgspec.Struct, array_like=True):
    """The same bytes, with only what a key index needs decoded."""

    kind: int | str
    text: msgspec.Raw
    data: msgspec.Raw
    at: int
    key: str | None = None


_decode_wire_keys = msgspec.msgpack.Decoder(list[_WireKey]).decode


def is_blank(text: str) -> bool:
    """Tell whether a text is empty or Unicode White_Space only (U+001C–001F and U+200B are not)."""
    return not text.strip(_WHITE_SPACE)


def encode_event(kind: str, text: str, data: Any, at: int, key: str | None) -> bytes:
    """Check an event and return its bytes.

    Raises:
        InvalidEventError: a field cannot be stored; names the place.
    """
    code = KIND_CODES.get(kind) if kind.__class__ in _KIND_TYPES else None
    if code is None or text.__class__ is not str or len(text) > _TEXT_UNCHECKED or key is not None:
        kind = _check_kind(kind)
        code = KIND_CODES.get(kind)
        text = _check_text(text)
        if key is not None:
            key = _check_name("key", key, KEY_BYTES_MAX)
    if data is not None:
        data = _plain(data, ("data",), 0)
    if at.__class__ is not int or not -(2**63) <= at < 2**63:
        raise InvalidEventError("at", f"must be a 64-bit int of nanoseconds, not {at!r}")
    row = (code or kind, text, data, at) if key is None else (code or kind, text, data, at, key)
    try:
        return _encode(row)
    except UnicodeEncodeError:
        raise _surrogate_error(kind, text, data, key) from None


_KIND_TYPES = (str, Role)
_TEXT_UNCHECKED = TEXT_BYTES_MAX // 4  # so many code points fit whatever they are


def _check_kind(kind: object) -> str:
    name = _check_name("kind", kind, KIND_BYTES_MAX)
    if is_blank(name):
        raise InvalidEventError("kind", "is blank; use a Role or a name of your own")
    return name


def _check_name(place: str, value: object, bytes_max: int) -> str:
    if not isinstance(value, str):
        raise InvalidEventError(place, f"must be a str, not {type(value).__name__}")
    name = str.__str__(value)
    if len(_utf8(place, name)) > bytes_max:
        raise InvalidEventError(place, f"is longer than {bytes_max} bytes of UTF-8")
    return name


def _check_text(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidEventError("text", f"must be a str, not {type(text).__name__}")
    plain = str.__str__(text)
    if len(plain) > _TEXT_UNCHECKED and len(_utf8("text", plain)) > TEXT_BYTES_MAX:
        raise InvalidEventError("text", f"is over {TEXT_BYTES_MAX:,} bytes of UTF-8; attach() it")
    return plain


def _utf8(place: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidEventError(
            place,
            f"has a lone surrogate {text[error.start]!r} at character {error.start}, "
            "which is not Unicode text",
        ) from None


def _surrogate_error(kind: str, text: str, data: Any, key: str | None) -> InvalidEventError:
    try:
        for place, value in (("kind", kind), ("text", text), ("key", key), ("data", data)):
            _find_surrogate(value, place)
    except InvalidEventError as error:
        return error
    return InvalidEventError("data", "holds text that is not valid Unicode")


def _find_surrogate(value: Any, place: str) -> None:
    if isinstance(value, str):
        _utf8(place, value)
    elif isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            _utf8(f"{place} key {name!r}", name)
            _find_surrogate(item, f"{place}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            _find_surrogate(item, f"{place}[{index}]")


# Where a value stands: ("data",) or (the container's place, its key or index). Only an error makes it text.
_Place = tuple[Any, ...]


def _place_text(place: _Place) -> str:
    if len(place) == 1:
        return str(place[0])
    step = place[1]
    return _place_text(place[0]) + (f"[{step}]" if isinstance(step, int) else f".{step}")


def _plain(value: Any, place: _Place, depth: int) -> Any:
    """Return a plain copy of storable data: None, bool, int, float, str, bytes, list and dict."""
    kind = value.__class__
    if kind is str or value is None or kind is bool or kind is bytes:
        return value
    if kind is int or kind is float:
        return _check_number(value, place)
    if depth >= DATA_DEPTH_MAX:
        raise InvalidEventError(
            "data", f"is nested more than {DATA_DEPTH_MAX} levels deep, or contains itself"
        )
    if isinstance(value, dict):
        return {
            _plain_key(name, place): _plain(item, (place, name), depth + 1)
            for name, item in cast("dict[Any, Any]", value).items()
        }
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        return [_plain(item, (place, index), depth + 1) for index, item in enumerate(items)]
    if isinstance(value, msgspec.Struct):
        return _plain_struct(value, place, depth)
    if isinstance(value, (enum.StrEnum, enum.IntEnum)):
        return _plain(value.value, place, depth + 1)
    raise InvalidEventError(
        _place_text(place),
        f"is a {kind.__module__}.{kind.__qualname__}, which cannot be stored; use None, bool, int, float, "
        "str, bytes, list, tuple, dict with str keys, or msgspec Structs of these",
    )


def _check_number(value: float, place: _Place) -> float:
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise InvalidEventError(
                _place_text(place), "is an int outside of 64 bits: -2^63 to 2^64 - 1 can be stored"
            )
    elif not math.isfinite(value):
        raise InvalidEventError(_place_text(place), f"is not a finite float: {value!r}")
    return value


def _plain_key(name: object, place: _Place) -> str:
    if isinstance(name, str) and (name.__class__ is str or isinstance(name, enum.StrEnum)):
        return str.__str__(name)
    raise InvalidEventError(_place_text(place), f"has the key {name!r}; keys must be str")


def _plain_struct(value: msgspec.Struct, place: _Place, depth: int) -> Any:
    for name in value.__struct_fields__:
        item = getattr(value, name)
        if item is not msgspec.UNSET:
            _plain(item, (place, name), depth + 1)
    return msgspec.to_builtins(value, builtin_types=(bytes,))


def encode_batch(events: Iterable[Event], now_ns: int) -> tuple[list[bytes], list[str | None]]:
    """Check the events of one batch; return their bytes and their keys, both in order.

    Args:
        events: the batch.
        now_ns: the time for events without one.

    Raises:
        InvalidEventError: names the event's index and the place in it.
        LimitExceededError: more than 65,535 events.
    """
    bodies: list[bytes] = []
    keys: list[str | None] = []
    for index, event in enumerate(events):
        if index == BATCH_EVENTS_MAX:  # not after the loop: an iterator may have no end
            raise LimitExceededError(
                "events of one batch", BATCH_EVENTS_MAX, index + 1, "append them in several batches"
            )
        if not isinstance(event, Event):
            raise InvalidEventError(f"events[{index}]", f"is not an Event but {type(event).__name__}")
        try:
            check_not_attachment(event.kind)
            at = now_ns if event.at is None else event.at
            bodies.append(encode_event(event.kind, event.text, event.data, at, event.key))
        except InvalidEventError as error:
            raise InvalidEventError(f"events[{index}].{error.place}", error.reason) from None
        keys.append(event.key)
    return bodies, keys


def check_not_attachment(kind: object) -> None:
    """Refuse the kind that only attach() may write, since it promises a file beside the log.

    Raises:
        InvalidEventError: the kind is `attachment`.
    """
    if kind == "attachment":
        raise InvalidEventError("kind", "'attachment' is written by attach() only, together with the file")


def encode_payload(bodies: Sequence[bytes]) -> bytes:
    """Join encoded events to the payload of one frame: a msgpack array."""
    count = len(bodies)
    if count < 16:  # noqa: PLR2004 — msgpack's fixarray
        return bytes((0x90 | count,)) + b"".join(bodies)
    return b"\xdc" + count.to_bytes(2, "big") + b"".join(bodies)


def decode_payload(payload: bytes | memoryview) -> list[Event]:
    """Decode the events of one frame.

    Raises:
        msgspec.DecodeError: the bytes are not events.
    """
    kinds = _KINDS
    return [
        Event(kinds.get(row.kind) or _own_kind(row.kind), row.text, row.data, row.at, row.key)
        for row in _decode_wire(payload)
    ]


def _own_kind(kind: int | str) -> str:
    """Hand on a kind as it is; a code that a newer version gave out keeps its number."""
    return kind if isinstance(kind, str) else f"sealog.kind-{kind}"


def decode_keys(payload: bytes | memoryview) -> list[str | None]:
    """Return the key of each event of one frame, decoding nothing else.

    Raises:
        msgspec.DecodeError: the bytes are not events.
    """
    return [row.key for row in _decode_wire_keys(payload)]


def canonical_content(event: Event) -> bytes:
    """Return the bytes that two events with the same key must share: kind, text and data, never `at`."""
    return _encode_canonical((event.kind, event.text, event.data))


def decode_body(body: bytes) -> Event:
    """Decode the bytes that `encode_event` returned."""
    return decode_payload(b"\x91" + body)[0]
