"""Objects and orphans: the files beside a log, verified when the session is read."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from typing import TYPE_CHECKING

import pytest

from sealog.formats import ksessionlog
from sealog.formats.ksessionlog import KObject, KSession
from sealog.storage.errors import (
    AttachmentCorruptError,
    AttachmentMissingError,
    FormatError,
    SealogError,
    UpgradeRequiredError,
)

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"KSESSIONLOG\n"


def frame(kind: int, payload: bytes = b"") -> bytes:
    return bytes([kind]) + len(payload).to_bytes(8, "little") + hashlib.sha256(payload).digest() + payload


def header(version: object = "0.2.1", session_id: object = "s", created_at: object = "now") -> bytes:
    fields = {"formatVersion": version, "sessionId": session_id, "createdAt": created_at}
    return frame(1, json.dumps(fields).encode())


def event(role: str = "user-message", text: str = "hi") -> bytes:
    return frame(2, json.dumps({"role": role, "text": text}).encode())


SEAL = frame(3)
ATTACH = event("pending-object", "it")


def object_file(
    data: bytes = b"data", name: bytes = b"a.txt", media: bytes = b"text/plain", version: bytes = b"0.2.1"
) -> bytes:
    sizes = [
        len(version).to_bytes(2, "little"),
        len(name).to_bytes(4, "little"),
        len(media).to_bytes(4, "little"),
    ]
    lengths = b"".join(sizes) + len(data).to_bytes(8, "little")
    return b"KSPENDING01\n" + lengths + hashlib.sha256(data).digest() + version + name + media + data


class Folder:
    """A directory with the session `s` in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def log(self, *frames: bytes) -> None:
        (self.path / "s.session-log").write_bytes(MAGIC + b"".join(frames))

    def put(self, name: str, data: bytes = b"x") -> None:
        (self.path / name).write_bytes(data)

    def read(self) -> KSession:
        return ksessionlog.read(self.path, "s")

    def refused(self, error: type[SealogError], match: str) -> SealogError:
        with pytest.raises(error, match=match) as raised:
            self.read()
        assert type(raised.value) is error
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
        return raised.value


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


