"""`sealog attachments`: the files of a session."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..storage.attachments import COPY_BYTES
from ..storage.errors import AttachmentCorruptError, AttachmentMissingError
from .app import DAMAGE, LOOK, OK, PARTLY, command
from .columns import Cell, Column, print_columns
from .options import JsonOption, SessionArgument, StoreOption, open_for_reading
from .output import clean, out, print_json, size_text, warn
from .progress import new_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..actors.session import Session
    from ..storage.attachments import Attachment

_NAME_BYTES: Final = 150
_SUFFIX_BYTES: Final = 20
_NO_NAME: Final = re.compile(
    '[\x00-\x1f\x7f-\x9f<>:"|?*'  # what a terminal obeys, and what some systems refuse
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)
_COLUMNS: Final = [
    Column("file", clip_to=0),
    Column("position", right=True),
    Column("type", drop=2, clip_to=10),
    Column("size", right=True),
    Column("sha256", drop=1, clip_to=12),
]


@command("attachments", LOOK)
def attachments(
    session: SessionArgument,
    store: StoreOption,
    *,
    extract: Annotated[
        Path | None,
        typer.Option(
            "--extract",
            metavar="DIR",
            show_default=False,
            help="Copy the files into this folder, made if it is missing.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the files of a session, or copy them out.

    A copy is named <position>-<file name>, with everything in the name replaced that could lead elsewhere,
    so nothing is ever written outside of the folder, and no file is replaced. Size and SHA-256 are checked
    while copying; a file that is damaged is not kept.

    Exits with 1 if a file is missing or damaged, with 3 if one was there already.

    Examples:
        sealog attachments job-17
        sealog attachments job-17 --extract shots
    """
    with open_for_reading(store) as opened, opened.open_session(session) as found:
        if extract is not None:
            extract.mkdir(parents=True, exist_ok=True)
            code = _extract(found, extract, json=json)
        else:
            code = _list(found, json=json)
    if code != OK:
        raise typer.Exit(code)


def _list(session: Session, *, json: bool) -> int:
    problems: list[str] = []
    found = _described(session, problems)
    if json:
        for attachment in found:
            print_json(_fields(attachment))
    else:
        print_columns(out(), _COLUMNS, map(_row, found))
    for problem in problems:
        warn(problem)
    return DAMAGE if problems else OK


def _described(session: Session, problems: list[str]) -> Iterator[Attachment]:
    """Iterate over the attachments; an event that does not describe one is a problem, and not the last."""
    for position, event in enumerate(session.events()):
        if event.kind == "attachment":
            try:
                yield session.read_attachment(position)
            except AttachmentMissingError as error:
                problems.append(f"sealog: {error}")


def _fields(attachment: Attachment) -> dict[str, Any]:
    return {
        "position": attachment.position,
        "file_name": attachment.file_name,
        "media_type": attachment.media_type,
        "size_bytes": attachment.size_bytes,
        "sha256": attachment.sha256,
        "text": attachment.text,
        "path": attachment.path,
    }


def _row(attachment: Attachment) -> list[Cell]:
    return [
        (clean(attachment.file_name), ""),
        (str(attachment.position), ""),
        (clean(attachment.media_type), ""),
        (size_text(attachment.size_bytes), ""),
        (clean(attachment.sha256), "dim"),
    ]


def _extract(session: Session, folder: Path, *, json: bool) -> int:
    code, problems = OK, list[str]()
    # The folder is held open: were it replaced by a link meanwhile, nothing would follow it.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with new_progress(prints_meanwhile=True) as bar:
            found = _described(session, problems)
            for attachment in bar.track(found, description="copying"):
                name = safe_name(attachment)
                try:
                    _copy(attachment, descriptor, name)
                except FileExistsError:
                    warn(f"sealog: {folder / name} is there already; it was left as it is")
                    code = code or PARTLY
                except (AttachmentMissingError, AttachmentCorruptError) as error:
                    problems.append(f"sealog: {error}")
                else:
                    _tell(attachment, folder / name, json=json)
    finally:
        os.close(descriptor)
    for problem in problems:
        warn(problem)
    return DAMAGE if problems else code


def _tell(attachment: Attachment, path: Path, *, json: bool) -> None:
    if json:
        print_json({**_fields(attachment), "extracted": str(path)})
    else:
        out().print(clean(str(path)), soft_wrap=True)


def safe_name(attachment: Attachment) -> str:
    """Return the name of a copy: one entry of a folder, whatever the attachment is called."""
    name = re.split(r"[/\\]", attachment.file_name)[-1]
    name = _NO_NAME.sub("_", name).strip(" .")
    stem, suffix = os.path.splitext(name)
    if len(suffix.encode()) > _SUFFIX_BYTES:
        stem, suffix = name, ""
    stem = stem.encode()[:_NAME_BYTES].decode(errors="ignore").rstrip(" .")
    return f"{attachment.position}-{stem or 'file'}{suffix}"


def _copy(attachment: Attachment, folder: int, name: str) -> None:
    """Copy a file to a name that is new.

    Raises:
        FileExistsError: something is there.
        AttachmentMissingError, AttachmentCorruptError: the file cannot be read; no copy is left.
        OSError: the copy cannot be written; none is left.
    """
    with attachment.open() as source:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as target:
                while data := source.read(COPY_BYTES):
                    target.write(data)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise
