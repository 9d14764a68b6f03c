"""Fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .child import Children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """Return a starter of other processes, which are killed at the end."""
    children = Children(tmp_path / "store")
    yield children
    children.close()
