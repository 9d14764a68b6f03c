"""The places that docs/invariants.md names exist: code and tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sealog

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(sealog.__file__).parent  # the same folder, or that of an installed wheel
DOCUMENT = (ROOT / "docs" / "invariants.md").read_text("utf-8")
ENTRIES = dict(re.findall(r"^\*\*(INV-\d|W\d) (.*?)(?=^\*\*|^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL))


def places(entry: str) -> list[tuple[str, str]]:
    """Return file and name of each place that an entry names; the name is empty if the file is meant."""
    found: list[tuple[str, str]] = []
    path = ""
    for quoted in re.findall(r"`([^`]+)`", entry.partition("- code:")[2]):
        if quoted.endswith(".py"):
            path = quoted
            found.append((path, ""))
        else:
            found.append((path, quoted))
    return found


def test_all_promises_and_rules_are_there() -> None:
    assert list(ENTRIES) == [
        *(f"INV-{number}" for number in range(1, 8)),
        *(f"W{number}" for number in range(1, 5)),
    ]


@pytest.mark.parametrize("name", ENTRIES)
def test_the_places_of_an_entry_exist(name: str) -> None:
    named = places(ENTRIES[name])
    assert any(path.startswith("tests/") for path, _ in named)
    assert any(not path.startswith("tests/") for path, _ in named)
    for path, place in named:
        source = ((ROOT if path.startswith("tests/") else PACKAGE) / path).read_text("utf-8")
        for part in place.split(".") if place else []:
            assert re.search(rf"\b(class|def) {part}\b", source), f"{path} has no {place}"
