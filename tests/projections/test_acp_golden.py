"""Every recorded scenario of the older ACP relay, on sealog.

What has no equal here, and what is put right here, is listed below: with -1 the final files, else the number
of the step. Everything else, steps and final files, gives what was recorded, and those files that the older
program wrote to the byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import sealog

from .golden import read, scenarios
from .replay_acp import LAYOUT, REFUSED, AcpReplayer, Instead

if TYPE_CHECKING:
    from pathlib import Path

BLANK = "a blank id is refused, so that it does not put a good state out of reach"
DRIFT = "numbers are read to the nearest float and stay what they are"
ESCAPES = "a target never leaves the store"
DISTINCT = "every target has a state of its own, whatever its name"


def look(state: str, lines: list[str], reason: str | None = None, age_ms: int | None = 0) -> dict[str, Any]:
    return {
        "snapshot_entries": [{"kind": "agent", "lines": [line]} for line in lines],
        "freshness": state,
        "snapshot_source": "live_buffer" if lines else "none",
        "stale_reason_code": reason,
        "snapshot_age_ms": age_ms,
    }


UNKNOWN = look("stale", [], "acp_worker_unavailable", None)
REFUSED_ID = Instead(BLANK, error=sealog.InvalidEventError)


def entries(lines: list[str]) -> list[dict[str, Any]]:
    return [{"kind": "agent", "lines": [line]} for line in lines]


def state(acp_session_id: str, **fields: Any) -> dict[str, Any]:
    return {"schema_version": 1, "acp_session_id": acp_session_id, "worker_state": "available", **fields}


NOW = 1700000000000
DRIFTED = state(
    "sid-1",
    snapshot_entries=[
        {
            "kind": "invocation",
            "call_id": "call-1",
            "status": "Completed",
            "invocation": {
                "a": {"k": "v"},
                "z": [
                    1.2345678901234568e20,
                    5.884498686465263e-131,
                    -3.2367190832119987e-221,
                    0.012053200609833413,
                    0.9529413657043353,
                    1788935117.3083925,
                ],
            },
            "result": {"ok": True},
        }
    ],
    last_acp_frame_observed_at_ms=NOW,
)
LONG = "n" * 255

INSTEAD: dict[str, dict[int, Instead]] = {
    "031_blank_session_id_over_good_state": {
        2: REFUSED_ID,
        3: Instead(BLANK, "available"),
        4: Instead(BLANK, "sid"),
        5: Instead(BLANK, ok=True),
        6: Instead(BLANK, look("fresh", ["precious"])),
        7: Instead(BLANK, look("stale", [], "acp_snapshot_prime_timeout", None)),
        **{step: Instead(BLANK) for step in range(8, 13)},
        -1: Instead(
            BLANK,
            {
                "s1": state(
                    "new4",
                    snapshot_entries=entries(["replaced"]),
                    last_acp_frame_observed_at_ms=NOW,
                    last_snapshot_update_ms=NOW,
                )
            },
        ),
    },
    "032_blank_session_id_by_replace": {
        1: REFUSED_ID,
        2: Instead(BLANK, UNKNOWN),
        3: REFUSED_ID,
        4: Instead(BLANK),
        5: Instead(BLANK),
        6: Instead(BLANK, ok=False),
        7: Instead(BLANK, UNKNOWN),
        -1: Instead(BLANK, {}),
    },
    "045_numbers_drift": {
        **{step: Instead(DRIFT, DRIFTED) for step in range(3, 14, 2)},
        -1: Instead(DRIFT, {"s1": DRIFTED}),
    },
    "078_path_traversal": {-1: Instead(ESCAPES, {"../../escaped": state("sid")})},
    "079_target_names": {
        4: Instead(DISTINCT, "nested"),
        5: Instead(DISTINCT),
        6: Instead(DISTINCT, "nul"),
        8: Instead(DISTINCT),
        9: Instead(DISTINCT, "256"),
        -1: Instead(
            DISTINCT,
            {
                "": state("for-empty"),
                "a/b": state("nested"),
                "a/./b": state("same file"),
                "x\0y": state("nul"),
                LONG: state("255"),
                LONG + "n": state("256"),
                "naïve ☃": state("unicode"),
            },
        ),
    },
}


def refused(*steps: int) -> dict[int, str]:
    return dict.fromkeys(steps, REFUSED)


NOT_APPLICABLE: dict[str, dict[int, str]] = {
    "033_session_id_whitespace_rules": refused(14, 15, 17, 18, 20, 21, 26, 27, 29, 30),
    "064_schema_version_values": refused(*range(2, 19, 2), -1),
    "068_missing_session_id": refused(2, 4, 6, -1),
    "073_corrupt_torn": refused(*range(2, 13), -1),
    "074_corrupt_trailing": refused(*range(2, 13), -1),
    "075_corrupt_various": refused(2, 4, 6, 12, 16, 18, 20, -1),
    "076_nesting_limit": refused(6, 8, -1),
    "077_resolve_path": dict.fromkeys(range(1, 13), LAYOUT),
    "078_path_traversal": {2: LAYOUT},
    "079_target_names": {11: LAYOUT},
    "083_two_targets": {11: LAYOUT},
}


@pytest.mark.parametrize("reopen_always", [False, True], ids=["open", "reopened"])
@pytest.mark.parametrize("path", scenarios("acp"))
def test_scenario(shared: Path, tmp_path: Path, path: Path, *, reopen_always: bool):
    replayer = AcpReplayer(tmp_path, INSTEAD.get(path.stem, {}), reopen_always=reopen_always)
    try:
        replayer.run(read(path))
    finally:
        replayer.close()
    assert replayer.replaced.keys() == INSTEAD.get(path.stem, {}).keys()
    assert replayer.not_applicable == NOT_APPLICABLE.get(path.stem, {})
