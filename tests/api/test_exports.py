"""What `import sealog` gives, and what it does not load."""

from __future__ import annotations

import inspect
import logging
import pickle
import pydoc
import subprocess
import sys
import types
from typing import TYPE_CHECKING, Any

import pytest

import sealog

if TYPE_CHECKING:
    from .kit import Kit

CONTRACT = [
    "AppendOutcomeUnknownError",
    "Attachment",
    "AttachmentCorruptError",
    "AttachmentMissingError",
    "BlockingCallError",
    "CorruptionError",
    "Event",
    "FeatureNotFoundError",
    "FormatError",
    "Gap",
    "InvalidEventError",
    "InvalidHeaderError",
    "InvalidSessionIdError",
    "InvalidStateError",
    "KeyConflictError",
    "LimitExceededError",
    "MailboxFullError",
    "PositionConflictError",
    "Projection",
    "Receipt",
    "RecoveryReport",
    "RepairReport",
    "Role",
    "SealedSession",
    "SealogError",
    "Session",
    "SessionDeletedError",
    "SessionExistsError",
    "SessionFailedError",
    "SessionHeader",
    "SessionInfo",
    "SessionLockedError",
    "SessionNotFoundError",
    "SessionNotSealedError",
    "SessionSealedError",
    "StorageFullError",
    "Store",
    "StoreClosedError",
    "StoreNotFoundError",
    "StoreReadOnlyError",
    "StoreStats",
    "Subscription",
    "UpgradeRequiredError",
    "VerifyReport",
    "__version__",
    "open",
]


def public(thing: object) -> list[tuple[str, Any]]:
    """List what a class or module of ours shows."""
    return [(name, getattr(thing, name)) for name in vars(thing) if not name.startswith("_")]


