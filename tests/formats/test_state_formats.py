"""State files of older programs into a store and out of it again."""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.formats import (
    NotExportableError,
    export_directory,
    export_session,
    import_directory,
    import_file,
)
from sealog.projections import AcpSessions, HarnessMemory
from sealog.projections.acp import AgentEntry
from sealog.projections.harness import Message, MessageRole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sealog.formats import ImportReport

HARNESS, ACP = "harness-state", "acp-state"
EMPTY: dict[str, Any] = {
    "manifest": None,
    "feature_list": [],
    "recent_progress": [],
    "checkpoints": [],
    "transcript": [],
}


def said(text: str) -> bytes:
    return json.dumps({**EMPTY, "transcript": [{"role": "user", "content": text}]}).encode()


def relay(acp_session_id: str = "x", **fields: Any) -> bytes:
    return json.dumps({"schema_version": 1, "acp_session_id": acp_session_id, **fields}).encode()


def tree(directory: Path) -> dict[str, bytes]:
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old"
    path.mkdir()
    return path


@pytest.fixture
def put(old: Path) -> Callable[..., Path]:
    def write(name: str, data: bytes) -> Path:
        path = old / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def bring(store: sealog.Store, old: Path) -> Callable[..., list[ImportReport]]:
    def take(format_name: str, path: Path = old, **options: Any) -> list[ImportReport]:
        return list(import_directory(store, path, format=format_name, **options))

    return take


def hexed(key: str) -> str:
    return f"sessions/{key.encode().hex()}.json"


class TestGolden:
    @pytest.mark.parametrize("kind", ["harness", "acp"])
    def test_files_come_back_as_the_same_value(self, kind: str, shared: Path, tmp_path: Path) -> None:
        """All files that the older programs have left, except those that they themselves would refuse."""
        paths = sorted((shared / "golden" / kind).glob("*.json"))
        if not paths:
            pytest.skip(f"no scenarios of {kind} in {shared}")
        taken = 0
        for path in paths:
            old, new = tmp_path / path.stem / "old", tmp_path / path.stem / "new"
            old.mkdir(parents=True)
            for place, content in json.loads(path.read_bytes())["final_files"].items():
                if "/sessions/" in place and isinstance(content.get("text"), str):
                    file = old / "sessions" / place.rpartition("/sessions/")[2]
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(content["text"])
            with sealog.open(tmp_path / path.stem / "store") as store:
                reports = list(import_directory(store, old, format=f"{kind}-state"))
                exported = list(export_directory(store, new, format=f"{kind}-state"))
            assert all(report.source in (report.error or report.source) for report in reports)
            assert all(report.error is None for report in exported)
            refused = {report.source for report in reports if report.error}
            kept = {name: data for name, data in tree(old).items() if str(old / name) not in refused}
            written = tree(new)
            assert set(kept) == set(written), path.stem
            for name, data in kept.items():
                assert json.loads(written[name]) == json.loads(data), path.stem
            taken += len(kept)
        assert taken > 10


