"""The events of a harness session, and their fold.

A time is stored as seconds and nanoseconds, since it may be longer than 64 bits. Messages stay in the log:
the fold knows only where they are.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from ..storage.errors import InvalidStateError
from ..storage.events import BATCH_EVENTS_MAX, Event
from .base import Projection
from .harness_types import (
    NS,
    FeatureRecord,
    InitPlan,
    Message,
    MessageRole,
    ProgressEntry,
    RunCheckpoint,
    RunStatus,
    SessionManifest,
    checked,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

MANIFEST_SAVED: Final = "harness.manifest-saved"
FEATURES_REPLACED: Final = "harness.features-replaced"
FEATURE_UPDATED: Final = "harness.feature-updated"
PROGRESS_APPENDED: Final = "harness.progress-appended"
CHECKPOINT_RECORDED: Final = "harness.checkpoint-recorded"
MESSAGE_APPENDED: Final = "harness.message-appended"
MESSAGES_APPENDED: Final = "harness.messages-appended"
"""Many messages in one event, for batches that have more of them than events fit a frame."""
STATE_REPLACED: Final = "harness.state-replaced"

PACKED_MESSAGES: Final = 1000
RUN_GAP_EVENTS: Final = 32
"""So many other events between two messages are read over: it costs less than to start reading again."""


class ManifestData(msgspec.Struct):
    """`data` of MANIFEST_SAVED: all of a manifest but the session, which is that of the log."""

    schema_version: int
    harness_version: str
    active_branch: str
    current_objective: str
    last_known_good_commit: str | None = None
    init_plan: InitPlan | None = None
    metadata: dict[str, str] = {}

    @classmethod
    def of(cls, manifest: SessionManifest) -> ManifestData:
        """Return the data of a manifest."""
        return cls(**{name: getattr(manifest, name) for name in cls.__struct_fields__})

    def manifest(self, session_id: str) -> SessionManifest:
        """Return a manifest that shares nothing with this."""
        return msgspec.convert({**msgspec.to_builtins(self), "session_id": session_id}, SessionManifest)


class ProgressData(msgspec.Struct, omit_defaults=True):
    """`data` of PROGRESS_APPENDED; the summary is the event's text, except in STATE_REPLACED."""

    run_id: str
    created_at_secs: int
    created_at_nanos: int
    summary: str | None = None


class CheckpointData(msgspec.Struct, omit_defaults=True):
    """`data` of CHECKPOINT_RECORDED."""

    run_id: str
    started_at_secs: int
    started_at_nanos: int
    completed_at_secs: int | None
    completed_at_nanos: int | None
    status: RunStatus
    note: str | None = None


class _Features(msgspec.Struct):
    features: list[FeatureRecord]


class _FeatureUpdate(msgspec.Struct):
    id: str
    passes: bool


class _Role(msgspec.Struct):
    role: MessageRole


class _Messages(msgspec.Struct):
    messages: list[Message]


class WholeState(msgspec.Struct):
    """`data` of STATE_REPLACED: everything but the messages, which follow in the same batch."""

    manifest: ManifestData | None
    features: list[FeatureRecord]
    progress: list[ProgressData]
    checkpoints: list[CheckpointData]


def progress_data(entry: ProgressEntry) -> ProgressData:
    """Return an entry as it is stored, with its summary."""
    return ProgressData(entry.run_id, *divmod(entry.created_at_ns, NS), entry.summary)


def progress_entry(data: ProgressData, summary: str) -> ProgressEntry:
    """Return an entry from what is stored."""
    return ProgressEntry(data.run_id, summary, data.created_at_secs * NS + data.created_at_nanos)


def checkpoint_data(checkpoint: RunCheckpoint) -> CheckpointData:
    """Return a checkpoint as it is stored."""
    completed = checkpoint.completed_at_ns
    started_secs, started_nanos = divmod(checkpoint.started_at_ns, NS)
    completed_secs, completed_nanos = (None, None) if completed is None else divmod(completed, NS)
    return CheckpointData(
        checkpoint.run_id,
        started_secs,
        started_nanos,
        completed_secs,
        completed_nanos,
        checkpoint.status,
        checkpoint.note,
    )


