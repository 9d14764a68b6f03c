"""A reader written from docs/format.md alone reads the golden files: the document is enough.

The reader imports nothing of sealog. It shares the names of the document and nothing else with the library.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
from xxhash import xxh3_64_intdigest as xxh3

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "format.md").read_text("utf-8")
GOLDEN = ROOT / "tests" / "golden" / "v1"
NAMES = sorted(path.stem for path in (GOLDEN / "expected").iterdir())
KINDS = [
    *("system-message", "system-error", "user-message", "assistant-message"),
    *("tool-call", "tool-result", "tool-error", "object", "attachment"),
]


def low32(value: int) -> int:
    return value % 2**32


def read_log(path: Path) -> dict[str, Any]:
    """Read a log: its session header, events, seal, and where the valid frames end."""
    log = path.read_bytes()
    magic, major, _, check, salt = struct.unpack_from("<8sHHI16s", log)
    assert magic == b"\x89SLG\r\n\x1a\n"
    assert check == low32(xxh3(log[:12] + log[16:32]))
    assert major == 1
    seed = xxh3(log[:32])
    found: dict[str, Any] = {"events": [], "seal": None, "frames": []}
    offset, position, link = 32, 0, low32(seed)
    while offset + 32 <= len(log) and found["seal"] is None:
        header = log[offset : offset + 32]
        sync, check, digest, length, count, kind, flags, first, previous = struct.unpack(
            "<4sIQIHBBII", header
        )
        if sync != salt[:4] or check != low32(xxh3(header[8:], seed ^ offset)):
            break
        assert kind in (1, 2, 3)
        assert flags == 0
        payload = log[offset + 32 : offset + 32 + length]
        if (first, previous) != (position, link) or len(payload) < length or xxh3(payload, seed) != digest:
            break
        value = msgspec.msgpack.decode(payload)
        if kind == 1:
            found["header"] = value
        elif kind == 2:
            assert len(value) == count
            found["events"] += [read_event(event) for event in value]
        else:
            found["seal"] = value
            assert value["sha256"] == hashlib.sha256(log[:offset]).hexdigest()
            assert value["last_digest"] == found["frames"][-1][1]
        found["frames"].append((offset, digest, check))
        offset, position, link = offset + 32 + length, position + count, check
    return found | {
        "end": offset,
        "tail": log[offset:].rstrip(b"\0"),
        "seed": seed,
        "link": link,
        "salt": salt,
    }


def read_event(event: list[Any]) -> dict[str, Any]:
    kind, text, data, at = event[:4]
    if isinstance(kind, int):
        kind = KINDS[kind - 1] if kind <= len(KINDS) else f"sealog.kind-{kind}"
    return {"kind": kind, "text": text, "data": data, "at": at, "key": event[4] if len(event) > 4 else None}


def as_json(value: Any) -> Any:
    """Return a value as the expected files write it."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def expected(name: str) -> dict[str, Any]:
    """Return what sealog reads, as test_golden.py shows."""
    return json.loads((GOLDEN / "expected" / f"{name}.json").read_text("ascii"))


@pytest.fixture
def log(name: str) -> dict[str, Any]:
    return read_log(GOLDEN / "store" / name / "log")


def test_header_and_events(log: dict[str, Any], expected: dict[str, Any]) -> None:
    assert log["header"] == {field: expected[field] for field in ("session_id", "created_at", "labels")}
    assert as_json(log["events"]) == expected["events"]


def test_seal_and_tail(log: dict[str, Any], expected: dict[str, Any]) -> None:
    receipt = log["seal"] and {"events": log["seal"]["events"], "sha256": log["seal"]["sha256"]}
    assert receipt == expected["receipt"]
    assert len(log["tail"]) == expected["dropped_bytes"]


def test_head_mark(name: str, log: dict[str, Any]) -> None:
    lock = (GOLDEN / "store" / name / "lock").read_bytes()
    seed, end, position, check, digest = struct.unpack("<QQIIQ", lock[:32])
    assert (seed, digest) == (log["seed"], xxh3(lock[:24]))
    assert end <= log["end"]
    if end == log["end"]:
        assert (position, check) == (len(log["events"]), log["link"])
    assert json.loads(lock[64:256]).keys() == {"pid", "host", "started"}


def test_attachments(name: str, log: dict[str, Any], expected: dict[str, Any]) -> None:
    found = {}
    for position, event in enumerate(log["events"]):
        if event["kind"] == "attachment":
            data = (GOLDEN / "store" / name / "attachments" / str(position)).read_bytes()
            assert event["data"]["size_bytes"] == len(data)
            assert event["data"]["sha256"] == hashlib.sha256(data).hexdigest()
            found[str(position)] = data.hex()
    assert found == expected["attachments"]


def test_checkpoint() -> None:
    log = read_log(GOLDEN / "store" / "checkpoint" / "log")
    data = (GOLDEN / "store" / "checkpoint" / "checkpoints" / "index").read_bytes()
    magic, version, digest = struct.unpack_from("<8sIQ", data)
    assert (magic, version, digest) == (b"\x89SLC\r\n\x1a\n", 1, xxh3(data[20:]))
    salt, offset, end, position, check, frame_digest, body = msgspec.msgpack.decode(data[20:])
    assert salt == log["salt"]
    assert (offset, frame_digest, check) == log["frames"][2]
    assert (end, position) == (log["frames"][3][0], 2)
    offsets, positions = msgspec.msgpack.decode(body)
    assert (struct.unpack("<Q", offsets), struct.unpack("<I", positions)) == ((32,), (0,))


def test_store_marker() -> None:
    assert (GOLDEN / "store" / ".sealog").read_bytes() == b"sealog store 1\n"


def test_the_example_is_the_golden_file() -> None:
    (example,) = re.findall(r"```\n(00000000 .*?)\n```", DOCUMENT, re.DOTALL)
    assert f"{example}\n" == (GOLDEN / "hexdump" / "plain.txt").read_text("ascii")


def test_what_is_said_about_the_example_is_true() -> None:
    log = read_log(GOLDEN / "store" / "plain" / "log")
    assert f"(SEED `{log['seed']:x}`)" in DOCUMENT
    assert "frames at {:x}, {:x} and {:x} ".format(*(frame[0] for frame in log["frames"])) in DOCUMENT
    offset, digest, check = log["frames"][1]
    assert f"Frame at {offset:x}: sync `{log['salt'][:4].hex(' ')}`" in DOCUMENT
    assert f"header_check {check:08x}, digest {digest:x}, length 13 hex" in DOCUMENT
    assert f"previous {log['frames'][0][2]:x}" in DOCUMENT


def test_the_document_is_short() -> None:
    assert len(DOCUMENT.splitlines()) <= 150


def test_this_reader_notices_every_flipped_byte(tmp_path: Path) -> None:
    """In the file header nothing is read; in a frame what is before it."""
    whole = (GOLDEN / "store" / "plain" / "log").read_bytes()
    starts = [frame[0] for frame in read_log(GOLDEN / "store" / "plain" / "log")["frames"]]
    for offset in range(len(whole)):
        (tmp_path / "log").write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
        if offset < 32:
            with pytest.raises(AssertionError):
                read_log(tmp_path / "log")
        else:
            assert read_log(tmp_path / "log")["end"] == max(start for start in starts if start <= offset)
