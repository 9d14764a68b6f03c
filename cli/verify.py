"""`sealog verify`: prove sessions, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import typer

from ..storage.errors import SessionNotFoundError
from .app import CHECK, DAMAGE, ERROR, command
from .options import JsonOption, SessionsArgument, StoreOption, open_for_reading
from .output import out, plural, print_json, silence_stdout, size_text, styled, warn
from .progress import new_progress

if TYPE_CHECKING:
    from rich.console import Console

    from ..storage.verify import VerifyReport


@command("verify", CHECK)
def verify(
    store: StoreOption,
    sessions: SessionsArgument = None,
    *,
    json: JsonOption = False,
) -> None:
    """Check every byte of sessions: frames, events, attachments, seals.

    Changes nothing and takes no lock, so it may run beside a program that appends. Exits with 1 if anything
    is damaged. The rest of an interrupted write is no damage: the next owner cuts it off.

    Examples:
        sealog verify
        sealog verify job-17 --json
    """
    damaged = failed = False
    console = out()
    with open_for_reading(store) as opened, new_progress(prints_meanwhile=True) as bar:
        for session_id in bar.track(sessions or opened.session_ids(), description="verifying"):
            try:
                report = opened.verify(session_id)
            except (SessionNotFoundError, OSError) as error:
                if sessions:
                    raise
                if isinstance(error, OSError):  # else it was deleted meanwhile
                    failed = True
                    warn(f"{session_id}: {error}")
                continue
            damaged |= not report.ok
            try:
                _print(console, report, json=json)
            except BrokenPipeError:  # nobody reads any more, but the exit code still counts
                silence_stdout()
    if damaged or failed:
        raise typer.Exit(DAMAGE if damaged else ERROR)


def _print(console: Console, report: VerifyReport, *, json: bool) -> None:
    if json:
        print_json(msgspec.to_builtins(report))
        return
    line = styled(report.session_id, "bold")
    line.append(": ")
    line.append("ok" if report.ok else "DAMAGED", "green" if report.ok else "bold red")
    line.append(f", {plural(report.events, 'event')}, {size_text(report.size_bytes)}")
    line.append(", sealed" if report.sealed else "")
    if report.tail_bytes:
        line.append(f", {report.tail_bytes:,} bytes of an interrupted write", "yellow")
    console.print(line, soft_wrap=True)
    for problem in report.problems:
        console.print(styled(f"  {problem}", "red"), soft_wrap=True)
