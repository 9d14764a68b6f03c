"""What JSON text says, and whether a value gives it back exactly."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sealog.formats.jsontext import DEPTH_MAX, canonical, excerpt, parse, storable, to_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON, st.booleans(), st.sampled_from([None, 2]))
@example(1.0, True, None)
@example(-0.0, True, None)
@example(2**64 - 1, True, None)
@example(5e-324, True, None)
def test_ordinary_json_is_exact(value: Any, ascii_only: bool, indent: int | None) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    parsed = parse(raw)
    assert parsed.exact
    assert parsed.problem is None
    assert json.dumps(parsed.value) == json.dumps(value)
    assert json.dumps(json.loads(to_json(parsed.value))) == json.dumps(value)


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_parsing_never_raises(raw: bytes) -> None:
    parsed = parse(raw)
    assert (parsed.value is msgspec.UNSET) <= (parsed.problem is not None)
    assert not parsed.exact or parsed.problem is None


@pytest.mark.parametrize(
    "literal",
    [
        "1e400",
        "-1e400",
        "0.1000000000000000055",
        "1e-400",
        "1e999999999999999999999",
        "1e-999999999999999999999",
        "18446744073709551616",
        "-9223372036854775809",
        "-0",
        "1" * 5000,
        "9007199254740993.0",
    ],
)
def test_a_number_that_would_change_is_not_exact(literal: str) -> None:
    parsed = parse(f'{{"n": {literal}}}'.encode())
    assert not parsed.exact
    assert parsed.problem is None
    excerpt(parsed.value)


@pytest.mark.parametrize(
    "literal", ["1.0", "1", "1.50", "1e2", "0.1", "-0.0", "1E5", "0.10", "9007199254740992.0"]
)
def test_a_number_that_keeps_its_value_is_exact(literal: str) -> None:
    assert parse(literal.encode()).exact


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_what_is_not_json_but_common_is_read_and_reported(literal: str) -> None:
    parsed = parse(f"[{literal}]".encode())
    assert not math.isfinite(parsed.value[0])
    assert not parsed.exact
    assert parsed.problem == f"{literal} is not JSON"


def test_a_key_that_is_there_twice_is_not_exact() -> None:
    assert not parse(b'{"a": 1, "a": 2}').exact
    assert not parse(b'[{"b": {"a": 1, "\\u0061": 1}}]').exact


@pytest.mark.parametrize("text", ['"\\ud83c"', '{"\\uDFFF": 1}', '"\\udc00\\ud800"'])
def test_half_a_surrogate_pair_is_not_exact(text: str) -> None:
    parsed = parse(text.encode())
    assert not parsed.exact
    assert parsed.problem is None


def test_a_whole_surrogate_pair_is_exact() -> None:
    parsed = parse(b'"\\ud83c\\udf89 \\u00e9 \\\\ud800"')
    assert parsed.exact
    assert parsed.value == "🎉 é \\ud800"


@pytest.mark.parametrize("depth", [DEPTH_MAX - 1, DEPTH_MAX])
def test_nesting_that_can_be_stored_is_exact(depth: int) -> None:
    assert parse(b"[" * depth + b"]" * depth).exact


@pytest.mark.parametrize("depth", [DEPTH_MAX + 2, 500])
def test_deeper_nesting_is_read_but_not_exact(depth: int) -> None:
    parsed = parse(b"[" * depth + b"]" * depth)
    assert not parsed.exact
    assert parsed.problem is None


def test_many_brackets_are_not_depth() -> None:
    assert parse(json.dumps([[]] * 1000).encode()).exact


def test_nesting_without_end_is_a_problem() -> None:
    parsed = parse(b'{"a":' * 200_000 + b"1" + b"}" * 200_000)
    assert parsed.value is msgspec.UNSET
    assert parsed.problem == "nested too deeply to be read"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"\0" * 413, "not JSON"),
        (b'{"a": "\x00"}', "not JSON"),
        (b'{"a": 1', "not JSON"),
        (b"{} {}", "not JSON"),
        (b"'a'", "not JSON"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"\xff\xfe{\0}\0", "not UTF-8"),
    ],
)
def test_what_is_no_json_says_why(raw: bytes, reason: str) -> None:
    parsed = parse(raw)
    assert parsed.value is msgspec.UNSET
    assert parsed.problem is not None
    assert parsed.problem.startswith(reason)


def test_written_json_is_one_line_for_every_reader() -> None:
    text = "a\u2028b\u2029c\x85d\r\ne\x0b\x0c\x1cf\0"
    raw = to_json({text: text})
    assert json.loads(raw) == {text: text}
    assert len(raw.decode().splitlines()) == 1


def test_bytes_are_written_as_an_object() -> None:
    assert json.loads(to_json({"a": b"\xff"})) == {"a": {"base64": "/w=="}}
    with pytest.raises(TypeError):
        to_json(object())


def test_equal_values_have_one_canonical_text() -> None:
    assert canonical({"b": 1, "a": [1.0, "é"]}) == canonical({"a": [1.0, "é"], "b": 1})
    assert canonical(1) != canonical(1.0)


def test_an_excerpt_is_short() -> None:
    assert excerpt({"a": "x" * 1000}, 10) == '{"a": "xxx…'
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert excerpt(deep) == "nested too deeply to be shown"
    while deep:  # let go of it without recursion
        deep = deep[0]


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    assert storable("a\ud83cb\udfff") == "a\ufffdb\ufffd"
