"""Errors: the tree, what each carries, and that it survives pickling."""

from __future__ import annotations

import copy
import errno
import pickle
import re
from concurrent.futures import Future

import pytest

from sealog.storage import errors
from sealog.storage.errors import (
    AppendOutcomeUnknownError,
    AttachmentCorruptError,
    AttachmentMissingError,
    BlockingCallError,
    CorruptionError,
    FeatureNotFoundError,
    FormatError,
    InvalidEventError,
    InvalidHeaderError,
    InvalidSessionIdError,
    InvalidStateError,
    KeyConflictError,
    LimitExceededError,
    MailboxFullError,
    PositionConflictError,
    SealogError,
    SessionDeletedError,
    SessionExistsError,
    SessionFailedError,
    SessionLockedError,
    SessionNotFoundError,
    SessionNotSealedError,
    SessionSealedError,
    StorageFullError,
    StoreClosedError,
    StoreNotFoundError,
    StoreReadOnlyError,
    UpgradeRequiredError,
)

HOLDER = {"pid": 4711, "host": "mill", "started": "2026-01-01T00:00:00Z"}

EXAMPLES: list[tuple[SealogError, dict[str, object]]] = [
    (SessionNotFoundError("s1", "/st"), {"session_id": "s1", "store": "/st"}),
    (SessionExistsError("s1", "/st/s1"), {"session_id": "s1", "path": "/st/s1"}),
    (
        SessionLockedError("s1", "/st/s1/lock", HOLDER),
        {"session_id": "s1", "path": "/st/s1/lock", "holder": HOLDER},
    ),
    (SessionSealedError("s1"), {"session_id": "s1"}),
    (SessionNotSealedError("s1", "deleted"), {"session_id": "s1"}),
    (SessionDeletedError("s1", "/st/s1/log"), {"session_id": "s1", "path": "/st/s1/log"}),
    (
        SessionFailedError("s1", "/st/s1", KeyError("boom"), given_up=True),
        {"session_id": "s1", "path": "/st/s1", "given_up": True},
    ),
    (StoreClosedError("/st"), {"path": "/st", "reason": "was closed; open it again with sealog.open()"}),
    (StoreNotFoundError("/st", "nothing is there"), {"path": "/st", "reason": "nothing is there"}),
    (StoreReadOnlyError("/st", "append"), {"path": "/st", "action": "append"}),
    (BlockingCallError("append()"), {"action": "append()"}),
    (InvalidSessionIdError("a/b"), {"session_id": "a/b"}),
    (
        InvalidHeaderError("s1", "labels", "are bad"),
        {"session_id": "s1", "field": "labels", "reason": "are bad"},
    ),
    (InvalidEventError("data.x[3]", "is a set"), {"place": "data.x[3]", "reason": "is a set"}),
    (
        LimitExceededError("bytes of one batch", 64, 1000, "split it"),
        {"limit": "bytes of one batch", "maximum": 64, "actual": 1000},
    ),
    (PositionConflictError("s1", 7, 9), {"session_id": "s1", "expected": 7, "actual": 9}),
    (
        KeyConflictError("s1", "k", 5, "is known"),
        {"session_id": "s1", "key": "k", "position": 5, "reason": "is known"},
    ),
    (FormatError("/log", 32, "odd", "ask"), {"path": "/log", "offset": 32, "reason": "odd"}),
    (
        UpgradeRequiredError("/log", 32, "kind 9"),
        {"path": "/log", "offset": 32, "reason": "kind 9"},
    ),
    (
        CorruptionError("/log", 32, 5, "damaged"),
        {"path": "/log", "offset": 32, "position": 5, "reason": "damaged (event 5)"},
    ),
    (
        AttachmentMissingError("s1", 3, "/a/3", "gone"),
        {"session_id": "s1", "position": 3, "path": "/a/3", "reason": "gone"},
    ),
    (
        AttachmentCorruptError("s1", 3, "/a/3", "short"),
        {"session_id": "s1", "position": 3, "path": "/a/3", "reason": "short"},
    ),
    (MailboxFullError("s1", "the mailbox is full"), {"session_id": "s1", "reason": "the mailbox is full"}),
    (
        AppendOutcomeUnknownError("s1", "the sync failed", range(3, 5)),
        {"session_id": "s1", "reason": "the sync failed", "positions": range(3, 5), "future": None},
    ),
    (StorageFullError("s1", "/st/s1/log", errno.ENOSPC), {"session_id": "s1", "path": "/st/s1/log"}),
    (FeatureNotFoundError("s1", "f1"), {"session_id": "s1", "feature_id": "f1"}),
    (
        InvalidStateError("/old.json", "features[2]", "is no map"),
        {"file": "/old.json", "field": "features[2]", "reason": "is no map"},
    ),
]
BY_NAME = pytest.mark.parametrize(
    ("error", "data"), EXAMPLES, ids=[type(error).__name__ for error, _ in EXAMPLES]
)
BUILTIN_BASES = {
    "SessionNotFoundError": LookupError,
    "SessionExistsError": FileExistsError,
    "SessionLockedError": BlockingIOError,
    "SessionSealedError": ValueError,
    "SessionNotSealedError": ValueError,
    "SessionDeletedError": LookupError,
    "SessionFailedError": RuntimeError,
    "StoreClosedError": RuntimeError,
    "StoreNotFoundError": FileNotFoundError,
    "StoreReadOnlyError": PermissionError,
    "BlockingCallError": RuntimeError,
    "InvalidSessionIdError": ValueError,
    "InvalidHeaderError": ValueError,
    "InvalidEventError": ValueError,
    "LimitExceededError": ValueError,
    "PositionConflictError": ValueError,
    "KeyConflictError": ValueError,
    "FormatError": ValueError,
    "UpgradeRequiredError": FormatError,
    "CorruptionError": FormatError,
    "AttachmentMissingError": FileNotFoundError,
    "AttachmentCorruptError": ValueError,
    "MailboxFullError": TimeoutError,
    "AppendOutcomeUnknownError": TimeoutError,
    "StorageFullError": OSError,
    "FeatureNotFoundError": LookupError,
    "InvalidStateError": ValueError,
}
ERRNOS = {
    "SessionExistsError": errno.EEXIST,
    "SessionLockedError": errno.EWOULDBLOCK,
    "StoreNotFoundError": errno.ENOENT,
    "StoreReadOnlyError": errno.EROFS,
    "AttachmentMissingError": errno.ENOENT,
    "MailboxFullError": errno.ETIMEDOUT,
    "AppendOutcomeUnknownError": errno.ETIMEDOUT,
    "StorageFullError": errno.ENOSPC,
}
ADVICE = {
    "SessionNotFoundError": "create it with create_session()",
    "SessionExistsError": "open it with open_session()",
    "SessionLockedError": "read it here with read_only=True",
    "SessionSealedError": "append to a new session",
    "SessionNotSealedError": "seal() it first",
    "SessionDeletedError": "open_session() shows what is there now",
    "SessionFailedError": "open_session() tries recovery",
    "StoreClosedError": "open it again",
    "StoreNotFoundError": "nothing is there",
    "StoreReadOnlyError": "open it without read_only=True",
    "BlockingCallError": "use append_nowait()",
    "InvalidSessionIdError": "use 1 to 255 characters of",
    "InvalidHeaderError": "was not created",
    "InvalidEventError": "event not stored",
    "LimitExceededError": "split it",
    "PositionConflictError": "decide again",
    "KeyConflictError": "nothing was written",
    "FormatError": "ask",
    "UpgradeRequiredError": "a newer version of sealog is needed",
    "CorruptionError": "nothing was changed",
    "AttachmentMissingError": "gone",
    "AttachmentCorruptError": "restore the file from a backup",
    "MailboxFullError": "try again later",
    "AppendOutcomeUnknownError": "repeat the call with the same key",
    "StorageFullError": "free some space",
    "FeatureNotFoundError": "load_bootstrap_state() lists them",
    "InvalidStateError": "is no map",
}


