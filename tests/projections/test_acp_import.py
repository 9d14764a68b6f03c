"""State files of the older ACP relay: what is taken, what is refused, and where."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sealog
from sealog.projections import AcpSessions, AgentEntry, WorkerState

OLD: dict[str, Any] = {"schema_version": 1, "acp_session_id": "sid", "worker_state": "busy"}
AGENT = {"kind": "agent", "lines": ["x"]}
CALL = {"kind": "invocation", "call_id": "c", "status": "Pending", "invocation": {"a": 1}, "result": None}
FILE = "sessions/t/state.json"


@pytest.fixture
def acp(store: sealog.Store) -> AcpSessions:
    return AcpSessions(store, clock_ms=lambda: 0)


def bare(**fields: Any) -> bytes:
    return json.dumps({**OLD, **fields}).encode()


def without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


def entry(value: Any) -> bytes:
    return bare(snapshot_entries=[AGENT, value])


REFUSED: list[tuple[bytes, str]] = [
    (b"", "the document"),
    (b"null", "the document"),
    (bare() + b"x", "the document"),
    (bare()[:-5], "the document"),
    (b"\xef\xbb\xbf" + bare(), "the document"),
    (bare(unknown="X").replace(b"X", b"\xff"), "the document"),
    (b"[]", "schema_version"),
    (b"{}", "schema_version"),
    (b"[1]", "acp_session_id"),
    (json.dumps([1, "sid", "busy", [], [], 1, 2, 3]).encode(), "the document"),
    *(
        (bare(schema_version=value), "schema_version")
        for value in (0, 2, -1, 2**32 - 1, 2**32, 1.0, "1", None, True)
    ),
    (bare().replace(b'"schema_version": 1', b'"schema_version": 1, "schema_version": 1'), "schema_version"),
    *(
        (bare(acp_session_id=value), "acp_session_id")
        for value in ("", " ", "\u0085\u3000", None, 5, "\ud800")
    ),
    *((bare(worker_state=value), "worker_state") for value in ("idle", "Busy", None, 1, {}, {"busy": 1})),
    (bare(worker_state={"busy": None, "available": None}), "worker_state"),
    *((bare(snapshot_lines=value), "snapshot_lines") for value in (None, {}, "x")),
    (bare(snapshot_lines=["a", 1]), "snapshot_lines[1]"),
    (bare(snapshot_entries=None), "snapshot_entries"),
    (entry({}), "snapshot_entries[1].kind"),
    (entry([]), "snapshot_entries[1].kind"),
    (entry("x"), "snapshot_entries[1]"),
    (entry({"kind": "result", "result": 1}), "snapshot_entries[1].kind"),
    (entry({"kind": 1}), "snapshot_entries[1].kind"),
    (entry(without(AGENT, "lines")), "snapshot_entries[1].lines"),
    (entry({**AGENT, "lines": "x"}), "snapshot_entries[1].lines"),
    (entry({**AGENT, "more": "\ud800"}), "snapshot_entries[1].more"),
    (entry({**AGENT, "X": 1}).replace(b'"X"', b'"lines"'), "snapshot_entries[1].lines"),
    *((entry(without(CALL, name)), f"snapshot_entries[1].{name}") for name in CALL if name != "result"),
    (entry({**CALL, "status": "pending"}), "snapshot_entries[1].status"),
    (entry({**CALL, "status": "Failed"}), "snapshot_entries[1].status"),
    (entry({**CALL, "invocation": ["\ud800"]}), "snapshot_entries[1].invocation[0]"),
    (entry({**CALL, "invocation": {"\ud800": 1}}), "snapshot_entries[1].invocation"),
    (entry({**CALL, "invocation": [0.5]}).replace(b"0.5", b"1e400"), "snapshot_entries[1].invocation[0]"),
    (entry(["invocation", "c", "Pending", {}]), "snapshot_entries[1].result"),
    *(
        (bare(**{name: value}), name)
        for name in ("last_acp_frame_observed_at_ms", "last_snapshot_update_ms")
        for value in (1.0, "1", 2**63, -(2**63) - 1, True)
    ),
]


@pytest.mark.parametrize(("data", "field"), REFUSED)
def test_a_file_is_refused_with_its_name_and_the_field(acp: AcpSessions, data: bytes, field: str):
    acp.append_entries("t", "precious", [AgentEntry(["x"])])
    before = acp.export_state("t")
    with pytest.raises(sealog.InvalidStateError) as refused:
        acp.import_state("t", data)
    assert (refused.value.file, refused.value.field) == (FILE, field)
    assert acp.export_state("t") == before
    with pytest.raises(sealog.InvalidStateError, match=r"^here\.json: "):
        acp.import_state("new", data, source="here.json")
    assert acp.targets() == ["t"]


TAKEN: list[tuple[bytes, dict[str, Any]]] = [
    (bare(), OLD),
    (b" \n" + bare() + b"\n ", OLD),
    (json.dumps(without(OLD, "worker_state")).encode(), without(OLD, "worker_state")),
    (bare(worker_state={"busy": None}), OLD),
    (b'[1,"sid"]', without(OLD, "worker_state")),
    (
        b'[1,"sid","busy",["l"],[],1,2]',
        {**OLD, "snapshot_lines": ["l"], "last_acp_frame_observed_at_ms": 1, "last_snapshot_update_ms": 2},
    ),
    (bare(unknown={"a": ["\ud800"]}), OLD),
    (bare(snapshot_lines=[], snapshot_entries=[], last_snapshot_update_ms=None), OLD),
    (bare(last_acp_frame_observed_at_ms=-(2**63)), {**OLD, "last_acp_frame_observed_at_ms": -(2**63)}),
    (
        bare(snapshot_lines=["a", "b"], snapshot_entries=[AGENT]),
        {**OLD, "snapshot_lines": ["a", "b"], "snapshot_entries": [AGENT]},
    ),
    (
        bare(
            snapshot_entries=[
                {"lines": ["x"], "more": [1], "kind": "agent"},
                ["agent", ["x"]],
                ["invocation", "c", {"Pending": None}, {"a": 1}, None],
                without(CALL, "result"),
            ]
        ),
        {**OLD, "snapshot_entries": [AGENT, AGENT, CALL, CALL]},
    ),
    (
        entry({**CALL, "invocation": {"a": 1, "A": 2}}).replace(b'"A"', b'"a"'),
        {**OLD, "snapshot_entries": [AGENT, {**CALL, "invocation": {"a": 2}}]},
    ),
]


@pytest.mark.parametrize(("data", "expected"), TAKEN)
def test_what_the_older_program_reads_is_taken(acp: AcpSessions, data: bytes, expected: dict[str, Any]):
    acp.append_entries("t", "old", [AgentEntry(["old"])])
    acp.import_state("t", data)
    assert json.loads(acp.export_state("t")) == expected
    assert acp.load_worker_state("t") == expected.get("worker_state", "available")
    assert len(acp.look("t", 9).snapshot_entries) == len(expected.get("snapshot_entries", []))


def test_numbers_are_read_to_the_nearest_float_and_keep_still(acp: AcpSessions):
    numbers = (
        "[0.012053200609833413,5.884498686465263e-131,-0,123456789012345678901,18446744073709551615,1e2]"
    )
    data = entry({**CALL, "invocation": "X"}).replace(b'"X"', numbers.encode())
    acp.import_state("t", data)
    expected = "[0.012053200609833413, 5.884498686465263e-131, -0.0, 1.2345678901234568e+20, "
    expected += "18446744073709551615, 100.0]"
    for _ in range(3):
        stored = json.loads(acp.export_state("t"))["snapshot_entries"][1]["invocation"]
        assert json.dumps(stored) == expected
        acp.import_state("t", acp.export_state("t"))
        acp.persist_worker_state("t", None, WorkerState.AVAILABLE)


@pytest.mark.parametrize(
    ("change", "lines_left"),
    [
        (lambda acp: acp.persist_worker_state("t", None, WorkerState.BUSY), True),
        (lambda acp: acp.persist_worker_state("t", "new", WorkerState.BUSY), True),
        (lambda acp: acp.persist_session_id("t", "sid"), False),
        (lambda acp: acp.append_entries("t", "sid", []), False),
        (lambda acp: acp.replace_entries("t", "sid", []), False),
    ],
)
def test_old_lines_and_surplus_entries_stay_until_entries_are_written(
    acp: AcpSessions, change: Any, *, lines_left: bool
):
    entries = [{"kind": "agent", "lines": [str(number)]} for number in range(1200)]
    acp.import_state("t", bare(snapshot_lines=["old"], snapshot_entries=entries))
    assert len(acp.look("t", 5000).snapshot_entries) == 1200
    change(acp)
    exported = json.loads(acp.export_state("t"))
    assert exported.get("snapshot_lines", []) == (["old"] if lines_left else [])
    left = len(acp.look("t", 5000).snapshot_entries)
    assert left in ({1200} if lines_left else {1000, 0})


def test_a_file_without_readiness_says_so_until_it_is_changed(acp: AcpSessions):
    acp.import_state("t", json.dumps(without(OLD, "worker_state")).encode())
    assert acp.ready_for_startup("t")
    acp.persist_session_id("t", "sid")
    assert json.loads(acp.export_state("t"))["worker_state"] == "available"


def test_levels_are_counted_as_the_older_program_counts_them(acp: AcpSessions):
    def nested(depth: int) -> bytes:
        return entry({**CALL, "invocation": "X"}).replace(b'"X"', b"[" * depth + b"]" * depth)

    acp.import_state("t", nested(124))
    with pytest.raises(sealog.InvalidStateError, match="127 levels"):
        acp.import_state("t", nested(125))
    acp.import_state("t", bare(unknown="X").replace(b'"X"', b"[" * 200 + b"]" * 200))
