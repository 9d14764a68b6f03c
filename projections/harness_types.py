"""What the memory of an agent harness is made of. Times are ints: nanoseconds since the epoch."""

from __future__ import annotations

import enum
from typing import Any, Final, TypeVar

import msgspec

from ..storage.errors import InvalidEventError

T = TypeVar("T", bound=msgspec.Struct)

NS: Final = 10**9
TIME_NS_END: Final = 2**63 * NS
SCHEMA_VERSION_MAX: Final = 2**32 - 1


class InitShell(enum.StrEnum):
    """A shell that runs a script of an init plan."""

    BASH = "bash"
    SH = "sh"
    PWSH = "pwsh"
    CMD = "cmd"


class InitCommand(msgspec.Struct, tag_field="kind", tag="command"):
    """A step that runs a program.

    Args:
        program: the program.
        args: its arguments.
    """

    program: str
    args: list[str]


class InitShellScript(msgspec.Struct, tag_field="kind", tag="shell"):
    """A step that runs a script.

    Args:
        shell: which shell.
        script: its text.
    """

    shell: InitShell
    script: str


InitStep = InitCommand | InitShellScript


class InitPlan(msgspec.Struct):
    """How a working copy is made ready.

    Args:
        steps: what to run, in order.
    """

    steps: list[InitStep]


class _OfSession(msgspec.Struct):
    session_id: str


class SessionManifest(_OfSession, kw_only=True):
    """What a session is about.

    Args:
        session_id: the session; one that was loaded carries the id it was asked for.
        schema_version: of whoever wrote it, below 2^32.
        harness_version: of whoever wrote it.
        active_branch: the branch it works on.
        current_objective: what it is to achieve.
        last_known_good_commit: where everything worked; None if there was none yet.
        init_plan: how to make a working copy ready; None if nothing is to be done.
        metadata: whatever else.
    """

    schema_version: int = 1
    harness_version: str = "v0"
    active_branch: str
    current_objective: str
    last_known_good_commit: str | None = None
    init_plan: InitPlan | None = None
    metadata: dict[str, str] = {}


class FeatureRecord(msgspec.Struct):
    """One feature of the list a session works through.

    Args:
        id: its name; should two have the same, the first counts.
        category: what kind of feature it is.
        description: what it does.
        steps: how to see that it works.
        passes: whether it does.
    """

    id: str
    category: str
    description: str
    steps: list[str]
    passes: bool


class ProgressEntry(msgspec.Struct, frozen=True):
    """What a run has done.

    Args:
        run_id: the run.
        summary: what a person would read.
        created_at_ns: when, below 2^63 seconds.
    """

    run_id: str
    summary: str
    created_at_ns: int


class RunStatus(enum.StrEnum):
    """How a run stands."""

    IN_PROGRESS = "in_progress"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class _Run(msgspec.Struct, frozen=True):
    run_id: str
    started_at_ns: int


class RunCheckpoint(_Run, frozen=True, kw_only=True):
    """Where a run stands. Checkpoints are added, never changed.

    Args:
        run_id: the run.
        started_at_ns: when it started.
        completed_at_ns: when it ended; None if it has not.
        status: how it stands.
        note: what else there is to say.
    """

    completed_at_ns: int | None = None
    status: RunStatus
    note: str | None = None


class MessageRole(enum.StrEnum):
    """Who says a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(msgspec.Struct, frozen=True):
    """One message of the transcript.

    Args:
        role: who says it.
        content: what.
    """

    role: MessageRole
    content: str


class BootstrapState(msgspec.Struct):
    """What a run starts from.

    Args:
        manifest: None if the session was never initialized.
        feature_list: in order.
        recent_progress: all entries, oldest first.
        checkpoints: all of them, oldest first.
    """

    manifest: SessionManifest | None = None
    feature_list: list[FeatureRecord] = []
    recent_progress: list[ProgressEntry] = []
    checkpoints: list[RunCheckpoint] = []


def checked(place: str, value: Any, kind: type[T]) -> T:
    """Return a copy of a value whose every field is what its type says.

    Args:
        place: what to call it in an error.
        value: the struct, or a dict of its fields.
        kind: its type.

    Raises:
        InvalidEventError: names the place and what is wrong there.
    """
    try:
        copy = msgspec.convert(msgspec.to_builtins(value), kind)
    except (msgspec.ValidationError, TypeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidEventError(place, f"is no {kind.__name__}: {error}") from None
    if isinstance(copy, SessionManifest) and not 0 <= copy.schema_version <= SCHEMA_VERSION_MAX:
        raise InvalidEventError(
            f"{place}.schema_version", f"must fit 32 bits without a sign, not {copy.schema_version}"
        )
    for field in kind.__struct_fields__:
        time_ns = getattr(copy, field)
        if field.endswith("_ns") and time_ns is not None and not 0 <= time_ns < TIME_NS_END:
            reason = "predates the epoch" if time_ns < 0 else "is 2^63 seconds after the epoch or later"
            raise InvalidEventError(f"{place}.{field}", f"{reason}: {time_ns} ns")
    return copy
