"""Writing sessions: the exact bytes, what cannot be held, and all of it or nothing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealog.formats import _ksession_write, ksessionlog
from sealog.formats.ksessionlog import ROLES, KEvent, KHeader, KObject, KSession
from sealog.storage.errors import (
    InvalidEventError,
    InvalidHeaderError,
    InvalidSessionIdError,
    LimitExceededError,
    SealogError,
    SessionExistsError,
    StorageFullError,
)
from sealog.storage.vfs import OsFile

SESSION = KSession(
    KHeader("s", "2026-01-02T03:04:05Z"),
    (KEvent("user-message", "é"), KEvent("pending-object", "it"), KEvent("pending-object", "2")),
    sealed=True,
    objects={1: KObject("a.txt", "text/plain", b"data"), 2: KObject("b", "c", b"")},
)
FILES = ["s-1.pending-object", "s-2.pending-object", "s.session-log"]


def frame(kind: int, payload: bytes) -> bytes:
    return bytes([kind]) + len(payload).to_bytes(8, "little") + hashlib.sha256(payload).digest() + payload


def changed(**fields: Any) -> KSession:
    return msgspec.structs.replace(SESSION, **fields)


def with_text(text: Any) -> KSession:
    return KSession(SESSION.header, (KEvent("object", text),))


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


class TestBytes:
    def test_of_a_log(self, tmp_path: Path) -> None:
        ksessionlog.write(SESSION, tmp_path)
        assert (tmp_path / "s.session-log").read_bytes() == (
            b"KSESSIONLOG\n"
            + frame(1, b'{"formatVersion":"0.2.1","sessionId":"s","createdAt":"2026-01-02T03:04:05Z"}')
            + frame(2, '{"role":"user-message","text":"é"}'.encode())
            + frame(2, b'{"role":"pending-object","text":"it"}')
            + frame(2, b'{"role":"pending-object","text":"2"}')
            + frame(3, b"")
        )

    def test_of_an_object(self, tmp_path: Path) -> None:
        ksessionlog.write(SESSION, tmp_path)
        assert (tmp_path / "s-1.pending-object").read_bytes() == (
            b"KSPENDING01\n\x05\0\x05\0\0\0\x0a\0\0\0\x04\0\0\0\0\0\0\0"
            + hashlib.sha256(b"data").digest()
            + b"0.2.1a.txttext/plaindata"
        )

    @pytest.mark.parametrize(
        ("text", "written"),
        [
            ('"\\/', b'\\"\\\\/'),
            ("\b\f\n\r\t", b"\\b\\f\\n\\r\\t"),
            ("\0\x01\x0b\x1a\x1f", b"\\u0000\\u0001\\u000b\\u001a\\u001f"),
            ("\x7f\x80\x9f\u2028\u2029\ufeff\uffff", "\x7f\x80\x9f\u2028\u2029\ufeff\uffff".encode()),
            ("\U0001f600<>&'", "\U0001f600<>&'".encode()),
        ],
    )
    def test_of_a_text(self, tmp_path: Path, text: str, written: bytes) -> None:
        ksessionlog.write(with_text(text), tmp_path)
        log = (tmp_path / "s.session-log").read_bytes()
        assert log.endswith(frame(2, b'{"role":"object","text":"%b"}' % written))

    def test_nothing_else_is_left(self, tmp_path: Path) -> None:
        ksessionlog.write(SESSION, tmp_path / "a" / "b")
        assert sorted(contents(tmp_path / "a" / "b")) == FILES
        assert stat.S_IMODE((tmp_path / "a" / "b" / FILES[0]).stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700

    def test_a_relative_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        ksessionlog.write(SESSION, "new")
        ksessionlog.write(SESSION, ".")
        assert contents(tmp_path / "new") == {name: (tmp_path / name).read_bytes() for name in FILES}

    def test_what_reading_left_out_is_not_written(self, tmp_path: Path) -> None:
        ksessionlog.write(changed(dropped_bytes=7, orphans=("s-9.pending-object",)), tmp_path)
        assert ksessionlog.read(tmp_path, "s") == SESSION


class TestRefused:
    @pytest.mark.parametrize("session_id", ["", "a b", "../s", "é", "a" * 256, "s\n", None])
    def test_ids(self, tmp_path: Path, session_id: Any) -> None:
        self.refused(tmp_path, changed(header=KHeader(session_id, "now")), InvalidSessionIdError)

    @pytest.mark.parametrize("created_at", ["", " \t\u3000\x85", "\ud800", None, 1])
    def test_times(self, tmp_path: Path, created_at: Any) -> None:
        error = self.refused(tmp_path, changed(header=KHeader("s", created_at)), InvalidHeaderError)
        assert error.field == "created_at"  # type: ignore[attr-defined]

    @pytest.mark.parametrize("role", ["assistant-message", "User-Message", "", None, 3])
    def test_roles(self, tmp_path: Path, role: Any) -> None:
        events = (KEvent("object", ""), KEvent(role, "x"))
        error = self.refused(tmp_path, KSession(SESSION.header, events), InvalidEventError)
        assert error.place == "events[1].role"  # type: ignore[attr-defined]

    @pytest.mark.parametrize("text", ["a\ud800", "\udfff", None, b"x", 1])
    def test_texts(self, tmp_path: Path, text: Any) -> None:
        error = self.refused(tmp_path, with_text(text), InvalidEventError)
        assert error.place == "events[0].text"  # type: ignore[attr-defined]

    @pytest.mark.parametrize(
        ("found", "field"),
        [
            (KObject("", "m", b""), "file_name"),
            (KObject(" \u2003", "m", b""), "file_name"),
            (KObject("\udcff", "m", b""), "file_name"),
            (KObject("n", "", b""), "media_type"),
            (KObject("n", "\n", b""), "media_type"),
            (KObject("n", None, b""), "media_type"),  # type: ignore[arg-type]
            (KObject("n", "m", "text"), "bytes"),  # type: ignore[arg-type]
        ],
    )
    def test_objects(self, tmp_path: Path, found: KObject, field: str) -> None:
        session = changed(objects={**SESSION.objects, 2: found})
        assert self.refused(tmp_path, session, InvalidEventError).place == f"objects[2].{field}"  # type: ignore[attr-defined]

    def test_an_object_too_few(self, tmp_path: Path) -> None:
        session = changed(objects={1: SESSION.objects[1]})
        assert self.refused(tmp_path, session, InvalidEventError).place == "objects[2]"  # type: ignore[attr-defined]

    @pytest.mark.parametrize("position", [0, 3, -1])
    def test_an_object_too_many(self, tmp_path: Path, position: int) -> None:
        session = changed(objects={**SESSION.objects, position: SESSION.objects[2]})
        error = self.refused(tmp_path, session, InvalidEventError)
        assert error.place == f"objects[{position}]"  # type: ignore[attr-defined]

    def test_file_names_that_are_too_long(self, tmp_path: Path) -> None:
        plain = KSession(KHeader("a" * 243, "now"))
        ksessionlog.write(plain, tmp_path / "fits")
        self.refused(tmp_path, KSession(KHeader("a" * 244, "now")), LimitExceededError)
        self.refused(tmp_path, changed(header=KHeader("a" * 243, "now")), LimitExceededError)

    def test_a_text_of_an_object_that_is_too_long(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_ksession_write, "U32_MAX", 4)
        self.refused(tmp_path, SESSION, LimitExceededError)

    def refused(self, path: Path, session: KSession, error: type[SealogError]) -> SealogError:
        with pytest.raises(error) as raised:
            ksessionlog.write(session, path / "new")
        assert not (path / "new").exists()
        return raised.value


class TestNothingIsOverwritten:
    @pytest.mark.parametrize("data", [b"", b"other", None])
    @pytest.mark.parametrize("name", FILES)
    def test_a_file_in_the_way(self, tmp_path: Path, name: str, data: bytes | None) -> None:
        if data is None:
            (tmp_path / name).symlink_to("nowhere")
        else:
            (tmp_path / name).write_bytes(data)
        with pytest.raises(SessionExistsError) as raised:
            ksessionlog.write(SESSION, tmp_path)
        assert raised.value.path == str(tmp_path / name)
        assert os.listdir(tmp_path) == [name]
        assert (tmp_path / name).is_symlink() or (tmp_path / name).read_bytes() == data

    def test_the_same_session(self, tmp_path: Path) -> None:
        ksessionlog.write(SESSION, tmp_path)
        before = contents(tmp_path)
        with pytest.raises(SessionExistsError):
            ksessionlog.write(SESSION, tmp_path)
        assert contents(tmp_path) == before

    def test_a_directory_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / FILES[0]).mkdir()
        with pytest.raises(SessionExistsError):
            ksessionlog.write(SESSION, tmp_path)
        assert os.listdir(tmp_path) == [FILES[0]]

    def test_objects_that_a_killed_writer_left_are_taken_over(self, tmp_path: Path) -> None:
        ksessionlog.write(SESSION, tmp_path)
        (tmp_path / "s.session-log").unlink()
        (tmp_path / FILES[1]).unlink()
        left = (tmp_path / FILES[0]).stat().st_ino
        ksessionlog.write(SESSION, tmp_path)
        assert (tmp_path / FILES[0]).stat().st_ino == left
        assert ksessionlog.read(tmp_path, "s") == SESSION

    def test_a_rival_that_is_faster(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        link = os.link

        def rival(source: str, target: str) -> None:
            if target.endswith(".session-log"):
                Path(target).write_bytes(b"rival")
            link(source, target)

        monkeypatch.setattr(os, "link", rival)
        with pytest.raises(SessionExistsError):
            ksessionlog.write(SESSION, tmp_path)
        assert contents(tmp_path) == {"s.session-log": b"rival"}


class TestRivals:
    def test_writers_of_one_session_leave_one_whole(self, tmp_path: Path) -> None:
        sessions = [changed(header=KHeader("s", f"{number}")) for number in range(8)]
        barrier = threading.Barrier(len(sessions))

        def write(session: KSession) -> bool:
            barrier.wait()
            try:
                ksessionlog.write(session, tmp_path)
            except SessionExistsError:
                return False
            return True

        with ThreadPoolExecutor(len(sessions)) as pool:
            written = list(pool.map(write, sessions))
        assert written.count(True) == 1
        assert ksessionlog.read(tmp_path, "s") == sessions[written.index(True)]
        assert sorted(contents(tmp_path)) == FILES


class TestAllOrNothing:
    @pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
    @pytest.mark.parametrize(
        ("place", "name"), [(os, "fsync"), (os, "link"), (os, "open"), (os, "mkdir"), (OsFile, "sync_data")]
    )
    def test_whichever_call_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, code: int
    ) -> None:
        original, calls = getattr(place, name), []

        def failing(*args: Any, **options: Any) -> Any:
            calls.append(args)
            if len(calls) == failing_call:
                raise OSError(code, os.strerror(code))
            return original(*args, **options)

        failing_call = 0
        monkeypatch.setattr(place, name, failing)
        ksessionlog.write(SESSION, tmp_path / "first")
        count = len(calls)
        assert count >= (1 if name == "mkdir" else 3)
        for failing_call in range(1, count + 1):
            calls.clear()
            directory = tmp_path / f"{failing_call}"
            with pytest.raises(StorageFullError if code == errno.ENOSPC else OSError):
                ksessionlog.write(SESSION, directory)
            assert not directory.exists() or os.listdir(directory) == []

    def test_the_log_comes_last_and_complete(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        link, seen = os.link, []

        def watching(source: str, target: str) -> None:
            link(source, target)
            seen.append(os.path.basename(target))
            if len(seen) == len(FILES):
                assert ksessionlog.read(tmp_path, "s") == SESSION
            else:
                assert ksessionlog.session_ids(tmp_path) == []

        monkeypatch.setattr(os, "link", watching)
        ksessionlog.write(SESSION, tmp_path)
        assert seen == FILES

    @pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
    def test_a_file_system_without_links(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "link", refuse)
        ksessionlog.write(SESSION, tmp_path)
        assert ksessionlog.read(tmp_path, "s") == SESSION
        assert sorted(contents(tmp_path)) == FILES
        (tmp_path / "s.session-log").unlink()
        (tmp_path / FILES[1]).write_bytes(b"other")
        with pytest.raises(SessionExistsError):
            ksessionlog.write(SESSION, tmp_path)
        assert (tmp_path / FILES[1]).read_bytes() == b"other"


NOT_BLANK = st.text(min_size=1, max_size=20).filter(lambda text: text.strip() != "")
OBJECTS = st.builds(KObject, NOT_BLANK, NOT_BLANK, st.binary(max_size=200))


@st.composite
def sessions(draw: st.DrawFn) -> KSession:
    events = draw(st.lists(st.builds(KEvent, st.sampled_from(ROLES), st.text(max_size=30)), max_size=8))
    return KSession(
        KHeader(draw(st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True)), draw(NOT_BLANK)),
        tuple(events),
        draw(st.booleans()),
        {at: draw(OBJECTS) for at, event in enumerate(events) if event.role == "pending-object"},
    )


class TestRoundTrips:
    @given(session=sessions())
    def test_of_any_session(self, session: KSession) -> None:
        with tempfile.TemporaryDirectory() as directory:
            ksessionlog.write(session, directory)
            assert ksessionlog.read(directory, session.header.session_id) == session
            assert ksessionlog.session_ids(directory) == [session.header.session_id]

    @given(text=st.text())
    def test_a_text_is_json(self, text: str) -> None:
        written = _ksession_write._encode_json("text", text)
        assert json.loads(written) == text
        assert not any(byte < 0x20 for byte in written)