def test_the_examples_cover_every_error() -> None:
    assert {type(error).__name__ for error, _ in EXAMPLES} | {"SealogError"} == set(errors.__all__)


def test_the_tree_in_the_docstring_is_the_tree_of_the_code() -> None:
    printed = dict(re.findall(r"── (\w+Error) +\((\w+)\)", errors.__doc__ or ""))
    named = set(re.findall(r"(\w+Error)\b", (errors.__doc__ or "").partition("Each carries")[0]))
    assert {name: base.__name__ for name, base in BUILTIN_BASES.items() if base is not FormatError} == printed
    assert set(errors.__all__) <= named


@BY_NAME
def test_it_is_what_a_caller_would_already_catch(error: SealogError, data: dict[str, object]) -> None:
    assert isinstance(error, SealogError)
    assert isinstance(error, BUILTIN_BASES[type(error).__name__])


@BY_NAME
def test_it_carries_its_data(error: SealogError, data: dict[str, object]) -> None:
    assert {name: getattr(error, name) for name in data} == data


@BY_NAME
def test_its_text_is_whole_and_names_session_and_file(error: SealogError, data: dict[str, object]) -> None:
    assert str(error) == error.message == error.args[-1]
    for name in ("session_id", "path", "store", "place", "file", "field"):
        if name in data:
            assert str(data[name]) in str(error)


