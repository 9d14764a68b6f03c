"""Every recorded scenario of the older harness memory, on sealog.

What has no equal here is listed below: with -1 the final file, else the number of the step. Everything else,
steps and final files, gives what was recorded, and those files that the older program wrote to the byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .golden import read, scenarios
from .replay_harness import KEPT, REFUSED, HarnessReplayer

if TYPE_CHECKING:
    from pathlib import Path


def refused(*steps: int, kept: bool = False) -> dict[int, str]:
    return dict.fromkeys(steps, REFUSED) | ({-1: KEPT} if kept else {})


NOT_APPLICABLE: dict[str, dict[int, str]] = {
    "025_raw_progress_nanos_too_large": refused(2, 3, 4, 12, kept=True),
    "027_raw_progress_both_bad": refused(2, 3, 4, 12, kept=True),
    "028_raw_checkpoint_half_completed": refused(
        2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21, 23, 24, -1
    ),
    "030_raw_unknown_shell": refused(2, 3, 4),
    "032_raw_error_order": refused(2, 4, 6, -1),
    "035_corrupt_truncated": refused(*range(2, 13), -1),
    "036_corrupt_trailing_garbage": refused(*range(2, 13), -1),
    "039_raw_null_fields": refused(*range(2, 17, 2), 22, -1),
    "042_raw_number_types": refused(2, 4, 8, 10, 12, 14, *range(18, 39, 2), -1),
}


@pytest.mark.parametrize("reopen_always", [False, True], ids=["open", "reopened"])
@pytest.mark.parametrize("path", scenarios("harness"))
def test_scenario(shared: Path, tmp_path: Path, path: Path, *, reopen_always: bool):
    replayer = HarnessReplayer(tmp_path, reopen_always=reopen_always)
    try:
        replayer.run(read(path))
    finally:
        replayer.close()
    assert replayer.not_applicable == NOT_APPLICABLE.get(path.stem, {})