class TestObjects:
    def test_come_with_their_events(self, folder: Folder) -> None:
        folder.log(header(), event(), ATTACH, ATTACH, SEAL)
        folder.put("s-1.pending-object", object_file())
        folder.put("s-2.pending-object", object_file(b"", "é/..\\\0".encode(), b" x"))
        session = folder.read()
        assert session.objects == {
            1: KObject("a.txt", "text/plain", b"data"),
            2: KObject("é/..\\\0", " x", b""),
        }
        assert (list(session.objects), session.orphans) == ([1, 2], ())

    def test_missing(self, folder: Folder) -> None:
        folder.log(header(), ATTACH)
        error = folder.refused(AttachmentMissingError, "does not exist")
        assert (error.session_id, error.position) == ("s", 0)  # type: ignore[attr-defined]
        folder.put("s-0.pending-object.tmp", object_file())
        folder.refused(AttachmentMissingError, "does not exist")
        (folder.path / "s-0.pending-object").symlink_to("nowhere")
        folder.refused(AttachmentMissingError, "does not exist")

    def test_something_else_in_its_place(self, folder: Folder) -> None:
        folder.log(header(), ATTACH)
        (folder.path / "s-0.pending-object").mkdir()
        folder.refused(AttachmentCorruptError, "it is not a file")
        (folder.path / "s-0.pending-object").rmdir()
        os.mkfifo(folder.path / "s-0.pending-object")
        folder.refused(AttachmentCorruptError, "it is not a file")

    def test_cut_anywhere(self, folder: Folder) -> None:
        folder.log(header(), ATTACH)
        whole = object_file()
        for size in range(len(whole)):
            folder.put("s-0.pending-object", whole[:size])
            folder.refused(
                AttachmentCorruptError, "header of 62 bytes" if size < 62 else "declared length differs"
            )
        folder.put("s-0.pending-object", whole + b"\0")
        folder.refused(AttachmentCorruptError, "declared length differs")

    @pytest.mark.slow
    def test_a_flipped_bit(self, folder: Folder) -> None:
        folder.log(header(), ATTACH)
        whole = object_file()
        names = whole.index(b"a.txt")
        for bit in range(len(whole) * 8):
            data = bytearray(whole)
            data[bit // 8] ^= 1 << bit % 8
            folder.put("s-0.pending-object", bytes(data))
            if names <= bit // 8 < len(whole) - len(b"data") and data[names:-4].isascii():
                found = folder.read().objects[0]  # nothing protects the texts
                assert (found.file_name, found.media_type) != ("a.txt", "text/plain")
            else:
                with pytest.raises((AttachmentCorruptError, FormatError)):
                    folder.read()

    @pytest.mark.parametrize(
        ("data", "match"),
        [
            (object_file(name=b""), "filename is empty"),
            (object_file(name=" \x85\u3000".encode()), "filename is empty"),
            (object_file(media=b""), "media type is empty"),
            (object_file(media=b"\t"), "media type is empty"),
            (object_file(name=b"\xff"), "not UTF-8"),
            (object_file(media=b"\xed\xa0\x80"), "not UTF-8"),
            (object_file(version=b"\xff"), "not UTF-8"),
            (object_file()[:-1] + b"A", "checksum mismatch"),
            (b"KSPENDING02\n" + object_file()[12:], "not a pending-object file"),
        ],
    )
    def test_damaged(self, folder: Folder, data: bytes, match: str) -> None:
        folder.log(header(), ATTACH)
        folder.put("s-0.pending-object", data)
        assert folder.refused(AttachmentCorruptError, match).position == 0  # type: ignore[attr-defined]

    def test_of_another_version(self, folder: Folder) -> None:
        folder.log(header(), ATTACH)
        folder.put("s-0.pending-object", object_file(version=b"0.2.0"))
        folder.refused(FormatError, r"unsupported pending-object format 0\.2\.0")
        folder.put("s-0.pending-object", object_file(version=b"0.3.0"))
        folder.refused(UpgradeRequiredError, r"unsupported pending-object format 0\.3\.0")

    @pytest.mark.parametrize(
        ("length", "match"), [(2**64 - 1, "overflow"), (2**64 - 82, "overflow"), (2**62, "differs")]
    )
    def test_a_huge_length_is_never_allocated(self, folder: Folder, length: int, match: str) -> None:
        folder.log(header(), ATTACH)
        data = bytearray(object_file())
        data[22:30] = length.to_bytes(8, "little")
        folder.put("s-0.pending-object", bytes(data))
        folder.refused(AttachmentCorruptError, match)
        data[14:18] = b"\xff" * 4
        folder.put("s-0.pending-object", bytes(data))
        folder.refused(AttachmentCorruptError, "declared length")


class TestOrphans:
    @pytest.mark.parametrize(
        "name",
        [
            "s-1.pending-object",
            "s-9.pending-object",
            "s-18446744073709551615.pending-object",
            "s-0.pending-object.tmp",
            "s-1.pending-object.tmp",
            "s-18446744073709551615.pending-object.tmp",
        ],
    )
    def test_files_no_event_refers_to(self, folder: Folder, name: str) -> None:
        folder.log(header(), ATTACH, event())
        folder.put("s-0.pending-object", object_file())
        folder.put(name)
        assert folder.read().orphans == (name,)
        assert (folder.path / name).exists()

    @pytest.mark.parametrize(
        "name",
        [
            "s-00.pending-object",
            "s-01.pending-object",
            "s-18446744073709551616.pending-object",
            "s-18446744073709551616.pending-object.tmp",
            "s-.pending-object",
            "s--1.pending-object",
            "s-+1.pending-object",
            "s- 1.pending-object",
            "s-1_0.pending-object",
            "s-\u0665.pending-object",
            "s-1.pending-object\n",
            "s-1.pending-object.tmp.tmp",
            "s-1.pending-object.bak",
            "s-1.PENDING-OBJECT",
            "s-1pending-object",
            "s1.pending-object",
            "S-1.pending-object",
            "s-1-1.pending-object",
            "xs-1.pending-object",
            "s-1.session-log",
            b"s-\xff.pending-object",
        ],
    )
    def test_look_alikes_are_not(self, folder: Folder, name: str | bytes) -> None:
        folder.log(header(), event())
        folder.put(os.fsdecode(name))
        assert folder.read().orphans == ()

    def test_sessions_never_take_each_others(self, folder: Folder) -> None:
        for session_id in ("a", "a-1", "a-1-1"):
            (folder.path / f"{session_id}.session-log").write_bytes(MAGIC + header(session_id=session_id))
        names = ["a-1.pending-object", "a-1-1.pending-object", "a-1-1-1.pending-object"]
        for name in names:
            folder.put(name)
        assert [ksessionlog.read(folder.path, name).orphans for name in ("a", "a-1", "a-1-1")] == [
            (name,) for name in names
        ]

    def test_are_sorted_and_may_be_links(self, folder: Folder) -> None:
        folder.log(header())
        folder.put("s-9.pending-object")
        (folder.path / "s-10.pending-object").symlink_to(folder.path)
        assert folder.read().orphans == ("s-10.pending-object", "s-9.pending-object")

    @pytest.mark.parametrize("name", ["s-9.pending-object", "s-0.pending-object.tmp"])
    def test_a_directory_of_such_a_name(self, folder: Folder, name: str) -> None:
        folder.log(header())
        (folder.path / name).mkdir()
        folder.refused(FormatError, "is a directory with the name of an object")

    def test_a_directory_of_a_look_alike_name(self, folder: Folder) -> None:
        folder.log(header())
        (folder.path / "s-01.pending-object").mkdir()
        assert folder.read().orphans == ()


class TestFilesThatChangeMeanwhile:
    """The size is asked once; what is read afterwards may be less or more."""

    def sizes(self, monkeypatch: pytest.MonkeyPatch, difference: int) -> None:
        original = os.fstat

        def fstat(fd: int) -> os.stat_result:
            found = original(fd)
            return os.stat_result((*found[:6], found.st_size + difference, *found[7:]))

        monkeypatch.setattr(os, "fstat", fstat)

    @pytest.mark.parametrize(
        ("difference", "match"), [(1, "became shorter while it was read"), (-1, "has trailing bytes")]
    )
    def test_an_object(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch, difference: int, match: str
    ) -> None:
        folder.log(header(), ATTACH)
        data = bytearray(object_file(b"abcdef"))
        data[22:30] = (6 + difference).to_bytes(8, "little")
        folder.put("s-0.pending-object", bytes(data))
        found = folder.path / "s.session-log"
        found.write_bytes(found.read_bytes() + b"\0")  # whose size is wrong by one as well
        self.sizes(monkeypatch, difference)
        folder.refused(AttachmentCorruptError, match)
