"""Write the golden files of the current format; the same bytes each time.

Run it in the repository, with the package importable, only when the format was changed on purpose:

    python tests/golden/make.py

Released versions stay readable for ever: after a release, start a new folder (`v2`) instead of changing `v1`.
What a session must read back as (`expected/`) comes from the literals below, not from the log.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import msgspec

from sealog.storage import attachments, checkpoints, directory, events, header, index, log, recovery
from sealog.storage import format as log_format
from sealog.storage.events import Event, encode_event, encode_payload
from sealog.storage.vfs import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent / "v1"
CREATED_AT = "2026-01-02T03:04:05.678901Z"
START_NS = 1_767_323_045_678_901_000
HOLDER = b'{"pid": 1, "host": "golden", "started": "2026-01-02T03:04:05Z"}'.ljust(191) + b"\n"


class Writer:
    """One golden session while it is written: bytes into the store, literals into `expected`."""

    def __init__(self, store: directory.Directory, name: str, labels: dict[str, str]) -> None:
        self._fs = OsFileSystem()
        self._store = store
        self.name = name
        digest = hashlib.sha256(name.encode()).digest()
        salt = b"\xc1" + bytes(byte or 1 for byte in digest[:3]) + digest[3:15]
        with mock.patch.object(log, "new_salt", return_value=salt):
            made_with = header.new_header(name, CREATED_AT, labels)
            directory.create_session(store, made_with).close()
        self.directory = directory.open_session_directory(store, name)
        self.lock = directory.lock_session(self._fs, store, name)
        self.log = log.open_log(self._fs, store, self.directory, self.lock)
        self.path = Path(self.log.path)
        self.expected: dict[str, Any] = {
            "session_id": name,
            "created_at": CREATED_AT,
            "labels": labels,
            "status": "clean",
            "dropped_bytes": 0,
            "reason": None,
            "receipt": None,
            "events": [],
            "attachments": {},
        }

    def frame(self, *batch: Event) -> None:
        """Commit events as one frame."""
        bodies = []
        for event in batch:
            at = START_NS + len(self.expected["events"]) * 1_000_000_000 if event.at is None else event.at
            bodies.append(encode_event(event.kind, event.text, event.data, at, event.key))
            self._expect(event, at)
        self.log.commit(encode_payload(bodies), len(bodies))

    def raw(self, rows: list[Any], *batch: Event) -> None:
        """Commit events that this version would not write itself."""
        for event in batch:
            assert event.at is not None
            self._expect(event, event.at)
        self.log.commit(msgspec.msgpack.encode(rows), len(rows))

    def _expect(self, event: Event, at: int) -> None:
        data = to_json(event.data)
        row = {"kind": str(event.kind), "text": event.text, "data": data, "at": at, "key": event.key}
        self.expected["events"].append(row)

    def attach(self, data: bytes, file_name: str, media_type: str, text: str) -> None:
        """Attach bytes."""
        path = self.path.parent / "source"
        path.write_bytes(data)
        with path.open("rb") as source:
            stage = attachments.stage_attachment(self.directory, attachments.new_stage_name(), source)
        path.unlink()
        position = self.log.head.position
        attachments.publish_stages(self.directory, [(stage, position)])
        described = {
            "file_name": file_name,
            "media_type": media_type,
            "size_bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        self.frame(Event("attachment", text, described))
        self.expected["attachments"][str(position)] = data.hex()

    def seal(self) -> None:
        """Seal the session."""
        end = self.log.head.end
        digest = hashlib.sha256(self.path.read_bytes()[:end]).hexdigest()
        self.log.seal(hashlib.sha256(), 0)
        self.expected["receipt"] = {"events": len(self.expected["events"]), "sha256": digest}

    def finish(self) -> None:
        """Close in order."""
        self.log.finish(self.directory)

    def close(self) -> None:
        """Let go of the files as they are."""
        self.log.close()
        self.lock.close()
        self.directory.close()


def to_json(value: Any) -> Any:
    """Return plain data as JSON, with bytes as {"bytes": hexadecimal}."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def _plain(session: Writer) -> None:
    session.frame(Event("user-message", "Hello"))
    session.frame(Event("tool-call", "ls", {"path": "/tmp", "depth": 2}, key="call-1"))
    session.finish()


def _batch(session: Writer) -> None:
    session.frame(Event("user-message", "one alone"))
    session.frame(*(Event("assistant-message", f"{number} of three") for number in (1, 2, 3)))
    session.frame(*(Event("object", f"{number} of seventeen", number) for number in range(1, 18)))
    session.finish()


