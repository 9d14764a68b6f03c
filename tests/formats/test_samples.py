"""Real transcripts of four programs: everything is kept, and comes back as it was."""

from __future__ import annotations

import collections
import json
from typing import TYPE_CHECKING

import pytest

from sealog.formats import import_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import sealog

CLAUDE = {
    "ccl_edge_cases.jsonl": {"user-message": 7, "assistant-message": 2, "tool-call": 3, "tool-error": 1},
    "ccl_representative_messages.jsonl": {
        "user-message": 4,
        "assistant-message": 3,
        "tool-call": 2,
        "tool-result": 2,
    },
    "ccl_session_b.jsonl": {"user-message": 2, "assistant-message": 1},
    "ccl_todowrite_examples.jsonl": {
        "user-message": 2,
        "assistant-message": 3,
        "tool-call": 3,
        "tool-result": 3,
    },
    "simonw_sample_session.jsonl": {
        "user-message": 2,
        "assistant-message": 2,
        "tool-call": 2,
        "tool-result": 2,
    },
    "spotter_short.jsonl": {
        "user-message": 2,
        "assistant-message": 2,
        "system-message": 2,
        "tool-call": 2,
        "tool-error": 2,
    },
    "spotter_sub/agent-acompact-946d2b.jsonl": {"user-message": 1, "assistant-message": 1},
    "spotter_subagent.jsonl": {"user-message": 4, "assistant-message": 8, "tool-call": 16, "tool-result": 16},
    "spotter_tool_heavy.jsonl": {
        "user-message": 7,
        "assistant-message": 2,
        "system-message": 2,
        "tool-call": 6,
        "tool-result": 6,
    },
}
SAMPLES = {
    **{f"claude-code/{name}": ("claude-code", kinds) for name, kinds in CLAUDE.items()},
    "openai-chat/tau_bench_gpt4o_airline_3.json": (
        "openai-chat",
        {
            "system-message": 3,
            "user-message": 23,
            "assistant-message": 22,
            "tool-call": 25,
            "tool-result": 25,
        },
    ),
    "swe-agent/function_calling_simple.traj": (
        "swe-agent",
        {"system-message": 1, "user-message": 1, "assistant-message": 5, "tool-call": 5, "tool-result": 5},
    ),
    "swe-agent/marshmallow-1867_function_calling.traj": (
        "swe-agent",
        {"system-message": 1, "user-message": 1, "assistant-message": 11, "tool-call": 11, "tool-result": 11},
    ),
}


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest, shared: Path) -> Path:
    return shared / "samples" / str(request.param)


def test_a_sample_is_kept_whole_and_comes_back(
    sample: Path,
    shared: Path,
    store: sealog.Store,
    give: Callable[..., bytes],
    same_lines: Callable[..., None],
) -> None:
    name, kinds = SAMPLES[str(sample.relative_to(shared / "samples"))]
    report = import_file(store, sample)
    assert (report.format, report.session_id) == (name, sample.stem)
    assert report.added == report.records
    assert not report.problems
    session = store.open_session(report.session_id)
    counted = collections.Counter(event.kind for event in session.events())
    assert {kind: count for kind, count in counted.items() if not kind.startswith(name)} == kinds
    assert not any("raw" in event.data for event in session.events())
    content = sample.read_bytes()
    if sample.suffix == ".jsonl":
        same_lines(content, give(sample.stem))
        same_lines(content, give(sample.stem, "jsonl"))
    else:
        assert json.dumps(json.loads(give(sample.stem))) == json.dumps(json.loads(content))
        assert len(give(sample.stem, "jsonl").splitlines()) == report.records


def test_a_sample_is_imported_once(sample: Path, store: sealog.Store) -> None:
    report = import_file(store, sample)
    session = store.open_session(report.session_id)
    count = len(session)
    again = import_file(store, sample)
    assert (again.added, again.known, again.conflicting, again.events) == (0, report.records, 0, 0)
    assert len(session) == count


@pytest.mark.parametrize("name", CLAUDE)
def test_a_sample_that_grows_goes_on(
    name: str,
    shared: Path,
    store: sealog.Store,
    tmp_path: Path,
    give: Callable[..., bytes],
    same_lines: Callable[..., None],
) -> None:
    content = (shared / "samples" / "claude-code" / name).read_bytes()
    path = tmp_path / "chat.jsonl"
    added = 0
    for part in (3, 2, 1):
        path.write_bytes(content[: len(content) // part])
        report = import_file(store, path, format="claude-code")
        added += report.added
        assert not report.conflicting
        same_lines(path.read_bytes(), give())
    assert report.known + report.added == report.records


def test_a_sample_is_readable(sample: Path, store: sealog.Store, give: Callable[..., bytes]) -> None:
    report = import_file(store, sample)
    count = len(store.open_session(report.session_id))
    assert give(sample.stem, "html").count(b"<article ") == count
    assert give(sample.stem, "markdown").count(b"\n## ") >= count
