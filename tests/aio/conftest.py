"""Fixtures."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

import pytest

import sealog.aio

from ..api.kit import Kit
from .loops import BACKENDS, Backend

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    """Return a store on a file system whose calls can fail and wait."""
    kit = Kit(tmp_path / "store")
    yield kit
    kit.close()


@pytest.fixture
def store(kit: Kit) -> sealog.aio.Store:
    """Return the async form of that store."""
    return sealog.aio.Store(kit.store())


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Fail a test after which an event loop or a thread pool has complained."""
    said: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(self.format(record))

    handler = Handler(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("asyncio", "concurrent.futures")]
    for logger in loggers:
        logger.addHandler(handler)
    yield
    gc.collect(1)  # what was forgotten complains when it is collected
    for logger in loggers:
        logger.removeHandler(handler)
    assert said == []


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def loop(request: pytest.FixtureRequest) -> Backend:
    """Return each kind of event loop in turn."""
    if request.param.name == "trio":
        pytest.importorskip("trio")
    return request.param()


@pytest.fixture
def asyncio_loop() -> Backend:
    """Return the one of the standard library."""
    return BACKENDS[0]()