class TestHarness:
    def test_a_folder_is_imported_and_exported_in_the_same_layout(
        self, store: sealog.Store, tmp_path: Path, put: Any, bring: Any
    ) -> None:
        for key in ("s1", "", "../x", "ünï"):
            put(hexed(key), said(key or "nothing"))
        steps: list[tuple[int, int]] = []
        reports = bring(HARNESS, progress=lambda done, total: steps.append((done, total)))
        assert [(report.error, report.records, report.added) for report in reports] == [(None, 1, 1)] * 4
        assert steps[-1][0] == steps[-1][1] == sum(map(len, tree(tmp_path / "old").values()))
        memory = HarnessMemory(store)
        assert sorted(memory.session_ids()) == ["", "../x", "s1", "ünï"]
        assert memory.load_transcript_messages("s1") == [Message(MessageRole.USER, "s1")]
        exported = list(export_directory(store, tmp_path / "new", format=HARNESS))
        assert [report.error for report in exported] == [None] * 4
        old, new = tree(tmp_path / "old"), tree(tmp_path / "new")
        assert {name: json.loads(data) for name, data in new.items()} == {
            name: json.loads(data) for name, data in old.items()
        }
        again = list(export_directory(store, tmp_path / "new", format=HARNESS))
        assert [report.unchanged for report in again] == [True] * 4

    def test_again_changes_nothing_and_another_state_replaces(
        self, store: sealog.Store, put: Any, bring: Any
    ) -> None:
        put(hexed("s1"), said("one"))
        (first,) = bring(HARNESS)
        count = len(store.open_session(first.session_id))
        (report,) = bring(HARNESS)
        assert (report.added, report.known, report.events) == (0, 1, 0)
        assert len(store.open_session("s1")) == count
        put(hexed("s1"), said("two"))
        (report,) = bring(HARNESS)
        assert (report.added, report.known) == (1, 0)
        assert HarnessMemory(store).load_transcript_messages("s1") == [Message(MessageRole.USER, "two")]

    def test_a_bad_file_is_named_with_its_field_and_others_go_on(
        self, store: sealog.Store, put: Any, bring: Any
    ) -> None:
        entry = {"run_id": "r", "summary": "s", "created_at_secs": 1, "created_at_nanos": 10**9}
        bad = put(hexed("a"), json.dumps({**EMPTY, "recent_progress": [entry]}).encode())
        torn = put(hexed("b"), said("x")[:-5])
        put(hexed("c"), said("fine"))
        first, second, third = bring(HARNESS)
        assert first.error.startswith(f"{bad}: ")
        assert "recent_progress[0].created_at_nanos" in first.error
        assert second.error.startswith(f"{torn}: ")
        assert third.error is None
        assert store.session_ids() == ["c"]
        with pytest.raises(sealog.InvalidStateError) as raised:
            import_file(store, bad, format=HARNESS)
        assert raised.value.file == str(bad)

    @pytest.mark.parametrize("name", ["zz", "AB", "s1", "7", "ff", "61 62"])
    def test_a_name_that_is_no_hex_is_refused_unless_the_key_is_named(
        self, name: str, store: sealog.Store, put: Any
    ) -> None:
        path = put(f"sessions/{name}.json", said("x"))
        with pytest.raises(sealog.InvalidStateError, match="--as") as raised:
            import_file(store, path, format=HARNESS)
        assert raised.value.field == "file name"
        report = import_file(store, path, format=HARNESS, session_id="any key")
        assert report.session_id in store.session_ids()
        assert HarnessMemory(store).session_ids() == ["any key"]

    def test_other_files_of_the_folder_are_passed_over(self, put: Any, bring: Any, old: Path) -> None:
        put("sessions/notes.txt", b"")
        put(hexed("s1"), said("x"))
        (old / "sessions/61.json").mkdir()
        assert [report.error for report in bring(HARNESS)] == [None]
        assert [report.known for report in bring(HARNESS, old / "sessions")] == [1]

    def test_one_session_is_exported_to_a_file(self, store: sealog.Store, put: Any) -> None:
        report = import_file(store, put(hexed("s1"), said("x")), format=HARNESS)
        out = io.BytesIO()
        session = store.open_session(report.session_id)
        assert export_session(session, out, format=HARNESS).records == 1
        assert json.loads(out.getvalue()) == json.loads(said("x"))
        with pytest.raises(NotExportableError, match="none of acp's"):
            export_session(session, io.BytesIO(), format=ACP)

    def test_only_sessions_of_the_harness_are_exported(
        self, store: sealog.Store, tmp_path: Path, put: Any, bring: Any
    ) -> None:
        put(hexed("s1"), said("x"))
        bring(HARNESS)
        store.create_session("other").append("user-message", "x")
        AcpSessions(store).persist_session_id("s1", "x")
        reports = list(export_directory(store, tmp_path / "new", format=HARNESS))
        assert [report.session_id for report in reports] == ["s1"]
        (report,) = export_directory(store, tmp_path / "new", format=HARNESS, sessions=["other"])
        assert "it is none of harness's" in (report.error or "")

    def test_an_id_too_long_for_a_file_name_is_an_error(self, store: sealog.Store, tmp_path: Path) -> None:
        HarnessMemory(store).append_transcript_messages("n" * 200, [])
        (report,) = export_directory(store, tmp_path / "new", format=HARNESS)
        assert "bytes of a file name: 405" in (report.error or "")

    def test_another_state_in_the_way_is_replaced_only_if_wanted(
        self, store: sealog.Store, tmp_path: Path, put: Any, bring: Any
    ) -> None:
        path = put(hexed("s1"), said("one"))
        bring(HARNESS)
        HarnessMemory(store).append_transcript_messages("s1", [Message(MessageRole.USER, "more")])
        before = path.read_bytes()
        (report,) = export_directory(store, tmp_path / "old", format=HARNESS)
        assert "exists" in (report.error or "")
        assert path.read_bytes() == before
        (report,) = export_directory(store, tmp_path / "old", format=HARNESS, overwrite=True)
        assert (report.error, report.target) == (None, str(path))
        assert len(json.loads(path.read_bytes())["transcript"]) == 2


