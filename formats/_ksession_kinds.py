"""What roles of KSESSIONLOG are called here, and the keys of attachments that came from there."""

from __future__ import annotations

from typing import Final

from ..storage.events import Role
from ._ksession_format import ROLE_PENDING_OBJECT, ROLES

__all__ = ["KINDS", "NAME", "ROLE_OF", "object_key"]

NAME: Final = "ksessionlog"

KINDS: Final[dict[str, str]] = {
    **{role: role for role in ROLES},
    "kennedy-message": Role.ASSISTANT_MESSAGE.value,
    "kennedy-tool-call": Role.TOOL_CALL.value,
    ROLE_PENDING_OBJECT: Role.ATTACHMENT.value,
}
"""The kind of an event, by its role there."""

ROLE_OF: Final[dict[str, str]] = {kind: role for role, kind in KINDS.items()}


def object_key(position: int) -> str:
    """Return the key of an attachment from there.

    An attachment cannot be appended at an expected position. The key keeps two imports of one session at a
    time from attaching it twice, which would move what follows; it says nothing that the position does not.
    """
    return f"{NAME}:{position}"
