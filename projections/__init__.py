"""State derived from events."""

from __future__ import annotations

from .base import Projection

__all__ = ["Projection"]
