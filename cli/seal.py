"""`sealog seal`: make sessions final."""

from __future__ import annotations

import msgspec

from .app import CHANGE, command
from .options import JsonOption, SomeSessionsArgument, StoreOption, open_for_writing
from .output import out, plural, print_json, styled, warn
from .progress import new_progress


@command("seal", CHANGE)
def seal(sessions: SomeSessionsArgument, store: StoreOption, *, json: JsonOption = False) -> None:
    """Make sessions final: nothing can be appended any more.

    Every attachment is verified first; if one is missing or damaged the session is not sealed, and the exit
    code is 1. What is printed is the receipt: the number of events and the SHA-256 of the log. Kept
    elsewhere, it proves the session. Sealing twice is sealing once.

    Examples:
        sealog seal job-17
        sealog seal job-17 --json >> receipts.jsonl
    """
    console = out()
    with open_for_writing(store) as opened, new_progress() as bar:
        for session_id in bar.track(sessions, description="sealing"):
            with opened.open_session(session_id) as session:
                report = session.recovered
                if report is not None and report.dropped_bytes:
                    warn(f"{session_id}: {report.dropped_bytes:,} bytes of an interrupted write were cut off")
                receipt = session.seal().receipt
            if json:
                print_json({"session_id": session_id, **msgspec.structs.asdict(receipt)})
            else:
                line = f"{session_id}: sealed, {plural(receipt.events, 'event')}, sha256 {receipt.sha256}"
                console.print(styled(line), soft_wrap=True)