def _attachments(session: Writer) -> None:
    session.attach(b"line one\nline two\n", "notes.txt", "text/plain", "the notes")
    session.frame(Event("user-message", "between"))
    session.attach(b"", "empty.bin", "application/octet-stream", "")
    session.attach(bytes(range(256)) * 4, "größe 1.png", "image/png", "a picture")
    session.finish()


def _sealed(session: Writer) -> None:
    session.frame(Event("user-message", "the question"))
    session.frame(Event("assistant-message", "the answer"), Event("system-message", "done"))
    session.seal()
    session.finish()


def _keys(session: Writer) -> None:
    session.frame(Event("user-message", "first", key="k1"), Event("user-message", "no key"))
    session.frame(Event("user-message", "empty key", key=""), Event("user-message", "ключ", key="ключ-☃"))
    session.frame(Event("user-message", "long key", key="k" * 300))
    session.finish()


def _unicode(session: Writer) -> None:
    texts = (
        "",
        "\0",
        "日本語 العربية ไทย",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "a\u0301 \ufeff\uffff",
        "é" * 200,
    )
    session.frame(*(Event("user-message", text, {text: [text]}) for text in texts))
    session.frame(Event("заметка.наша", "own kind"))
    session.finish()


def _data(session: Writer) -> None:
    numbers = [0, -1, 127, 128, 2**31, 2**63 - 1, 2**64 - 1, -(2**63), 0.0, 0.1, -1.5e300]
    session.frame(Event("object", "numbers", numbers), Event("object", "none"))
    session.frame(
        Event("object", "others", {"t": True, "f": False, "n": None, "b": b"\x00\xff", "e": {}, "l": []})
    )
    session.frame(
        Event("object", "times", at=-1),
        Event("object", "times", at=0),
        Event("object", "times", at=2**63 - 1),
    )
    session.finish()


def _own_kinds(session: Writer) -> None:
    session.frame(Event("myapp.note", "a kind of the application"))
    session.raw(
        [[200, "a kind of a newer version", None, 5], [3, "more fields", [1], 6, "k", {"new": 1}, 7]],
        Event("sealog.kind-200", "a kind of a newer version", None, 5),
        Event("user-message", "more fields", [1], 6, "k"),
    )
    session.raw(
        [["user-message", "a built-in kind as text", None, 7]],
        Event("user-message", "a built-in kind as text", None, 7),
    )
    session.finish()


def _crashed(session: Writer) -> None:
    """Not closed: zeros behind the last frame, and a head mark of before the events."""
    session.frame(Event("user-message", "kept"))
    session.frame(Event("user-message", "kept too"))
    os.truncate(session.path, 8192)


def _torn_tail(session: Writer) -> None:
    """Interrupted inside the last frame."""
    session.frame(Event("user-message", "kept"))
    end = session.log.head.end
    session.frame(Event("user-message", "lost " * 20))
    os.truncate(session.path, end + 50)
    session.expected["events"].pop()
    session.expected.update(status="recovered", dropped_bytes=50, reason="incomplete")


def _checkpoint(session: Writer) -> None:
    """An index checkpoint, and a frame behind what it covers."""
    session.frame(Event("user-message", "covered"))
    session.frame(Event("user-message", "covered too"))
    covered = session.log._last
    body = recovery.encode_index(session.log.view.index)
    written = checkpoints.checkpoint_of(session.log.view.keys, covered, body)
    assert checkpoints.write_checkpoint(session.directory, recovery.INDEX_CHECKPOINT, written)
    session.frame(Event("user-message", "behind it"))
    session.finish()


SESSIONS = {
    "plain": _plain,
    "batch": _batch,
    "attachments": _attachments,
    "sealed": _sealed,
    "keys": _keys,
    "unicode": _unicode,
    "data": _data,
    "own-kinds": _own_kinds,
    "crashed": _crashed,
    "torn-tail": _torn_tail,
    "checkpoint": _checkpoint,
}


