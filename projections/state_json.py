"""JSON of the old state files, read exactly as their programs read it: with serde, into Rust structs.

What differs from `json` and `msgspec.json`:

- A struct is an object, or an array of its fields in order. A known field may not come twice; unknown ones
  are skipped, and their strings may hold lone surrogates or bad UTF-8. Everywhere else text is Unicode.
- An enum without fields is its name, or an object with the name as only key and null as value.
- Integers are written as such: 1.0, 1e3 and -0 are floats, as is whatever does not fit 64 bits.
- What is kept nests 127 levels at most. No NaN, no byte order mark, nothing behind the value.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar, cast

from ..storage.errors import InvalidStateError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

T = TypeVar("T")

DEPTH_MAX: Final = 127
DOCUMENT: Final = "the document"
_INT_CHARACTERS_MAX: Final = 20
_I64: Final = range(-(2**63), 2**63)
_U32: Final = range(2**32)


class Pairs(list[tuple[str, Any]]):
    """An object with its keys as they came, in order and twice if they did."""


def _integer(text: str) -> int | float:
    if len(text) > _INT_CHARACTERS_MAX or text == "-0":
        return float(text)
    value = int(text)
    return value if -(2**63) <= value < 2**64 else float(text)


def _no_constant(text: str) -> NoReturn:
    msg = f"{text} is no number"
    raise ValueError(msg)


_decode: Final = json.JSONDecoder(
    object_pairs_hook=Pairs, parse_int=_integer, parse_constant=_no_constant
).decode


class Place(NamedTuple):
    """A value's place in a document.

    Attributes:
        file: what to call the document in an error.
        path: the fields that lead there.
        depth: of the containers around it.
    """

    file: str
    path: str = ""
    depth: int = 0

    def field(self, name: str) -> Place:
        """Return the place of a field."""
        return Place(self.file, f"{self.path}.{name}" if self.path else name, self.depth + 1)

    def item(self, index: int) -> Place:
        """Return the place of an item."""
        return Place(self.file, f"{self.path}[{index}]", self.depth + 1)

    def refuse(self, reason: str) -> NoReturn:
        """Raise the error that names this place.

        Raises:
            InvalidStateError: always.
        """
        raise InvalidStateError(self.file, self.path or DOCUMENT, reason)

    def wanted(self, what: str, value: Any) -> NoReturn:
        """Raise the error of a value that is of another type.

        Raises:
            InvalidStateError: always.
        """
        self.refuse(f"must be {what}, not {_shown(value)}")


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, Pairs):
        return "an object"
    if isinstance(value, list):
        return "an array"
    shown = repr(cast("object", value))
    return shown if len(shown) <= 60 else f"{shown[:60]}…"  # noqa: PLR2004 — what fits a line


class Field(NamedTuple):
    """A field of a struct.

    Attributes:
        read: reads its value.
        default: makes the value of one that is missing; None if it may not be.
        in_array: whether it may be missing in the array form, too.
    """

    read: Callable[[Any, Place], Any]
    default: Callable[[], Any] | None = None
    in_array: bool = True


def parse(data: bytes, file: str, *, all_text: bool) -> tuple[Any, Place]:
    """Parse a document; return its value and place, for the readers below.

    Args:
        data: the JSON.
        file: what to call it in errors.
        all_text: whether it must be UTF-8 throughout, also where it is skipped.

    Raises:
        InvalidStateError: it is not JSON.
    """
    place = Place(file)
    try:
        value = _decode(str(data, "utf-8", "strict" if all_text else "surrogateescape"))
    except UnicodeDecodeError as error:
        place.refuse(f"is not UTF-8 at byte {error.start}")
    except ValueError as error:
        place.refuse(f"is not JSON: {error}")
    except RecursionError:
        place.refuse("is nested too deep")
    return value, place


def struct(fields: Mapping[str, Field]) -> Callable[[Any, Place], dict[str, Any]]:
    """Return a reader of structs; it returns the values of all fields by name."""

    def read(value: Any, place: Place) -> dict[str, Any]:
        _check_depth(place)
        found: dict[str, Any] = {}
        for name, item in _pairs(value, place, fields):
            if name in found:
                place.field(name).refuse("comes twice")
            found[name] = fields[name].read(item, place.field(name))
        for name, field in fields.items():
            if name not in found:
                if field.default is None or not (field.in_array or isinstance(value, Pairs)):
                    place.field(name).refuse("is missing")
                found[name] = field.default()
        return found

    return read


def _pairs(value: Any, place: Place, fields: Mapping[str, Field]) -> list[tuple[str, Any]]:
    """Return names and values of known fields, from either form of a struct."""
    if isinstance(value, Pairs):
        return [pair for pair in value if pair[0] in fields]
    if not isinstance(value, list):
        place.wanted("an object", value)
    items = cast("list[Any]", value)
    if len(items) > len(fields):
        place.refuse(f"has {len(items)} items where {len(fields)} fields are known")
    return list(zip(fields, items, strict=False))


def tagged(
    tag: str, variants: Mapping[str, Callable[[Any, Place], dict[str, Any]]]
) -> Callable[[Any, Place], dict[str, Any]]:
    """Return a reader of structs of several kinds, told apart by a field that names the kind.

    In the array form the name comes first. What is in there is kept until the kind is known, so that fields
    that turn out to be unknown are checked as well.
    """

    def read(value: Any, place: Place) -> dict[str, Any]:
        json_value(value, place)
        if isinstance(value, Pairs):
            kinds = [item for name, item in value if name == tag]
            rest: Any = Pairs(pair for pair in value if pair[0] != tag)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            kinds, rest = items[:1], items[1:]
        else:
            place.wanted("an object", value)
        if len(kinds) != 1:
            place.field(tag).refuse("comes twice" if kinds else "is missing")
        kind = text(kinds[0], place.field(tag))
        if kind not in variants:
            place.field(tag).refuse(f"is {kind!r}; known are {', '.join(variants)}")
        return {tag: kind, **variants[kind](rest, place)}

    return read


def unit_enum(names: Collection[str]) -> Callable[[Any, Place], str]:
    """Return a reader of enums without fields."""

    def read(value: Any, place: Place) -> str:
        if isinstance(value, Pairs):
            _check_depth(place)
            if len(value) != 1 or value[0][1] is not None:
                place.refuse("must be a name, or an object with one name whose value is null")
            value = value[0][0]
        name = text(value, place)
        if name not in names:
            place.refuse(f"is {name!r}; known are {', '.join(names)}")
        return name

    return read


def named(what: str, names: Collection[str]) -> Callable[[Any, Place], str]:
    """Return a reader of texts that must be one of some names."""

    def read(value: Any, place: Place) -> str:
        name = text(value, place)
        if name not in names:
            place.refuse(f"unknown {what} {name!r}; known are {', '.join(names)}")
        return name

    return read


def array(item: Callable[[Any, Place], T]) -> Callable[[Any, Place], list[T]]:
    """Return a reader of arrays."""

    def read(value: Any, place: Place) -> list[T]:
        if not isinstance(value, list) or isinstance(value, Pairs):
            place.wanted("an array", value)
        _check_depth(place)
        return [item(each, place.item(at)) for at, each in enumerate(cast("list[Any]", value))]

    return read


def mapping(item: Callable[[Any, Place], T]) -> Callable[[Any, Place], dict[str, T]]:
    """Return a reader of objects with any keys; of one that comes twice the last counts."""

    def read(value: Any, place: Place) -> dict[str, T]:
        if not isinstance(value, Pairs):
            place.wanted("an object", value)
        _check_depth(place)
        return {text(name, place): item(each, place.field(name)) for name, each in value}

    return read


def optional(read: Callable[[Any, Place], T]) -> Callable[[Any, Place], T | None]:
    """Return a reader of what may be null."""
    return lambda value, place: None if value is None else read(value, place)


def text(value: Any, place: Place) -> str:
    """Read a string."""
    if not isinstance(value, str):
        place.wanted("a string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        place.refuse("holds what is not Unicode text")
    return value


def boolean(value: Any, place: Place) -> bool:
    """Read a boolean."""
    if not isinstance(value, bool):
        place.wanted("true or false", value)
    return value


def signed(value: Any, place: Place) -> int:
    """Read a signed integer of 64 bits."""
    return _whole(value, place, _I64, "an integer of 64 bits")


def unsigned(value: Any, place: Place) -> int:
    """Read an integer of 32 bits without a sign."""
    return _whole(value, place, _U32, "an integer of 32 bits without a sign")


def _whole(value: Any, place: Place, allowed: range, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        place.wanted(what, value)
    return value


def json_value(value: Any, place: Place) -> Any:
    """Read anything, as plain values; of a key that comes twice the last counts."""
    if isinstance(value, str):
        return text(value, place)
    if isinstance(value, float) and not math.isfinite(value):
        place.refuse("is a number out of range")
    if not isinstance(value, list):
        return value
    _check_depth(place)
    if isinstance(value, Pairs):
        return {text(name, place): json_value(item, place.field(name)) for name, item in value}
    items = cast("list[Any]", value)
    return [json_value(item, place.item(at)) for at, item in enumerate(items)]


def _check_depth(place: Place) -> None:
    if place.depth >= DEPTH_MAX:
        place.refuse(f"is nested more than {DEPTH_MAX} levels deep")
