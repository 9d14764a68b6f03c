"""Attachments: where they come from, what they are called, and what becomes of them."""

from __future__ import annotations

import hashlib
import io
import os
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.actors import session as session_module

from .kit import Kit, Task, until_lending

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = b"\x89PNG" + bytes(range(256)) * 10


@pytest.fixture
def session(kit: Kit) -> sealog.Session:
    return kit.store().create_session("s")


def as_path(path: Path) -> Any:
    return path


def as_text(path: Path) -> Any:
    return str(path)


def as_file(path: Path) -> Any:
    return path.open("rb")


def as_raw_file(path: Path) -> Any:
    return path.open("rb", buffering=0)


@pytest.mark.parametrize("form", [as_path, as_text, as_file, as_raw_file])
def test_a_file_has_the_name_and_type_of_its_path(
    session: sealog.Session, tmp_path: Path, form: Callable[[Path], Any]
) -> None:
    path = tmp_path / "Bild mit Leerzeichen.png"
    path.write_bytes(BYTES)
    source = form(path)
    position = session.attach(source, text="a picture")
    if hasattr(source, "close"):
        assert not source.closed
        source.close()
    attachment = session.read_attachment(position)
    assert attachment.position == position == 0
    assert attachment.file_name == "Bild mit Leerzeichen.png"
    assert attachment.media_type == "image/png"
    assert attachment.text == "a picture"
    assert attachment.size_bytes == len(BYTES)
    assert attachment.sha256 == hashlib.sha256(BYTES).hexdigest()
    assert attachment.bytes == BYTES
    assert Path(attachment.path).read_bytes() == BYTES
    assert path.read_bytes() == BYTES


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, io.BytesIO])
def test_bytes_have_a_name_and_type_of_no_meaning(session: sealog.Session, form: Any) -> None:
    attachment = session.read_attachment(session.attach(form(BYTES)))
    assert attachment.bytes == BYTES
    assert attachment.file_name == "attachment"
    assert attachment.media_type == "application/octet-stream"
    assert attachment.text == ""


def test_names_and_types_may_be_given(session: sealog.Session) -> None:
    named = session.read_attachment(session.attach(BYTES, file_name="notes.txt"))
    assert (named.file_name, named.media_type) == ("notes.txt", "text/plain")
    typed = session.read_attachment(session.attach(BYTES, file_name="notes.txt", media_type="x/y"))
    assert (typed.file_name, typed.media_type) == ("notes.txt", "x/y")
    free = session.read_attachment(session.attach(BYTES, file_name="../../etc/passwd"))
    assert free.file_name == "../../etc/passwd"  # a name, and never a path
    assert Path(free.path).name == "2"


def test_an_attachment_is_an_event_like_others(session: sealog.Session) -> None:
    session.append("m", "before")
    session.attach(BYTES, text="here", file_name="a.bin")
    session.append("m", "after")
    event = session[1]
    assert event.kind == sealog.Role.ATTACHMENT
    assert event.text == "here"
    assert event.data["file_name"] == "a.bin"
    assert [attachment.position for attachment in session.attachments()] == [1]