def run_checkpoint(data: CheckpointData) -> RunCheckpoint:
    """Return a checkpoint from what is stored."""
    secs, nanos = data.completed_at_secs, data.completed_at_nanos
    return RunCheckpoint(
        data.run_id,
        data.started_at_secs * NS + data.started_at_nanos,
        completed_at_ns=None if secs is None or nanos is None else secs * NS + nanos,
        status=data.status,
        note=data.note,
    )


# -- making events; each checks what it is given and raises InvalidEventError, naming the place


def manifest_saved(manifest: SessionManifest) -> Event:
    """Return the event of a saved manifest."""
    manifest = checked("manifest", manifest, SessionManifest)
    return Event(MANIFEST_SAVED, manifest.current_objective, ManifestData.of(manifest))


def features_replaced(features: Iterable[FeatureRecord]) -> Event:
    """Return the event of a new feature list."""
    checked_features = [
        checked(f"feature_list[{at}]", feature, FeatureRecord) for at, feature in enumerate(features)
    ]
    return Event(FEATURES_REPLACED, f"{len(checked_features)} features", _Features(checked_features))


def feature_updated(feature_id: str, *, passes: bool) -> Event:
    """Return the event of a feature that passes now, or does not any more."""
    update = checked("feature", {"id": feature_id, "passes": passes}, _FeatureUpdate)
    return Event(FEATURE_UPDATED, update.id, update)


def progress_appended(entry: ProgressEntry) -> Event:
    """Return the event of a progress entry."""
    entry = checked("progress_entry", entry, ProgressEntry)
    data = progress_data(entry)
    data.summary = None
    return Event(PROGRESS_APPENDED, entry.summary, data)


def checkpoint_recorded(checkpoint: RunCheckpoint) -> Event:
    """Return the event of a run checkpoint."""
    checkpoint = checked("checkpoint", checkpoint, RunCheckpoint)
    return Event(CHECKPOINT_RECORDED, f"{checkpoint.run_id} {checkpoint.status}", checkpoint_data(checkpoint))


def messages_appended(messages: Iterable[Message], *, room: int = BATCH_EVENTS_MAX) -> list[Event]:
    """Return the events of messages: one each, or packed if there is not room for so many."""
    texts = [checked(f"messages[{at}]", message, Message) for at, message in enumerate(messages)]
    if len(texts) <= room:
        return [Event(MESSAGE_APPENDED, message.content, _Role(message.role)) for message in texts]
    packs = [texts[at : at + PACKED_MESSAGES] for at in range(0, len(texts), PACKED_MESSAGES)]
    return [Event(MESSAGES_APPENDED, f"{len(pack)} messages", _Messages(pack)) for pack in packs]


def state_replaced(state: WholeState, messages: Iterable[Message]) -> list[Event]:
    """Return the events that put one state in the place of another."""
    first = Event(STATE_REPLACED, "", state)
    return [first, *messages_appended(messages, room=BATCH_EVENTS_MAX - 1)]


# -- reading events


def messages_of(event: Event) -> list[Message]:
    """Return the messages of an event; none if it is of another kind.

    Raises:
        msgspec.ValidationError: the event was not made here.
    """
    if event.kind == MESSAGE_APPENDED:
        return [Message(event.decode(_Role).role, event.text)]
    return event.decode(_Messages).messages if event.kind == MESSAGES_APPENDED else []


class Run(NamedTuple):
    """Positions between which messages stand close together."""

    start: int
    stop: int


class HarnessState(msgspec.Struct):
    """What is known of a harness session at a position.

    The lists of progress, checkpoints and runs only grow, so that a snapshot is their length: it costs the
    same however long they are. What they hold is never changed.
    """

    position: int = 0
    manifest: ManifestData | None = None
    features: list[FeatureRecord] = []
    progress: list[ProgressEntry] = []
    progress_count: int = 0
    checkpoints: list[RunCheckpoint] = []
    checkpoint_count: int = 0
    runs: list[Run] = []
    run_count: int = 0

    def feature_index(self, feature_id: str) -> int | None:
        """Return where the first feature of an id stands; None if there is none."""
        return next((at for at, feature in enumerate(self.features) if feature.id == feature_id), None)

    def message_runs(self) -> Iterator[Run]:
        """Yield the positions between which the messages up to this state are."""
        for start, stop in self.runs[: self.run_count]:
            yield Run(start, min(stop, self.position))


class _Saved(msgspec.Struct, array_like=True):
    position: int
    whole: WholeState
    runs: list[Run]


