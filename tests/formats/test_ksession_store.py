"""KSESSIONLOG folders into a store: what is taken, what is known, what is a conflict."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.formats import UnknownFormatError, import_directory, import_file, ksessionlog

from .ksession_kit import files, ksession
from .test_ksessionlog_golden import CASES, FOLDER, VARIANTS

if TYPE_CHECKING:
    from sealog.formats import ImportReport


def contents(session: sealog.Session) -> list[tuple[str, str]]:
    return [(event.kind, event.text) for event in session]


class TestGolden:
    @pytest.mark.parametrize("case", CASES or [None], ids=lambda case: case and case["dir"])
    def test_come_back_byte_for_byte(
        self, case: Any, shared: Path, tmp_path: Path, store: sealog.Store, bring: Any, send: Any
    ) -> None:
        if case is None:
            pytest.skip("no golden sessions")
        directory = shared / FOLDER / case["dir"]
        (report,) = bring(directory)
        assert report.error is None
        assert (report.session_id, report.added) == (case["session_id"], len(case["open"]["events"]))
        session = store.open_session(case["session_id"])
        assert session.header.created_at == case["open"]["header"]["createdAt"]
        assert session.is_sealed == case["open"]["sealed"]
        assert [found.position for found in session.attachments()] == [
            found["eventPosition"] for found in case["objects"]
        ]
        assert [found.error for found in send()] == [None]
        assert files(tmp_path / "new") == files(directory)

    def test_damaged_ones_are_taken_as_they_are_read_and_others_go_on(
        self, shared: Path, store: sealog.Store, bring: Any
    ) -> None:
        if not VARIANTS:
            pytest.skip("no golden sessions")
        for variant in VARIANTS:
            directory = shared / FOLDER / "broken" / variant["name"]
            before = files(directory)
            reports = bring(directory)
            taken = variant["result"] == "opened" and variant["later_valid_frame"] is None
            if taken:
                (report,) = reports
                assert report.error is None
                texts = [event["text"] for event in variant["open"]["events"]]
                assert [event.text for event in store.open_session(report.session_id)] == texts
                store.delete_session(report.session_id)
            else:
                assert all(report.error and not report.events for report in reports)
                assert store.session_ids() == []
            assert files(directory) == before


class TestImport:
    def test_takes_kinds_times_of_creation_seals_objects_and_positions(
        self, store: sealog.Store, put: Any, bring: Any
    ) -> None:
        put(ksession("a", events=9, sealed=True))
        put(ksession("a-1", events=2))
        steps: list[tuple[int, int]] = []
        first, second = bring(progress=lambda done, total: steps.append((done, total)))
        assert (first.session_id, first.records, first.added, first.attachments) == ("a", 9, 9, 3)
        assert (second.session_id, second.events) == ("a-1", 2)
        session = store.open_session("a")
        assert session.is_sealed
        assert not store.open_session("a-1").is_sealed
        assert session.header.created_at == "long ago"
        assert [event.kind for event in session] == [
            "system-message",
            "attachment",
            "user-message",
            "assistant-message",
            "attachment",
            "tool-result",
            "tool-error",
            "attachment",
            "system-message",
        ]
        found = session.read_attachment(4)
        assert (found.bytes, found.file_name, found.media_type, found.text) == (
            b"\x04" * 9,
            "4.bin",
            "application/x-thing",
            "file 4",
        )
        done, total = zip(*steps, strict=True)
        assert done[-1] == total[0] == sum(len(data) for data in files(Path(first.source).parent).values())

    def test_again_adds_only_what_is_new(self, store: sealog.Store, put: Any, bring: Any) -> None:
        put(ksession(events=4))
        bring()
        (report,) = bring()
        assert (report.added, report.known, report.conflicting, report.troubled) == (0, 4, 0, 0)
        put(ksession(events=8, sealed=True))
        (report,) = bring()
        assert (report.added, report.known, report.attachments) == (4, 4, 2)
        session = store.open_session("s1")
        assert session.is_sealed
        assert [found.position for found in session.attachments()] == [1, 4, 7]
        (report,) = bring()
        assert (report.added, report.known, report.error) == (0, 8, None)

    def test_what_has_changed_is_a_conflict_and_nothing_is_added(
        self, store: sealog.Store, put: Any, bring: Any
    ) -> None:
        put(ksession(events=3))
        bring()
        before = contents(store.open_session("s1"))
        changed = ksession(events=6)
        changed.objects[1] = ksessionlog.KObject("1.bin", "application/x-thing", b"other")
        put(changed)
        (report,) = bring()
        assert ([found.record for found in report.conflicts], report.added) == ([1], 0)
        put(ksession(events=3, created_at="later"))
        (report,) = bring()
        assert report.conflicts[0].record == ("createdAt",)
        assert contents(store.open_session("s1")) == before

    def test_a_sealed_session_and_a_longer_log_are_a_conflict(
        self, store: sealog.Store, put: Any, bring: Any
    ) -> None:
        put(ksession(events=3, sealed=True))
        bring()
        put(ksession(events=5))
        (report,) = bring()
        assert (report.conflicting, report.added, report.error) == (2, 0, None)
        assert "is sealed" in report.problems[0].reason

    def test_a_session_that_went_on_stays_as_it_is(self, store: sealog.Store, put: Any, bring: Any) -> None:
        put(ksession(events=3))
        bring()
        store.open_session("s1").append("user-message", "more")
        (report,) = bring()
        assert (report.known, report.conflicting, report.troubled) == (3, 0, 1)
        put(ksession(events=3, sealed=True))
        (report,) = bring()
        assert report.conflicting == 1
        assert not store.open_session("s1").is_sealed

    @pytest.mark.parametrize("stop", range(8))
    def test_one_that_was_interrupted_goes_on_where_it_stopped(
        self, stop: int, store: sealog.Store, put: Any, bring: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(ksession(events=8, sealed=True))
        calls = 0

        def failing(name: str) -> Any:
            real = getattr(sealog.Session, name)

            def call(self: sealog.Session, *arguments: Any, **options: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls > stop:
                    raise OSError(5, "the disk is gone")
                return real(self, *arguments, **options)

            return call

        with monkeypatch.context() as patch:
            for name in ("attach", "append_many", "seal"):
                patch.setattr(sealog.Session, name, failing(name))
            (report,) = bring()
        assert (report.error is None) == (stop > 6)
        (report,) = bring()
        assert (report.error, report.added + report.known) == (None, 8)
        session = store.open_session("s1")
        assert session.is_sealed
        assert [event.text for event in session] == [event.text for event in ksession(events=8).events]

    def test_of_two_at_a_time_one_does_the_work(self, store: sealog.Store, put: Any, bring: Any) -> None:
        put(ksession(events=40, sealed=True))
        found: list[ImportReport] = []
        threads = [threading.Thread(target=lambda: found.extend(bring())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [(report.error, report.conflicting) for report in found] == [(None, 0)] * 4
        session = store.open_session("s1")
        assert len(session) == 40
        assert session.is_sealed

    def test_what_cannot_be_held_is_refused_before_anything_is_written(
        self, store: sealog.Store, put: Any, bring: Any
    ) -> None:
        long_name = ksession("a")
        long_name.objects[1] = ksessionlog.KObject("n" * 5000, "t", b"")
        put(long_name)
        put(ksession("b"))
        first, second = bring()
        assert "events[1].file_name is longer than 4096 bytes" in first.error
        assert (second.error, second.added) == (None, 4)
        assert store.session_ids() == ["b"]

    def test_a_name_that_is_no_id_is_reported(self, old: Path, put: Any, bring: Any) -> None:
        put(ksession("b"))
        (old / "not an id.session-log").write_bytes(b"KSESSIONLOG\n")
        (old / "notes.txt").write_text("passed over")
        good, bad = bring()
        assert good.error is None
        assert "makes no session id ('not an id')" in bad.error

    def test_torn_tails_and_orphans_are_told(self, old: Path, put: Any, bring: Any) -> None:
        log = put(ksession(events=3))
        with log.open("ab") as file:
            file.write(b"torn")
        (old / "s1-7.pending-object").write_bytes(b"")
        (report,) = bring()
        reasons = [problem.reason for problem in report.problems]
        assert reasons == [
            "4 bytes at the end were no whole event: left out",
            "s1-7.pending-object belongs to no event: left out",
        ]

    def test_of_one_file_under_another_name(self, store: sealog.Store, put: Any, bring: Any) -> None:
        log = put(ksession("a"))
        report = import_file(store, log, session_id="b")
        assert (report.session_id, report.added, store.session_ids()) == ("b", 4, ["b"])
        put(ksession("c"))
        with pytest.raises(ValueError, match="2 sessions, not one"):
            bring(session_id="d")
        with pytest.raises(ValueError, match="2 sessions, not one"):
            import_file(store, log.parent)
        (report,) = bring(log, session_id="a b")
        assert "'a b' is not a session id" in report.error

    def test_the_format_is_told_from_the_content(self, store: sealog.Store, put: Any, old: Path) -> None:
        put(ksession("a"))
        assert [report.format for report in import_directory(store, old)] == ["ksessionlog"]
        with pytest.raises(UnknownFormatError, match="no format of folders fits"):
            import_directory(store, old, format="jsonl")

    def test_a_single_file_that_is_refused_raises(self, store: sealog.Store, put: Any, old: Path) -> None:
        put(ksession("a", events=2))
        (old / "a-1.pending-object").unlink()
        with pytest.raises(sealog.AttachmentMissingError):
            import_file(store, old / "a.session-log")
        assert store.session_ids() == []
