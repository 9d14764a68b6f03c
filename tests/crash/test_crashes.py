"""Crashes at every operation of short lives of sessions, and at every operation of the recoveries after them.

`SEALOG_THOROUGH=1` tries far more of the second and third crashes.
"""

from __future__ import annotations

import os

import pytest

from . import scripts
from .explorer import THOROUGH, Explorer, Plan, Script

NEEDS_THOROUGH = pytest.mark.skipif("SEALOG_THOROUGH" not in os.environ, reason="takes minutes")


@pytest.mark.slow
@pytest.mark.parametrize("script", scripts.ALL, ids=lambda script: script.__name__)
def test_crashes_break_no_promise(script: Script, states: set[bytes]) -> None:
    explorer = Explorer()
    explorer.run(script)
    assert len(explorer.states) > 500
    assert explorer.recovered > 0
    states |= explorer.states


@pytest.mark.slow
def test_crashes_break_no_promise_where_no_space_is_reserved(states: set[bytes]) -> None:
    explorer = Explorer(Plan(every=(40, 0)), preallocates=False)
    explorer.run(scripts.life)
    assert explorer.recovered > 10
    states |= explorer.states


@NEEDS_THOROUGH
@pytest.mark.slow
@pytest.mark.parametrize("preallocates", [True, False])
@pytest.mark.parametrize("script", scripts.ALL, ids=lambda script: script.__name__)
def test_thorough(script: Script, preallocates: bool, states: set[bytes]) -> None:
    explorer = Explorer(THOROUGH, preallocates=preallocates)
    explorer.run(script)
    states |= explorer.states
