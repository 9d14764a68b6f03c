"""Importing: session ids, a second time, conflicts, interruptions, company."""

from __future__ import annotations

import base64
import json
import os
import threading
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.formats import (
    FileNameError,
    NotAnImportError,
    UnknownFormatError,
    import_file,
    importing,
    reports,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sealog.formats import ImportReport

    Take = Callable[..., ImportReport]
    Events = Callable[..., list[sealog.Event]]

IMAGE = {"type": "base64", "media_type": "image/png"}


def record(number: int, **more: Any) -> dict[str, Any]:
    return {"role": "user", "text": f"message {number}", **more}


def image(number: int) -> dict[str, Any]:
    return record(number, image=IMAGE | {"data": base64.b64encode(b"\x89PNG%d" % number).decode()})


class TestSessions:
    def test_the_session_is_called_as_the_file(self, take: Take, store: sealog.Store) -> None:
        records = (record(0), record(1, at="2026-02-10T21:11:56.906Z"), record(2, at="2027-01-01"))
        report = take(*records, name="folder/chat_1-A.jsonl")
        assert report.session_id == "chat_1-A"
        header = store.open_session("chat_1-A").header
        assert header.created_at == "2026-02-10T21:11:56.906Z"
        assert header.labels == {"format": "jsonl", "file": "chat_1-A.jsonl"}

    def test_another_id_can_be_chosen(self, take: Take, store: sealog.Store) -> None:
        assert take(record(0), session_id="other").session_id == "other"
        assert store.session_ids() == ["other"]

    @pytest.mark.parametrize("name", ["my chat.jsonl", "a.b.jsonl", ".jsonl", "é.jsonl"])
    def test_a_name_that_is_no_id_is_refused_with_the_way_out(
        self, take: Take, store: sealog.Store, name: str
    ) -> None:
        with pytest.raises(FileNameError, match="--as") as caught:
            take(record(0), name=name)
        assert isinstance(caught.value, sealog.InvalidSessionIdError)
        assert caught.value.path.endswith(name)
        assert store.session_ids() == []
        assert take(record(0), name=name, session_id="fine").added == 1

    def test_a_name_that_is_not_unicode_is_no_obstacle(self, store: sealog.Store, tmp_path: Path) -> None:
        path = os.fsencode(tmp_path) + b"/\xff.jsonl"
        with open(path, "wb") as file:
            file.write(b'{"role":"user","text":""}\n')
        with pytest.raises(FileNameError):
            import_file(store, os.fsdecode(path))
        import_file(store, os.fsdecode(path), session_id="fine")
        assert store.open_session("fine").header.labels["file"] == "\ufffd.jsonl"

    @pytest.mark.parametrize("session_id", ["", "a b", "../a", "x" * 256])
    def test_a_chosen_id_that_is_none_is_refused(self, take: Take, session_id: str) -> None:
        with pytest.raises(sealog.InvalidSessionIdError) as caught:
            take(record(0), session_id=session_id)
        assert not isinstance(caught.value, FileNameError)

    def test_a_session_of_other_events_is_left_alone_unless_it_is_named(
        self, take: Take, store: sealog.Store
    ) -> None:
        session = store.create_session("chat")
        session.append("user-message", "mine")
        with pytest.raises(NotAnImportError, match="--as"):
            take(record(0))
        assert len(session) == 1
        assert take(record(0), session_id="chat").added == 1
        assert take(record(0), record(1)).added == 1
        assert [event.text for event in session.events()] == ["mine", "message 0", "message 1"]

    def test_an_empty_session_is_taken(self, take: Take, store: sealog.Store) -> None:
        store.create_session("chat")
        assert take(record(0)).added == 1

    def test_two_formats_can_share_a_session(self, take: Take, give: Callable[..., bytes]) -> None:
        take(record(0))
        take({"messages": [{"role": "user", "content": "x"}]}, name="chat.json", session_id="chat")
        assert json.loads(give(format="openai-chat")) == {"messages": [{"role": "user", "content": "x"}]}
        assert [json.loads(line).get("text") for line in give().splitlines()] == ["message 0", None]

    def test_events_of_others_between_imports_stay(
        self, take: Take, store: sealog.Store, give: Callable[..., bytes]
    ) -> None:
        take(record(0), record(1))
        store.open_session("chat").append("user-message", "mine", {"a": b"\xff"}, key="jsonl:x")
        assert take(record(0), record(1), record(2)).added == 1
        lines = [json.loads(line) for line in give().splitlines()]
        assert [line["text"] for line in lines] == ["message 0", "message 1", "mine", "message 2"]

    def test_a_folder_has_no_format_here(self, store: sealog.Store, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        with pytest.raises(UnknownFormatError):
            import_file(store, tmp_path / "folder")

    def test_a_device_is_not_read(self, store: sealog.Store) -> None:
        with pytest.raises(ValueError, match="neither a file nor a folder"):
            import_file(store, "/dev/null")

    def test_a_file_that_is_not_there_leaves_no_session(self, store: sealog.Store, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            import_file(store, tmp_path / "missing.jsonl")
        with pytest.raises(UnknownFormatError, match="nope"):
            import_file(store, __file__, format="nope")
        assert store.session_ids() == []


class TestAgain:
    def test_only_new_records_are_added(self, take: Take, events: Events) -> None:
        take(*map(record, range(5)))
        report = take(*map(record, range(8)))
        assert (report.records, report.added, report.known, report.events) == (8, 3, 5, 3)
        assert [event.key for event in events()] == [f"jsonl:{n}" for n in range(8)]

    def test_a_changed_record_is_a_conflict_and_changes_nothing(self, take: Take, events: Events) -> None:
        take(*map(record, range(5)))
        report = take(record(0), record(9), record(2), record(3, more=1), record(4), record(5))
        assert (report.added, report.known, report.conflicting) == (1, 3, 2)
        assert [(conflict.record, conflict.line) for conflict in report.conflicts] == [(1, 2), (3, 4)]
        assert [event.text for event in events()] == [f"message {n}" for n in range(6)]

    def test_another_file_of_the_same_name_is_noticed(self, take: Take, events: Events) -> None:
        take(*map(record, range(3)))
        others = [record(n, other=True) for n in range(5)]
        with pytest.raises(NotAnImportError, match="of another file"):
            take(*others)
        with pytest.raises(NotAnImportError, match="of another file"):
            take(*others, session_id="chat")
        assert len(events()) == 3
        assert take(*others[:3]).conflicting == 3
        assert take(record(0), *others[1:]).added == 2

    def test_another_spelling_of_the_same_json_is_no_conflict(self, take: Take) -> None:
        take(b'{"role":"user", "text":"\\u00e9","n":1.50}\n')
        assert take('{"n":1.5,"text":"é","role":"user"}\r\n'.encode()).known == 1
        assert take('{"n":1,"text":"é","role":"user"}\r\n'.encode()).conflicting == 1

    def test_records_that_are_gone_are_reported(self, take: Take) -> None:
        take(*map(record, range(5)))
        report = take(*map(record, range(3)))
        assert (report.known, report.added) == (3, 0)
        assert [problem.reason for problem in report.problems] == [
            "2 records that were imported before are not in the file any more"
        ]

    def test_a_sealed_session_takes_nothing_new_but_what_it_has(
        self, take: Take, store: sealog.Store
    ) -> None:
        take(record(0))
        store.open_session("chat").seal()
        assert take(record(0)).known == 1
        with pytest.raises(sealog.SessionSealedError):
            take(record(0), record(1))

    def test_a_read_only_store_can_be_compared(
        self, take: Take, store: sealog.Store, file: Callable[..., Path]
    ) -> None:
        take(record(0))
        with sealog.open(store.path, read_only=True) as reader:
            assert import_file(reader, file(record(0))).known == 1
            with pytest.raises(sealog.StoreReadOnlyError):
                import_file(reader, file(record(0), record(1)))
            with pytest.raises(sealog.StoreReadOnlyError):
                import_file(reader, file(record(0), name="other.jsonl"))

    def test_many_conflicts_and_problems_are_counted_and_some_named(
        self, take: Take, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reports, "DETAILS_MAX", 3)
        assert take(b"bad\n" * 9 + b'{"role":"user"}\n', format="jsonl").troubled == 9
        report = take(b"BAD\n" * 9 + b'{"role":"user"}\n', format="jsonl")
        assert (report.conflicting, report.troubled) == (9, 9)
        assert (len(report.conflicts), len(report.problems)) == (3, 3)


class TestBatches:
    @pytest.fixture
    def batches(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Record how many events each commit gets."""
        sizes: list[int] = []
        append_many = sealog.Session.append_many

        def counted(session: sealog.Session, events: Any, **options: Any) -> range:
            sizes.append(len(events))
            return append_many(session, events, **options)

        monkeypatch.setattr(sealog.Session, "append_many", counted)
        return sizes

    def test_some_hundred_records_share_a_commit(self, take: Take, batches: list[int]) -> None:
        take(*map(record, range(600)))
        assert batches == [256, 256, 88]

    def test_large_records_share_a_commit_up_to_a_limit(
        self, take: Take, batches: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(importing, "BATCH_BYTES", 1000)
        take(*(record(n, more="x" * 300) for n in range(6)))
        assert batches == [2, 2, 2]

    def test_nothing_is_written_for_what_is_known(self, take: Take, batches: list[int]) -> None:
        take(*map(record, range(300)))
        batches.clear()
        take(*map(record, range(300)))
        assert batches == []

    def test_a_file_stands_before_its_record(self, take: Take, events: Events) -> None:
        report = take(record(0), image(1), record(2), image(3))
        assert [event.kind for event in events()] == [
            "user-message",
            "attachment",
            "user-message",
            "user-message",
            "attachment",
            "user-message",
        ]
        assert (report.events, report.attachments) == (6, 2)

    @pytest.mark.parametrize("fail_at", range(1, 8))
    def test_an_interrupted_import_goes_on(
        self,
        take: Take,
        events: Events,
        give: Callable[..., bytes],
        monkeypatch: pytest.MonkeyPatch,
        fail_at: int,
    ) -> None:
        records = [record(0), image(1), record(2), image(3), image(4)]
        left = fail_at

        def failing(name: str) -> Callable[..., Any]:
            original = getattr(sealog.Session, name)

            def call(session: sealog.Session, *arguments: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left == 0:
                    raise OSError("unplugged")
                return original(session, *arguments, **options)

            return call

        with monkeypatch.context() as patch:
            patch.setattr(importing, "BATCH_RECORDS", 2)
            for name in ("attach", "append_many"):
                patch.setattr(sealog.Session, name, failing(name))
            with pytest.raises(OSError, match="unplugged"):
                take(*records)
        report = take(*records)
        assert report.added + report.known == 5
        assert [json.loads(line) for line in give().splitlines()] == records
        kinds = [event.kind for event in events()]
        assert (kinds.count("attachment"), kinds.count("user-message")) == (3, 5)

    def test_a_file_left_by_an_interrupted_import_is_no_obstacle(
        self, take: Take, give: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unplugged(*_: Any, **__: Any) -> range:
            raise OSError("unplugged")

        with monkeypatch.context() as patch:
            patch.setattr(sealog.Session, "append_many", unplugged)
            with pytest.raises(OSError, match="unplugged"):
                take(image(1))
        assert take(image(2)).attachments == 1
        assert json.loads(give()) == image(2)

    def test_progress_is_told_in_bytes(self, take: Take) -> None:
        steps: list[tuple[int, int]] = []
        for _ in range(2):
            steps.clear()
            take(*map(record, range(600)), progress=lambda done, total: steps.append((done, total)))
            assert len(steps) >= 3
            assert steps == sorted(steps)
            assert len({total for _, total in steps}) == 1
            assert steps[-1][0] == steps[-1][1]


class TestCompany:
    def test_two_imports_at_once_add_each_record_once(
        self, store: sealog.Store, file: Callable[..., Path], events: Events, give: Callable[..., bytes]
    ) -> None:
        records = [image(n) if n % 50 == 0 else record(n) for n in range(600)]
        path = file(*records)
        reports: list[ImportReport] = []
        start = threading.Barrier(4)

        def run() -> None:
            start.wait()
            reports.append(import_file(store, path))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(reports) == 4
        assert all(report.added + report.known == 600 for report in reports)
        assert not any(report.conflicting for report in reports)
        assert [json.loads(line) for line in give().splitlines()] == records
        assert len(events()) == 612

    def test_a_faster_import_is_noticed_at_the_commit(
        self, take: Take, store: sealog.Store, file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        append_many, path = sealog.Session.append_many, file(*map(record, range(3)), name="race/chat.jsonl")
        overtaken: list[ImportReport] = []

        def late(session: sealog.Session, events: Any, **options: Any) -> range:
            if not overtaken:
                monkeypatch.setattr(sealog.Session, "append_many", append_many)
                overtaken.append(import_file(store, path))
            return append_many(session, events, **options)

        monkeypatch.setattr(sealog.Session, "append_many", late)
        report = take(record(0), record(7), record(2), record(3))
        assert overtaken[0].added == 3
        assert (report.added, report.known, report.conflicting) == (1, 2, 1)

    def test_a_key_that_somebody_else_has_taken_is_an_error(self, take: Take, store: sealog.Store) -> None:
        store.create_session("chat").append("user-message", "mine", key="jsonl:0")
        with pytest.raises(sealog.KeyConflictError):
            take(record(0), session_id="chat")

    def test_data_that_look_imported_are_survived(
        self, take: Take, store: sealog.Store, give: Callable[..., bytes]
    ) -> None:
        session = store.create_session("chat")
        for key, data in (
            ("jsonl:1", {"format": "jsonl", "record": 10**15, "digest": "f" * 32, "json": 1}),
            ("jsonl:2", {"format": "jsonl", "record": -3, "digest": "f" * 32, "json": 1}),
            ("jsonl:3", {"format": "jsonl", "record": 0, "digest": "no"}),
            ("jsonl:4", {"format": "jsonl", "record": "0", "digest": "f" * 32}),
            ("other", {"format": "jsonl", "record": 5, "digest": "f" * 32}),
        ):
            session.append("user-message", "mine", data, key=key)
        assert take(record(0), session_id="chat").added == 1
        assert len(give(format="jsonl").splitlines()) == 6


def test_memory_does_not_depend_on_the_size_of_the_file(
    store: sealog.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "BATCH_BYTES", 64 * 1024)
    lines = [json.dumps({"role": "user", "content": "x" * 9000, "n": n}) for n in range(1500)]
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    (tmp_path / "document.json").write_text(f'{{"messages": [{",".join(lines)}]}}')
    for name in ("lines.jsonl", "document.json"):
        for _ in range(2):
            tracemalloc.start()
            report = import_file(store, tmp_path / name)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert report.records == 1500
            assert peak < 6_500_000
