"""Comparing what was acknowledged with what is on disk."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from ...actors.store import open_store
from ...storage.errors import (
    AttachmentCorruptError,
    AttachmentMissingError,
    CorruptionError,
    SealogError,
)
from .writer import SessionPlan, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...actors.session import Session
    from ...storage.events import Event

_PROBLEMS_MAX: Final = 20


class Acknowledged(msgspec.Struct):
    """What one session acknowledged.

    Args:
        digests: of the appended events, by position.
        files: SHA-256 of the attached files, by position.
        sealed_at: events under the seal; None if sealing was not acknowledged.
        repeated: positions that were acknowledged twice.
    """

    digests: dict[int, str] = {}
    files: dict[int, str] = {}
    sealed_at: int | None = None
    repeated: list[int] = []

    def __len__(self) -> int:
        return len(self.digests) + len(self.files)


class Comparison(msgspec.Struct):
    """What was found of what was acknowledged.

    Args:
        acknowledged: events, those of attachments included.
        found: of these, intact and at their position.
        attachments: acknowledged files.
        attachments_found: of these, with the same bytes.
        extra: intact events that were not acknowledged: in flight at the kill.
        sealed: sessions whose seal was acknowledged.
        problems: one sentence for each thing that is not as it must be, up to a limit.
        faults: how many there are.
    """

    acknowledged: int = 0
    found: int = 0
    attachments: int = 0
    attachments_found: int = 0
    extra: int = 0
    sealed: int = 0
    problems: list[str] = []
    faults: int = 0

    @property
    def lost(self) -> int:
        """Acknowledged events that are missing, moved or altered, or whose file is."""
        return self.acknowledged - self.found

    def add_fault(self, text: str) -> None:
        """Count a fault."""
        self.faults += 1
        if len(self.problems) < _PROBLEMS_MAX:
            self.problems.append(text)


def parse_acknowledgements(report: bytes, sessions: int) -> tuple[list[Acknowledged], str | None]:
    """Read what the writing process reported.

    Args:
        report: all it wrote; a last line without its end was not finished, and does not count.
        sessions: how many there are.

    Returns:
        What each session acknowledged, and the error of the process if it reported one.
    """
    lanes = [Acknowledged() for _ in range(sessions)]
    failure: str | None = None
    for line in report.decode("ascii").split("\n")[:-1]:
        match line.split(" ", 3):
            case ["a" | "f" as kind, lane, position, content]:
                _acknowledge(lanes[int(lane)], kind, int(position), content)
            case ["s", lane, events]:
                lanes[int(lane)].sealed_at = int(events)
            case ["x", *text]:
                failure = failure or " ".join(text)
            case _:
                pass
    return lanes, failure


def _acknowledge(lane: Acknowledged, kind: str, position: int, content: str) -> None:
    if position in lane.digests or position in lane.files:
        lane.repeated.append(position)
    (lane.digests if kind == "a" else lane.files)[position] = content


def compare(
    path: str,
    sessions: Iterable[tuple[SessionPlan, Acknowledged]],
    in_flight_max: int,
    advance: Callable[[], None] = lambda: None,
) -> Comparison:
    """Read every session of a store, and compare it with what was acknowledged.

    Args:
        path: of the store.
        sessions: what each acknowledged.
        in_flight_max: how many events can have been under way, unacknowledged.
        advance: called after each session.
    """
    result = Comparison()
    with open_store(path, create=False, read_only=True) as store:
        for plan, lane in sessions:
            result.acknowledged += len(lane)
            result.attachments += len(lane.files)
            result.sealed += lane.sealed_at is not None
            found_before = result.found
            for position in lane.repeated:
                result.add_fault(f"{plan.session_id}: position {position} was acknowledged twice")
            try:
                with store.open_session(plan.session_id) as session:
                    _compare_session(result, session, lane)
                if lane.sealed_at is not None:
                    for problem in store.verify(plan.session_id).problems:
                        result.add_fault(problem)
            except (SealogError, OSError) as error:
                result.add_fault(f"{plan.session_id}: {error}")
            lost = len(lane) - (result.found - found_before)
            if lost:
                result.add_fault(f"{plan.session_id}: {lost:,} of {len(lane):,} events lost")
            advance()
    if result.extra > in_flight_max:
        result.add_fault(
            f"{result.extra:,} events that nobody acknowledged, where {in_flight_max} can have been in flight"
        )
    return result


def _compare_session(result: Comparison, session: Session, lane: Acknowledged) -> None:
    count = len(session)
    if lane.sealed_at is not None and not session.is_sealed:
        result.add_fault(f"{session.session_id}: its seal was acknowledged and is gone")
    if lane.sealed_at not in (None, count):
        result.add_fault(f"{session.session_id}: {count:,} events under a seal of {lane.sealed_at}")
    for position, event in enumerate(session.events()):
        if position in lane.digests:
            result.found += digest(event) == lane.digests[position]
        elif position in lane.files:
            intact = _file_intact(result, session, position, lane.files[position])
            result.found += intact
            result.attachments_found += intact
        else:
            result.extra += 1
            _check_extra(result, session, position, event)


def _file_intact(result: Comparison, session: Session, position: int, sha256: str) -> bool:
    try:
        body = session.read_attachment(position).bytes
    except (AttachmentMissingError, AttachmentCorruptError, CorruptionError) as error:
        result.add_fault(str(error))
        return False
    return hashlib.sha256(body).hexdigest() == sha256


def _check_extra(result: Comparison, session: Session, position: int, event: Event) -> None:
    """An event that came through unacknowledged must be as whole as any other."""
    if event.kind == "attachment":
        try:
            session.read_attachment(position).verify()
        except (AttachmentMissingError, AttachmentCorruptError) as error:
            result.add_fault(str(error))
