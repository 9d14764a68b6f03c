"""Replaying recorded scenarios: what both replayers share."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("SEALOG_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "golden"


def scenarios(kind: str) -> list[Any]:
    """List the scenarios of a kind, as parameters; without reference material one that is skipped."""
    found = sorted((FOLDER / kind).glob("*.json"))
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(f"no reference material at {FOLDER / kind}"))]
    return [pytest.param(path, id=path.stem) for path in found]


def read(path: Path) -> dict[str, Any]:
    """Read a scenario."""
    scenario: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return scenario


def raw(step: dict[str, Any]) -> bytes:
    """Return the bytes that a step writes."""
    if "hex" in step:
        return bytes.fromhex(step["hex"])
    if "text" in step:
        return step["text"].encode()
    entries = (step["entry"].replace("%i", str(index)) for index in range(step["count"]))
    return (step["before"] + ",".join(entries) + step["after"]).encode()


def agree(actual: Any, expected: Any) -> bool:
    """Compare JSON values; a long list is given as its summary."""
    if isinstance(expected, dict):
        if isinstance(expected.get("summary"), dict):
            return summary(actual) == {
                name: expected["summary"][name] for name in ("count", "first", "last", "sha256_canonical")
            }
        return (
            isinstance(actual, dict)
            and actual.keys() == expected.keys()
            and all(agree(actual[name], value) for name, value in expected.items())
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(agree, actual, expected))
    return type(actual) is type(expected) and actual == expected


def summary(values: list[Any]) -> dict[str, Any]:
    """Return what a summary says of a list."""
    canonical = json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return {
        "count": len(values),
        "first": values[0],
        "last": values[-1],
        "sha256_canonical": hashlib.sha256(canonical.encode()).hexdigest(),
    }


def same_file(actual: bytes, expected: dict[str, Any]) -> bool:
    """Compare a state file with the recorded one: to the byte if the older program wrote that one."""
    if "json" in expected:
        return agree(json.loads(actual), expected["json"])
    text = expected.get("text")
    if isinstance(text, dict):
        return hashlib.sha256(actual).hexdigest() == text["summary"]["sha256"]
    if text.startswith("{\n"):
        return actual == text.encode()
    return agree(json.loads(actual), json.loads(text))
