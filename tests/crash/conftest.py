"""Everything random of the library gets a fixed value, so that a failing state can be found again."""

from __future__ import annotations

import itertools
import secrets

import pytest

from sealog.storage import directory, log

_STATES = pytest.StashKey[set[bytes]]()


@pytest.fixture
def states(request: pytest.FixtureRequest) -> set[bytes]:
    """Digests of all disks that were opened; their number is reported at the end."""
    return request.config.stash.setdefault(_STATES, set())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report how much was tried."""
    states = config.stash.get(_STATES, None)
    if states:
        terminalreporter.write_line(f"{len(states):,} distinct disks that crashes left were opened")


_SALT = b"\xc1\x01\x02\x03" + bytes(range(12))


@pytest.fixture(autouse=True)
def _deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()
    salts = itertools.count()
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    monkeypatch.setattr(log, "new_salt", lambda: _SALT[:-4] + next(salts).to_bytes(4, "big"))
    monkeypatch.setattr(directory, "_holder", lambda: b'{"pid": 1}'.ljust(191) + b"\n")
    # A checkpoint in logs as small as these.
    monkeypatch.setattr(log, "CHECKPOINT_MIN_BYTES", 1024)