class Harness(Projection[HarnessState]):
    """The state of a harness session. It sees every event, to know the position it stands for."""

    name = "sealog.harness"
    state_type = HarnessState

    def initial(self) -> HarnessState:
        """Return the state of a session nobody has written to."""
        return HarnessState()

    def apply(self, state: HarnessState, event: Event, /) -> HarnessState:
        """Return the state after one more event; kinds that are not known only count.

        Raises:
            InvalidStateError: the event was not made here.
        """
        position = state.position
        state.position += 1
        if not event.kind.startswith("harness."):
            return state
        try:
            return self._apply(state, event, position)
        except msgspec.ValidationError as error:
            raise InvalidStateError(f"event {position} ({event.kind})", "data", str(error)) from error

    def _apply(self, state: HarnessState, event: Event, position: int) -> HarnessState:
        kind = event.kind
        if kind in {MESSAGE_APPENDED, MESSAGES_APPENDED}:
            self._add_message(state, position)
        elif kind == PROGRESS_APPENDED:
            state.progress.append(progress_entry(event.decode(ProgressData), event.text))
            state.progress_count += 1
        elif kind == CHECKPOINT_RECORDED:
            state.checkpoints.append(run_checkpoint(event.decode(CheckpointData)))
            state.checkpoint_count += 1
        elif kind == FEATURE_UPDATED:
            update = event.decode(_FeatureUpdate)
            at = state.feature_index(update.id)
            if at is not None:
                state.features[at] = msgspec.structs.replace(state.features[at], passes=update.passes)
        elif kind == MANIFEST_SAVED:
            state.manifest = event.decode(ManifestData)
        elif kind == FEATURES_REPLACED:
            state.features = event.decode(_Features).features
        elif kind == STATE_REPLACED:
            return self._state_of(position + 1, event.decode(WholeState), [])
        return state

    @staticmethod
    def _add_message(state: HarnessState, position: int) -> None:
        if state.runs and position - state.runs[-1].stop <= RUN_GAP_EVENTS:
            state.runs[-1] = Run(state.runs[-1].start, position + 1)
        else:
            state.runs.append(Run(position, position + 1))
            state.run_count += 1

    @staticmethod
    def _state_of(position: int, whole: WholeState, runs: list[Run]) -> HarnessState:
        progress = [progress_entry(data, data.summary or "") for data in whole.progress]
        checkpoints = [run_checkpoint(data) for data in whole.checkpoints]
        return HarnessState(
            position,
            whole.manifest,
            whole.features,
            progress,
            len(progress),
            checkpoints,
            len(checkpoints),
            runs,
            len(runs),
        )

    def view(self, state: HarnessState, /) -> HarnessState:
        """Return a snapshot; it costs as much as the feature list is long."""
        snapshot = copy.copy(state)
        snapshot.features = list(state.features)
        return snapshot

    def save(self, state: HarnessState, /) -> bytes:
        """Return the state as bytes."""
        whole = WholeState(
            state.manifest,
            state.features,
            [progress_data(entry) for entry in state.progress],
            [checkpoint_data(checkpoint) for checkpoint in state.checkpoints],
        )
        return msgspec.msgpack.encode(_Saved(state.position, whole, state.runs))

    def load(self, data: bytes, /) -> HarnessState:
        """Return the state that `save` turned into bytes.

        Raises:
            ValueError: these are no such bytes.
        """
        saved = msgspec.msgpack.decode(data, type=_Saved)
        return self._state_of(saved.position, saved.whole, saved.runs)


def whole_state(
    manifest: Any, features: Iterable[Any], progress: Iterable[Any], checkpoints: Iterable[Any]
) -> WholeState:
    """Return a state to replace another with; checks every part.

    Raises:
        InvalidEventError: names the place.
    """
    return WholeState(
        None if manifest is None else ManifestData.of(checked("manifest", manifest, SessionManifest)),
        [checked(f"feature_list[{at}]", item, FeatureRecord) for at, item in enumerate(features)],
        [
            progress_data(checked(f"recent_progress[{at}]", item, ProgressEntry))
            for at, item in enumerate(progress)
        ],
        [
            checkpoint_data(checked(f"checkpoints[{at}]", item, RunCheckpoint))
            for at, item in enumerate(checkpoints)
        ],
    )
