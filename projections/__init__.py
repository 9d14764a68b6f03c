"""State derived from events: a base for your own, and what replaces two older programs."""

from __future__ import annotations

from .acp import (
    ACP_LOOK_PRIME_TIMEOUT_MS,
    AcpSessions,
    AgentEntry,
    CognitionEntry,
    InvocationEntry,
    InvocationStatus,
    LookFreshness,
    LookSnapshot,
    SnapshotEntry,
    SnapshotSource,
    StaleReason,
    UpdateEntry,
    UserEntry,
    WorkerState,
)
from .base import Projection
from .harness import (
    BootstrapState,
    FeatureRecord,
    HarnessMemory,
    InitCommand,
    InitPlan,
    InitShell,
    InitShellScript,
    InitStep,
    Message,
    MessageRole,
    ProgressEntry,
    RunCheckpoint,
    RunStatus,
    SessionManifest,
)
from .naming import KeySpace
from .transcript import Transcript, TranscriptMessage

__all__ = [
    "ACP_LOOK_PRIME_TIMEOUT_MS",
    "AcpSessions",
    "AgentEntry",
    "BootstrapState",
    "CognitionEntry",
    "FeatureRecord",
    "HarnessMemory",
    "InitCommand",
    "InitPlan",
    "InitShell",
    "InitShellScript",
    "InitStep",
    "InvocationEntry",
    "InvocationStatus",
    "KeySpace",
    "LookFreshness",
    "LookSnapshot",
    "Message",
    "MessageRole",
    "ProgressEntry",
    "Projection",
    "RunCheckpoint",
    "RunStatus",
    "SessionManifest",
    "SnapshotEntry",
    "SnapshotSource",
    "StaleReason",
    "Transcript",
    "TranscriptMessage",
    "UpdateEntry",
    "UserEntry",
    "WorkerState",
]
