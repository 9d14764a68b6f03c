"""Sessions of a store into KSESSIONLOG folders."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import sealog
from sealog.formats import (
    NotExportableError,
    UnknownFormatError,
    export_directory,
    export_session,
    import_directory,
    ksessionlog,
)

from .ksession_kit import files, ksession

FORMAT = "ksessionlog"


class TestExport:
    def test_of_everything_comes_back_byte_for_byte(
        self, old: Path, tmp_path: Path, put: Any, bring: Any, send: Any
    ) -> None:
        put(ksession("a", events=30, sealed=True))
        put(ksession("a-1", events=0))
        put(ksession("a-1-1", events=5))
        bring()
        steps: list[tuple[int, int]] = []
        reports = send(progress=lambda done, total: steps.append((done, total)))
        assert [(report.session_id, report.records) for report in reports] == [
            ("a", 30),
            ("a-1", 0),
            ("a-1-1", 5),
        ]
        assert steps == [(1, 3), (2, 3), (3, 3)]
        assert files(tmp_path / "new") == files(old)
        assert [report.unchanged for report in send()] == [True] * 3

    def test_of_sealogs_own_sessions_says_what_is_dropped(
        self, store: sealog.Store, tmp_path: Path, send: Any
    ) -> None:
        session = store.create_session("own", "today", {"title": "t", "by": "me"})
        session.append("assistant-message", "hello")
        session.append("tool-call", "ls")
        session.attach(b"bytes", file_name="f", media_type="text/plain", text="a file")
        (report,) = send(sessions=["own"])
        assert report.dropped == ["at, the times of 3 events", "labels: by, title"]
        assert Path(report.target) == tmp_path / "new" / "own.session-log"
        found = ksessionlog.read(tmp_path / "new", "own")
        assert found.header == ksessionlog.KHeader("own", "today")
        assert [(event.role, event.text) for event in found.events] == [
            ("kennedy-message", "hello"),
            ("kennedy-tool-call", "ls"),
            ("pending-object", "a file"),
        ]
        assert found.objects == {2: ksessionlog.KObject("f", "text/plain", b"bytes")}

    def test_refuses_what_the_format_cannot_hold_and_names_it(
        self, store: sealog.Store, tmp_path: Path, send: Any
    ) -> None:
        with store.create_session("own") as session:
            session.append("user-message", "fine")
            session.append("user-message", "data", {"a": 1})
            session.append("user-message", "key", key="k1")
            session.append("mine.note", "kind", 5, key="k2")
            session.append("kennedy-message", "the name that it would have there")
            session.attach(b"", file_name="f", key="k3")
        store.create_session("good")
        good, bad = send()
        assert good.error is None
        assert bad.error.endswith(
            "1 (data), 2 (key 'k1'), 3 (kind 'mine.note', data, key 'k2'), 4 (kind 'kennedy-message'), "
            "5 (key 'k3')"
        )
        assert os.listdir(tmp_path / "new") == ["good.session-log"]
        with pytest.raises(NotExportableError) as raised:
            export_session(store.open_session("own"), tmp_path / "one", format=FORMAT)
        assert len(raised.value.events) == 5
        assert not (tmp_path / "one").exists()

    def test_again_after_the_session_has_grown_extends_the_log(
        self, store: sealog.Store, tmp_path: Path, old: Path, put: Any, bring: Any, send: Any
    ) -> None:
        put(ksession(events=3))
        bring()
        send()
        put(ksession(events=8, sealed=True))
        bring()
        (report,) = send()
        assert (report.error, report.unchanged) == (None, False)
        assert files(tmp_path / "new") == files(old)

    def test_another_session_in_the_way_is_replaced_only_if_wanted(
        self, store: sealog.Store, tmp_path: Path, old: Path, put: Any, bring: Any, send: Any
    ) -> None:
        put(ksession(events=3))
        bring()
        ksessionlog.write(ksession(events=8, created_at="other"), tmp_path / "new")
        before = files(tmp_path / "new")
        (report,) = send()
        assert "exists already" in report.error
        assert files(tmp_path / "new") == before
        (report,) = send(overwrite=True)
        assert report.error is None
        assert files(tmp_path / "new") == files(old)

    def test_of_one_session_makes_a_folder(
        self, store: sealog.Store, tmp_path: Path, old: Path, put: Any, bring: Any
    ) -> None:
        put(ksession(sealed=True))
        bring()
        report = export_session(store.open_session("s1"), tmp_path / "one", format=FORMAT)
        assert report.records == 4
        assert files(tmp_path / "one") == files(old)
        with (tmp_path / "file").open("wb") as file, pytest.raises(NotExportableError, match="a path"):
            export_session(store.open_session("s1"), file, format=FORMAT)

    def test_is_json_lines_if_nothing_is_asked_for(
        self, store: sealog.Store, put: Any, bring: Any, give: Any
    ) -> None:
        put(ksession(events=3))
        bring()
        kinds = [json.loads(line)["kind"] for line in give("s1").splitlines()]
        assert kinds == ["system-message", "attachment", "user-message"]

    def test_a_damaged_attachment_is_an_error(
        self, store: sealog.Store, put: Any, bring: Any, send: Any
    ) -> None:
        put(ksession(events=2))
        bring()
        Path(store.open_session("s1").read_attachment(1).path).write_bytes(b"123456789")
        assert "is damaged" in send()[0].error
        assert "is damaged" in bring()[0].error

    def test_needs_a_folder_and_a_format_of_folders(self, store: sealog.Store, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(NotADirectoryError):
            export_directory(store, tmp_path / "file", format=FORMAT)
        with pytest.raises(UnknownFormatError):
            export_directory(store, tmp_path / "new", format="html")

    def test_a_store_that_is_only_read_can_be_exported(
        self, store: sealog.Store, tmp_path: Path, old: Path, put: Any, bring: Any
    ) -> None:
        put(ksession(sealed=True))
        bring()
        with sealog.open(store.path, read_only=True) as reader:
            list(export_directory(reader, tmp_path / "new", format=FORMAT))
            assert files(tmp_path / "new") == files(old)
            put(ksession("s2"))
            with pytest.raises(sealog.StoreReadOnlyError):
                list(import_directory(reader, old, format=FORMAT))
