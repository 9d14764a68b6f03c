"""Tool results stay with their calls on the way out of one store and into another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sealog
from sealog.formats import export_session, import_file
from sealog.projections import Transcript

if TYPE_CHECKING:
    from pathlib import Path


def test_results_in_another_order_than_their_calls_stay_paired(tmp_path: Path) -> None:
    with sealog.open(tmp_path / "one") as store:
        session = store.create_session("s")
        for call in ("1", "2"):
            session.append("tool-call", f"call {call}", {"call_id": call, "tool": f"tool-{call}"})
        for call in ("2", "1"):
            session.append("tool-result", f"result {call}", {"call_id": call})
        before = session.project(Transcript())
        export_session(session, tmp_path / "s.jsonl", format="jsonl")
    with sealog.open(tmp_path / "two") as store:
        import_file(store, tmp_path / "s.jsonl")
        after = store.open_session("s").project(Transcript())
    pairs = [[(message.call_id, message.text) for message in messages] for messages in (before, after)]
    assert pairs[0] == pairs[1]
    assert ("2", "result 2") in pairs[1]
