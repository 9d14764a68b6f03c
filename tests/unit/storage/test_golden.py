"""Golden files: what a released version wrote is read by this one, and this one still writes the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sealog.storage.attachments import Attachment
from sealog.storage.directory import open_session_directory, open_store_directory
from sealog.storage.repair import repair_session
from sealog.storage.verify import verify_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from sealog.storage.events import Event

    from .conftest import Kit

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
VERSIONS = sorted(path.name for path in GOLDEN.iterdir() if (path / "store").is_dir())
CASES = [
    (version, path.stem) for version in VERSIONS for path in sorted((GOLDEN / version / "expected").iterdir())
]
SEALED = {
    case
    for case in CASES
    if json.loads((GOLDEN / case[0] / "expected" / f"{case[1]}.json").read_text())["receipt"]
}
EACH = pytest.mark.parametrize(("version", "name"), CASES, ids=["/".join(case) for case in CASES])


@pytest.fixture
def golden_kit(version: str, name: str, kit: Kit) -> Kit:
    """Put one golden session into the store of the test."""
    shutil.copytree(GOLDEN / version / "store" / name, kit.path / name)
    return kit


@pytest.fixture
def expected(version: str, name: str) -> dict[str, Any]:
    """Return what the session must read as."""
    return json.loads((GOLDEN / version / "expected" / f"{name}.json").read_text("ascii"))


def as_json(maker: ModuleType, events: list[Event]) -> list[dict[str, Any]]:
    return [
        {"kind": e.kind, "text": e.text, "data": maker.to_json(e.data), "at": e.at, "key": e.key}
        for e in events
    ]


def files(path: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield str(file.relative_to(path)), file.read_bytes()


def test_there_are_golden_files_of_the_first_version() -> None:
    assert "v1" in VERSIONS
    assert {name for version, name in CASES if version == "v1"} >= {"plain", "sealed", "torn-tail"}


@EACH
def test_it_opens_for_writing(golden_kit: Kit, expected: dict[str, Any], golden_maker: ModuleType) -> None:
    with golden_kit.owner(expected["session_id"]) as owner:
        assert owner.log.recovered.status == expected["status"]
        assert owner.log.recovered.dropped_bytes == expected["dropped_bytes"]
        assert owner.log.recovered.reason == expected["reason"]
        assert owner.log.recovered.leftovers == ()
        assert owner.log.header.created_at == expected["created_at"]
        assert owner.log.header.labels == expected["labels"]
        assert as_json(golden_maker, owner.events()) == expected["events"]
        receipt = owner.log.receipt
        found = None if receipt is None else {"events": receipt.events, "sha256": receipt.sha256}
        assert found == expected["receipt"]


@EACH
def test_it_is_read_without_a_change(
    golden_kit: Kit, expected: dict[str, Any], golden_maker: ModuleType
) -> None:
    before = golden_kit.snapshot()
    reader = golden_kit.reader(expected["session_id"])
    events = list(reader.view.events(0, reader.head.position, reader.head))
    assert as_json(golden_maker, events) == expected["events"]
    assert (reader.receipt is None) == (expected["receipt"] is None)
    assert reader.tail_bytes == expected["dropped_bytes"]
    assert golden_kit.snapshot() == before


@pytest.mark.parametrize(("version", "name"), [case for case in CASES if case not in SEALED])
def test_it_goes_on(golden_kit: Kit, expected: dict[str, Any]) -> None:
    """A log of an earlier version takes new events, at the next position."""
    with golden_kit.owner(expected["session_id"]) as owner:
        assert owner.append("one more") == len(expected["events"])
        owner.finish()
    with golden_kit.owner(expected["session_id"]) as owner:
        assert owner.log.recovered.status == "clean"
        assert owner.texts() == [event["text"] for event in expected["events"]] + ["one more"]


@EACH
def test_its_attachments_are_intact(golden_kit: Kit, expected: dict[str, Any]) -> None:
    with golden_kit.owner(expected["session_id"]) as owner:
        found = {
            str(position): Attachment(
                expected["session_id"],
                str(golden_kit.path / expected["session_id"]),
                position,
                event,
                lambda: open_session_directory(golden_kit.store, expected["session_id"]),
            ).bytes.hex()
            for position, event in enumerate(owner.events())
            if event.kind == "attachment"
        }
    assert found == expected["attachments"]


@EACH
def test_it_verifies(golden_kit: Kit, expected: dict[str, Any]) -> None:
    report = verify_session(golden_kit.fs, golden_kit.store, expected["session_id"])
    assert report.problems == ()
    assert report.events == len(expected["events"])


@EACH
def test_repair_loses_nothing_of_it(
    golden_kit: Kit, expected: dict[str, Any], tmp_path: Path, golden_maker: ModuleType
) -> None:
    into = open_store_directory(golden_kit.fs, str(tmp_path / "into"), create=True)
    report = repair_session(golden_kit.store, expected["session_id"], into)
    assert (report.events, report.lost_events) == (len(expected["events"]), 0)
    assert [gap.size_bytes for gap in report.gaps] == [size for size in [expected["dropped_bytes"]] if size]
    shutil.rmtree(golden_kit.path / expected["session_id"])
    shutil.move(tmp_path / "into" / expected["session_id"], golden_kit.path)
    with golden_kit.owner(expected["session_id"]) as owner:
        assert as_json(golden_maker, owner.events()) == expected["events"]
    into.close()


@EACH
def test_the_hexdump_beside_it_shows_its_log(version: str, name: str, golden_maker: ModuleType) -> None:
    log = (GOLDEN / version / "store" / name / "log").read_bytes()
    assert (
        "\n".join(golden_maker.hexdump(log)) + "\n"
        == (GOLDEN / version / "hexdump" / f"{name}.txt").read_text()
    )


def test_this_version_writes_the_same_bytes(tmp_path: Path, golden_maker: ModuleType) -> None:
    """The newest folder is of the current format; see tests/golden/make.py."""
    golden_maker.make(tmp_path)
    assert dict(files(tmp_path)) == dict(files(GOLDEN / VERSIONS[-1]))


def test_the_layout_is_frozen(golden_maker: ModuleType) -> None:
    """Compatibility-sensitive: another layout needs another version, not another golden file."""
    assert golden_maker.layout() == (GOLDEN / VERSIONS[-1] / "layout.txt").read_text("ascii")
