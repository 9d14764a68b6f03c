"""Projections as a mechanism: incremental, cached, checkpointed, and never trusted over the log."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sealog
from sealog.projections import Projection, Transcript
from sealog.projections.acp_fold import Acp
from sealog.projections.harness_fold import Harness

from .folds import CountByKind, Texts, fill
from .kit import SAFETY_S, together

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def session(store: sealog.Store) -> sealog.Session:
    return store.create_session("s")


def test_only_what_is_new_is_folded(session: sealog.Session):
    texts = Texts()
    assert session.project(texts) == []
    fill(session, 150)
    assert session.project(texts) == ["145", "146", "147", "148", "149"]
    session.append("x", "new")
    assert session.project(texts)[-1] == "new"
    assert session.project(Texts())[-1] == "new"
    assert texts.applied == 151


def test_equal_projections_share_a_fold_and_others_do_not(session: sealog.Session):
    fill(session, 10)
    one, equal, other = Texts(), Texts(), Texts(frozenset({"y"}))
    assert session.project(one) == session.project(equal)
    assert (one.applied, equal.applied) == (10, 0)
    assert session.project(other) == []


def test_kinds_that_are_not_wanted_are_not_shown(session: sealog.Session):
    fill(session, 5)
    fill(session, 3, "y")
    only = Texts(frozenset({"y", "sealog.kind-99"}))
    assert session.project(only) == ["0", "1", "2"]
    assert only.applied == 3


def test_a_state_is_the_callers_own(session: sealog.Session):
    fill(session, 3)
    session.project(CountByKind())["x"] = 99
    assert session.project(CountByKind()) == {"x": 3}


# -- projections that misbehave


def test_a_base_without_methods_says_so(session: sealog.Session):
    class Nothing(Projection[int]):
        state_type = int

    with pytest.raises(NotImplementedError):
        session.project(Nothing())
    with pytest.raises(NotImplementedError):
        Nothing().apply(0, sealog.Event("x", ""))


class Fails(Projection[int]):
    """Raises at the event of a text, as long as it is told to."""

    state_type = int
    failing = True

    def initial(self) -> int:
        return 0

    def apply(self, state: int, event: sealog.Event, /) -> int:
        if event.text == "7" and self.failing:
            raise ZeroDivisionError(event.text)
        return state + 1


def test_an_apply_that_raises_harms_nobody(session: sealog.Session):
    fill(session, 10)
    fails = Fails()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            session.project(fails)
    assert session.append("x", "more") == 10
    assert session.project(CountByKind()) == {"x": 11}
    fails.failing = False
    assert session.project(fails) == 11


def test_an_apply_that_appends_harms_nobody(session: sealog.Session):
    class Appends(Projection[int]):
        state_type = int

        def initial(self) -> int:
            return 0

        def apply(self, state: int, event: sealog.Event, /) -> int:
            if event.kind == "x":
                session.append("echo", event.text)
            return state + 1

    fill(session, 10)
    assert session.project(Appends()) == 10
    assert session.project(Appends()) == 20
    assert len(session) == 20


def test_an_apply_that_projects_gets_an_answer(session: sealog.Session):
    class Nested(Projection[int]):
        state_type = int
        depth = 0

        def initial(self) -> int:
            return 0

        def apply(self, state: int, event: sealog.Event, /) -> int:
            assert session.project(CountByKind()) == {"x": 10}
            if Nested.depth == 0:
                Nested.depth = 1
                assert session.project(self) == 10
            return state + 1

    fill(session, 10)
    assert session.project(Nested()) == 10


def test_a_slow_apply_keeps_nobody_from_appending(session: sealog.Session):
    entered, leave = threading.Event(), threading.Event()

    class Slow(Projection[int]):
        state_type = int

        def initial(self) -> int:
            return 0

        def apply(self, state: int, event: sealog.Event, /) -> int:
            entered.set()
            assert leave.wait(SAFETY_S)
            return state + 1

    fill(session, 1)
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(session.project(Slow())), daemon=True)
    thread.start()
    assert entered.wait(SAFETY_S)
    assert session.append("x", "meanwhile") == 1
    assert session.project(CountByKind()) == {"x": 2}
    leave.set()
    thread.join(SAFETY_S)
    assert results == [1]


def test_a_view_that_raises_harms_nobody(session: sealog.Session):
    class NoView(CountByKind):
        def view(self, state: dict[str, int], /) -> dict[str, int]:
            raise ZeroDivisionError

    fill(session, 3)
    with pytest.raises(ZeroDivisionError):
        session.project(NoView())
    assert session.project(CountByKind()) == {"x": 3}


@pytest.mark.parametrize("name", ["", "a/b", "ü", "x" * 101])
def test_a_name_must_fit_a_file(session: sealog.Session, name: str):
    fold = CountByKind()
    fold.name = name
    with pytest.raises(ValueError, match="a projection's name"):
        session.project(fold)


def test_threads_share_one_fold(session: sealog.Session):
    fill(session, 300)
    texts = Texts()

    def call(number: int) -> list[str]:
        session.append("x", f"from {number}")
        return session.project(texts)

    results = together(16, call)
    assert all(isinstance(result, list) for result in results)
    assert texts.applied == len(session) == 316
    assert session.project(texts) == [event.text for event in session.tail(5)]


def test_many_projections_of_one_session_stay_bounded(session: sealog.Session):
    fill(session, 10)
    for number in range(100):
        session.project(Texts(frozenset({"x", str(number)})))
    assert len(session._slot._folds) == 32


# -- incremental is the same as from the start


class Digest(msgspec.Struct):
    count: int = 0
    texts: list[str] = []


class Ordered(Projection[Digest]):
    """A state that depends on every event and on their order."""

    state_type = Digest

    def initial(self) -> Digest:
        return Digest()

    def apply(self, state: Digest, event: sealog.Event, /) -> Digest:
        state.count = (state.count * 31 + len(event.text)) % 1_000_003
        state.texts = [*state.texts[-3:], event.text]
        return state


@pytest.fixture(scope="module")
def module_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sealog.Store]:
    with sealog.open(tmp_path_factory.mktemp("store")) as store:
        yield store


KINDS = st.sampled_from(
    ["x", "tool-call", "tool-result", "user-message", "harness.message-appended", "harness.unknown", "future"]
)
BATCHES = st.lists(st.lists(st.tuples(KINDS, st.text("ab", max_size=3)), max_size=6), max_size=10)


@settings(deadline=None, max_examples=60)
@given(batches=BATCHES, looked=st.sets(st.integers(0, 10)))
def test_incremental_equals_fresh_at_any_position(
    module_store: sealog.Store, batches: list[list[tuple[str, str]]], looked: set[int]
):
    session = module_store.create_session(f"s{len(module_store.session_ids())}")
    folds: list[Projection[Any]] = [
        Ordered(),
        CountByKind(),
        Harness(),
        Acp(),
        Transcript(),
        Transcript(close_dangling=True, limit=4),
    ]
    for number, batch in enumerate(batches):
        session.append_many([sealog.Event(kind, text, {"role": "user"}) for kind, text in batch])
        if number not in looked:
            continue
        for fold in folds:
            state = fold.initial()
            for event in session.events():
                if fold.kinds is None or event.kind in fold.kinds:
                    state = fold.apply(state, event)
            fresh = fold.view(fold.load(fold.save(state)))
            assert session.project(fold) == fresh