class TestAcp:
    def test_a_folder_is_imported_and_exported_in_the_same_layout(
        self, store: sealog.Store, tmp_path: Path, put: Any, bring: Any
    ) -> None:
        lines = [{"kind": "agent", "lines": ["done"]}]
        for target in ("s1", "a/b", "ünï ☃", "sessions"):
            put(f"sessions/{target}/state.json", relay(target, worker_state="busy", snapshot_entries=lines))
        put("sessions/state.json", relay("of the empty target", worker_state="busy"))
        assert [report.error for report in bring(ACP)] == [None] * 5
        sessions = AcpSessions(store)
        assert sorted(sessions.targets()) == ["", "a/b", "s1", "sessions", "ünï ☃"]
        assert sessions.load_session_id("a/b") == "a/b"
        assert sessions.look("s1", 5).snapshot_entries == [AgentEntry(["done"])]
        assert all(found.error is None for found in export_directory(store, tmp_path / "new", format=ACP))
        old, new = tree(tmp_path / "old"), tree(tmp_path / "new")
        assert {name: json.loads(data) for name, data in new.items()} == {
            name: json.loads(data) for name, data in old.items()
        }
        assert [report.known for report in bring(ACP)] == [1] * 5

    @pytest.mark.parametrize(
        ("path", "target"),
        [
            ("sessions/a/b", "a/b"),
            ("sessions/s1", "s1"),
            ("elsewhere/s1", "s1"),
            ("sessions/sessions", "sessions"),
        ],
    )
    def test_a_single_file_is_named_after_its_folders(
        self, path: str, target: str, store: sealog.Store, put: Any, bring: Any, old: Path
    ) -> None:
        import_file(store, put(f"{path}/state.json", relay()), format=ACP)
        assert AcpSessions(store).targets() == [target]
        if path.startswith("sessions/"):
            assert [report.known for report in bring(ACP, old / path)] == [1]

    @pytest.mark.parametrize(
        ("data", "field"),
        [
            (relay(" "), "acp_session_id"),
            (json.dumps({"schema_version": 2, "acp_session_id": "x"}).encode(), "schema_version"),
            (relay(worker_state="asleep"), "worker_state"),
            (b"{", ""),
        ],
    )
    def test_a_bad_file_is_named_with_its_field_and_others_go_on(
        self, data: bytes, field: str, store: sealog.Store, put: Any, bring: Any
    ) -> None:
        bad = put("sessions/a/state.json", data)
        put("sessions/b/state.json", relay())
        first, second = bring(ACP)
        assert first.error.startswith(f"{bad}: {field}")
        assert second.error is None
        assert AcpSessions(store).targets() == ["b"]

    def test_a_file_of_another_name_needs_a_target(self, store: sealog.Store, put: Any) -> None:
        path = put("saved.json", relay())
        with pytest.raises(sealog.InvalidStateError, match="--as"):
            import_file(store, path, format=ACP)
        import_file(store, path, format=ACP, session_id="")
        assert AcpSessions(store).targets() == [""]

    @pytest.mark.parametrize("target", ["..", "../../escaped", "/abs", "a//b", "a/./b", "x/", "a\0b", "."])
    def test_no_export_leaves_its_folder(self, target: str, store: sealog.Store, tmp_path: Path) -> None:
        AcpSessions(store).persist_session_id(target, "x")
        before = tree(tmp_path / "store")
        (report,) = export_directory(store, tmp_path / "new", format=ACP)
        assert "no file below the folder" in (report.error or "")
        assert tree(tmp_path / "new") == {}
        assert set(os.listdir(tmp_path)) == {"new", "store"}
        assert tree(tmp_path / "store") == before
        export_session(store.open_session(report.session_id), tmp_path / "one.json", format=ACP)
        assert json.loads((tmp_path / "one.json").read_bytes())["acp_session_id"] == "x"

    def test_more_than_a_thousand_entries_are_kept(self, store: sealog.Store, put: Any) -> None:
        entries = [{"kind": "user", "lines": [str(at)]} for at in range(1500)]
        path = put("sessions/s1/state.json", relay(snapshot_entries=entries))
        report = import_file(store, path, format=ACP)
        out = io.BytesIO()
        export_session(store.open_session(report.session_id), out, format=ACP)
        assert json.loads(out.getvalue())["snapshot_entries"] == entries

    def test_a_number_spelled_otherwise_is_another_state(
        self, store: sealog.Store, put: Any, bring: Any
    ) -> None:
        call = {"kind": "invocation", "call_id": "c", "status": "Pending", "invocation": {"n": 1}}
        put("sessions/s1/state.json", relay(snapshot_entries=[call]))
        bring(ACP)
        put("sessions/s1/state.json", relay(snapshot_entries=[{**call, "invocation": {"n": 1.0}}]))
        assert [report.added for report in bring(ACP)] == [1]