def test_all_is_exact() -> None:
    assert sorted(sealog.__all__) == sorted(CONTRACT)
    shown = {
        name
        for name, value in vars(sealog).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert shown - {"annotations"} == set(sealog.__all__) - {"__version__"}


def test_all_errors_are_public() -> None:
    from sealog.storage import errors

    assert set(errors.__all__) <= set(sealog.__all__)
    for name, value in public(errors):
        if inspect.isclass(value) and issubclass(value, sealog.SealogError):
            assert getattr(sealog, name) is value


@pytest.mark.parametrize("name", [name for name in CONTRACT if not name.startswith("_")])
def test_everything_public_has_a_docstring(name: str) -> None:
    thing = getattr(sealog, name)
    assert inspect.getdoc(thing)
    if inspect.isclass(thing) and thing.__module__.startswith("sealog"):
        for member, value in public(thing):
            if callable(value) or isinstance(value, property):
                documented = inspect.getdoc(value) or f"{member}: " in inspect.getdoc(thing)
                assert documented, f"{name}.{member}"


SIGNATURES = {
    "open": (
        "path, *, read_only=False, create=True, max_live_sessions=256, exit_timeout_s=5.0, file_system=None"
    ),
    "Store.create_session": "self, session_id, created_at=None, labels=None",
    "Store.open_session": "self, session_id, *, verify='tail'",
    "Store.session_ids": "self",
    "Store.describe": "self, session_id",
    "Store.recover_all": "self, progress=None",
    "Store.delete_session": "self, session_id, *, require_sealed=False",
    "Store.stats": "self",
    "Store.close": "self, timeout=None",
    "Session.append": "self, kind, text, data=None, *, key=None, expected=None, timeout=None",
    "Session.append_many": "self, events, *, expected=None, timeout=None",
    "Session.append_nowait": "self, kind, text, data=None, *, key=None, expected=None",
    "Session.attach": "self, source, *, file_name=None, media_type=None, text='', key=None",
    "Session.read_attachment": "self, position",
    "Session.attachments": "self",
    "Session.events": "self, start=0, stop=None",
    "Session.tail": "self, n",
    "Session.subscribe": "self, start=0",
    "Session.seal": "self",
    "Session.close": "self",
    "Session.delete_committed": "self",
    "Session.delete_abandoned": "self",
    "Session.project": "self, projection",
    "Subscription.get": "self, timeout=None",
    "Subscription.close": "self",
    "Attachment.open": "self",
    "Event": "kind, text, data=None, at=None, key=None",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_those_of_the_contract(name: str) -> None:
    thing: Any = sealog
    for part in name.split("."):
        thing = getattr(thing, part)
    signature = inspect.signature(thing)
    bare = signature.replace(
        parameters=[
            parameter.replace(annotation=inspect.Parameter.empty)
            for parameter in signature.parameters.values()
        ],
        return_annotation=inspect.Signature.empty,
    )
    assert str(bare) == f"({SIGNATURES[name]})"


ATTRIBUTES = {
    sealog.SessionInfo: (
        "session_id events sealed size_bytes created_at labels status last_at quarantine_bytes reason"
    ),
    sealog.StoreStats: (
        "live_sessions known_sessions waiting_requests passivations restarts failed_sessions"
    ),
    sealog.RecoveryReport: "session_id status events dropped_bytes quarantined reason leftovers",
    sealog.SessionHeader: "session_id created_at labels",
    sealog.Receipt: "events last_digest sha256",
}


@pytest.mark.parametrize("struct", ATTRIBUTES, ids=lambda struct: struct.__name__)
def test_what_is_handed_out_is_frozen_and_has_the_fields_of_the_contract(struct: Any) -> None:
    assert list(struct.__struct_fields__) == ATTRIBUTES[struct].split()
    assert struct.__struct_config__.frozen


def test_errors_inherit_what_a_caller_would_catch() -> None:
    bases: dict[str, type[BaseException]] = {
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
        "FormatError": ValueError,
        "UpgradeRequiredError": sealog.FormatError,
        "CorruptionError": sealog.FormatError,
        "AttachmentMissingError": FileNotFoundError,
        "AttachmentCorruptError": ValueError,
        "MailboxFullError": TimeoutError,
        "AppendOutcomeUnknownError": TimeoutError,
        "StorageFullError": OSError,
    }
    for name, base in bases.items():
        error = getattr(sealog, name)
        assert issubclass(error, base), name
        assert issubclass(error, sealog.SealogError), name


def test_it_has_a_version() -> None:
    assert sealog.__version__[0].isdigit()


def test_its_logger_says_nothing_unless_asked() -> None:
    handlers = logging.getLogger("sealog").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)


def test_help_shows_how_to_begin() -> None:
    text = pydoc.render_doc(sealog, renderer=pydoc.plaintext)
    assert "with sealog.open(" in text
    assert "create_session" in text
    assert "append" in text


def loaded(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after a statement."""
    found = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return {name.partition(".")[0] for name in found.stdout.split()}


def test_importing_it_loads_nothing_but_its_three_dependencies() -> None:
    found = loaded("import sealog") - loaded("import pykka, msgspec, xxhash") - set(sys.stdlib_module_names)
    assert found == {"sealog"}


def test_importing_it_starts_no_thread_and_opens_no_file() -> None:
    script = (
        "import os, threading\nbefore = set(os.listdir('/proc/self/fd'))\nimport sealog\n"
        "assert threading.active_count() == 1\nassert set(os.listdir('/proc/self/fd')) == before"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_handles_are_not_pickled_and_say_why(kit: Kit) -> None:
    store = kit.store()
    session = store.create_session("s")
    session.append("m", "x")
    for handle, what in ((store, "path"), (session, "session id"), (session.seal(), "session")):
        with pytest.raises(TypeError, match=what):
            pickle.dumps(handle)


def test_values_are_pickled(kit: Kit) -> None:
    store = kit.store()
    session = store.create_session("s", "then", {"a": "b"})
    session.append("m", "x", {"a": [1]})
    session.seal()
    for value in (session[0], session.header, session.seal().receipt, store.describe("s"), store.stats()):
        assert pickle.loads(pickle.dumps(value)) == value


def test_what_it_shows_of_itself_names_store_and_session(kit: Kit) -> None:
    store = kit.store()
    session = store.create_session("s")
    assert repr(store) == f"<sealog.Store {kit.path}>"
    assert repr(session) == f"<sealog.Session 's' of {kit.path}>"
    sealed = session.seal()
    assert "SealedSession 's'" in repr(sealed)
    store.close()
    assert repr(store) == f"<sealog.Store {kit.path} closed>"
