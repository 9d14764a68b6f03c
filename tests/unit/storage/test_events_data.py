"""What the `data` of an event may hold, and how an error names the place of what it may not."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import math
from typing import Any, NamedTuple

import msgspec
import pytest

from sealog.storage.errors import InvalidEventError
from sealog.storage.events import DATA_DEPTH_MAX, decode_body, encode_event


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Huge(enum.IntEnum):
    NUMBER = 2**64


class Point(msgspec.Struct):
    x: Any
    y: Any = 2


class Renamed(msgspec.Struct, rename="camel"):
    some_name: Any


class Tagged(msgspec.Struct, tag="shape", tag_field="type"):
    sides: int


class Row(msgspec.Struct, array_like=True):
    a: int
    b: int


class Sparse(msgspec.Struct, omit_defaults=True):
    a: int = 1
    b: int | msgspec.UnsetType = msgspec.UNSET


class Sides(NamedTuple):
    a: int
    b: int


def stored(data: Any) -> Any:
    return decode_body(encode_event("note", "t", data, 0, None)).data


def refused(data: Any) -> InvalidEventError:
    with pytest.raises(InvalidEventError) as caught:
        encode_event("note", "t", data, 0, None)
    return caught.value


def nested(levels: int) -> Any:
    data: Any = 1
    for level in range(levels):
        data = [data] if level % 2 else {"a": data}
    return data


@pytest.mark.parametrize(
    "data",
    [
        None,
        True,
        False,
        0,
        -1,
        2**63 - 1,
        2**63,
        2**64 - 1,
        -(2**63),
        0.0,
        -0.0,
        1e308,
        5e-324,
        "",
        "text \U0001f600 \x00 é",
        b"",
        b"\x00\xff",
        [],
        {},
        {"": {"": []}},
        [1, [2, [3, {"a": b"x"}]]],
    ],
    ids=repr,
)
def test_plain_values_come_back_with_their_type(data: Any) -> None:
    again = stored(data)
    assert again == data
    assert type(again) is type(data)
    assert not isinstance(data, float) or math.copysign(1, again) == math.copysign(1, data)


@pytest.mark.parametrize(
    ("data", "plain"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        (Sides(1, 2), [1, 2]),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.defaultdict(list, a=[1]), {"a": [1]}),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        (Point(1), {"x": 1, "y": 2}),
        (Point(Point(b"x", (1, 2))), {"x": {"x": b"x", "y": [1, 2]}, "y": 2}),
        ([Point(0, [Point(None)])], [{"x": 0, "y": [{"x": None, "y": 2}]}]),
        (Renamed({"some_name": 1}), {"someName": {"some_name": 1}}),
        (Tagged(3), {"type": "shape", "sides": 3}),
        (Row(1, 2), [1, 2]),
        (Sparse(), {}),
        (Sparse(5, 6), {"a": 5, "b": 6}),
        ([Sparse(b=3)], [{"b": 3}]),
        (Point({Colour.RED: Level.HIGH}), {"x": {"red": 3}, "y": 2}),
    ],
    ids=repr,
)
def test_richer_values_come_back_as_plain_ones(data: Any, plain: Any) -> None:
    assert stored(data) == plain


def test_a_struct_can_be_decoded_again() -> None:
    body = encode_event("note", "t", Point(Renamed(b"\xff"), [1.5]), 0, None)
    event = decode_body(body)
    assert event.decode(Point) == Point({"someName": b"\xff"}, [1.5])


@pytest.mark.parametrize(
    ("data", "place", "reason"),
    [
        (2**64, "data", "outside of 64 bits"),
        (-(2**63) - 1, "data", "64 bits"),
        ([0, 2**70], "data[1]", "outside of 64 bits"),
        (Huge.NUMBER, "data", "outside of 64 bits"),
        (Point(Huge.NUMBER), "data.x", "outside of 64 bits"),
        (math.nan, "data", "nan"),
        ({"a": [math.inf]}, "data.a[0]", "inf"),
        (Point(-math.inf), "data.x", "-inf"),
        ({1, 2}, "data", "builtins.set"),
        (object, "data", "builtins.type"),
        (bytearray(b"x"), "data", "bytearray"),
        (memoryview(b"x"), "data", "memoryview"),
        (1j, "data", "complex"),
        (decimal.Decimal(1), "data", "decimal.Decimal"),
        ({"when": dt.date(2026, 1, 1)}, "data.when", "datetime.date"),
        (Point(dt.timedelta(1)), "data.x", "datetime.timedelta"),
        (msgspec.UNSET, "data", "UnsetType"),
        (range(3), "data", "range"),
        ({"a": {"b": (0, {"c": frozenset()})}}, "data.a.b[1].c", "frozenset"),
        ({1: "x"}, "data", "has the key 1; keys must be str"),
        ({"a": [{None: 1}]}, "data.a[0]", "has the key None"),
        ({b"x": 1}, "data", "has the key b'x'"),
        (Point({(): 1}), "data.x", "has the key ()"),
        ({"a": ["x", "\ud800"]}, "data.a[1]", "lone surrogate"),
        ({"a": {"\udfff": 1}}, "data.a key '\\udfff'", "lone surrogate"),
        (Point("ab\ud800"), "data.x", "character 2"),
    ],
    ids=repr,
)
def test_what_cannot_be_stored_is_refused_with_its_place(data: Any, place: str, reason: str) -> None:
    error = refused(data)
    assert error.place == place
    assert reason in error.reason
    assert str(error) == f"event not stored: {error.place} {error.reason}"


def test_subclasses_that_would_lose_what_makes_them_special_are_refused() -> None:
    class Money(int):
        pass

    class Name(str):
        __slots__ = ()

    assert refused(Money(3)).place == "data"
    assert refused([Name("x")]).place == "data[0]"
    assert refused({Name("x"): 1}).place == "data"


def test_data_may_be_200_levels_deep() -> None:
    assert stored(nested(DATA_DEPTH_MAX)) == nested(DATA_DEPTH_MAX)


def test_deeper_data_is_refused() -> None:
    assert "200 levels" in refused(nested(DATA_DEPTH_MAX + 1)).reason
    assert "200 levels" in refused(nested(100_000)).reason


def test_deep_structs_are_limited_too() -> None:
    data: Any = 1
    for _ in range(DATA_DEPTH_MAX + 1):
        data = Point(data)
    assert "200 levels" in refused(data).reason


@pytest.mark.parametrize("make", [list, dict, lambda: Point(None)], ids=["list", "dict", "struct"])
def test_data_that_contains_itself_is_refused(make: Any) -> None:
    data = make()
    if isinstance(data, list):
        data.append(data)
    elif isinstance(data, dict):
        data["a"] = data
    else:
        data.x = [data]
    assert "contains itself" in refused(data).reason


def test_what_is_changed_later_is_not_stored() -> None:
    """The bytes are made at the call."""
    data = {"a": [1]}
    body = encode_event("note", "t", data, 0, None)
    data["a"].append(2)
    assert decode_body(body).data == {"a": [1]}


def test_every_read_gives_a_fresh_copy() -> None:
    body = encode_event("note", "t", {"a": [1]}, 0, None)
    decode_body(body).data["a"].append(2)
    assert decode_body(body).data == {"a": [1]}
