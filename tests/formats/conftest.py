"""A store, files to import, and the ways in and out as one call each."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.formats import export_directory, export_session, import_directory, import_file, ksessionlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sealog.formats import ExportReport, ImportReport


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sealog.Store]:
    """Return an empty store."""
    with sealog.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes bytes, or records a line each, to a file."""

    def write(*content: Any, name: str = "chat.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if len(content) == 1 and isinstance(content[0], bytes):
            path.write_bytes(content[0])
        else:
            path.write_text("".join(json.dumps(record) + "\n" for record in content))
        return path

    return write


@pytest.fixture
def take(store: sealog.Store, file: Callable[..., Path]) -> Callable[..., ImportReport]:
    """Return a function that writes a file and imports it."""

    def write_and_import(*content: Any, name: str = "chat.jsonl", **options: Any) -> ImportReport:
        return import_file(store, file(*content, name=name), **options)

    return write_and_import


@pytest.fixture
def events(store: sealog.Store) -> Callable[..., list[sealog.Event]]:
    """Return a function that reads all events of a session."""

    def read(session_id: str = "chat") -> list[sealog.Event]:
        return store.open_session(session_id)[:]

    return read


@pytest.fixture
def give(store: sealog.Store) -> Callable[..., bytes]:
    """Return a function that exports a session."""

    def export(session_id: str = "chat", format: str | None = None) -> bytes:  # noqa: A002
        out = io.BytesIO()
        export_session(store.open_session(session_id), out, format=format)
        return out.getvalue()

    return export


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return an empty folder for what an older program has left."""
    path = tmp_path / "old"
    path.mkdir()
    return path


@pytest.fixture
def put(old: Path) -> Callable[..., Path]:
    """Return a function that writes a KSESSIONLOG session into `old`, in the place of one that is there."""

    def write(session: ksessionlog.KSession) -> Path:
        name = session.header.session_id
        for path in [*old.glob(f"{name}.session-log"), *old.glob(f"{name}-*.pending-object")]:
            path.unlink()
        ksessionlog.write(session, old)
        return old / f"{name}.session-log"

    return write


@pytest.fixture
def bring(store: sealog.Store, old: Path) -> Callable[..., list[ImportReport]]:
    """Return a function that imports the KSESSIONLOG sessions of a folder, of `old` if left out."""

    def take(path: Path = old, **options: Any) -> list[ImportReport]:
        return list(import_directory(store, path, format="ksessionlog", **options))

    return take


@pytest.fixture
def send(store: sealog.Store, tmp_path: Path) -> Callable[..., list[ExportReport]]:
    """Return a function that exports sessions into the KSESSIONLOG folder `new`."""

    def export(**options: Any) -> list[ExportReport]:
        return list(export_directory(store, tmp_path / "new", format="ksessionlog", **options))

    return export


@pytest.fixture
def same_lines() -> Callable[[bytes, bytes], None]:
    """Return a check that two files hold equal JSON a line, ints and floats told apart, in the same order."""

    def check(left: bytes, right: bytes) -> None:
        pairs = zip(_lines(left), _lines(right), strict=True)
        for number, (one, other) in enumerate(pairs):
            assert one == other, number

    return check


def _lines(content: bytes) -> list[str | bytes]:
    found: list[str | bytes] = []
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.strip(b" \t\r\n"):
            try:
                found.append(json.dumps(json.loads(line)))
            except (ValueError, RecursionError):
                found.append(line.strip(b"\r"))
    return found
