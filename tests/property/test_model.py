"""The whole API against a model in memory: whatever is called in whatever order, both say the same.

Faults leave an append's outcome open; then, and only then, the log may hold the whole batch or nothing of it.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import sealog
from sealog import Event
from sealog.actors import supervisor

from ..api.kit import SAFETY_S, FaultFileSystem

IDS = st.sampled_from(["a", "b", "c", "d"])
KINDS = st.sampled_from(["user-message", "tool-call", "my.kind"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(["k1", "k2", "k3", None, None, None])
WAYS = st.sampled_from(["blocking", "timeout", "nowait", "many"])
Content = tuple[str, str, Any, str | None]


class ModelSession:
    """What a session should hold."""

    def __init__(self, created_at: str, labels: dict[str, str]) -> None:
        self.created_at = created_at
        self.labels = labels
        self.events: list[Content] = []
        self.files: dict[int, bytes] = {}
        self.sealed = False

    def known(self, batch: list[Content]) -> int | Exception | None:
        """Return where a batch with keys is known, None if it is new, a conflict as such."""
        keys = [content[3] for content in batch]
        used = [key for key in keys if key is not None]
        if len(used) != len(set(used)):
            return ValueError("twice in one batch")
        places = {content[3]: at for at, content in enumerate(self.events) if content[3] is not None}
        found = {at: places[key] for at, key in enumerate(keys) if key in places and key is not None}
        if not found:
            return None
        at, place = next(iter(found.items()))
        first = place - at
        stored = self.events[max(first, 0) : first + len(batch)]
        same = first >= 0 and [content[:3] for content in stored] == [content[:3] for content in batch]
        whole = all(found.get(at) == first + at for at, key in enumerate(keys) if key is not None)
        return first if same and whole else ValueError("conflict")


class Machine(RuleBasedStateMachine):
    """The API, and the model beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="sealog-model-"))
        self.fs = FaultFileSystem()
        self.model: dict[str, ModelSession] = {}
        self.dead: list[sealog.Session] = []
        self.handles: dict[str, sealog.Session] = {}
        self.store = self._open()

    def _open(self) -> sealog.Store:
        return sealog.open(self.path / "store", max_live_sessions=2, file_system=self.fs)

    def teardown(self) -> None:
        self.fs.heal()
        self.store.close(SAFETY_S)
        assert self.fs.violations == []
        shutil.rmtree(self.path)

    def handle(self, session_id: str) -> sealog.Session | None:
        """Return a handle; None if the session should not be there, and is not."""
        if session_id not in self.model:
            with pytest.raises(sealog.SessionNotFoundError):
                self.store.open_session(session_id)
            return None
        if session_id not in self.handles:
            self.handles[session_id] = self.store.open_session(session_id)
        return self.handles[session_id]

    # -- sessions

    @initialize()
    def begin(self) -> None:
        self.create("a", None, {})

    @rule(
        session_id=IDS,
        created_at=st.sampled_from([None, "then"]),
        labels=st.dictionaries(TEXTS, TEXTS, max_size=2),
    )
    def create(self, session_id: str, created_at: str | None, labels: dict[str, str]) -> None:
        if session_id in self.model:
            with pytest.raises(sealog.SessionExistsError):
                self.store.create_session(session_id, created_at, labels)
            return
        session = self.store.create_session(session_id, created_at, labels)
        self.model[session_id] = ModelSession(session.header.created_at, labels)
        self.handles[session_id] = session
        assert created_at in (None, session.header.created_at)

    @rule(session_id=IDS, require_sealed=st.booleans())
    def delete(self, session_id: str, require_sealed: bool) -> None:
        model = self.model.get(session_id)
        if model is None:
            with pytest.raises(sealog.SessionNotFoundError):
                self.store.delete_session(session_id)
        elif require_sealed and not model.sealed:
            with pytest.raises(sealog.SessionNotSealedError):
                self.store.delete_session(session_id, require_sealed=True)
        else:
            self.store.delete_session(session_id, require_sealed=require_sealed)
            del self.model[session_id]
            if session_id in self.handles:
                self.dead.append(self.handles.pop(session_id))

    @precondition(lambda self: self.dead)
    @rule()
    def use_a_dead_handle(self) -> None:
        for call in (lambda: self.dead[-1].append("m", "x"), lambda: len(self.dead[-1]), self.dead[-1].seal):
            with pytest.raises(sealog.SessionDeletedError):
                call()

    # -- appending

    def _submit(
        self, session: sealog.Session, batch: list[Content], way: str, expected: int | None
    ) -> list[int]:
        if way == "many" or len(batch) > 1:
            events = [Event(kind, text, data, key=key) for kind, text, data, key in batch]
            return list(session.append_many(events, expected=expected))
        kind, text, data, key = batch[0]
        if way == "nowait":
            return [session.append_nowait(kind, text, data, key=key, expected=expected).result(SAFETY_S)]
        timeout = SAFETY_S if way == "timeout" else None
        return [session.append(kind, text, data, key=key, expected=expected, timeout=timeout)]

    @rule(
        session_id=IDS,
        batch=st.lists(st.tuples(KINDS, TEXTS, DATA, KEYS), min_size=1, max_size=3),
        way=WAYS,
        expected=st.sampled_from([None, None, "right", "wrong"]),
    )
    def append(self, session_id: str, batch: list[Content], way: str, expected: str | None) -> None:
        session = self.handle(session_id)
        if session is None:
            return
        model = self.model[session_id]
        end = len(model.events)
        wanted = {None: None, "right": end, "wrong": end + 1}[expected]
        known = model.known(batch)
        if isinstance(known, Exception):
            with pytest.raises(sealog.KeyConflictError):
                self._submit(session, batch, way, wanted)
        elif known is not None:
            assert self._submit(session, batch, way, wanted) == list(range(known, known + len(batch)))
        elif model.sealed:
            with pytest.raises(sealog.SessionSealedError):
                self._submit(session, batch, way, wanted)
        elif expected == "wrong":
            with pytest.raises(sealog.PositionConflictError) as caught:
                self._submit(session, batch, way, wanted)
            assert caught.value.actual == end
        else:
            assert self._submit(session, batch, way, wanted) == list(range(end, end + len(batch)))
            model.events.extend(batch)

    @rule(
        session_id=IDS,
        batch=st.lists(st.tuples(KINDS, TEXTS, DATA, st.none()), min_size=1, max_size=3),
        way=WAYS,
        call=st.sampled_from(["pwrite", "sync_data"]),
        code=st.sampled_from([errno.EIO, errno.ENOSPC]),
        written=st.sampled_from([None, 10, 10_000]),
    )
    def append_with_a_fault(
        self, session_id: str, batch: list[Content], way: str, call: str, code: int, written: int | None
    ) -> None:
        session = self.handle(session_id)
        if session is None or self.model[session_id].sealed:
            return
        model = self.model[session_id]
        len(session)
        self.fs.fail(call, f"{session_id}/log", code, written=written)
        try:
            positions = self._submit(session, batch, way, None)
        except sealog.StorageFullError:
            assert code == errno.ENOSPC
        except sealog.AppendOutcomeUnknownError:
            self.fs.heal()
            position = session.append("my.kind", "next")  # the restart has decided then
            assert position in (len(model.events), len(model.events) + len(batch))
            if position > len(model.events):
                model.events.extend(batch)
            model.events.append(("my.kind", "next", None, None))
        else:  # the fault hit the opening, which was tried again
            assert positions[0] == len(model.events)
            model.events.extend(batch)
        self.fs.heal()

    @rule(session_id=IDS, data=st.binary(max_size=50), key=KEYS, name=st.sampled_from(["a.txt", "b.png"]))
    def attach(self, session_id: str, data: bytes, key: str | None, name: str) -> None:
        session = self.handle(session_id)
        if session is None:
            return
        model = self.model[session_id]
        key = None if key is None else f"file {key}"
        places = {content[3]: at for at, content in enumerate(model.events) if content[3] is not None}
        place = places.get(key) if key is not None else None
        if place is not None:
            if model.files[place] == data and model.events[place][2] == name:
                assert session.attach(data, file_name=name, key=key) == place
            else:
                with pytest.raises(sealog.KeyConflictError):
                    session.attach(data, file_name=name, key=key)
        elif model.sealed:
            with pytest.raises(sealog.SessionSealedError):
                session.attach(data, file_name=name, key=key)
        else:
            position = session.attach(data, file_name=name, key=key)
            assert position == len(model.events)
            model.events.append(("attachment", "", name, key))
            model.files[position] = data

    @rule(session_id=IDS)
    def seal(self, session_id: str) -> None:
        session = self.handle(session_id)
        if session is not None:
            sealed = session.seal()
            self.model[session_id].sealed = True
            assert sealed.receipt.events == len(self.model[session_id].events)

    # -- reading

    @rule(
        session_id=IDS,
        start=st.integers(-5, 10),
        stop=st.integers(-5, 10),
        step=st.sampled_from([1, 1, 2, -1]),
    )
    def read(self, session_id: str, start: int, stop: int, step: int) -> None:
        session = self.handle(session_id)
        if session is None:
            return
        model = self.model[session_id]
        window = slice(start, stop, step)
        assert list(map(shown, session[window])) == list(map(plain, model.events[window]))
        assert list(map(shown, session.tail(abs(start)))) == list(
            map(plain, model.events[-abs(start) or len(model.events) :])
        )
        assert len(session) == len(model.events)
        assert session.is_sealed == model.sealed
        assert {a.position: a.bytes for a in session.attachments()} == model.files

    @rule(session_id=IDS)
    def describe(self, session_id: str) -> None:
        model = self.model.get(session_id)
        if model is None:
            with pytest.raises(sealog.SessionNotFoundError):
                self.store.describe(session_id)
            return
        info = self.store.describe(session_id)
        assert (info.events, info.sealed) == (len(model.events), model.sealed)
        assert (info.created_at, info.labels) == (model.created_at, model.labels)
        assert info.status in ("ok", "torn")
        assert self.store.verify(session_id).ok

    # -- the store

    def _reopen(self) -> None:
        self.store.close(SAFETY_S)
        self.dead.clear()
        self.handles.clear()
        self.fs.heal()
        self.store = self._open()

    @rule()
    def close_and_reopen(self) -> None:
        self._reopen()

    @rule()
    def die_and_reopen(self) -> None:
        """What is on disk is what a killed process leaves: nothing trimmed, marked or checkpointed."""
        for call in ("pwrite", "truncate", "sync_data"):
            self.fs.fail(call, "*", times=None)
        self._reopen()

    @rule(session_id=IDS, tail=st.binary(min_size=1, max_size=600))
    def die_in_a_write(self, session_id: str, tail: bytes) -> None:
        self._reopen()
        if session_id in self.model and not self.model[session_id].sealed and tail.strip(b"\0"):
            with (self.path / "store" / session_id / "log").open("ab") as log:
                log.write(tail)
            report = self.store.open_session(session_id).recovered
            assert report is not None
            assert report.status == "recovered"

    @rule()
    def recover_all(self) -> None:
        reports = self.store.recover_all()
        assert [(report.session_id, report.events) for report in reports] == [
            (session_id, len(model.events)) for session_id, model in sorted(self.model.items())
        ]
        assert {report.status for report in reports} <= {"clean", "recovered"}

    @invariant()
    def the_sessions_are_those_of_the_model(self) -> None:
        assert self.store.session_ids() == sorted(self.model)
        assert self.fs.violations == []


def shown(event: Event) -> Content:
    """Return what the model knows of an event; of an attachment, its name."""
    data = event.data["file_name"] if event.kind == "attachment" else event.data
    return event.kind, event.text, data, event.key


def plain(content: Content) -> Content:
    """Return the content of an event as it comes back."""
    return content


def test_the_api_does_what_the_model_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "BACK_OFF_S", 0.0)
    monkeypatch.setattr(supervisor, "RESTARTS_MAX", 10**6)
    how = settings(max_examples=120, stateful_step_count=40, deadline=None, derandomize=True, database=None)
    run_state_machine_as_test(Machine, settings=how)
