"""One turn: what waits becomes one commit, and everybody gets the answer that is theirs."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog import Event
from sealog.actors import writer as writer_module

from ...api.kit import SAFETY_S, Kit, Task, texts, until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def session(kit: Kit) -> sealog.Session:
    return kit.store().create_session("s")


@contextlib.contextmanager
def waiting(kit: Kit) -> Iterator[None]:
    """Keep the session busy with an append while the block runs, so that what the block sends waits."""
    gate = kit.fs.hold("sync_data", "s/log")  # so that later rules meet the next commit
    session = kit.store().open_session("s")
    first = Task(session.append, "m", "first")
    gate.wait_reached()
    try:
        yield
    finally:
        gate.open()
        first.wait()


def settled(*futures: Any) -> list[Any]:
    """Return the results of futures, errors as such."""
    return [future.exception(SAFETY_S) or future.result() for future in futures]


def test_what_waits_together_is_one_commit(kit: Kit, session: sealog.Session) -> None:
    with waiting(kit):
        futures = [session.append_nowait("m", str(number)) for number in range(20)]
        batch = Task(session.append_many, [Event("m", "a"), Event("m", "b")])
        while kit.store().stats().waiting_requests < 21:
            assert batch.running
        before = kit.fs.calls["pwrite", "log"]
    assert settled(*futures) == list(range(1, 21))
    assert batch.result() == range(21, 23)
    assert kit.fs.calls["pwrite", "log"] == before + 1
    assert kit.fs.calls["sync_data", "log"] >= 2
    assert texts(session) == ["first", *map(str, range(20)), "a", "b"]


def test_a_cancelled_append_is_not_written(kit: Kit, session: sealog.Session) -> None:
    with waiting(kit):
        kept, dropped = session.append_nowait("m", "kept"), session.append_nowait("m", "dropped")
        assert dropped.cancel()
    assert kept.result(SAFETY_S) == 1
    assert texts(session) == ["first", "kept"]
    assert dropped.cancelled()


def test_an_append_that_is_being_written_cannot_be_cancelled(kit: Kit, session: sealog.Session) -> None:
    with waiting(kit):
        future = session.append_nowait("m", "x")
        gate = kit.fs.hold("sync_data", "s/log")
    gate.wait_reached()
    assert not future.cancel()
    gate.open()
    assert future.result(SAFETY_S) == 1


# -- keys and expected, within one commit


def test_a_key_in_flight_waits_for_its_commit(kit: Kit, session: sealog.Session) -> None:
    with waiting(kit):
        one = session.append_nowait("m", "x", {"a": 1, "b": 2}, key="k")
        same = session.append_nowait("m", "x", {"b": 2, "a": 1}, key="k")
        other = session.append_nowait("m", "y", key="k")
    assert settled(one, same) == [1, 1]
    error = other.exception(SAFETY_S)
    assert isinstance(error, sealog.KeyConflictError)
    assert (error.session_id, error.key, error.position) == ("s", "k", 1)
    assert texts(session) == ["first", "x"]


def test_expected_counts_what_waits_in_front(kit: Kit, session: sealog.Session) -> None:
    with waiting(kit):
        futures = [
            session.append_nowait("m", "a", expected=1),
            session.append_nowait("m", "late", expected=1),
            session.append_nowait("m", "b", expected=2),
        ]
    one, conflict, two = settled(*futures)
    assert (one, two) == (1, 2)
    assert isinstance(conflict, sealog.PositionConflictError)
    assert (conflict.session_id, conflict.expected, conflict.actual) == ("s", 1, 2)
    assert texts(session) == ["first", "a", "b"]


def test_a_key_is_looked_up_before_expected_and_seal(session: sealog.Session) -> None:
    assert session.append("m", "x", key="k") == 0
    assert session.append("m", "x", key="k", expected=7) == 0
    session.seal()
    assert session.append("m", "x", key="k", expected=7) == 0
    with pytest.raises(sealog.KeyConflictError):
        session.append("m", "y", key="k")
    with pytest.raises(sealog.SessionSealedError):
        session.append("m", "x", key="new", expected=7)
    assert len(session) == 1


# -- frames


@pytest.mark.parametrize("limit", ["events", "bytes"])
def test_more_than_a_frame_takes_is_split_between_callers(
    kit: Kit, session: sealog.Session, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    if limit == "events":
        monkeypatch.setattr(writer_module, "BATCH_EVENTS_MAX", 5)
    else:
        monkeypatch.setattr(writer_module, "PAYLOAD_SIZE_MAX", 100)
    with waiting(kit):
        requests = [
            Task(session.append_many, [Event("m", f"{caller}-{number}") for number in range(3)])
            for caller in range(4)
        ]
        while kit.store().stats().waiting_requests < 4:
            assert all(task.running for task in requests)
        before = kit.fs.calls["pwrite", "log"]
    ranges = [task.result() for task in requests]
    assert kit.fs.calls["pwrite", "log"] == before + 4
    for caller, positions in enumerate(ranges):
        assert [event.text for event in session[positions.start : positions.stop]] == [
            f"{caller}-{number}" for number in range(3)
        ]
    assert sorted(position for positions in ranges for position in positions) == list(range(1, 13))


def test_a_mailbox_with_more_events_than_a_frame_counts_is_stored(kit: Kit, session: sealog.Session) -> None:
    events = [Event("m", "")] * 40_000
    with waiting(kit):
        requests = [Task(session.append_many, events) for _ in range(2)]
        while kit.store().stats().waiting_requests < 2:
            assert all(task.running for task in requests)
        before = kit.fs.calls["pwrite", "log"]
    assert sorted(task.result().start for task in requests) == [1, 40_001]
    assert kit.fs.calls["pwrite", "log"] == before + 2
    assert len(session) == 80_001


def test_a_batch_that_no_frame_takes_is_refused(session: sealog.Session) -> None:
    big = "x" * (30 * 1024 * 1024)
    with pytest.raises(sealog.LimitExceededError) as caught:
        session.append_many([Event("m", big)] * 3)
    assert caught.value.actual > caught.value.maximum == 64 * 1024 * 1024
    assert session.append("m", "small") == 0
    assert texts(session) == ["small"]


# -- the disk is full


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("call", ["pwrite", "sync_data"])
def test_a_full_disk_is_said_to_all_and_the_session_goes_on(
    kit: Kit, session: sealog.Session, code: int, call: str
) -> None:
    with waiting(kit):
        futures = [session.append_nowait("m", f"lost {number}") for number in range(3)]
        kit.fs.fail(call, "s/log", code, written=20)
    for future in futures:
        error = future.exception(SAFETY_S)
        assert isinstance(error, sealog.StorageFullError)
        assert error.errno == code
        assert (error.session_id, error.path) == ("s", f"{session.path}/log")
        assert "'s'" in str(error)
        assert "log" in str(error)
    assert kit.store().stats().restarts == 0
    assert session.append("m", "after") == 1
    assert texts(session) == ["first", "after"]
    assert session.recovered is None


def test_a_full_disk_keeps_the_key_free(kit: Kit, session: sealog.Session) -> None:
    kit.fs.fail("pwrite", "s/log", errno.ENOSPC)
    with pytest.raises(sealog.StorageFullError):
        session.append("m", "x", key="k")
    assert session.append("m", "y", key="k") == 0


def test_on_a_full_disk_a_known_key_is_still_known(kit: Kit, session: sealog.Session) -> None:
    session.append("m", "x", key="k")
    with waiting(kit):
        new, known = session.append_nowait("m", "y"), session.append_nowait("m", "x", key="k")
        kit.fs.fail("pwrite", "s/log", errno.ENOSPC)
    assert isinstance(new.exception(SAFETY_S), sealog.StorageFullError)
    assert known.result(SAFETY_S) == 0


@pytest.mark.parametrize("call", ["truncate", "sync_data"])
def test_a_full_disk_that_cannot_be_rolled_back_leaves_the_outcome_unknown(
    kit: Kit, session: sealog.Session, call: str
) -> None:
    kit.fs.fail("pwrite", "s/log", errno.ENOSPC, written=20)
    kit.fs.fail(call, "s/log", errno.EIO)
    with pytest.raises(sealog.AppendOutcomeUnknownError) as caught:
        session.append("m", "x")
    assert caught.value.positions == range(1)
    assert session.append("m", "y") == 0
    assert texts(session) == ["y"]


# -- the disk fails


@pytest.mark.parametrize("call", ["allocate", "pwrite", "sync_data"])
@pytest.mark.parametrize("written", [None, 0, 20, 10_000])
def test_after_a_failed_write_the_batch_is_unknown_and_the_rest_not_written(
    kit: Kit, session: sealog.Session, call: str, written: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "BATCH_EVENTS_MAX", 2)
    if call == "allocate":
        monkeypatch.setattr("sealog.storage.log.ALLOCATE_MIN", 1)
        monkeypatch.setattr("sealog.storage.log.ALLOCATE_MAX", 1)
    session.append("m", "before")
    with waiting(kit):
        futures = [session.append_nowait("m", f"{number}") for number in range(5)]
        kit.fs.fail(call, "s/log", errno.EIO, written=written, skip=1)
    outcomes = settled(*futures)
    assert outcomes[:2] == [2, 3]
    unknown, behind = outcomes[2:4], outcomes[4:]
    for position, error in enumerate(unknown, 4):
        assert isinstance(error, sealog.AppendOutcomeUnknownError)
        assert error.positions == range(position, position + 1)
        assert isinstance(error.__cause__, OSError)
        assert error.__cause__.errno == errno.EIO
    for error in behind:
        assert isinstance(error, sealog.SessionFailedError)
        assert not error.given_up
        assert isinstance(error.cause, OSError)
    assert session.append("m", "after") == 4
    assert texts(session) == ["before", "first", "0", "1", "after"]
    assert kit.store().stats().restarts == 1


def test_what_waits_behind_a_failed_turn_is_not_written_and_what_comes_after_the_answer_is(
    kit: Kit, session: sealog.Session
) -> None:
    """Else a caller that does not wait would find a hole in what it sent."""
    with waiting(kit):
        failing = session.append_nowait("m", "failing")
        gate = kit.fs.hold("pwrite", "s/log")
    gate.wait_reached()
    behind = session.append_nowait("m", "behind")
    again: list[Any] = []
    failing.add_done_callback(lambda _: again.append(session.append_nowait("m", "after the answer")))
    kit.fs.fail("sync_data", "s/log")
    gate.open()
    assert isinstance(failing.exception(SAFETY_S), sealog.AppendOutcomeUnknownError)
    refused = behind.exception(SAFETY_S)
    assert isinstance(refused, sealog.SessionFailedError)
    assert "send it again" in str(refused)
    until(lambda: again)
    assert again[0].result(SAFETY_S) == 1
    assert texts(session) == ["first", "after the answer"]


def test_a_repeat_with_the_same_key_after_an_unknown_outcome_gives_one_event(
    kit: Kit, session: sealog.Session
) -> None:
    kit.fs.fail("sync_data", "s/log")
    with pytest.raises(sealog.AppendOutcomeUnknownError) as caught:
        session.append("m", "x", key="k")
    assert "same key" in str(caught.value)
    assert session.append("m", "x", key="k") == 0
    assert session.append("m", "x", key="k") == 0
    assert texts(session) == ["x"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError()])
def test_an_exception_that_is_no_disk_error_leaves_the_batch_unknown_too(
    kit: Kit, session: sealog.Session, error: BaseException
) -> None:
    with waiting(kit):
        futures = [session.append_nowait("m", f"{number}") for number in range(3)]
        kit.fs.interrupt("sync_data", "s/log", error)
    for outcome in settled(*futures):
        assert isinstance(outcome, sealog.AppendOutcomeUnknownError)
        assert outcome.__cause__ is error
    assert session.append("m", "after") == 1
    assert texts(session) == ["first", "after"]


# -- attachments


def test_attachments_that_wait_together_get_their_own_positions(kit: Kit, session: sealog.Session) -> None:
    session.attach(b"zero")
    with waiting(kit):
        tasks = [Task(session.attach, b"%d" % number) for number in range(3)]
        while kit.store().stats().waiting_requests < 3:
            assert all(task.running for task in tasks)
        text = session.append_nowait("m", "text")
    positions = [task.result() for task in tasks]
    assert sorted([*positions, text.result(SAFETY_S)]) == [2, 3, 4, 5]
    assert [session.read_attachment(position).bytes for position in positions] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("call", "name", "code"),
    [
        ("rename", "attachments/1", errno.ENOSPC),
        ("sync", "attachments", errno.ENOSPC),
        ("pwrite", "s/log", errno.ENOSPC),
    ],
)
def test_an_attachment_that_a_full_disk_refused_leaves_no_file(
    kit: Kit, session: sealog.Session, call: str, name: str, code: int
) -> None:
    session.attach(b"zero")
    kit.fs.fail(call, name, code)
    with pytest.raises(sealog.StorageFullError):
        session.attach(b"one")
    folder = kit.path / "s" / "attachments"
    assert [path.name for path in folder.iterdir()] == ["0"]
    assert session.attach(b"two") == 1


def test_an_attachment_whose_outcome_was_unknown_is_swept_with_its_event(
    kit: Kit, session: sealog.Session
) -> None:
    kit.fs.fail("sync_data", "s/log")
    with pytest.raises(sealog.AppendOutcomeUnknownError):
        session.attach(b"one")
    assert session.append("m", "x") == 0
    assert list((kit.path / "s" / "attachments").iterdir()) == []
    assert session.recovered is not None
    assert session.recovered.leftovers == ("0",)


def test_an_attachment_whose_key_is_known_leaves_no_second_file(kit: Kit, session: sealog.Session) -> None:
    assert session.attach(b"one", file_name="a", key="k") == 0
    assert session.attach(b"one", file_name="a", key="k") == 0
    with pytest.raises(sealog.KeyConflictError):
        session.attach(b"two", file_name="a", key="k")
    assert [path.name for path in (kit.path / "s" / "attachments").iterdir()] == ["0"]
