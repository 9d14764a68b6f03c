"""Where exports go, and what they refuse."""

from __future__ import annotations

import io
import json
import os
import pickle
import textwrap
import types
from typing import TYPE_CHECKING, Any, Final

import pytest

import sealog
import sealog.formats
from sealog.formats import (
    NotExportableError,
    UnknownFormatError,
    chat,
    export_session,
    jsontext,
    lines,
    records,
    registry,
)
from sealog.formats.errors import FileNameError, NotAnImportError
from sealog.formats.records import Entry, File, Transcript
from sealog.formats.target import Target, Written
from sealog.storage.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sealog.formats import ImportReport
    from sealog.formats.source import Source

    Take = Callable[..., ImportReport]


@pytest.fixture
def session(take: Take, store: sealog.Store) -> sealog.Session:
    take({"type": "user", "message": {"role": "user", "content": "hi"}})
    return store.open_session("chat")


class TestTarget:
    def test_a_file_is_there_when_it_is_complete_and_only_for_its_owner(
        self, session: sealog.Session, tmp_path: Path
    ) -> None:
        old = os.umask(0)
        try:
            report = export_session(session, tmp_path / "out.jsonl")
        finally:
            os.umask(old)
        assert (report.session_id, report.format, report.records, report.skipped) == (
            "chat",
            "claude-code",
            1,
            0,
        )
        assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600
        assert sorted(os.listdir(tmp_path)) == ["chat.jsonl", "out.jsonl", "store"]

    def test_what_is_there_is_not_replaced_unasked(self, session: sealog.Session, tmp_path: Path) -> None:
        path = tmp_path / "out.jsonl"
        path.write_text("mine")
        with pytest.raises(FileExistsError):
            export_session(session, path)
        assert path.read_text() == "mine"
        export_session(session, str(path), overwrite=True)
        assert json.loads(path.read_text())["type"] == "user"
        with pytest.raises(FileExistsError):
            export_session(session, tmp_path, overwrite=True)

    def test_what_appears_meanwhile_is_not_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "out"

        def race() -> None:
            with Target(path) as target:
                target.file().write(b"ours")
                path.write_text("theirs")

        with pytest.raises(FileExistsError):
            race()
        assert path.read_text() == "theirs"
        assert os.listdir(tmp_path) == ["out"]

    @pytest.mark.parametrize("kind", ["file", "folder"])
    def test_nothing_is_left_of_an_export_that_failed(self, tmp_path: Path, kind: str) -> None:
        def fail() -> None:
            with Target(tmp_path / "out") as target:
                if kind == "file":
                    target.file().write(b"half")
                else:
                    (tmp_path / target.folder() / "half").write_bytes(b"")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        assert os.listdir(tmp_path) == []

    def test_an_open_file_stays_open_and_is_no_folder(self, session: sealog.Session) -> None:
        out = io.BytesIO()
        export_session(session, out)
        assert out.getvalue().endswith(b"\n")
        with Target(out) as target, pytest.raises(ValueError, match="folder"):
            target.folder()


class TestRefusals:
    def test_a_format_that_is_none(self, session: sealog.Session) -> None:
        with pytest.raises(UnknownFormatError) as caught:
            export_session(session, io.BytesIO(), format="nope")
        assert "html" in caught.value.known

    @pytest.mark.parametrize("name", ["codex", "openai-chat", "swe-agent"])
    def test_a_session_that_has_nothing_in_the_format(
        self, session: sealog.Session, tmp_path: Path, name: str
    ) -> None:
        with pytest.raises(NotExportableError):
            export_session(session, tmp_path / "out", format=name)
        assert not (tmp_path / "out").exists()

    def test_events_that_the_format_has_no_place_for_are_counted(self, session: sealog.Session) -> None:
        session.append("user-message", "mine")
        report = export_session(session, io.BytesIO())
        assert (report.records, report.skipped) == (1, 1)

    def test_a_file_that_a_record_needs_is_missed(self, take: Take, store: sealog.Store) -> None:
        source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
        take({"role": "user", "text": "", "image": source}, name="image.jsonl")
        session = store.open_session("image")
        os.unlink(session.read_attachment(0).path)
        with pytest.raises(sealog.AttachmentMissingError):
            export_session(session, io.BytesIO())

    @pytest.mark.parametrize(
        "data",
        [
            {"json": 1, "parts": 2},
            {"json": 1, "text_at": ["a"]},
            {"json": {"a": ""}, "files": [[["a"], "gone"]]},
            {"raw_file": "gone"},
            {},
        ],
    )
    def test_a_record_that_is_not_whole(self, store: sealog.Store, data: dict[str, Any]) -> None:
        session = store.create_session("damaged", labels={"format": "jsonl"})
        head = {"format": "jsonl", "record": 0, "digest": "0" * 32}
        session.append("user-message", "x", head | data, key="jsonl:0")
        with pytest.raises(NotExportableError):
            export_session(session, io.BytesIO())

    def test_a_part_of_another_record_is_no_part(self, store: sealog.Store) -> None:
        session = store.create_session("damaged", labels={"format": "jsonl"})
        head = {"format": "jsonl", "record": 0, "digest": "0" * 32, "json": [None], "parts": 2}
        session.append("user-message", "x", head, key="jsonl:0")
        session.append("user-message", "x", {"format": "jsonl", "record": 1, "part": 1, "at": [0], "json": 1})
        with pytest.raises(NotExportableError):
            export_session(session, io.BytesIO())

    @pytest.mark.parametrize(
        "error",
        [
            UnknownFormatError("x", "y", ["z"]),
            FileNameError("x", "y"),
            NotAnImportError("x", "y", "z"),
            NotExportableError("x", "y", "z"),
        ],
    )
    def test_errors_are_values(self, error: sealog.SealogError) -> None:
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
        assert isinstance(error, ValueError)


