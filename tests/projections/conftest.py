"""Fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import sealog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sealog.Store]:
    """Return an open store."""
    with sealog.open(tmp_path / "store") as store:
        yield store
