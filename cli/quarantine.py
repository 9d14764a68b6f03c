"""`sealog quarantine`: the ends of logs that recovery has cut off and kept."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from ..storage.directory import lock_session, open_session_directory, open_store_directory
from ..storage.errors import SessionNotFoundError
from ..storage.header import check_session_id
from ..storage.recovery import QUARANTINE
from ..storage.vfs import OsFileSystem, close_quietly
from .app import CHECK, app
from .columns import Cell, Column, print_columns
from .manual import ManualCommand, ManualGroup
from .options import (
    JsonOption,
    SessionArgument,
    SessionsArgument,
    StoreOption,
    open_for_reading,
)
from .output import out, plural, print_json, size_text, time_text, warn
from .progress import new_progress

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ..storage.vfs import Directory

_NAME: Final = re.compile("([0-9]{1,20})-([0-9]{1,20})-[0-9a-f]{16}", re.ASCII)
_SHOWN_BYTES: Final = 4096
_COPY_BYTES: Final = 1024 * 1024
_LINE_BYTES: Final = 16
_COLUMNS: Final = [Column("session"), Column("name"), Column("size", right=True), Column("cut (UTC)", drop=1)]

quarantine = typer.Typer(
    cls=ManualGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help=(
        "List, show and remove what recovery has cut off.\n\n"
        "When a crash interrupts a write, the next program that opens the session cuts the broken end off "
        "its log and keeps a copy in quarantine. Almost always it is a part of an append that was never "
        "acknowledged. Nothing removes these files but this command."
    ),
)
app.add_typer(quarantine, name="quarantine", rich_help_panel=CHECK)


class Kept(msgspec.Struct, frozen=True):
    """A file in quarantine.

    Args:
        session_id: of the session.
        name: of the file.
        offset: where in the log it was.
        size_bytes: of the file.
        cut_at: when it was cut off, ns since the epoch.
    """

    session_id: str
    name: str
    offset: int
    size_bytes: int
    cut_at: int


NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the file, as ls shows it.", show_default=False)
]


@quarantine.command("ls", cls=ManualCommand)
def list_kept(store: StoreOption, sessions: SessionsArgument = None, *, json: JsonOption = False) -> None:
    """List what is in quarantine."""
    with open_for_reading(store) as opened, new_progress(prints_meanwhile=True) as bar:
        ids = sessions or opened.session_ids()
        found = _all_kept(opened.path, bar.track(ids, description="looking"), named=bool(sessions))
        if json:
            for kept in found:
                print_json(msgspec.to_builtins(kept))
            return
        print_columns(out(), _COLUMNS, map(_row, found))


def _row(kept: Kept) -> list[Cell]:
    size, cut_at = size_text(kept.size_bytes), time_text(kept.cut_at)
    return [(kept.session_id, ""), (kept.name, ""), (size, ""), (cut_at, "")]


@quarantine.command("show", cls=ManualCommand)
def show_kept(
    session: SessionArgument,
    name: NameArgument,
    store: StoreOption,
    *,
    full: Annotated[bool, typer.Option("--full", help="All of it, not only the first 4 KiB.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The bytes as they are, for a file or a pipe.")] = False,
    json: JsonOption = False,
) -> None:
    """Show a file in quarantine as hexadecimal and text.

    JSON has the bytes as {"base64": …}. --raw does not print to a terminal.

    Examples:
        sealog quarantine show job-17 4096-210-9f86d081884c7d65
        sealog quarantine show job-17 4096-210-9f86d081884c7d65 --raw > tail.bin
    """
    if raw and sys.stdout.isatty():
        raise typer.BadParameter(
            "the terminal is no place for raw bytes; send them to a file", param_hint="--raw"
        )
    with open_for_reading(store) as opened, _folder(opened.path, session) as folder:
        size = _check_name(folder, session, name)
        file = folder.open(name)
        try:
            if json:
                print_json({"session_id": session, "name": name, "bytes": file.pread(size, 0)})
                return
            end = size if raw or full else min(size, _SHOWN_BYTES)
            for offset in range(0, end, _COPY_BYTES):
                data = file.pread(min(_COPY_BYTES, end - offset), offset)
                if raw:
                    sys.stdout.buffer.write(data)
                else:
                    _print_hex(offset, data)
        finally:
            file.close()
    if raw:
        sys.stdout.buffer.flush()
    elif end < size:
        warn(f"{size - end:,} more bytes; --full shows them")


@quarantine.command("rm", cls=ManualCommand)
def remove_kept(
    session: SessionArgument,
    store: StoreOption,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Names of files, as ls shows them.")
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All of this session.")] = False,
) -> None:
    """Remove files from quarantine, for good.

    The session must not be in use: another process that owns it might just be cutting something off.

    Examples:
        sealog quarantine rm job-17 --all
    """
    if everything == bool(names):
        raise typer.BadParameter("name the files, or give --all", param_hint="NAME")
    with (
        open_for_reading(store) as opened,
        _locked(opened.path, session),
        _folder(opened.path, session) as folder,
    ):
        doomed = sorted(filter(_NAME.fullmatch, folder.names())) if names is None or everything else names
        for name in doomed:
            _check_name(folder, session, name)
        for name in doomed:
            folder.unlink(name)
        folder.sync()
    out().print(f"{session}: {plural(len(doomed), 'file')} removed", soft_wrap=True)


def _all_kept(path: str, sessions: Iterable[str], *, named: bool) -> Iterator[Kept]:
    for session_id in sessions:
        try:
            with _folder(path, session_id) as folder:
                yield from _kept(folder, session_id)
        except FileNotFoundError:  # nothing was ever cut off
            continue
        except SessionNotFoundError:
            if named:
                raise


def _kept(folder: Directory, session_id: str) -> Iterator[Kept]:
    found = [match for match in map(_NAME.fullmatch, folder.names()) if match is not None]
    for match in sorted(found, key=lambda match: int(match[1])):
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(f"{folder.path}/{match[0]}")
            yield Kept(session_id, match[0], int(match[1]), status.st_size, status.st_mtime_ns)


@contextlib.contextmanager
def _folder(path: str, session_id: str) -> Generator[Directory]:
    """Open the quarantine of a session.

    Raises:
        SessionNotFoundError: there is no such session.
        FileNotFoundError: it has none.
    """
    store = open_store_directory(OsFileSystem(), path, create=False)
    session = folder = None
    try:
        session = open_session_directory(store, check_session_id(session_id))
        if session.stat(QUARANTINE) is None:
            msg = f"session {session_id!r} has nothing in quarantine"
            raise FileNotFoundError(msg)
        folder = session.open_directory(QUARANTINE)
        yield folder
    finally:
        close_quietly(folder, session, store)


@contextlib.contextmanager
def _locked(path: str, session_id: str) -> Generator[None]:
    fs = OsFileSystem()
    store = open_store_directory(fs, path, create=False)
    try:
        lock = lock_session(fs, store, check_session_id(session_id))
        try:
            yield
        finally:
            lock.close()
    finally:
        store.close()


def _check_name(folder: Directory, session_id: str, name: str) -> int:
    """Return the size of a file in quarantine, whose name can be nothing else's."""
    found = folder.stat(name) if _NAME.fullmatch(name) else None
    if found is None or found.is_directory:
        msg = f"session {session_id!r} has no {name!r} in quarantine"
        raise FileNotFoundError(msg)
    return found.size_bytes


def _print_hex(offset: int, data: bytes) -> None:
    for at in range(0, len(data), _LINE_BYTES):
        piece = data[at : at + _LINE_BYTES]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)  # noqa: PLR2004 — ASCII
        sys.stdout.write(f"{offset + at:08x}  {piece.hex(' ', 1):<47}  {text}\n")
