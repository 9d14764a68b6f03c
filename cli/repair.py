"""`sealog repair`: save what can be read of a damaged session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from .app import CHECK, DAMAGE, command
from .options import JsonOption, SessionArgument, StoreOption, open_for_reading
from .output import out, plural, print_json, styled
from .progress import new_progress

if TYPE_CHECKING:
    from ..storage.repair import Gap, RepairReport


@command("repair", CHECK)
def repair(
    session: SessionArgument,
    store: StoreOption,
    into: Annotated[
        Path,
        typer.Option(
            "--into",
            metavar="DIR",
            show_default=False,
            help="Another store, which gets the copy; made if it is missing.",
        ),
    ],
    *,
    json: JsonOption = False,
) -> None:
    """Copy what can be read of a damaged session into another store.

    The original is only read. Positions stay what they were: an event that cannot be read is replaced by
    one of the kind sealog.lost. The copy is not sealed. Attachments that are whole are copied too.

    Exits with 0 if all of it could be read, with 1 if something is missing in the copy.

    Examples:
        sealog repair job-17 --into ~/repaired
    """
    with open_for_reading(store) as opened, new_progress() as bar:
        opened.describe(session)  # before a store is made for the copy
        bar.add_task(f"copying {session}", total=None)
        report = opened.repair(session, into)
    if json:
        print_json(msgspec.to_builtins(report))
    else:
        _print(report)
    if report.gaps or report.attachments_lost:
        raise typer.Exit(DAMAGE)


def _print(report: RepairReport) -> None:
    console = out()
    whole = report.events - report.lost_events
    console.print(styled(f"{report.session_id}: {plural(whole, 'event')} copied to {report.path}", "bold"))
    if report.sealed:
        console.print(styled("  the original is sealed, the copy is not"))
    if report.lost_events:
        console.print(styled(f"  {plural(report.lost_events, 'event')} lost", "red"))
    for gap in report.gaps:
        console.print(styled(f"  {_gap_text(gap)}", "red"), soft_wrap=True)
    for position in report.attachments_lost:
        console.print(styled(f"  the attachment of position {position} is missing or damaged", "red"))


def _gap_text(gap: Gap) -> str:
    if not gap.size_bytes:
        return "the header of the session could not be read; the copy has a stand-in"
    what = "nobody can know how many events" if gap.events is None else plural(gap.events, "event")
    return f"byte {gap.offset:,}: {gap.size_bytes:,} bytes, {what}, from position {gap.first_position:,}"
