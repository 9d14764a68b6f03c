"""`sealog export`: sessions as files of other programs, or as pages for people."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.progress import Progress

from ..storage.errors import SealogError
from .app import DAMAGE, ERROR, EXCHANGE, OK, PARTLY, command, exit_code
from .messages import said
from .options import SessionsArgument, StoreOption, open_for_reading
from .output import clean, flush_stdout, out, plural, print_json, warn
from .progress import new_progress

if TYPE_CHECKING:
    from ..actors.store import Store
    from ..formats import ExportReport, Writer


def complete_format(incomplete: str) -> list[str]:
    """Return the names of formats that start so."""
    from ..formats import WRITERS

    return [module.NAME for module in WRITERS if module.NAME.startswith(incomplete)]


FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        show_default=False,
        help="Name of the format; the one a session was imported from, else jsonl, if left out.",
        autocompletion=complete_format,
    ),
]

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        show_default=False,
        help="Write one session to this file; to standard output if left out.",
    ),
]

IntoOption = Annotated[
    Path | None,
    typer.Option(
        "--into",
        metavar="DIR",
        show_default=False,
        help="Write each session to a file of its name in this folder, made if it is missing.",
    ),
]

ForceOption = Annotated[bool, typer.Option("--force", "-f", help="Replace files that are there.")]

ReportOption = Annotated[
    bool, typer.Option("--json", help="Print a report, one JSON object a line; with --output or --into.")
]


@command("export", EXCHANGE)
def export(
    store: StoreOption,
    sessions: SessionsArgument = None,
    *,
    format_name: FormatOption = None,
    output: OutputOption = None,
    into: IntoOption = None,
    force: ForceOption = False,
    json: ReportOption = False,
) -> None:
    """Export sessions: in the format of another program, or as a page to read.

    Exporting in the format that a session was imported from gives back equal JSON, record for record. A
    file appears when it is complete. Without ids, --into exports all sessions of the store.

    Exits with 3 if events were left out for which the format has no place, with 2 if a session could not
    be exported.

    Formats:
        jsonl  JSON Lines: imported records as they came, other events with all that they have
        markdown  to read
        html  one page that needs nothing else, with the attachments in it
        claude-code, codex, swe-agent, openai-chat  what was imported from there
        ksessionlog, harness-state, acp-state  as the programs keep it that sealog replaces

    Examples:
        sealog export chat > chat.jsonl
        sealog export job-17 --format html --output job-17.html
        sealog export --into backup
    """
    from ..formats import ARCHIVES

    _check_call(sessions, output, into, json=json)
    with open_for_reading(store) as opened:
        if into is None:
            session_id = (sessions or [""])[0]
            code = _export_one(opened, session_id, format_name, output, force=force, json=json)
        else:
            into.mkdir(parents=True, exist_ok=True)
            ids = sessions or opened.session_ids()
            if format_name in {module.NAME for module in ARCHIVES}:
                code = _export_archive(opened, sessions, format_name or "", into, force=force, json=json)
            else:
                code = _export_all(opened, ids, format_name, into, force=force, json=json)
    if code != OK:
        raise typer.Exit(code)


def _check_call(sessions: list[str] | None, output: Path | None, into: Path | None, *, json: bool) -> None:
    if output is not None and into is not None:
        raise typer.BadParameter("give one of --output and --into", param_hint="--into")
    if into is None and len(sessions or ()) != 1:
        raise typer.BadParameter("name one session, or give --into for several", param_hint="SESSION")
    if json and output is None and into is None:
        raise typer.BadParameter("the report needs --output or --into", param_hint="--json")


def _export_one(
    store: Store, session_id: str, format_name: str | None, output: Path | None, *, force: bool, json: bool
) -> int:
    from ..formats import export_session

    target = _StandardOutput() if output is None else output
    with store.open_session(session_id) as session, _spinner(output is None) as bar:
        bar.add_task(f"exporting {session_id}", total=None)
        try:
            report = export_session(session, target, format=format_name, overwrite=force)
        except FileExistsError as error:
            msg = f"{output} is there already; --force replaces it"
            raise FileExistsError(msg) from error
        except ValueError as error:
            if isinstance(error, SealogError) or output is not None:
                raise
            raise typer.BadParameter(str(error), param_hint="--format") from None  # that format is a folder
    if isinstance(target, _StandardOutput):
        target.finish()
    return _told(report, output, json=json)


def _export_all(
    store: Store, sessions: list[str], format_name: str | None, into: Path, *, force: bool, json: bool
) -> int:
    from ..formats import export_session
    from ..formats.exporting import own_format
    from ..formats.registry import find_writer

    code = OK
    with new_progress(prints_meanwhile=True) as bar:
        for session_id in bar.track(sessions, description="exporting"):
            try:
                with store.open_session(session_id) as session:
                    writer: Writer = find_writer(format_name or own_format(session))
                    path = into / f"{session_id}{writer.SUFFIX}"
                    report = export_session(session, path, format=writer.NAME, overwrite=force)
            except BrokenPipeError:
                raise
            except FileExistsError:
                warn(f"sealog: {session_id}: its file is in {into} already; --force replaces it")
                found = ERROR
            except (SealogError, OSError) as error:
                warn(f"sealog: {session_id}: {said(error)}")
                found = exit_code(error)
            else:
                found = _told(report, path, json=json)
            code = max(code, found, key=(OK, PARTLY, ERROR, DAMAGE).index)
    return code


def _export_archive(
    store: Store, sessions: list[str] | None, format_name: str, into: Path, *, force: bool, json: bool
) -> int:
    from ..formats import export_directory

    code = OK
    with new_progress(prints_meanwhile=True) as bar:
        task = bar.add_task("exporting", total=None)
        for report in export_directory(
            store,
            into,
            format=format_name,
            sessions=sessions,
            overwrite=force,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        ):
            if report.error is not None:
                warn(f"sealog: {report.session_id}: {said(report.error)}")
                found = ERROR
            else:
                found = _told(report, Path(report.target or into), json=json)
            code = max(code, found, key=(OK, PARTLY, ERROR, DAMAGE).index)
    return code


def _spinner(disabled: bool) -> Progress:  # noqa: FBT001 — its only argument
    return new_progress(prints_meanwhile=disabled)


def _told(report: ExportReport, path: Path | None, *, json: bool) -> int:
    if path is not None and json:
        print_json({"path": str(path), **msgspec.to_builtins(report)})
    elif path is not None:
        line = f"{report.session_id}: {plural(report.records, 'record')} of {report.format} in {path}"
        line += ", as it was there already" if report.unchanged else ""
        out().print(clean(line), soft_wrap=True)
    left_out = list(report.dropped)
    if report.skipped:
        left_out.insert(0, plural(report.skipped, "event"))
    if left_out and not json:
        warn(f"{report.session_id}: {report.format} has no place for {', '.join(left_out)}: left out")
    return PARTLY if report.skipped else OK


class _StandardOutput:
    """Takes the bytes of an export; what a terminal shows cannot steer it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._plain = not sys.stdout.isatty()
        flush_stdout()

    def write(self, data: bytes, /) -> Any:
        if self._plain:
            sys.stdout.buffer.write(data)
        else:
            sys.stdout.write(clean(self._decoder.decode(data), lines=True))

    def finish(self) -> None:
        if self._plain:
            sys.stdout.buffer.flush()
        else:
            sys.stdout.write(clean(self._decoder.decode(b"", final=True), lines=True))
