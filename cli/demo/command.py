"""`sealog demo`: kill a program that appends, and count what is lost."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..app import DAMAGE, ERROR, TRY, command
from ..output import clean, err, new_table, out, plural, print_json, size_text, styled, warn
from .input import INPUT_BYTES_MAX, Transcript, find_transcripts, mean_size, read_transcript
from .run import DemoError, Result, Settings, Watcher, run_demo
from .turns import generated_turns
from .writer import SessionPlan

if TYPE_CHECKING:
    from rich.progress import TaskID

_SESSIONS = 64


@command("demo", TRY)
def demo(
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            metavar="PATH",
            exists=True,
            readable=True,
            show_default=False,
            help="Append the lines of this JSON Lines file, or of the *.jsonl files of this folder, "
            "over and over. May be given several times.",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            metavar="DIR",
            show_default=False,
            help="Folder for the sessions, new or empty; a new one here if left out.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="How long to append before the kill.")
    ] = 5.0,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print the result as a JSON object.")] = False,
) -> None:
    """Kill a program that appends, and count what is lost.

    A process with 16 threads appends to 64 sessions, attaches files and seals some sessions. Everything
    that sealog acknowledges is noted outside that process. After a few seconds it is killed with SIGKILL,
    a new process recovers, and each acknowledged event and file is compared with what is on disk.

    Works offline. The sessions stay for you to look at. Exits with 1 if anything is lost.
    """
    plans, text_bytes = _plan(inputs or [])
    settings = Settings(str(_fresh_folder(store)), plans, text_bytes, seconds)
    try:
        with _ProgressWatcher() as watcher:
            result = run_demo(settings, watcher)
    except DemoError as error:
        warn(f"sealog: {error}")
        raise typer.Exit(ERROR) from None
    if json:
        print_json(_summary(result))
    else:
        _print_result(result)
    if not result.ok:
        raise typer.Exit(DAMAGE)


def _plan(inputs: list[Path]) -> tuple[list[SessionPlan], int]:
    """Return the sessions to make and the mean size of their events."""
    if not inputs:
        generated = [SessionPlan(f"agent-{number:02}") for number in range(_SESSIONS)]
        return generated, mean_size(generated_turns(seed=1))
    transcripts = _read_transcripts(find_transcripts(inputs))
    if not transcripts:
        raise typer.BadParameter("there is no JSON Lines file with a line in it", param_hint="--input")
    plans: list[SessionPlan] = []
    for number in range(max(_SESSIONS, len(transcripts))):
        path = transcripts[number % len(transcripts)].path
        name = re.sub(r"[^A-Za-z0-9]+", "-", path.stem, flags=re.ASCII).strip("-")[:40]
        plans.append(SessionPlan(f"{name or 'transcript'}-{number:02}", str(path.resolve())))
    # Each session replays its file, so files count alike however many lines they have.
    sizes = [mean_size(found.records) for found in transcripts]
    return plans, sum(sizes) // len(sizes)


def _read_transcripts(paths: list[Path]) -> list[Transcript]:
    found: list[Transcript] = []
    left = INPUT_BYTES_MAX
    for path in paths:
        transcript = read_transcript(path, left)
        left -= path.stat().st_size
        if transcript.skipped:
            warn(f"{path}: {plural(transcript.skipped, 'line')} left out: too long, or too much in all")
        if transcript.records:
            found.append(transcript)
    return found


def _fresh_folder(store: Path | None) -> Path:
    """Return a folder for the store, absolute; never one with something in it."""
    if store is not None:
        if store.exists() and (not store.is_dir() or any(store.iterdir())):
            raise typer.BadParameter(f"{clean(str(store))} is there already", param_hint="--store")
        return store.absolute()
    number = 1
    while True:
        folder = Path.cwd() / f"sealog-demo-{number}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
        else:
            return folder


class _ProgressWatcher(Watcher):
    """Shows a bar for each phase on a terminal; silent elsewhere."""

    def __init__(self) -> None:
        console = err()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def phase(self, text: str, total: float) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(text, total=total or None)

    def advance(self, done: float) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=done)


def _summary(result: Result) -> dict[str, object]:
    compared = result.comparison
    return {
        "store": result.store,
        "ok": result.ok,
        "sessions": result.sessions,
        "sealed": compared.sealed,
        "acknowledged": compared.acknowledged,
        "found": compared.found,
        "lost": compared.lost,
        "extra": compared.extra,
        "attachments": compared.attachments,
        "attachments_found": compared.attachments_found,
        "torn_tails": result.torn_tails,
        "cut_bytes": result.cut_bytes,
        "leftovers": result.leftovers,
        "recovery_seconds": round(result.recovery_seconds, 3),
        "appends_per_s": round(result.appends_per_s, 1),
        "floor_per_s": round(result.floor_per_s, 1),
        "ratio": round(result.ratio, 2),
        "problems": compared.problems,
    }


def _print_result(result: Result) -> None:
    compared = result.comparison
    lost_style = "bold red" if compared.lost else "bold green"
    table = new_table("after SIGKILL", "", right=("",))
    rows: list[tuple[str, str, str]] = [
        ("sessions", f"{result.sessions:,}", ""),
        ("  of these sealed", f"{compared.sealed:,}", ""),
        ("events acknowledged", f"{compared.acknowledged:,}", ""),
        ("  found, intact and in place", f"{compared.found:,}", ""),
        ("  lost", f"{compared.lost:,}", lost_style),
        ("extra events found, whole (in flight)", f"{compared.extra:,}", ""),
        ("files attached", f"{compared.attachments:,}", ""),
        ("  found, byte for byte", f"{compared.attachments_found:,}", ""),
        ("torn tails cut", f"{result.torn_tails:,} ({size_text(result.cut_bytes)})", ""),
        ("leftovers removed", f"{result.leftovers:,}", ""),
        ("recovery", f"{result.recovery_seconds:.2f} s", ""),
        ("appends per second, 16 threads", f"{result.appends_per_s:,.0f}", ""),
        ("write + fdatasync, 1 thread", f"{result.floor_per_s:,.0f}", ""),
        ("ratio", f"{result.ratio:.2f}", ""),
    ]
    for name, value, style in rows:
        table.add_row(styled(name, style), styled(value, style))
    console = out()
    console.print(table)
    console.print()
    for problem in compared.problems:
        console.print(styled(problem, "red"))
    if compared.faults > len(compared.problems):
        console.print(styled(f"and {compared.faults - len(compared.problems):,} more", "red"))
    verdict = "Nothing acknowledged was lost." if result.ok else "This must not happen: see above."
    console.print(styled(verdict, lost_style if compared.lost else "bold"))
    folder = _short(result.store)
    console.print(styled(f"The sessions are in {folder}; look at them with"), soft_wrap=True)
    console.print(styled(f"  {_command()} ls --store {folder}"), soft_wrap=True)


def _short(path: str) -> str:
    folder = Path(path)
    return str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)


def _command() -> str:
    """Return how this command was called, so that the hint can be pasted."""
    called = sys.argv[0]
    if os.path.basename(called) == "__main__.py":
        return "python -m sealog.cli"
    return "sealog" if shutil.which("sealog") == called else called
