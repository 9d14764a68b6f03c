"""ACP targets against a model of the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sealog
from sealog.projections.acp import AcpSessions, WorkerState

from .acp_kit import NOW, Clock, agents, lines

if TYPE_CHECKING:
    from collections.abc import Iterator


class Model:
    """A target as the rules say, in plain lists."""

    def __init__(self) -> None:
        self.sid: str | None = None
        self.state = "available"
        self.entries: list[str] = []
        self.time: int | None = None

    def put(self, sid: str, texts: list[str], now: int, *, replace: bool) -> None:
        self.sid = sid
        self.entries = ([] if replace else self.entries) + texts
        self.entries = self.entries[-1000:]
        if texts:
            self.time = now if now >= 0 else None


ACTIONS = st.lists(
    st.tuples(st.just("append"), st.sampled_from("ab"), st.sampled_from([0, 1, 2, 600]))
    | st.tuples(st.just("replace"), st.sampled_from("ab"), st.sampled_from([0, 1, 1200]))
    | st.tuples(st.just("worker"), st.sampled_from(["a", "b", None]), st.sampled_from(list(WorkerState)))
    | st.tuples(st.just("clock"), st.sampled_from([-5, 0, 4999, 5000, NOW]), st.none())
    | st.tuples(st.just("id"), st.sampled_from("ab"), st.none()),
    max_size=12,
)


@pytest.fixture(scope="module")
def module_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sealog.Store]:
    with sealog.open(tmp_path_factory.mktemp("store")) as store:
        yield store


@settings(deadline=None, max_examples=40)
@given(actions=ACTIONS)
def test_a_target_is_what_the_rules_make_of_its_history(module_store: sealog.Store, actions: list[Any]):
    clock, model = Clock(), Model()
    acp = AcpSessions(module_store, clock_ms=clock)
    if "k--acp-t" in module_store.session_ids():
        module_store.delete_session("k--acp-t")
    for number, (action, first, second) in enumerate(actions):
        if action == "clock":
            clock.now_ms = first
        elif action == "id":
            acp.persist_session_id("t", first)
            model.put(first, [], clock.now_ms, replace=False)
        elif action == "worker":
            acp.persist_worker_state("t", first, second)
            if first is not None or model.sid is not None:
                model.sid, model.state = first or model.sid, second
        else:
            texts = [f"{number} {at}" for at in range(second)]
            call = acp.append_entries if action == "append" else acp.replace_entries
            call("t", first, agents(*texts))
            model.put(first, texts, clock.now_ms, replace=action == "replace")
        look = acp.look("t", 700)
        assert lines(look) == model.entries[-700:]
        assert acp.load_session_id("t") == model.sid
        assert acp.load_worker_state("t") == (None if model.sid is None else model.state)
        known = model.time is not None and 0 <= clock.now_ms >= model.time and model.entries
        assert look.snapshot_age_ms == (clock.now_ms - (model.time or 0) if known else None)
