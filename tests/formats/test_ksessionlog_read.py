"""The rules by which a session is read: names, header, events, seal, objects and orphans."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from typing import TYPE_CHECKING

import pytest

from sealog.formats import ksessionlog
from sealog.formats.ksessionlog import KEvent, KHeader, KSession
from sealog.storage.errors import (
    CorruptionError,
    FormatError,
    InvalidSessionIdError,
    SealogError,
    SessionNotFoundError,
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


class TestWhichFile:
    @pytest.mark.parametrize(
        "session_id", ["", "a b", "a/b", "../s", "a.b", "é", "s\n", "a" * 256, "\u0665", None, b"s", 1]
    )
    def test_an_id_that_cannot_be(self, folder: Folder, session_id: str) -> None:
        with pytest.raises(InvalidSessionIdError):
            ksessionlog.read(folder.path, session_id)

    def test_a_log_that_is_not_there(self, folder: Folder) -> None:
        folder.refused(SessionNotFoundError, "does not exist")
        with pytest.raises(SessionNotFoundError):
            ksessionlog.read(folder.path / "none", "s")
        folder.put("file")
        with pytest.raises(SessionNotFoundError):
            ksessionlog.read(folder.path / "file", "s")

    def test_something_else_in_its_place(self, folder: Folder) -> None:
        (folder.path / "s.session-log").mkdir()
        folder.refused(FormatError, "is not a file")
        (folder.path / "s.session-log").rmdir()
        os.mkfifo(folder.path / "s.session-log")
        folder.refused(FormatError, "is not a file")

    def test_a_link_is_followed(self, folder: Folder) -> None:
        folder.log(header())
        (folder.path / "s.session-log").rename(folder.path / "elsewhere")
        (folder.path / "s.session-log").symlink_to("elsewhere")
        assert folder.read().events == ()

    def test_text_and_path_both_name_a_directory(self, folder: Folder) -> None:
        folder.log(header())
        assert ksessionlog.read(str(folder.path), "s") == folder.read()

    def test_session_ids_are_those_that_can_be(self, folder: Folder) -> None:
        for name in (
            "b.session-log",
            "a-1.session-log",
            ".session-log",
            "x y.session-log",
            "a.session-log.tmp",
        ):
            folder.put(name)
        assert ksessionlog.session_ids(folder.path) == ["a-1", "b"]
        with pytest.raises(FileNotFoundError):
            ksessionlog.session_ids(folder.path / "none")


class TestHeader:
    @pytest.mark.parametrize("size", range(12))
    def test_less_than_the_magic(self, folder: Folder, size: int) -> None:
        folder.put("s.session-log", MAGIC[:size])
        folder.refused(CorruptionError, "shorter than its magic")

    def test_another_magic(self, folder: Folder) -> None:
        folder.put("s.session-log", b"KSESSIONLOG\r" + header())
        folder.refused(FormatError, "is not a session log")

    def test_none(self, folder: Folder) -> None:
        folder.log()
        folder.refused(CorruptionError, "session log has no header")
        folder.log(header()[:-1])
        folder.refused(CorruptionError, "session log has no header")

    def test_not_first(self, folder: Folder) -> None:
        folder.log(event(), header())
        folder.refused(CorruptionError, "session event precedes header")
        folder.log(SEAL, header())
        folder.refused(CorruptionError, "sealed footer precedes header")

    @pytest.mark.parametrize("before", [(), (event(),), (SEAL,)])
    def test_twice(self, folder: Folder, before: tuple[bytes, ...]) -> None:
        folder.log(header(), *before, header())
        folder.refused(CorruptionError, "duplicate session header")

    @pytest.mark.parametrize("version", ["0.2.2", "0.10.0", "1.0.0"])
    def test_a_newer_version(self, folder: Folder, version: str) -> None:
        folder.log(header(version))
        folder.refused(UpgradeRequiredError, f"unsupported session-log format {version}")

    @pytest.mark.parametrize("version", ["0.2.0", "0.1.9", "0.2.1 ", "0.2", "v9.9.9", "0.2.2.1", ""])
    def test_another_version(self, folder: Folder, version: str) -> None:
        folder.log(header(version))
        folder.refused(FormatError, "unsupported session-log format")

    @pytest.mark.parametrize(
        "created_at", ["", " ", "\t\n\v\f\r\x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"]
    )
    def test_a_blank_time(self, folder: Folder, created_at: str) -> None:
        folder.log(header(created_at=created_at))
        folder.refused(FormatError, "creation time cannot be empty")

    @pytest.mark.parametrize("created_at", ["\x1c", "\x1f", "\u200b", "\ufeff", "\u180e", "\0", " x "])
    def test_a_time_that_only_looks_blank(self, folder: Folder, created_at: str) -> None:
        folder.log(header(created_at=created_at))
        assert folder.read().header == KHeader("s", created_at)

    @pytest.mark.parametrize("session_id", ["", "a b", "a.b", "é", "a" * 256])
    def test_an_id_that_cannot_be(self, folder: Folder, session_id: str) -> None:
        folder.log(header(session_id=session_id))
        folder.refused(FormatError, "as session ID")

    @pytest.mark.parametrize("session_id", ["t", "S", "s-", "a" * 255])
    def test_the_id_of_another_session(self, folder: Folder, session_id: str) -> None:
        folder.log(header(session_id=session_id))
        folder.refused(FormatError, "filename and header identity differ")

    def test_its_id_is_compared_after_all_frames_are_read(self, folder: Folder) -> None:
        folder.log(header(session_id="t"), frame(4))
        folder.refused(CorruptionError, "unknown complete session-log frame kind 4")

    def test_not_json(self, folder: Folder) -> None:
        folder.log(frame(1, b"not json"))
        assert folder.refused(FormatError, "expected an object").offset == 12 + 41  # type: ignore[attr-defined]


class TestFrames:
    def test_events_have_their_place_as_position(self, folder: Folder) -> None:
        folder.log(header(), event("tool-result", "a"), event("object", "b"), SEAL)
        assert folder.read() == KSession(
            KHeader("s", "now"), (KEvent("tool-result", "a"), KEvent("object", "b")), sealed=True
        )

    @pytest.mark.parametrize("kind", [0, 4, 66, 255])
    def test_an_unknown_kind(self, folder: Folder, kind: int) -> None:
        folder.log(header(), event(), frame(kind, b"x"), event())
        error = folder.refused(CorruptionError, f"unknown complete session-log frame kind {kind} ")
        assert error.position == 1  # type: ignore[attr-defined]
        assert error.offset == 12 + len(header() + event())  # type: ignore[attr-defined]

    @pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, 255])
    def test_the_checksum_is_checked_before_the_kind(self, folder: Folder, kind: int) -> None:
        folder.log(header(), frame(kind, b"x")[:-1] + b"y")
        folder.refused(CorruptionError, "checksum-invalid complete frame")

    def test_after_the_seal(self, folder: Folder) -> None:
        folder.log(header(), SEAL, event())
        folder.refused(CorruptionError, "session event follows sealed footer")
        folder.log(header(), SEAL, SEAL)
        folder.refused(CorruptionError, "duplicate sealed footer")
        folder.log(header(), frame(3, b"x"))
        folder.refused(CorruptionError, "sealed footer payload must be empty")

    def test_an_event_that_is_no_event(self, folder: Folder) -> None:
        folder.log(header(), event("assistant-message"))
        error = folder.refused(FormatError, "unknown variant 'assistant-message' at byte 28 of the JSON")
        assert error.offset == 12 + len(header()) + 41 + 28  # type: ignore[attr-defined]

    def test_what_is_written_while_it_is_read_is_left_out(self, folder: Folder) -> None:
        folder.log(header(), event(), event()[:50])
        session = folder.read()
        assert (len(session.events), session.dropped_bytes) == (1, 50)


class TestFilesThatChangeMeanwhile:
    """The size is asked once; what is read afterwards may be less or more."""

    def sizes(self, monkeypatch: pytest.MonkeyPatch, difference: int) -> None:
        original = os.fstat

        def fstat(fd: int) -> os.stat_result:
            found = original(fd)
            return os.stat_result((*found[:6], found.st_size + difference, *found[7:]))

        monkeypatch.setattr(os, "fstat", fstat)

    def test_a_log_that_was_cut(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.log(header(), frame(2, b"x" * 100)[:-9])
        self.sizes(monkeypatch, 9)
        folder.refused(CorruptionError, "became shorter while it was read")