@BY_NAME
def test_it_says_what_to_do_or_what_was_spared(error: SealogError, data: dict[str, object]) -> None:
    assert ADVICE[type(error).__name__] in str(error)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))]
)
@BY_NAME
def test_it_survives_copying_and_pickling(
    error: SealogError, data: dict[str, object], copied: object
) -> None:
    again = copied(error)  # type: ignore[operator]
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert {name: getattr(again, name) for name in data} == data
    assert getattr(again, "errno", None) == getattr(error, "errno", None)


@BY_NAME
def test_operating_system_errors_have_their_errno(error: SealogError, data: dict[str, object]) -> None:
    assert getattr(error, "errno", None) == ERRNOS.get(type(error).__name__)


def test_a_full_disk_keeps_its_errno_and_names_it() -> None:
    error = StorageFullError("s1", "/st/s1/log", errno.EDQUOT)
    assert error.errno == errno.EDQUOT
    assert "EDQUOT" in str(error)


def test_the_cause_of_a_failed_session_is_kept() -> None:
    cause = OSError(errno.EIO, "disk")
    error = SessionFailedError("s1", "/st/s1", cause, given_up=False)
    assert error.cause is cause
    assert "disk" in str(error)
    assert "send it again" in str(error)
    assert isinstance(pickle.loads(pickle.dumps(error)).cause, OSError)


def test_the_future_of_an_unknown_outcome_stays_in_its_process() -> None:
    """A future cannot be pickled; the error can, without it."""
    future: Future[int] = Future()
    error = AppendOutcomeUnknownError("s1", "late", range(1), future)
    assert error.future is future
    again = pickle.loads(pickle.dumps(error))
    assert again.future is None
    assert again.positions == range(1)


def test_a_lock_error_names_the_holder() -> None:
    text = str(SessionLockedError("s1", "/st/s1/lock", HOLDER))
    assert "process 4711 on mill" in text
    assert "2026-01-01T00:00:00Z" in text


def test_a_lock_error_without_a_readable_holder_says_another_process() -> None:
    assert "owned by another process" in str(SessionLockedError("s1", "/st/s1/lock", None))


def test_a_huge_refused_id_is_shortened() -> None:
    text = str(InvalidSessionIdError("x" * 10_000))
    assert len(text) < 250
    assert "10002 characters" in text


def test_limits_are_printed_with_their_numbers() -> None:
    text = str(LimitExceededError("bytes of one batch", 67_108_864, 70_000_000, "split it"))
    assert text == "bytes of one batch: 70,000,000 is over the limit of 67,108,864; split it"


def test_corruption_points_to_verify_and_repair() -> None:
    text = str(CorruptionError("/st/s1/log", 512, 17, "the payload of a frame is damaged"))
    assert text.startswith("/st/s1/log: at byte 512: the payload of a frame is damaged (event 17)")
    assert "sealog verify" in text
    assert "sealog repair" in text


def test_notes_are_kept_by_pickling() -> None:
    error = SessionSealedError("s1")
    error.add_note("while importing")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while importing"]
