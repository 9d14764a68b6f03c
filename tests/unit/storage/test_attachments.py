"""Attachments: staged, published, swept, read and verified as plain files beside the log."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from typing import TYPE_CHECKING, Any

import pytest

from sealog.storage import attachments
from sealog.storage.attachments import (
    Attachment,
    Stage,
    new_stage_name,
    publish_stages,
    remove_attachment_files,
    stage_attachment,
    sweep_attachments,
)
from sealog.storage.errors import AttachmentCorruptError, AttachmentMissingError, CorruptionError
from sealog.storage.events import Event

if TYPE_CHECKING:
    from pathlib import Path

    from sealog.storage.vfs import Directory

    from .conftest import Kit

DATA = bytes(range(256)) * 10
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def session(kit: Kit) -> Directory:
    """Return the directory of a session that has no attachments yet."""
    kit.create()
    directory = kit.session()
    kit.faults.clear()
    return directory


@pytest.fixture
def folder(kit: Kit) -> Path:
    return kit.path / "s" / "attachments"


def event_of(data: bytes = DATA, **changes: Any) -> Event:
    described = {
        "file_name": "a.bin",
        "media_type": "application/octet-stream",
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return Event("attachment", "a file", described | changes, 1)


def attached(kit: Kit, event: Event | None = None, position: int = 0) -> Attachment:
    """Describe an attachment of session `s`."""
    return Attachment("s", str(kit.path / "s"), position, event or event_of(), kit.session)


@pytest.fixture
def file(session: Directory, folder: Path) -> Path:
    """Publish DATA at position 0."""
    publish_stages(session, [(stage_attachment(session, new_stage_name(), io.BytesIO(DATA)), 0)])
    return folder / "0"


class TestStage:
    def test_bytes_are_streamed_hashed_and_synced(
        self, kit: Kit, session: Directory, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(attachments, "COPY_BYTES", 100)
        assert stage_attachment(session, ".stage-1", io.BytesIO(DATA)) == Stage(".stage-1", len(DATA), SHA256)
        assert (folder / ".stage-1").read_bytes() == DATA
        assert (folder / ".stage-1").stat().st_mode & 0o777 == 0o600
        assert kit.faults.calls.count("pwrite .stage-1") == 26
        assert kit.faults.calls[-1] == "sync_data .stage-1"

    def test_the_folder_is_made_and_synced_first(self, kit: Kit, session: Directory, folder: Path) -> None:
        stage_attachment(session, ".stage-1", io.BytesIO(b""))
        assert kit.faults.calls[:2] == ["sync s", "open .stage-1"]
        assert folder.stat().st_mode & 0o777 == 0o700

    def test_an_empty_file_is_a_file(self, session: Directory, folder: Path) -> None:
        stage = stage_attachment(session, ".stage-1", io.BytesIO(b""))
        assert (stage.size_bytes, stage.sha256) == (0, hashlib.sha256(b"").hexdigest())
        assert (folder / ".stage-1").read_bytes() == b""

    def test_stages_have_names_of_their_own(self) -> None:
        names = {new_stage_name() for _ in range(100)}
        assert len(names) == 100
        assert all(name.startswith(".stage-") for name in names)

    @pytest.mark.parametrize("call", ["pwrite .stage-1", "sync_data .stage-1"])
    def test_a_failing_disk_leaves_no_stage(
        self, kit: Kit, session: Directory, folder: Path, call: str
    ) -> None:
        kit.faults.fail(call, errno.ENOSPC)
        with pytest.raises(OSError, match="made to fail"):
            stage_attachment(session, ".stage-1", io.BytesIO(DATA))
        assert list(folder.iterdir()) == []

    def test_a_failing_source_leaves_no_stage(self, session: Directory, folder: Path) -> None:
        class Broken:
            def read(self, size: int, /) -> bytes:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            stage_attachment(session, ".stage-1", Broken())
        assert list(folder.iterdir()) == []

    def test_a_stage_of_that_name_is_not_written_over(self, session: Directory, folder: Path) -> None:
        stage_attachment(session, ".stage-1", io.BytesIO(b"first"))
        with pytest.raises(FileExistsError):
            stage_attachment(session, ".stage-1", io.BytesIO(b"second"))
        assert (folder / ".stage-1").read_bytes() == b"first"


class TestPublish:
    def test_stages_are_renamed_to_positions_and_the_folder_synced(
        self, kit: Kit, session: Directory, folder: Path
    ) -> None:
        stages = [(stage_attachment(session, f".stage-{n}", io.BytesIO(bytes([n]))), n + 7) for n in range(2)]
        kit.faults.clear()
        publish_stages(session, stages)
        assert kit.faults.calls == ["rename 7", "rename 8", "sync attachments"]
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"7": b"\0", "8": b"\1"}

    def test_what_was_published_can_be_withdrawn(self, session: Directory, folder: Path, file: Path) -> None:
        remove_attachment_files(session, ["0", "1"])
        assert list(folder.iterdir()) == []

    def test_withdrawing_never_fails(self, kit: Kit, session: Directory) -> None:
        remove_attachment_files(session, ["0"])
        stage_attachment(session, ".stage-1", io.BytesIO(b""))
        kit.faults.fail("unlink .stage-1")
        remove_attachment_files(session, [".stage-1"])
        assert (kit.path / "s" / "attachments" / ".stage-1").exists()


class TestSweep:
    def sweep(self, session: Directory, kinds: list[str], staging: set[str]) -> tuple[str, ...]:
        def event_at(position: int) -> Event:
            if kinds[position] == "damaged":
                raise CorruptionError("log", 0, position, "damaged")
            return Event(kinds[position], "")

        return sweep_attachments(session, staging, len(kinds), event_at)

    def test_only_files_that_are_ours_and_dead_are_removed(self, session: Directory, folder: Path) -> None:
        """INV-6"""
        names = ["0", "1", "2", "3", "07", "notes.txt", ".stage-a", ".stage-b", ".hidden", "12345678901"]
        folder.mkdir()
        for name in names:
            (folder / name).write_bytes(b"x")
        (folder / "9").mkdir()
        removed = self.sweep(session, ["attachment", "note", "damaged"], {".stage-b"})
        assert removed == (".stage-a", "1", "3")
        assert {path.name for path in folder.iterdir()} == {*names, "9"} - set(removed)

    def test_a_link_is_removed_and_not_what_it_points_to(
        self, session: Directory, folder: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "precious").write_bytes(b"x")
        folder.mkdir()
        (folder / "5").symlink_to(tmp_path / "precious")
        assert self.sweep(session, [], set()) == ("5",)
        assert (tmp_path / "precious").read_bytes() == b"x"

    def test_what_a_dead_owner_published_is_made_durable(
        self, kit: Kit, session: Directory, file: Path
    ) -> None:
        kit.faults.clear()
        assert self.sweep(session, ["attachment"], set()) == ()
        assert kit.faults.calls == ["sync attachments"]

    def test_a_session_without_attachments_has_nothing_to_sweep(
        self, session: Directory, folder: Path
    ) -> None:
        assert self.sweep(session, [], set()) == ()
        assert not folder.exists()


class TestRead:
    def test_it_carries_what_the_event_says(self, kit: Kit, file: Path) -> None:
        attachment = attached(kit)
        assert (attachment.position, attachment.text, attachment.file_name) == (0, "a file", "a.bin")
        assert (attachment.media_type, attachment.size_bytes) == ("application/octet-stream", len(DATA))
        assert attachment.sha256 == SHA256
        assert attachment.path == str(file)
        assert repr(attachment) == (
            "Attachment(position=0, file_name='a.bin', "
            "media_type='application/octet-stream', size_bytes=2560)"
        )

    def test_all_bytes(self, kit: Kit, file: Path) -> None:
        assert attached(kit).bytes == DATA
        attached(kit).verify()

    def test_an_empty_file(self, kit: Kit, file: Path) -> None:
        file.write_bytes(b"")
        assert attached(kit, event_of(b"")).bytes == b""

    @pytest.mark.parametrize("buffer", [1, 7, 256, 5000])
    def test_it_streams(self, kit: Kit, file: Path, buffer: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(attachments, "COPY_BYTES", 64)
        with attached(kit).open() as stream:
            assert b"".join(iter(lambda: stream.read(buffer), b"")) == DATA
        assert stream.closed

    def test_it_seeks(self, kit: Kit, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(attachments, "COPY_BYTES", 64)
        with attached(kit).open() as stream:
            assert (stream.readable(), stream.seekable(), stream.writable()) == (True, True, False)
            assert stream.seek(1000) == stream.tell() == 1000
            assert stream.read(3) == DATA[1000:1003]
            assert stream.seek(-5, os.SEEK_END) == len(DATA) - 5
            assert stream.read() == DATA[-5:]
            assert stream.seek(2, os.SEEK_SET) == 2
            assert stream.seek(1, os.SEEK_CUR) == 3
            assert stream.read(1) == DATA[3:4]
            assert stream.seek(len(DATA) + 10) == len(DATA) + 10
            assert stream.read() == b""

    def test_reading_to_and_fro_is_no_damage(
        self, kit: Kit, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only bytes in order are hashed: what is read again or jumped over says nothing."""
        monkeypatch.setattr(attachments, "COPY_BYTES", 64)
        with attached(kit).open() as stream:
            for offset in (64, 0, 0, 500, len(DATA) - 300):
                stream.seek(offset)
                assert b"".join(iter(lambda: stream.read(64), b"")) == DATA[offset:]

    @pytest.mark.parametrize("size", [0, len(DATA) - 1, len(DATA) + 1])
    def test_another_size_is_noticed_at_once(self, kit: Kit, file: Path, size: int) -> None:
        file.write_bytes(bytes(size))
        with pytest.raises(AttachmentCorruptError, match="bytes, not 2,560") as caught:
            attached(kit).open()
        assert (caught.value.session_id, caught.value.position, caught.value.path) == ("s", 0, str(file))

    @pytest.mark.parametrize("offset", [0, 1000, len(DATA) - 1])
    def test_another_byte_is_noticed_at_the_end(self, kit: Kit, file: Path, offset: int) -> None:
        file.write_bytes(DATA[:offset] + bytes([DATA[offset] ^ 1]) + DATA[offset + 1 :])
        for read in (lambda: attached(kit).bytes, attached(kit).verify):
            with pytest.raises(AttachmentCorruptError, match="its SHA-256 is"):
                read()

    def test_a_wrong_hash_of_an_empty_file_is_noticed(self, kit: Kit, file: Path) -> None:
        file.write_bytes(b"")
        with pytest.raises(AttachmentCorruptError, match="SHA-256"):
            attached(kit, event_of(b"", sha256=SHA256)).open()

    def test_a_file_cut_while_it_is_read_is_noticed(
        self, kit: Kit, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(attachments, "COPY_BYTES", 64)
        with attached(kit).open() as stream:
            assert stream.read(64) == DATA[:64]
            os.truncate(file, 100)
            with pytest.raises(AttachmentCorruptError, match="cut off while it was read"):
                stream.read()

    @pytest.mark.parametrize(
        ("in_place", "reason"),
        [
            ("nothing", "No such file"),
            ("directory", "not a regular file"),
            ("fifo", "not a regular file"),
            ("link", "symbolic links"),
        ],
    )
    def test_something_else_in_its_place_is_no_attachment(
        self, kit: Kit, file: Path, in_place: str, reason: str
    ) -> None:
        """In particular nothing is followed, and a FIFO does not hang the caller."""
        file.rename(kit.path / "aside")
        if in_place == "directory":
            file.mkdir()
        elif in_place == "fifo":
            os.mkfifo(file)
        elif in_place == "link":
            file.symlink_to(kit.path / "aside")
        with pytest.raises(AttachmentMissingError, match=reason) as caught:
            attached(kit).open()
        assert caught.value.path == str(file)

    def test_a_session_without_the_folder_has_no_attachment(self, kit: Kit, session: Directory) -> None:
        with pytest.raises(AttachmentMissingError, match="No such file"):
            attached(kit).open()

    def test_another_kind_of_event_is_no_attachment(self, kit: Kit, session: Directory) -> None:
        with pytest.raises(AttachmentMissingError, match="the event there is a user-message"):
            attached(kit, Event("user-message", "hi"))

    @pytest.mark.parametrize("data", [None, [], {"file_name": "a"}, {"file_name": 1}])
    def test_an_event_that_describes_no_file_is_no_attachment(
        self, kit: Kit, session: Directory, data: object
    ) -> None:
        with pytest.raises(AttachmentMissingError, match="does not describe a file"):
            attached(kit, Event("attachment", "", data))

    def test_fields_of_a_later_version_are_ignored(self, kit: Kit, file: Path) -> None:
        assert attached(kit, event_of(pages=3)).bytes == DATA

    def test_reading_leaves_no_file_open(self, kit: Kit, file: Path) -> None:
        if not os.path.isdir("/proc/self/fd"):
            pytest.skip("this system does not list open files")
        directory = kit.session()
        before = len(os.listdir("/proc/self/fd"))
        for data in (DATA, bytes(len(DATA)), b""):
            file.write_bytes(data)
            attachment = Attachment(
                "s", str(kit.path / "s"), 0, event_of(), lambda: kit.store.open_directory("s")
            )
            try:
                attachment.verify()
            except AttachmentCorruptError:
                assert data != DATA
        assert len(os.listdir("/proc/self/fd")) == before
        directory.close()