class Folders:
    """A format that is a folder and looks into the store: what a later module may be."""

    NAME = "folders"
    SUFFIX = ""

    def detect(self, source: Source) -> bool:
        return source.is_directory and os.path.exists(os.path.join(source.path, "index"))

    def read(self, source: Source) -> Transcript:
        assert source.store is not None
        assert source.sample == []
        assert source.outline is None
        names = sorted(set(os.listdir(source.path)) - {"index"})
        return Transcript(
            (self._entry(source, number, name) for number, name in enumerate(names)),
            {"sessions": str(len(source.store.session_ids()))},
            "long ago",
            "from-the-index",
        )

    def _entry(self, source: Source, number: int, name: str) -> Entry:
        digest = f"{number:032x}"
        data = {"format": self.NAME, "record": number, "digest": digest}
        path = os.path.join(source.path, name)
        return Entry(
            number,
            digest,
            [Event("user-message", name, data, key=f"folders:{number}")],
            [File(f"folders:{number}:file:{digest[:16]}", path, name, "text/plain")],
        )

    def write(self, session: sealog.actors.readable.ReadableSession, target: Target) -> Written:
        folder, written = target.folder(), Written()
        for attachment in session.attachments():
            with open(os.path.join(folder, attachment.file_name), "wb") as file:
                file.write(attachment.bytes)
            written.records += 1
        return written


class TestRegistry:
    def test_a_format_can_be_a_folder(
        self, store: sealog.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        module: registry.Reader = Folders()
        monkeypatch.setattr(registry, "READERS", (*registry.READERS, module))
        monkeypatch.setattr(registry, "WRITERS", (*registry.WRITERS, module))
        folder = tmp_path / "any name"
        folder.mkdir()
        for name in ("index", "a", "b"):
            (folder / name).write_text(name)
        report = sealog.formats.import_file(store, folder)
        assert (report.session_id, report.format, report.added, report.attachments) == (
            "from-the-index",
            "folders",
            2,
            2,
        )
        session = store.open_session("from-the-index")
        assert session.header.created_at == "long ago"
        assert session.header.labels == {"format": "folders", "file": "any name", "sessions": "0"}
        assert sealog.formats.import_file(store, folder).known == 2
        export_session(session, tmp_path / "out", format="folders")
        assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == {"a": "a", "b": "b"}
        assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700

    def test_the_example_of_the_documentation_is_a_format(
        self, take: Take, events: Any, give: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = (repository / "docs" / "formats.md").read_text().partition("## Adding a format")[2]
        module = types.ModuleType("myagent")
        for known in (chat, jsontext, lines, records):
            vars(module).update({name: vars(known)[name] for name in known.__all__})
        vars(module).update(Final=Final, Role=sealog.Role)
        code = textwrap.dedent(text.split("```")[1].removeprefix("python"))
        exec("from __future__ import annotations\n" + code, vars(module))
        monkeypatch.setattr(registry, "READERS", (module, *registry.READERS))
        monkeypatch.setattr(registry, "WRITERS", (module, *registry.WRITERS))
        lines_of_mine = [{"agent": "mine", "said": "hi", "n": 1}, {"type": "end"}]
        assert take(*lines_of_mine).format == "myagent"
        assert [(event.kind, event.text) for event in events()] == [
            ("user-message", "hi"),
            ("myagent.end", '{"type": "end"}'),
        ]
        assert [json.loads(line) for line in give().splitlines()] == lines_of_mine

    def test_names_are_unique(self) -> None:
        names = [module.NAME for module in registry.WRITERS]
        assert len(set(names)) == len(names)
        for module in registry.READERS:
            assert registry.find_reader(module.NAME) is module
            assert registry.find_writer(module.NAME) is module

    def test_what_is_exported_by_default(self, store: sealog.Store) -> None:
        session = store.create_session("odd", labels={"format": "html"})
        assert export_session(session, io.BytesIO()).format == "jsonl"

    def test_public_names_are_there(self) -> None:
        for name in sealog.formats.__all__:
            assert hasattr(sealog.formats, name)
        assert sorted(
            sealog.formats.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)
        ) == list(sealog.formats.__all__)
