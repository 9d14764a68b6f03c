"""`sealog import`: other programs' transcripts into a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from ..actors.store import open_store
from ..storage.errors import SealogError
from .app import DAMAGE, ERROR, EXCHANGE, OK, PARTLY, command, exit_code
from .messages import said
from .options import JsonOption, StoreOption
from .output import clean, out, plural, print_json, warn
from .progress import byte_meter, new_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..actors.store import Store
    from ..formats import ImportReport
    from .plan import Planned

_SHOWN: Final = 10
_SEVERITY: Final = (OK, PARTLY, ERROR, DAMAGE)


def complete_format(incomplete: str) -> list[str]:
    """Return the names of formats that start so."""
    from ..formats import ARCHIVES, READERS

    names = [*(module.NAME for module in READERS), *(module.NAME for module in ARCHIVES)]
    return [name for name in names if name.startswith(incomplete)]


PathsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Files, or folders to look for them.", show_default=False),
]

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        show_default=False,
        help="Name of the format; told from the content if left out.",
        autocompletion=complete_format,
    ),
]

AsOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="SESSION",
        show_default=False,
        help="Id of the session, for one file; the file's name without its ending if left out.",
    ),
]


@command("import", EXCHANGE)
def import_(
    paths: PathsArgument,
    store: StoreOption,
    *,
    format_name: FormatOption = None,
    session_id: AsOption = None,
    json: JsonOption = False,
) -> None:
    """Import transcripts of other programs: all that is in them, a second time only what is new.

    Each file becomes a session. Every record is kept, whether it is understood or not: a line that is no
    JSON is kept as the text it is, and reported. A record that has changed since it was imported is a
    conflict: it is reported, and the session stays as it is. A file that has grown goes on where it ended.
    The store is made if it is missing.

    In a folder, files of no known format are passed over. Two files that would make the same session are
    both refused.

    Exits with 3 if there were problems or conflicts, with 2 if a file could not be imported; the others
    are imported all the same.

    Formats:
        claude-code  a session of Claude Code, with the files of its subagents
        codex  a rollout of Codex
        swe-agent  a trajectory of SWE-agent
        openai-chat  a JSON document of chat messages with tool calls
        jsonl  JSON Lines of {"kind" or "role", "text", …}
        ksessionlog  a folder of session logs of KSESSIONLOG 0.2.1, or one of them
        harness-state, acp-state  a folder of state files, or one of them; they have to be named

    Examples:
        sealog import chat.jsonl
        sealog import ~/.claude/projects --store ~/agents
        sealog import run.traj --format swe-agent --as run-1
    """
    from .plan import plan_import

    plan = plan_import(paths, format_name)
    if session_id is not None and len(plan.files) > 1:
        raise typer.BadParameter("it names the session of one file", param_hint="--as")
    for problem in plan.refused:
        warn(f"sealog: {problem}")
    for path in plan.passed_over:
        if not json:
            warn(f"{path}: passed over, no format fits")
    code = ERROR if plan.refused else OK
    if plan.files:
        with open_store(store) as opened:
            code = _import_all(opened, plan.files, session_id, code, json=json)
    elif not plan.refused:
        warn("sealog: there is nothing to import")
        code = PARTLY
    if code != OK:
        raise typer.Exit(code)


def _import_all(store: Store, files: list[Planned], session_id: str | None, code: int, *, json: bool) -> int:
    for file in files:
        try:
            with new_progress() as bar:
                meter = byte_meter(bar, clean(file.path.name))
                for report in _reports(store, file, session_id, meter):
                    code = max(code, _told(report, file.path, json=json), key=_SEVERITY.index)
        except (SealogError, OSError) as error:
            place = "" if str(file.path) in str(error) else f"{file.path}: "
            warn(f"sealog: {place}{said(error)}")
            code = max(code, exit_code(error), key=_SEVERITY.index)
    return code


def _reports(
    store: Store, file: Planned, session_id: str | None, meter: Callable[[int, int], None]
) -> Iterator[ImportReport]:
    from ..formats import import_directory, import_file

    name = file.format_name
    if not file.is_archive:
        yield import_file(store, file.path, format=name, session_id=session_id, progress=meter)
        return
    try:
        yield from import_directory(store, file.path, format=name, session_id=session_id, progress=meter)
    except ValueError as error:
        if isinstance(error, SealogError):
            raise
        raise typer.BadParameter(said(error), param_hint="--as") from None


def _told(report: ImportReport, path: Path, *, json: bool) -> int:
    """Print a report, and return its exit code."""
    place = report.source or str(path)
    if json:
        print_json({"path": place, **msgspec.to_builtins(report)})
    if report.error is not None:
        warn(f"sealog: {'' if place in report.error else f'{place}: '}{said(report.error)}")
        return ERROR
    if not json:
        _print(report, place)
    return PARTLY if _is_troubled(report) else OK


def _is_troubled(report: ImportReport) -> bool:
    return bool(report.troubled or report.conflicting or any(map(_is_troubled, report.related)))


def _print(report: ImportReport, path: str) -> None:
    what = [f"{report.added:,} added" if report.added or not report.known else "nothing new"]
    what += [f"{report.known:,} known"] if report.known else []
    what += [f"{report.conflicting:,} in conflict"] if report.conflicting else []
    what += [plural(report.attachments, "attachment")] if report.attachments else []
    line = f"{report.session_id}: {plural(report.records, 'record')} of {report.format}, {', '.join(what)}"
    out().print(clean(line), soft_wrap=True)
    for problem in report.problems[:_SHOWN]:
        place = f"{path}:{problem.line}" if problem.line else path
        warn(f"{place}: {problem.reason}")
    if report.troubled > _SHOWN:
        warn(f"{path}: {report.troubled - _SHOWN:,} more problems; --json names them")
    for conflict in report.conflicts[:_SHOWN]:
        place = f"{path}:{conflict.line}" if conflict.line else path
        warn(f"{place}: record {_record_text(conflict.record)} has changed since it was imported")
    if report.conflicting > _SHOWN:
        warn(f"{path}: {report.conflicting - _SHOWN:,} more conflicts; --json names them")
    for related in report.related:
        _print(related, f"{path} ({related.session_id})")


def _record_text(record: int | tuple[str | int, ...]) -> str:
    return str(record) if isinstance(record, int) else "/".join(map(str, record)) or "/"
