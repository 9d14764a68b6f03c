"""Torn tails, flipped bits, and the one rule that differs: no tail is torn if a valid frame follows."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealog.formats import _ksession_scan, ksessionlog
from sealog.formats._ksession_scan import find_frame
from sealog.formats.ksessionlog import KEvent, KHeader, KObject, KSession
from sealog.storage.errors import CorruptionError, SealogError

if TYPE_CHECKING:
    from pathlib import Path

FRAME_HEADER = 41
SESSION = KSession(
    KHeader("s", "now"),
    (KEvent("user-message", "é \0 \n"), KEvent("pending-object", "it"), KEvent("tool-result", "")),
    sealed=True,
    objects={1: KObject("n", "m", b"data")},
)


def frame(kind: int, payload: bytes = b"") -> bytes:
    return bytes([kind]) + len(payload).to_bytes(8, "little") + hashlib.sha256(payload).digest() + payload


class Session:
    """The session above as files, and its log as bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        ksessionlog.write(SESSION, path)
        self.log = path / "s.session-log"
        self.bytes = self.log.read_bytes()
        self.starts = [12]
        while self.starts[-1] < len(self.bytes):
            at = self.starts[-1]
            self.starts.append(at + FRAME_HEADER + int.from_bytes(self.bytes[at + 1 : at + 9], "little"))

    def read(self, data: bytes) -> KSession:
        self.log.write_bytes(data)
        try:
            return ksessionlog.read(self.path, "s")
        finally:
            assert self.log.read_bytes() == data

    def with_length(self, index: int, length: int) -> bytes:
        at = self.starts[index]
        return self.bytes[: at + 1] + length.to_bytes(8, "little") + self.bytes[at + 9 :]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


class TestTornTails:
    def test_every_truncation(self, session: Session) -> None:
        for size in range(len(session.bytes)):
            if size < session.starts[1]:
                with pytest.raises(CorruptionError):
                    session.read(session.bytes[:size])
                continue
            whole = max(start for start in session.starts if start <= size)
            events = session.starts.index(whole) - 1
            found = session.read(session.bytes[:size])
            assert found.events == SESSION.events[:events]
            assert (found.sealed, found.dropped_bytes) == (False, size - whole)
            assert found.orphans == (() if events > 1 else ("s-1.pending-object",))

    @pytest.mark.parametrize(
        "tail", [b"\x02", b"\0" * 40, b"\xff" * 40, frame(2, b"x")[:-1], frame(9, b"x")[:-1]]
    )
    def test_of_a_sealed_log(self, session: Session, tail: bytes) -> None:
        found = session.read(session.bytes + tail)
        assert (found.sealed, found.events, found.dropped_bytes) == (True, SESSION.events, len(tail))

    @pytest.mark.parametrize("size", [41, 42, 4096])
    def test_zeros_are_a_frame_from_41_bytes_on(self, session: Session, size: int) -> None:
        with pytest.raises(CorruptionError, match="checksum-invalid"):
            session.read(session.bytes + bytes(size))

    def test_a_length_beyond_64_bits_is_an_error(self, session: Session) -> None:
        at = session.starts[-2]
        longest = 2**64 - 1 - FRAME_HEADER - at
        assert session.read(session.with_length(-2, longest)).dropped_bytes == FRAME_HEADER
        for length in (longest + 1, 2**64 - 1):
            with pytest.raises(CorruptionError, match="frame length overflow") as raised:
                session.read(session.with_length(-2, length))
            assert (raised.value.offset, raised.value.position) == (at, 3)
        with pytest.raises(CorruptionError, match="frame length overflow"):
            session.read(session.bytes + b"\xff" * 64)

    def test_one_byte_more_than_there_is(self, session: Session) -> None:
        index = len(session.starts) - 3
        size = session.starts[index + 1] - session.starts[index] - FRAME_HEADER
        data = session.with_length(index, size + 1)[: session.starts[index + 1]]
        assert session.read(data).events == SESSION.events[:2]

    def test_a_header_that_is_torn(self, session: Session) -> None:
        with pytest.raises(CorruptionError, match="has no header"):
            session.read(session.with_length(0, 2**20)[: session.starts[1]])


