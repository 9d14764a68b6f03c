"""ACP targets: what a look shows, what is kept, what is refused."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import sealog
from sealog.projections import acp as acp_module
from sealog.projections.acp import (
    ACP_LOOK_PRIME_TIMEOUT_MS,
    AcpSessions,
    AgentEntry,
    CognitionEntry,
    InvocationEntry,
    InvocationStatus,
    LookSnapshot,
    SnapshotEntry,
    UpdateEntry,
    UserEntry,
    WorkerState,
)

from .acp_kit import NOW, Clock, agents, lines
from .kit import together

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def acp(store: sealog.Store, clock: Clock) -> AcpSessions:
    return AcpSessions(store, clock_ms=clock)


def shown(look: LookSnapshot) -> tuple[str, str, str | None, int | None]:
    return look.freshness, look.snapshot_source, look.stale_reason_code, look.snapshot_age_ms


def test_how_long_to_wait_for_a_first_snapshot_is_public():
    assert ACP_LOOK_PRIME_TIMEOUT_MS == 750
    assert "ACP_LOOK_PRIME_TIMEOUT_MS" in acp_module.__all__


def test_an_unknown_target_is_unavailable_and_stays_unknown(acp: AcpSessions, store: sealog.Store):
    for requested, timed_out in ((0, False), (5, False), (5, True)):
        assert msgspec.to_builtins(acp.look("t", requested, timed_out)) == {
            "snapshot_entries": [],
            "freshness": "stale",
            "snapshot_source": "none",
            "stale_reason_code": "acp_worker_unavailable",
            "snapshot_age_ms": None,
        }
    acp.persist_worker_state("t", None, WorkerState.BUSY)
    assert (acp.load_worker_state("t"), acp.load_session_id("t")) == (None, None)
    assert not acp.ready_for_startup("t")
    with pytest.raises(sealog.SessionNotFoundError):
        acp.export_state("t")
    assert store.session_ids() == []


def test_a_session_without_events_is_an_unknown_target(acp: AcpSessions, store: sealog.Store):
    """As a crash between making the session and its first event leaves it."""
    store.create_session("k--acp-t", labels={"key": "t", "owner": "acp"})
    acp.persist_worker_state("t", None, WorkerState.BUSY)
    assert acp.load_worker_state("t") is None
    assert acp.look("t", 5).stale_reason_code == "acp_worker_unavailable"
    with pytest.raises(sealog.SessionNotFoundError):
        acp.export_state("t")
    acp.persist_session_id("t", "sid")
    assert (acp.load_worker_state("t"), acp.load_session_id("t")) == (WorkerState.AVAILABLE, "sid")


@pytest.mark.parametrize("timed_out", [False, True])
@pytest.mark.parametrize("age_ms", [None, -1, 0, 4999, 5000, 10**9])
@pytest.mark.parametrize("requested", [0, 1])
@pytest.mark.parametrize("state", list(WorkerState))
def test_the_rules_of_a_look_decide_in_order(
    acp: AcpSessions, clock: Clock, state: WorkerState, requested: int, age_ms: int | None, *, timed_out: bool
):
    clock.now_ms = -1 if age_ms is None else NOW - age_ms
    acp.append_entries("t", "sid", agents("x"))
    acp.persist_worker_state("t", None, state)
    clock.now_ms = NOW
    seen_age = age_ms if requested and age_ms is not None and age_ms >= 0 else None
    reason = None
    if state is WorkerState.UNAVAILABLE:
        reason = "acp_worker_unavailable"
    elif not requested:
        reason = "acp_snapshot_prime_timeout" if timed_out else "acp_worker_initializing"
    elif state is WorkerState.INITIALIZING:
        reason = "acp_worker_initializing"
    elif state is WorkerState.AVAILABLE and seen_age is not None and seen_age >= 5000:
        reason = "acp_stream_stalled"
    look = acp.look("t", requested, timed_out)
    source = "live_buffer" if requested else "none"
    assert shown(look) == ("fresh" if reason is None else "stale", source, reason, seen_age)
    assert acp.ready_for_startup("t") is (state is WorkerState.AVAILABLE)


@pytest.mark.parametrize("now", [-1, -1.5, -(10**20), 2**63])
def test_a_clock_without_a_time_takes_the_times_away(acp: AcpSessions, clock: Clock, now: float):
    acp.append_entries("t", "sid", agents("x"))
    clock.now_ms = now
    assert acp.look("t", 1).snapshot_age_ms is None
    acp.append_entries("t", "sid", agents("y"))
    clock.now_ms = NOW
    assert shown(acp.look("t", 1)) == ("fresh", "live_buffer", None, None)
    assert b"_ms" not in acp.export_state("t")


def test_a_clock_of_floats_is_cut_off(acp: AcpSessions, clock: Clock):
    clock.now_ms = NOW + 0.9
    acp.append_entries("t", "sid", agents("x"))
    clock.now_ms = NOW + 4999.9
    assert shown(acp.look("t", 1)) == ("fresh", "live_buffer", None, 4999)


def test_a_clock_that_steps_back_changes_no_order(acp: AcpSessions, clock: Clock):
    for step, now in enumerate((NOW, NOW - 10_000, NOW, NOW - 1)):
        clock.now_ms = now
        acp.append_entries("t", "sid", agents(step))
    assert lines(acp.look("t", 9)) == ["0", "1", "2", "3"]


def test_the_wall_clock_is_the_default(store: sealog.Store):
    acp = AcpSessions(store)
    acp.append_entries("t", "sid", agents("x"))
    age_ms = acp.look("t", 1).snapshot_age_ms
    assert age_ms is not None
    assert 0 <= age_ms < 600_000
    assert inspect.signature(AcpSessions).parameters["clock_ms"].kind is inspect.Parameter.KEYWORD_ONLY


def test_times_move_only_with_entries(acp: AcpSessions, clock: Clock):
    acp.append_entries("t", "sid", agents("x"))
    clock.now_ms += 1000
    acp.append_entries("t", "sid", [])
    acp.persist_session_id("t", "sid")
    acp.persist_worker_state("t", "sid", WorkerState.AVAILABLE)
    assert acp.look("t", 1).snapshot_age_ms == 1000
    acp.replace_entries("t", "sid", [])
    assert acp.export_state("t").count(b"_ms") == 2
    acp.append_entries("t", "sid", agents("y"))
    assert acp.look("t", 1).snapshot_age_ms == 0


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u0085", "\u3000", "\u1680\u2028", None, 5])
def test_a_blank_id_is_refused_and_nothing_changes(acp: AcpSessions, store: sealog.Store, blank: Any):
    calls: list[Callable[[str], None]] = [
        lambda target: acp.persist_session_id(target, blank),
        lambda target: acp.append_entries(target, blank, agents("x")),
        lambda target: acp.replace_entries(target, blank, agents("x")),
    ]
    if blank is not None:
        calls.append(lambda target: acp.persist_worker_state(target, blank, WorkerState.BUSY))
    acp.append_entries("good", "sid", agents("precious"))
    before = acp.export_state("good")
    for call in calls:
        for target in ("good", "new"):
            with pytest.raises(sealog.InvalidEventError, match="acp_session_id"):
                call(target)
    assert acp.export_state("good") == before
    assert len(store.session_ids()) == 1


@pytest.mark.parametrize("acp_session_id", ["\x1c", "\u200b", "\ufeff", "\0", " a b\n"])
def test_an_id_is_kept_as_it_is(acp: AcpSessions, acp_session_id: str):
    acp.persist_session_id("t", acp_session_id)
    assert acp.load_session_id("t") == acp_session_id
    assert acp.ready_for_startup("t")


def test_a_worker_state_is_one_of_four(acp: AcpSessions, store: sealog.Store):
    wrong: Any = "idle"
    for acp_session_id in (None, "sid"):
        with pytest.raises(sealog.InvalidEventError, match="worker_state"):
            acp.persist_worker_state("t", acp_session_id, wrong)
    assert store.session_ids() == []
    named: Any = "busy"
    acp.persist_worker_state("t", "sid", named)
    assert acp.load_worker_state("t") is WorkerState.BUSY


def test_every_kind_of_entry_comes_back_as_the_callers_own(acp: AcpSessions):
    invocation = {"z": [1, 2.5, "x", None, True, 2**64 - 1, -(2**63)], "a": {"k": "v"}}
    entries: list[SnapshotEntry] = [
        UserEntry(["hi", ""]),
        AgentEntry([]),
        CognitionEntry(["😀\x1b"]),
        InvocationEntry("call-1", InvocationStatus.COMPLETED, invocation, {"ok": True}),
        InvocationEntry("", InvocationStatus.PENDING, None),
        UpdateEntry("plan", ["p"]),
    ]
    acp.append_entries("t", "sid", entries)
    invocation["z"] = []
    for _ in range(2):
        look = acp.look("t", 10)
        taken = look.snapshot_entries[3]
        assert isinstance(taken, InvocationEntry)
        assert taken.invocation["z"] == [1, 2.5, "x", None, True, 2**64 - 1, -(2**63)]
        assert look.snapshot_entries[:3] == entries[:3]
        assert look.snapshot_entries[4:] == entries[4:]
        taken.invocation.clear()
        look.snapshot_entries.clear()


def test_entries_may_be_given_as_dicts(acp: AcpSessions):
    given: Any = [
        {"kind": "user", "lines": ["x"], "extra": 1},
        {"kind": "update", "update_kind": "u", "lines": []},
    ]
    acp.append_entries("t", "sid", given)
    assert acp.look("t", 5).snapshot_entries == [UserEntry(["x"]), UpdateEntry("u", [])]


def test_integers_over_64_bits_are_the_nearest_floats(acp: AcpSessions):
    entry = InvocationEntry("c", InvocationStatus.PENDING, [2**64, -(10**25), 2**64 - 1])
    acp.append_entries("t", "sid", [entry])
    taken = acp.look("t", 1).snapshot_entries[0]
    assert isinstance(taken, InvocationEntry)
    assert [repr(value) for value in taken.invocation] == ["1.8446744073709552e+19", "-1e+25", str(2**64 - 1)]


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        (AgentEntry("text"), "entries[1]"),  # type: ignore[arg-type]
        (AgentEntry([1]), "entries[1]"),  # type: ignore[list-item]
        (InvocationEntry("c", "Running", {}), "entries[1]"),  # type: ignore[arg-type]
        (InvocationEntry("c", InvocationStatus.PENDING, {"a": [float("nan")]}), "entries[1].invocation.a[0]"),
        (InvocationEntry("c", InvocationStatus.PENDING, {}, 10**400), "entries[1].result"),
        (InvocationEntry("c", InvocationStatus.PENDING, {1: 2}), "entries[1].invocation"),
        (InvocationEntry("c", InvocationStatus.PENDING, b"x"), "entries[1].invocation"),
        (InvocationEntry("c", InvocationStatus.PENDING, object()), "entries[1]"),
        ({"kind": "result", "result": 1}, "entries[1]"),
        ({"kind": "invocation", "call_id": "c", "status": "Pending"}, "entries[1]"),
        ({"lines": []}, "entries[1]"),
        (None, "entries[1]"),
        (AgentEntry(["\ud800"]), "data.entries[1].lines[0]"),
    ],
)
def test_an_entry_that_cannot_be_stored_is_named(
    acp: AcpSessions, store: sealog.Store, entry: Any, place: str
):
    for call in (acp.append_entries, acp.replace_entries):
        with pytest.raises(sealog.InvalidEventError) as refused:
            call("t", "sid", [AgentEntry(["fine"]), entry])
        assert refused.value.place == place or refused.value.place.endswith(place)
    assert store.session_ids() == []


def test_deep_values_are_kept_and_too_deep_ones_refused(acp: AcpSessions):
    def nested(depth: int) -> Any:
        value: Any = []
        for _ in range(depth - 1):
            value = [value]
        return InvocationEntry("c", InvocationStatus.PENDING, value)

    acp.append_entries("t", "sid", [nested(150)])
    assert acp.look("t", 1).snapshot_entries == [nested(150)]
    for depth in (300, 5000):
        with pytest.raises(sealog.InvalidEventError):
            acp.append_entries("t", "sid", [nested(depth)])


def test_fewer_than_no_entries_cannot_be_asked_for(acp: AcpSessions):
    with pytest.raises(ValueError, match="-1"):
        acp.look("t", -1)


def test_a_replacement_of_many_keeps_the_newest(acp: AcpSessions):
    acp.append_entries("t", "sid", agents(*range(5)))
    acp.replace_entries("t", "sid", agents(*range(1500)))
    assert lines(acp.look("t", 5000)) == [str(number) for number in range(500, 1500)]
    acp.replace_entries("t", "new", agents("last"))
    assert (lines(acp.look("t", 5)), acp.load_session_id("t")) == (["last"], "new")


def test_many_threads_append_in_their_own_order(acp: AcpSessions):
    def call(number: int) -> None:
        for step in range(10):
            acp.append_entries("t", "sid", agents(f"{number} {step}", f"{number} {step}+"))

    assert together(16, call) == [None] * 16
    seen = lines(acp.look("t", 1000))
    assert len(seen) == 320
    for number in range(16):
        own = [line for line in seen if line.startswith(f"{number} ")]
        assert own == [f"{number} {step}{plus}" for step in range(10) for plus in ("", "+")]
    assert all(seen[at] + "+" == seen[at + 1] for at in range(0, 320, 2))


def test_an_event_that_was_not_made_here_is_named(acp: AcpSessions, store: sealog.Store):
    acp.append_entries("t", "sid", agents("x"))
    store.open_session("k--acp-t").append("acp.entries-appended", "", {"entries": 5})
    for _ in range(2):
        with pytest.raises(sealog.InvalidStateError, match=r"acp\.entries-appended"):
            acp.look("t", 1)
    acp.append_entries("t", "sid", agents("y"))


def test_looking_writes_nothing(acp: AcpSessions, store: sealog.Store):
    acp.append_entries("t", "sid", agents("x"))
    session = store.open_session("k--acp-t")
    before = len(session)
    for _ in range(3):
        acp.look("t", 5)
        acp.load_session_id("t")
        acp.ready_for_startup("t")
        acp.export_state("t")
    assert len(session) == before
