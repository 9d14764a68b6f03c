"""The key index: candidate positions for an idempotency key."""

from __future__ import annotations

import random
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealog.storage import keys as keys_module
from sealog.storage.keys import CHUNK_ENTRIES_MAX, KeyIndex

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def index_of(keys: list[str]) -> KeyIndex:
    index = KeyIndex()
    for position, key in enumerate(keys):
        index.add(key, position)
    return index


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "CHUNK_ENTRIES_MAX", 4)


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let keys collide by their first letter."""
    monkeypatch.setattr(keys_module, "_prefix", lambda key: (ord(key[0]) << 32) & 0xFFFF_FFFF_0000_0000)


def test_an_empty_index_finds_nothing() -> None:
    assert list(KeyIndex().find("k")) == []
    assert len(KeyIndex()) == 0
    assert KeyIndex().covered == 0


@given(st.lists(KEYS, unique=True, max_size=200))
def test_it_finds_what_a_dict_finds(keys: list[str]) -> None:
    index, model = index_of(keys), {key: position for position, key in enumerate(keys)}
    assert len(index) == len(model)
    for key, position in model.items():
        assert position in list(index.find(key))
    for key in ("absent", "\0", "k" * 100):
        assert list(index.find(key)) == ([model[key]] if key in model else [])


def test_many_keys_over_many_chunks_are_found() -> None:
    keys = [f"key-{number}" for number in range(10 * CHUNK_ENTRIES_MAX)]
    index = index_of(keys)
    for position in range(0, len(keys), 97):
        assert position in list(index.find(keys[position]))
    assert sum(len(list(index.find(f"other-{number}"))) for number in range(1000)) <= 5


@pytest.mark.usefixtures("small_chunks", "colliding")
@given(st.lists(st.sampled_from("abcdef"), max_size=120))
def test_colliding_keys_give_all_candidates_lowest_first(letters: list[str]) -> None:
    """More of them than a chunk holds: the candidates of one key span chunks."""
    keys = [f"{letter}{position}" for position, letter in enumerate(letters)]
    index = index_of(keys)
    again = KeyIndex.from_bytes(index.to_bytes(), len(keys))
    for letter in "abcdefg":
        expected = [position for position, key in enumerate(keys) if key[0] == letter]
        assert list(index.find(letter)) == expected
        assert list(again.find(letter)) == expected


def test_only_the_high_half_of_the_hash_is_kept() -> None:
    index = KeyIndex()
    index.add("k", 2**32 - 2)
    assert list(index.find("k")) == [2**32 - 2]


def test_the_lowest_and_highest_hash_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "_prefix", lambda key: 0 if key == "low" else 0xFFFF_FFFF_0000_0000)
    index = KeyIndex()
    index.add("low", 0)
    index.add("high", 2**32 - 1)
    assert list(index.find("low")) == [0]
    assert list(index.find("high")) == [2**32 - 1]


def test_a_key_costs_less_than_sixteen_bytes() -> None:
    numbers = list(range(100_000))
    random.Random(1).shuffle(numbers)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        index = KeyIndex()
        for number in numbers:
            index.add(f"key-{number}", number)
        cost = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(index) == len(numbers)
    assert cost / len(numbers) < 16


@given(st.lists(KEYS, unique=True, max_size=100))
def test_it_comes_back_from_bytes(keys: list[str]) -> None:
    index = index_of(keys)
    again = KeyIndex.from_bytes(index.to_bytes(), len(keys))
    assert again.covered == len(keys)
    assert again.to_bytes() == index.to_bytes()
    assert all(list(again.find(key)) == list(index.find(key)) for key in keys)


def test_an_index_from_bytes_takes_more_keys() -> None:
    keys = [f"key-{number}" for number in range(3 * CHUNK_ENTRIES_MAX)]
    half = len(keys) // 2
    index = KeyIndex.from_bytes(index_of(keys[:half]).to_bytes(), half)
    for position in range(half, len(keys)):
        index.add(keys[position], position)
    assert index.to_bytes() == index_of(keys).to_bytes()


def test_bytes_that_are_no_entries_are_refused() -> None:
    with pytest.raises(ValueError, match="not a multiple of item size"):
        KeyIndex.from_bytes(bytes(7), 0)


def test_big_endian_machines_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of(["a", "b", "c"])
    little = index.to_bytes()
    monkeypatch.setattr(sys, "byteorder", "big")
    assert index.to_bytes() == b"".join(little[at : at + 8][::-1] for at in range(0, 24, 8))
    assert list(KeyIndex.from_bytes(index.to_bytes(), 3).find("b")) == [1]