class TestFlips:
    @pytest.mark.slow
    def test_every_bit_of_the_log(self, session: Session) -> None:
        for bit in range(len(session.bytes) * 8):
            data = bytearray(session.bytes)
            data[bit // 8] ^= 1 << bit % 8
            try:
                found = session.read(bytes(data))
            except SealogError:
                continue
            # Only the length of the last frame, which nothing but the end of the file contradicts.
            assert session.starts[-2] < bit // 8 < session.starts[-2] + 9
            assert (found.events, found.sealed, found.dropped_bytes) == (SESSION.events, False, FRAME_HEADER)

    def test_every_byte_gone(self, session: Session) -> None:
        for at in range(len(session.bytes)):
            try:
                found = session.read(session.bytes[:at] + session.bytes[at + 1 :])
            except SealogError:
                continue
            assert found.events == SESSION.events
            assert at >= session.starts[-2]


class TestLaterFrames:
    @pytest.mark.parametrize("length", [2**20, 2**62])
    @pytest.mark.parametrize("index", range(4))
    def test_a_frame_is_never_cut_off_with_others(self, session: Session, index: int, length: int) -> None:
        with pytest.raises(CorruptionError, match="an incomplete frame that is not the last") as raised:
            session.read(session.with_length(index, length))
        assert raised.value.offset == session.starts[index]
        assert raised.value.position == max(index - 1, 0)
        assert f"at byte {session.starts[index + 1]}" in str(raised.value)
        assert "sealog repair" not in str(raised.value)

    @pytest.mark.parametrize("kind", [0, 1, 2, 3, 255])
    @pytest.mark.parametrize("payload", [b"", b"{}", bytes(300)])
    @pytest.mark.parametrize("gap", [0, 1, 500])
    def test_at_any_place_of_any_kind(self, session: Session, kind: int, payload: bytes, gap: int) -> None:
        torn = frame(2, b"x" * 5000)[: FRAME_HEADER + 9] + b"\x01" * gap
        with pytest.raises(CorruptionError, match=f"at byte {len(session.bytes) + len(torn)} "):
            session.read(session.bytes + torn + frame(kind, payload) + b"more")

    def test_frames_that_are_not_valid_do_not_count(self, session: Session) -> None:
        torn = frame(2, b"x" * 5000)[:100]
        for tail in (frame(2, b"yy")[:-1], frame(2, b"yy")[:-1] + b"z", bytes(1000), frame(3)[:-1] + b"\0"):
            assert session.read(session.bytes + torn + tail).dropped_bytes == len(torn + tail)

    def test_bytes_made_to_look_like_frames_cost_no_more_than_a_budget(self, session: Session) -> None:
        torn = frame(2, b"x" * 2**20)[:FRAME_HEADER]
        tail = (b"\x02" + (40_000).to_bytes(8, "little")) * 40_000
        with pytest.raises(CorruptionError, match="an incomplete frame that is not the last"):
            session.read(session.bytes + torn + tail[:400_000])

    def test_a_tail_of_zeros_costs_nothing(self, session: Session) -> None:
        torn = frame(2, b"x" * 2**20)[:FRAME_HEADER]
        torn = torn[:1] + (2**40).to_bytes(8, "little") + torn[9:]
        with session.log.open("wb") as file:
            file.write(session.bytes + torn)
            file.truncate(64 * 2**20)
        assert ksessionlog.read(session.path, "s").sealed


def first_frame(data: bytes, start: int) -> int | None:
    """The rule, word by word."""
    for at in range(start, len(data) - FRAME_HEADER + 1):
        payload_at = at + FRAME_HEADER
        end = payload_at + int.from_bytes(data[at + 1 : at + 9], "little")
        if end <= len(data) and hashlib.sha256(data[payload_at:end]).digest() == data[at + 9 : payload_at]:
            return at
    return None


PIECES = st.one_of(
    st.binary(max_size=60),
    st.integers(0, 90).map(bytes),
    st.builds(frame, st.integers(0, 255), st.binary(max_size=40)),
    st.builds(
        lambda data, cut: data[:cut], st.builds(frame, st.just(2), st.binary(max_size=40)), st.integers(0, 80)
    ),
    st.builds(lambda size: b"\x02" + size.to_bytes(8, "little"), st.integers(0, 400)),
)


class TestFindFrame:
    @given(
        pieces=st.lists(PIECES, max_size=6),
        start=st.integers(0, 60),
        window=st.sampled_from([41, 50, 64, 4096]),
    )
    def test_finds_the_first_one_whatever_the_window(
        self, pieces: list[bytes], start: int, window: int
    ) -> None:
        data = b"".join(pieces)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_ksession_scan, "_WINDOW_BYTES", window)
            assert find_frame(io.BytesIO(data), start, len(data)) == first_frame(data, start)

    @pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65_535, 65_536])
    def test_lengths_of_any_width(self, size: int) -> None:
        data = b"?" * 7 + frame(2, b"a" * size)
        for tail in (b"", b"b" * 1000):
            assert find_frame(io.BytesIO(data + tail), 0, len(data + tail)) == 7
        assert find_frame(io.BytesIO(data), 0, len(data) - 1) is None
