"""JSON as other programs write it: what a parsed value cannot give back exactly is noticed.

`parse` never raises. Its value is good for reading; only if `exact` is set does writing the value again give
JSON equal to the text, with ints and floats told apart.
"""

from __future__ import annotations

import base64
import json
import math
import re
from decimal import Decimal, DecimalException
from typing import Any, Final, cast

import msgspec

__all__ = ["DEPTH_MAX", "WHITE_SPACE", "Parsed", "canonical", "excerpt", "parse", "storable", "to_json"]

DEPTH_MAX: Final = 150
"""Containers inside containers that are stored as data; what is deeper is stored as text."""
WHITE_SPACE: Final = b" \t\r\n"
"""What JSON calls white space, and nothing else."""

_INT_DIGITS_MAX: Final = 20
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LINE_ENDS: Final = (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


class Parsed(msgspec.Struct):
    """What a text says.

    Args:
        value: the value; UNSET if the text is not JSON.
        exact: whether the value can be stored and gives back equal JSON.
        problem: why the text is not JSON; None if it is.
    """

    value: Any = msgspec.UNSET
    exact: bool = False
    problem: str | None = None


class _Reader:
    """The hooks of one call of the parser, and what they noticed."""

    def __init__(self) -> None:
        self.exact = True
        self.constant: str | None = None
        self.decode = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_float=self._float,
            parse_int=self._int,
            parse_constant=self._constant,
        ).decode

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            self.exact = False
        return value

    def _float(self, literal: str) -> float:
        value = float(literal)
        if repr(value) != literal and not _same_number(literal, value):
            self.exact = False
        return value

    def _int(self, literal: str) -> int | str:
        if len(literal) <= _INT_DIGITS_MAX:
            value = int(literal)
            if -(2**63) <= value < 2**64 and literal != "-0":
                return value
        self.exact = False
        return literal  # for a reader; what is stored is the text

    def _constant(self, literal: str) -> float:
        self.exact = False
        self.constant = literal
        return float(literal)


def _same_number(literal: str, value: float) -> bool:
    if not math.isfinite(value):
        return False
    try:
        return Decimal(literal) == Decimal(repr(value))
    except DecimalException:  # an exponent beyond all bounds
        return False


def parse(raw: bytes) -> Parsed:
    """Read one JSON text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return Parsed(problem=f"not UTF-8 ({error.reason} at byte {error.start})")
    reader = _Reader()
    try:
        value = reader.decode(text)
    except ValueError as error:
        return Parsed(problem=f"not JSON ({error})")
    except RecursionError:
        return Parsed(problem="nested too deeply to be read")
    exact = reader.exact
    if exact and ("\\ud" in text or "\\uD" in text):
        exact = _is_unicode(value)
    if exact and text.count("[") + text.count("{") > DEPTH_MAX:
        exact = _depth_fits(value)
    problem = None if reader.constant is None else f"{reader.constant} is not JSON"
    return Parsed(value, exact, problem)


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _depth_fits(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(cast("dict[str, Any]", item).values())
            elif isinstance(item, list):
                below.extend(cast("list[Any]", item))
        if not below:
            return True
        level = below
    return False


def canonical(value: Any) -> str:
    """Return the one text that equal JSON values have in common."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_json(value: Any) -> bytes:
    """Return a value as one line of JSON without the line end; no reader splits it in two.

    Bytes, which only events of other origin hold, become `{"base64": "…"}`.
    """
    text = json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_bytes_as_object
    )
    for character, escape in _LINE_ENDS:
        if character in text:
            text = text.replace(character, escape)
    return text.encode()


def _bytes_as_object(value: object) -> dict[str, str]:
    if not isinstance(value, bytes):
        raise TypeError(repr(value))
    return {"base64": base64.b64encode(value).decode()}


def excerpt(value: Any, limit: int = 200) -> str:
    """Return the beginning of a value as JSON, for a person."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "nested too deeply to be shown"
    return text if len(text) <= limit else f"{text[:limit]}…"


def storable(text: str) -> str:
    """Return the text with the halves of surrogate pairs replaced, which no event can hold."""
    return _SURROGATE.sub("\ufffd", text)
