"""Fixtures for every suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Tests say what happens, not how fast: a loaded machine fails none.
settings.register_profile("sealog", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sealog")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the source tree."""
    return REPOSITORY


@pytest.fixture(scope="session")
def golden() -> Path:
    """Return the folder of golden files written by released versions."""
    return REPOSITORY / "tests" / "golden"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of reference material that is not part of the repository; skip without it."""
    path = Path(os.environ.get("SEALOG_SHARED", REPOSITORY.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"no reference material at {path}; set SEALOG_SHARED to the folder that holds it")
    return path
