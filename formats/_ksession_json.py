"""JSON exactly as the original reads it, which is with serde_json into two structs.

It differs from `json` and `msgspec.json` in what it takes and refuses:

- A struct is an object, or an array of exactly its fields in order. A field that is known may not come twice
  and must come once; the values of unknown ones are skipped.
- The name of a unit variant may stand alone, or as the only key of an object with the value null.
- White space is space, tab, line feed and carriage return. No byte order mark, nothing behind the value.
- Strings that are kept, and all keys of a struct, are Unicode: bad UTF-8 and lone surrogates are refused.
  Strings that are skipped are only scanned: both pass there, raw control characters and unknown escapes
  do not.
- Numbers that are skipped follow the grammar and may have any size. Skipped values nest without limit.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# Bounded and matched again and again: what an unbounded repeat remembers grows with the text.
_PART: Final = rb'[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})'
_match_parts: Final = re.compile(rb"(?:" + _PART + rb"){0,1000}").match
_NUMBER: Final = rb"-?(?:0(?![0-9])|[1-9][0-9]*)(?:\.[0-9]+)?(?:[Ee][+-]?[0-9]+)?"
_match_scalar: Final = re.compile(rb"null|true|false|" + _NUMBER).match
_match_null: Final = re.compile(rb"null").match
_match_spaces: Final = re.compile(rb"[ \t\n\r]+").match

_SPACES: Final = frozenset(b" \t\n\r")
_END: Final = -1
_QUOTE, _COMMA, _COLON = b'",:'
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"


class JsonError(ValueError):
    """The bytes are not what the original takes; `offset` is where in them."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


def read_struct(document: bytes, fields: Mapping[str, Collection[str] | None]) -> list[str]:
    """Read a document that is one struct.

    Args:
        document: the JSON, whole.
        fields: the fields in the order of the array form: None for a string, the names of an enum's variants.

    Returns:
        The values, in that order.

    Raises:
        JsonError: serde_json would not take the document.
    """
    return _Reader(document).struct(fields)


class _Reader:
    __slots__ = ("_data", "_offset")

    def __init__(self, document: bytes) -> None:
        self._data = document
        self._offset = 0

    def struct(self, fields: Mapping[str, Collection[str] | None]) -> list[str]:
        start = self._peek()
        if start == _OPEN_ARRAY:
            values = self._array(fields)
        elif start == _OPEN_OBJECT:
            values = self._object(fields)
        else:
            raise self._error("expected an object or an array")
        if self._peek() != _END:
            raise self._error("trailing characters")
        return values

    def _array(self, fields: Mapping[str, Collection[str] | None]) -> list[str]:
        self._offset += 1
        values: list[str] = []
        for names in fields.values():
            if values:
                self._expect(_COMMA, f"expected an array of {len(fields)} elements")
            values.append(self._value(names))
        self._expect(_CLOSE_ARRAY, f"expected an array of {len(fields)} elements")
        return values

    def _object(self, fields: Mapping[str, Collection[str] | None]) -> list[str]:
        self._offset += 1
        values: dict[str, str] = {}
        separator = _CLOSE_OBJECT if self._peek() == _CLOSE_OBJECT else _COMMA
        while separator == _COMMA:
            name = self._text()
            if name in values:
                raise self._error(f"duplicate field {name!r}")
            self._expect(_COLON, "expected a colon")
            if name in fields:
                values[name] = self._value(fields[name])
            else:
                self._skip_value()
            separator = self._peek()
            if separator == _COMMA:
                self._offset += 1
        self._expect(_CLOSE_OBJECT, "expected a comma or the end of the object")
        for name in fields:
            if name not in values:
                raise self._error(f"missing field {name!r}")
        return [values[name] for name in fields]

    def _value(self, names: Collection[str] | None) -> str:
        if names is None:
            return self._text()
        if self._peek() != _OPEN_OBJECT:
            return self._variant(names)
        self._offset += 1
        name = self._variant(names)
        self._expect(_COLON, "expected a colon")
        self._peek()
        self._take(_match_null(self._data, self._offset), "expected null")
        self._expect(_CLOSE_OBJECT, "expected the end of the object")
        return name

    def _variant(self, names: Collection[str]) -> str:
        name = self._text()
        if name not in names:
            raise self._error(f"unknown variant {name!r:.60}")
        return name

    def _text(self) -> str:
        raw = self._string()
        try:
            if b"\\" not in raw:
                return raw[1:-1].decode()
            text = str(json.loads(raw.decode()))
            text.encode()  # unpaired surrogates come through the parser
        except UnicodeError:
            raise self._error("a string that is not Unicode") from None
        return text

    def _skip_value(self) -> None:
        closings = bytearray()
        while True:
            start = self._peek()
            if start in (_OPEN_ARRAY, _OPEN_OBJECT):
                closing = _CLOSE_ARRAY if start == _OPEN_ARRAY else _CLOSE_OBJECT
                self._offset += 1
                if self._peek() != closing:
                    closings.append(closing)
                    self._skip_key(closing)
                    continue
                self._offset += 1
            elif start == _QUOTE:
                self._string()
            else:
                self._take(_match_scalar(self._data, self._offset), "expected a value")
            while closings and self._peek() == closings[-1]:
                self._offset += 1
                closings.pop()
            if not closings:
                return
            self._expect(_COMMA, "expected a comma or the end of the array or object")
            self._skip_key(closings[-1])

    def _skip_key(self, closing: int) -> None:
        if closing == _CLOSE_ARRAY:
            return
        self._string()
        self._expect(_COLON, "expected a colon")

    def _string(self) -> bytes:
        if self._peek() != _QUOTE:
            raise self._error("expected a string")
        start, end = self._offset, self._offset + 1
        while (part := _match_parts(self._data, end)) and part.end() > end:
            end = part.end()
        self._offset = end
        if self._peek_here() != _QUOTE:
            raise self._error("a raw control character, an unknown escape or no end in the string")
        self._offset += 1
        return self._data[start : self._offset]

    def _take(self, found: re.Match[bytes] | None, otherwise: str) -> None:
        if found is None:
            raise self._error(otherwise)
        self._offset = found.end()

    def _peek_here(self) -> int:
        return self._data[self._offset] if self._offset < len(self._data) else _END

    def _peek(self) -> int:
        byte = self._peek_here()
        if byte not in _SPACES:
            return byte
        self._take(_match_spaces(self._data, self._offset), "expected white space")
        return self._peek_here()

    def _expect(self, byte: int, otherwise: str) -> None:
        if self._peek() != byte:
            raise self._error(otherwise)
        self._offset += 1

    def _error(self, reason: str) -> JsonError:
        return JsonError(self._offset, f"{reason} at byte {self._offset} of the JSON")