def test_an_empty_attachment_is_one(session: sealog.Session, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for source in (b"", tmp_path / "empty", io.BytesIO()):
        attachment = session.read_attachment(session.attach(source))
        assert attachment.bytes == b""
        assert attachment.size_bytes == 0
        with attachment.open() as file:
            assert file.read() == b""


def test_an_open_attachment_is_read_as_a_file(session: sealog.Session) -> None:
    attachment = session.read_attachment(session.attach(BYTES))
    with attachment.open() as file:
        assert file.read(4) == BYTES[:4]
        assert file.tell() == 4
        assert file.seek(-10, os.SEEK_END) == len(BYTES) - 10
        assert file.read() == BYTES[-10:]
        file.seek(0)
        assert file.read() == BYTES
    assert file.closed


def test_a_large_attachment_is_streamed(session: sealog.Session, tmp_path: Path) -> None:
    size = 40 * 1024 * 1024
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(size)
    tracemalloc.start()
    try:
        attachment = session.read_attachment(session.attach(path))
        with attachment.open() as stored:
            while stored.read(1024 * 1024):
                pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert attachment.size_bytes == size
    assert peak < 8 * 1024 * 1024


def test_attachments_are_read_after_a_reopening_and_without_a_writer(
    kit: Kit, session: sealog.Session
) -> None:
    for number in range(3):
        session.append("m", "between")
        session.attach(b"%d" % number)
    kit._stores[0].close()
    for options in ({}, {"read_only": True}):
        store = kit.store(**options)
        again = store.open_session("s")
        assert [(a.position, a.bytes) for a in again.attachments()] == [(1, b"0"), (3, b"1"), (5, b"2")]
        store.close()


# -- what is refused


@pytest.mark.parametrize("name", ["", " ", "\n\t", "\ud800", "x" * 5000, 7, b"name"], ids=repr)
@pytest.mark.parametrize("field", ["file_name", "media_type"])
def test_a_blank_or_unstorable_name_or_type_is_refused(
    kit: Kit, session: sealog.Session, field: str, name: Any
) -> None:
    before = kit.snapshot()
    with pytest.raises(sealog.InvalidEventError) as caught:
        session.attach(BYTES, **{field: name})
    assert caught.value.place == field
    assert field in str(caught.value)
    assert kit.snapshot() == before
    assert session.attach(BYTES) == 0


@pytest.mark.parametrize("bad", [{"text": None}, {"text": "\ud800"}, {"key": 7}], ids=repr)
def test_a_text_or_key_that_cannot_be_stored_is_refused_before_anything_is_copied(
    kit: Kit, session: sealog.Session, bad: dict[str, Any]
) -> None:
    before = kit.snapshot()

    class Untouched(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise AssertionError("read")

    with pytest.raises(sealog.InvalidEventError):
        session.attach(Untouched(), **bad)
    assert kit.snapshot() == before


@pytest.mark.parametrize("source", [None, 7, ["a"], object()], ids=repr)
def test_a_source_of_another_kind_is_refused(kit: Kit, session: sealog.Session, source: Any) -> None:
    before = kit.snapshot()
    with pytest.raises(sealog.InvalidEventError) as caught:
        session.attach(source)
    assert caught.value.place == "source"
    assert kit.snapshot() == before


def test_a_file_in_text_mode_is_refused_and_leaves_nothing(
    kit: Kit, session: sealog.Session, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("text")
    with (tmp_path / "text").open() as file, pytest.raises(sealog.InvalidEventError, match="'rb'"):
        session.attach(file)  # type: ignore[arg-type]
    assert not list((kit.path / "s").glob("attachments/*"))
    assert session.append("m", "x") == 0


def failing_source(error: Exception) -> Any:
    class Failing(io.BytesIO):
        given = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.given += 1
            if self.given == 3:
                raise error
            return b"x" * 1000

    return Failing()


@pytest.mark.parametrize("error", [OSError("source"), ValueError("source"), ConnectionError("source")])
def test_a_source_that_fails_halfway_leaves_nothing(
    kit: Kit, session: sealog.Session, error: Exception
) -> None:
    with pytest.raises(type(error), match="source"):
        session.attach(failing_source(error))
    assert not list((kit.path / "s").glob("attachments/*"))
    assert session.attach(BYTES) == 0


@pytest.mark.parametrize("what", ["missing", "folder"])
def test_a_path_that_cannot_be_read_is_an_os_error(
    kit: Kit, session: sealog.Session, tmp_path: Path, what: str
) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises((FileNotFoundError, IsADirectoryError)) as caught:
        session.attach(tmp_path / what)
    assert what in str(caught.value)
    assert not list((kit.path / "s").glob("attachments/*"))
    assert session.append("m", "x") == 0


def test_positions_without_an_attachment_say_why(session: sealog.Session) -> None:
    session.append("m", "x")
    for position, reason in (
        (0, "event there is a m"),
        (1, "1 events"),
        (-1, "1 events"),
        (2**40, "1 events"),
    ):
        with pytest.raises(sealog.AttachmentMissingError) as caught:
            session.read_attachment(position)
        error = caught.value
        assert (error.session_id, error.position) == ("s", position)
        assert reason in str(error)
        assert isinstance(error, FileNotFoundError)


# -- what happens to the files


def test_a_missing_file_says_so_when_it_is_read(session: sealog.Session) -> None:
    attachment = session.read_attachment(session.attach(BYTES))
    Path(attachment.path).unlink()
    assert session.read_attachment(0).size_bytes == len(BYTES)  # what the event says
    for read in (lambda: attachment.bytes, attachment.open, attachment.verify):
        with pytest.raises(sealog.AttachmentMissingError) as caught:
            read()
        assert caught.value.position == 0
        assert attachment.path in str(caught.value)


@pytest.mark.parametrize("change", [b"", b"short", BYTES[:-1], BYTES + b"x", BYTES[:-1] + b"?"], ids=len)
def test_a_changed_file_says_so_when_it_is_read(session: sealog.Session, change: bytes) -> None:
    attachment = session.read_attachment(session.attach(BYTES))
    Path(attachment.path).write_bytes(change)
    for read in (lambda: attachment.bytes, attachment.verify, lambda: attachment.open().read()):
        with pytest.raises(sealog.AttachmentCorruptError) as caught:
            read()
        assert (caught.value.session_id, caught.value.position) == ("s", 0)
        assert attachment.path in str(caught.value)
    assert session.append("m", "x") == 1


def test_a_folder_or_link_in_the_place_of_a_file_is_not_followed(
    session: sealog.Session, tmp_path: Path
) -> None:
    attachment = session.read_attachment(session.attach(BYTES))
    (tmp_path / "outside").write_bytes(BYTES)
    Path(attachment.path).unlink()
    Path(attachment.path).symlink_to(tmp_path / "outside")
    with pytest.raises(sealog.AttachmentMissingError):
        attachment.open()
    Path(attachment.path).unlink()
    Path(attachment.path).mkdir()
    with pytest.raises(sealog.AttachmentMissingError):
        attachment.open()


def test_the_same_key_and_content_is_attached_once(kit: Kit, session: sealog.Session) -> None:
    assert session.attach(BYTES, file_name="a", key="k") == 0
    until_lending(session)
    before = kit.snapshot()
    assert session.attach(io.BytesIO(BYTES), file_name="a", key="k") == 0
    assert kit.snapshot() == before
    for other in (
        {"file_name": "b"},
        {"file_name": "a", "media_type": "x/y"},
        {"file_name": "a", "text": "t"},
    ):
        with pytest.raises(sealog.KeyConflictError):
            session.attach(BYTES, key="k", **other)
    with pytest.raises(sealog.KeyConflictError):
        session.attach(BYTES + b"x", file_name="a", key="k")
    assert kit.snapshot() == before


def test_an_interrupted_attach_leaves_the_others_in_its_commit_alone(
    kit: Kit, session: sealog.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.attach(b"zero")
    gate = kit.fs.hold("sync_data", "s/log")
    held = session.append_nowait("m", "held")
    gate.wait_reached()
    renaming = kit.fs.hold("rename", "attachments/2")

    class Interrupted(session_module.OneShot):
        def wait(self, timeout_s: float | None) -> bool:
            gate.open()
            renaming.wait_reached()  # the owner has it
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(session_module, "OneShot", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.attach(b"interrupted")
    other = Task(session.append, "m", "other")
    renaming.open()
    held.result()
    assert other.result() == 3
    assert kit.store().stats().restarts == 0
    assert session.read_attachment(2).bytes == b"interrupted"
