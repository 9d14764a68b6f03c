"""State files of older programs: one JSON object a file, below `sessions/`, into a store and out of it.

    harness-state  sessions/<hex of the id's UTF-8>.json
    acp-state      sessions/<target>/state.json

What a file says replaces what the session held; a file that says the same changes nothing. What a state is
and what is wrong with one is told by `HarnessMemory` and `AcpSessions`.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec

from ..projections import acp_state, harness_state
from ..projections.acp import TARGETS, AcpSessions
from ..projections.harness import SESSIONS, HarnessMemory
from ..storage.errors import InvalidStateError, LimitExceededError, SessionNotFoundError
from .archives import Unit, same_file
from .errors import NotExportableError
from .reports import ImportReport
from .target import Target, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..actors.readable import ReadableSession
    from ..actors.store import Store
    from ..projections.naming import KeySpace
    from .source import Source

__all__ = ["ACP_STATE", "HARNESS_STATE", "StateFormat"]

_FOLDER: Final = "sessions"
_SUFFIX: Final = ".json"
_ACP_FILE: Final = "state.json"
_NAME_BYTES_MAX: Final = 255
_CHOOSE: Final = "choose one: session_id= here, --as on the command line"


class _Layout(NamedTuple):
    """Where the files are, below `sessions/`.

    Args:
        find: yields all files of that folder.
        key_of: gives the key of a file, from its path in that folder; raises ValueError with the reason.
        file_of: gives the path of a key's file in that folder; the same.
        lone: the folder that a file's name counts from if none above it is called `sessions`.
    """

    find: Callable[[str], Iterator[str]]
    key_of: Callable[[str], str]
    file_of: Callable[[str], str]
    lone: Callable[[str], str]


class StateFormat:
    """The state files of one program.

    Args:
        name: of the format.
        space: which sessions hold the states.
        api: gives what imports and exports states of a store.
        parse: reads a state file, for comparing.
        layout: where the files are.
    """

    def __init__(
        self,
        name: str,
        space: KeySpace,
        api: Callable[[Store], HarnessMemory | AcpSessions],
        parse: Callable[[bytes, str], msgspec.Struct],
        layout: _Layout,
    ) -> None:
        self.NAME = name
        self.SUFFIX = _SUFFIX
        self._space = space
        self._api = api
        self._parse = parse
        self._layout = layout

    def detect(self, source: Source) -> bool:  # noqa: ARG002 — the same for every source
        """Say no: a JSON object does not prove whose it is, so the format has to be named."""
        return False

    def units(self, source: Source) -> list[Unit]:
        """List the state files of a folder, sorted; or the one that the source is."""
        if not source.is_directory:
            folder = os.path.dirname(os.path.abspath(source.path))
            root = _sessions_above(folder) or self._layout.lone(folder)
            return [Unit(source.path, source.size_bytes, _relative(source.path, root))]
        folder, below = source.path, os.path.join(source.path, _FOLDER)
        if source.name != _FOLDER and os.path.isdir(below):
            folder = below
        root = _sessions_above(os.path.abspath(folder)) or folder
        paths = sorted(self._layout.find(folder))
        return [Unit(path, _size(path), _relative(path, root)) for path in paths]

    def take(self, store: Store, unit: Unit, name: str | None = None) -> ImportReport:
        """Import one state file.

        Args:
            store: where to.
            unit: the file.
            name: key of the session, any string; that of the file's name if None.

        Raises:
            InvalidStateError: names the file and the field; nothing was imported of it.
            Everything that `import_state` raises.
            OSError: the file cannot be read.
        """
        key = self._key_of(unit) if name is None else name
        with open(unit.path, "rb") as file:
            data = file.read()
        report = ImportReport(self._space.session_id(key), self.NAME, records=1, source=unit.path)
        wanted = self._parse(data, unit.path)
        api = self._api(store)
        before = self._space.find(store, key)
        count = 0 if before is None else len(before)
        if before is not None and self._holds(api, key, wanted):
            report.known = 1
            return report
        api.import_state(key, data, source=unit.path)
        after = self._space.find(store, key)
        report.added = 1
        report.events = 0 if after is None else len(after) - count
        return report

    def _holds(self, api: HarnessMemory | AcpSessions, key: str, wanted: msgspec.Struct) -> bool:
        try:
            found = self._parse(api.export_state(key), "")
        except SessionNotFoundError:  # a session that holds nothing yet
            return False
        return _comparable(found) == _comparable(wanted)

    def _key_of(self, unit: Unit) -> str:
        try:
            return self._layout.key_of(unit.name)
        except ValueError as error:
            raise InvalidStateError(unit.path, "file name", f"{error}; {_CHOOSE}") from None

    def session_ids(self, store: Store) -> list[str]:
        """List the sessions of a store that hold such states."""
        return [self._space.session_id(key) for key in self._space.keys(store)]

    def write(self, session: ReadableSession, target: Target) -> Written:
        """Write the state of a session.

        Raises:
            NotExportableError: the session holds no such state.
            OSError: the target cannot be written.
        """
        target.file().write(self._state(session)[1])
        return Written(1)

    def put(self, store: Store, session_id: str, directory: str, *, overwrite: bool) -> Written:
        """Write the state of a session to the file that the older program would look for.

        Args:
            store: where the session is.
            session_id: its id in the store.
            directory: that holds `sessions`; made if it does not exist.
            overwrite: replace the file if it holds another state.

        Raises:
            NotExportableError: the session holds no such state, or no file can have the name of its key.
            LimitExceededError: the name of the file would be too long.
            FileExistsError: another state is there.
            OSError: the file cannot be written.
        """
        with store.open_session(session_id) as session:
            key, data = self._state(session)
        try:
            parts = self._layout.file_of(key).split("/")
        except ValueError as error:
            raise NotExportableError(session_id, self.NAME, f"of {key!r:.200} {error}") from None
        for part in parts:
            if len(part.encode()) > _NAME_BYTES_MAX:
                advice = "export it alone, to a file of another name"
                raise LimitExceededError("bytes of a file name", _NAME_BYTES_MAX, len(part.encode()), advice)
        path = os.path.join(directory, _FOLDER, *parts)
        if same_file(path, data):
            return Written(1, unchanged=True, path=path)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with Target(path, overwrite=overwrite) as target:
            target.file().write(data)
        return Written(1, path=path)

    def _state(self, session: ReadableSession) -> tuple[str, bytes]:
        """Return the key of a session and its state."""
        labels = session.header.labels
        key = labels.get("key")
        if labels.get("owner") != self._space.owner or key is None:
            raise NotExportableError(session.session_id, self.NAME, f"it is none of {self._space.owner}'s")
        try:
            return key, self._api(cast("Store", _StoreOfOne(session))).export_state(key)
        except SessionNotFoundError:
            raise NotExportableError(session.session_id, self.NAME, "it holds no state yet") from None


class _StoreOfOne:
    """Gives a session that is open already to what asks a store for it."""

    def __init__(self, session: ReadableSession) -> None:
        self._session = session
        self.path = os.path.dirname(session.path)

    def open_session(self, session_id: str) -> ReadableSession:
        if session_id != self._session.session_id:
            raise SessionNotFoundError(session_id, self.path)
        return self._session


def _comparable(state: msgspec.Struct) -> str:
    """Return a text that is the same for equal states, ints and floats told apart."""
    return json.dumps(msgspec.to_builtins(state), sort_keys=True)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:  # reading it will say what is wrong
        return 0


def _sessions_above(folder: str) -> str | None:
    """Return the next folder called `sessions`, going up; the outer one of two of them."""
    while os.path.basename(folder):
        parent = os.path.dirname(folder)
        if os.path.basename(folder) == _FOLDER:
            return parent if os.path.basename(parent) == _FOLDER else folder
        folder = parent
    return None


def _relative(path: str, root: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")


def _harness_files(root: str) -> Iterator[str]:
    for name in os.listdir(root):
        path = os.path.join(root, name)
        if name.endswith(_SUFFIX) and not os.path.isdir(path):
            yield path


def _harness_key(file: str) -> str:
    file = file.rpartition("/")[2]
    digits = file.removesuffix(_SUFFIX)
    try:
        key = bytes.fromhex(digits).decode()
    except ValueError:
        key = None
    if key is None or key.encode().hex() != digits or digits == file:
        msg = "is not <lower-case hex of a session id>.json"
        raise ValueError(msg)
    return key


def _harness_file(key: str) -> str:
    return key.encode().hex() + _SUFFIX


def _acp_files(root: str) -> Iterator[str]:
    for folder, _, names in os.walk(root, onerror=_raise):
        if _ACP_FILE in names:
            yield os.path.join(folder, _ACP_FILE)


def _raise(error: OSError) -> None:
    raise error


def _acp_key(file: str) -> str:
    target, _, name = file.rpartition("/")
    if name != _ACP_FILE:
        msg = f"is not {_ACP_FILE} in a folder of the target's name"
        raise ValueError(msg)
    return target


def _acp_file(key: str) -> str:
    parts = key.split("/") if key else []
    if "\0" in key or any(part in {"", ".", ".."} for part in parts):
        msg = "no file below the folder can have that name; export it alone, to a file of another name"
        raise ValueError(msg)
    return "/".join([*parts, _ACP_FILE])


HARNESS_STATE: Final = StateFormat(
    "harness-state",
    SESSIONS,
    HarnessMemory,
    harness_state.read_state,
    _Layout(_harness_files, _harness_key, _harness_file, os.path.abspath),
)
ACP_STATE: Final = StateFormat(
    "acp-state",
    TARGETS,
    AcpSessions,
    acp_state.read_state,
    _Layout(_acp_files, _acp_key, _acp_file, os.path.dirname),
)
