"""Sessions that the original program wrote, and damaged ones with what it made of each."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sealog.formats import ksessionlog
from sealog.storage.errors import (
    AttachmentCorruptError,
    AttachmentMissingError,
    CorruptionError,
    FormatError,
    SealogError,
)

FOLDER = "golden/ksessionlog-0.2.1"
ROOT = Path(os.environ.get("SEALOG_SHARED", Path(__file__).parents[3] / "shared")) / FOLDER


def load(name: str, key: str) -> list[Any]:
    path = ROOT / name
    return json.loads(path.read_bytes())[key] if path.is_file() else []


CASES = load("manifest.json", "cases")
VARIANTS = load("broken/manifest.json", "variants")
REPAIRED = [
    v for v in VARIANTS if v["result"] == "opened" and v["log_changed"] and not v["later_valid_frame"]
]


@pytest.fixture
def root(shared: Path) -> Path:
    path = shared / FOLDER
    if not path.is_dir():
        pytest.skip(f"no golden sessions at {path}")
    return path


@pytest.fixture(params=CASES or [None], ids=lambda case: case and case["dir"])
def case(request: pytest.FixtureRequest, root: Path) -> Any:
    return request.param


@pytest.fixture(params=VARIANTS or [None], ids=lambda variant: variant and variant["name"])
def variant(request: pytest.FixtureRequest, root: Path) -> Any:
    return request.param


@pytest.fixture(params=REPAIRED or [None], ids=lambda variant: variant and variant["name"])
def repaired(request: pytest.FixtureRequest, root: Path) -> Any:
    return request.param


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def assert_same(session: ksessionlog.KSession, opened: dict[str, Any], objects: list[dict[str, Any]]) -> None:
    header = {
        "formatVersion": ksessionlog.FORMAT_VERSION,
        "sessionId": session.header.session_id,
        "createdAt": session.header.created_at,
    }
    events = [{"role": event.role, "text": event.text} for event in session.events]
    assert {"header": header, "events": events, "sealed": session.sealed} == opened
    assert [
        {
            "eventPosition": position,
            "fileName": found.file_name,
            "mediaType": found.media_type,
            "sha256": hashlib.sha256(found.bytes).hexdigest(),
            "size": len(found.bytes),
            "text": session.events[position].text,
        }
        for position, found in session.objects.items()
    ] == objects


class TestGoldenSessions:
    def test_are_read_as_the_original_read_them(self, case: Any, root: Path) -> None:
        session = ksessionlog.read(root / case["dir"], case["session_id"])
        assert_same(session, case["open"], case["objects"])
        assert (session.dropped_bytes, session.orphans) == (0, ())

    def test_are_written_byte_for_byte(self, case: Any, root: Path, tmp_path: Path) -> None:
        session = ksessionlog.read(root / case["dir"], case["session_id"])
        ksessionlog.write(session, tmp_path / "new")
        assert contents(tmp_path / "new") == contents(root / case["dir"])

    def test_are_listed(self, case: Any, root: Path) -> None:
        assert ksessionlog.session_ids(root / case["dir"]) == [case["session_id"]]


def expected_error(variant: dict[str, Any]) -> type[SealogError]:
    error = variant.get("error") or ""
    if variant["later_valid_frame"] is not None:
        return CorruptionError
    if "No such file" in error:
        return AttachmentMissingError
    if variant["name"].startswith("c_obj_"):
        return AttachmentCorruptError if "unsupported" not in error else FormatError
    written_so = ("at line 1", "identity differ", "session ID", "creation time", "Is a directory")
    return FormatError if any(part in error for part in written_so) else CorruptionError


class TestDamagedSessions:
    def test_give_what_the_original_gave(self, variant: Any, root: Path) -> None:
        directory = root / "broken" / variant["name"]
        before = contents(directory)
        if variant["result"] == "opened" and variant["later_valid_frame"] is None:
            session = ksessionlog.read(directory, variant["session_id"])
            assert_same(session, variant["open"], variant["objects"])
            assert len(session.events) == variant["events"]
            assert session.dropped_bytes == variant["log_size_before"] - variant["log_size_after"]
            assert list(session.orphans) == variant["files_removed"]
        else:
            with pytest.raises(SealogError) as raised:
                ksessionlog.read(directory, variant["session_id"])
            assert type(raised.value) is expected_error(variant)
            assert_same_reason(raised.value, variant)
        assert contents(directory) == before

    def test_are_written_as_the_original_left_them(self, repaired: Any, root: Path, tmp_path: Path) -> None:
        directory = root / "broken" / repaired["name"]
        ksessionlog.write(ksessionlog.read(directory, repaired["session_id"]), tmp_path)
        log = (tmp_path / f"{repaired['session_id']}.session-log").read_bytes()
        assert hashlib.sha256(log).hexdigest() == repaired["log_sha256_after"]


def assert_same_reason(error: SealogError, variant: dict[str, Any]) -> None:
    """The rules of the log and its objects have the original's words; JSON and the system have their own."""
    assert isinstance(error, (FormatError, AttachmentMissingError, AttachmentCorruptError))
    told = variant.get("error") or ""
    if variant["later_valid_frame"] is not None:
        assert f"byte {variant['later_valid_frame']}" in error.reason
    elif not any(part in told for part in ("at line 1", "os error", "whole buffer", "exceeds 255")):
        assert told in error.reason