def make(target: Path) -> None:
    """Write everything anew into a folder."""
    for part in ("store", "expected", "hexdump"):
        shutil.rmtree(target / part, ignore_errors=True)
    for part in ("expected", "hexdump"):
        (target / part).mkdir(parents=True)
    store = directory.open_store_directory(OsFileSystem(), str(target / "store"), create=True)
    with contextlib.closing(store), mock.patch.object(directory, "_holder", return_value=HOLDER):
        for name, write in SESSIONS.items():
            session = Writer(store, name, {"case": name} if name != "plain" else {})
            with contextlib.closing(session):
                write(session)
            expected = json.dumps(session.expected, indent=1, ensure_ascii=True)
            (target / "expected" / f"{name}.json").write_text(f"{expected}\n", "ascii")
            dump = "\n".join(hexdump(session.path.read_bytes()))
            (target / "hexdump" / f"{name}.txt").write_text(f"{dump}\n", "ascii")
    (target / "layout.txt").write_text(layout(), "ascii")


def hexdump(data: bytes) -> Iterator[str]:
    """Yield lines as `hexdump -C` prints them, with `*` for repeated ones."""
    before, starred = None, False
    for offset in range(0, len(data), 16):
        row = data[offset : offset + 16]
        if row == before and len(row) == 16:
            if not starred:
                yield "*"
            starred = True
            continue
        before, starred = row, False
        left, right = row[:8].hex(" "), row[8:].hex(" ")
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{offset:08x}  {left:<23}  {right:<23}  |{shown}|"
    yield f"{len(data):08x}"


def _fields(name: str, layout: struct.Struct, names: str) -> Iterator[str]:
    """Print a structure field by field, with the offsets that the struct module gives them."""
    yield f"{name}: {layout.format}, {layout.size} bytes"
    offset = 0
    for part, field in zip(re.findall(r"\d*[a-zA-Z]", layout.format), names.split(), strict=True):
        size = struct.calcsize(f"<{part}")
        yield f"  {offset:>2} {size:>2} {field}"
        offset += size
    assert offset == layout.size


def layout() -> str:
    """Print every constant of the format that a reader of old files depends on."""
    lines = ["compatibility: change nothing here without a new format version", ""]
    lines += _fields("file header", log_format.FILE_HEADER, "magic major minor check salt")
    lines += _fields(
        "frame header",
        log_format.FRAME_HEADER,
        "sync header_check digest payload_length event_count kind flags first_position previous",
    )
    lines += _fields("head mark", log_format.HEAD_MARK, "seed end next_position header_check digest")
    lines += _fields("checkpoint lead", checkpoints._LEAD, "magic version digest")
    lines += [
        f"magic: {log_format.MAGIC.hex(' ')}",
        f"version: {log_format.MAJOR}.{log_format.MINOR}",
        f"checkpoint magic: {checkpoints.MAGIC.hex(' ')}",
        f"checkpoint version: {checkpoints.VERSION}",
        f"checkpoint fields: {' '.join(checkpoints.Checkpoint.__struct_fields__)}",
        f"store marker: {directory.MARKER_NAME} {directory.MARKER_TEXT!r}",
        f"holder: at {log_format.HOLDER_OFFSET}, {directory.HOLDER_SIZE} bytes",
        f"frame kind {log_format.KIND_SESSION_HEADER}: session header",
        f"frame kind {log_format.KIND_EVENTS}: events",
        f"frame kind {log_format.KIND_SEAL}: seal",
        f"session header fields: {' '.join(log_format.SessionHeader.__struct_fields__)}",
        f"seal fields: {' '.join(log_format.Receipt.__struct_fields__)}",
        f"event fields: {' '.join(events._WireEvent.__struct_fields__)}",
        f"attachment fields: {' '.join(events.AttachmentData.__struct_fields__)}",
        *(f"event kind {code}: {kind}" for kind, code in events.KIND_CODES.items()),
        f"payload bytes at most: {log_format.PAYLOAD_SIZE_MAX}",
        f"events of a frame at most: {log_format.FRAME_EVENTS_MAX}",
        f"events of a session at most: {log_format.SESSION_EVENTS_MAX}",
        f"text bytes at most: {events.TEXT_BYTES_MAX}",
        f"kind bytes at most: {events.KIND_BYTES_MAX}",
        f"key bytes at most: {events.KEY_BYTES_MAX}",
        f"data levels at most: {events.DATA_DEPTH_MAX}",
        f"label bytes at most: {header.LABELS_BYTES_MAX}",
        f"bytes between index entries: {index.ENTRY_SPACING_BYTES}",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the golden files of the current format.")
    parser.add_argument(
        "--target", type=Path, default=HERE, help="folder to write to (default: v1 beside this file)"
    )
    make(parser.parse_args().target)
