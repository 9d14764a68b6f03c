"""Fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .kit import Kit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    """Return a store on a file system whose calls can fail and wait."""
    kit = Kit(tmp_path / "store")
    yield kit
    kit.close()
