"""What of a format a session holds already, in a few bytes a record."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Literal

from .records import RecordNumber, pointer
from .restoring import PROVISIONAL, imported_as, number_of

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from .records import Entry

__all__ = ["Known", "Standing"]

Standing = Literal["new", "known", "changed"]


class Known:
    """The records of one format in one session.

    Args:
        format_name: of the format.
    """

    def __init__(self, format_name: str) -> None:
        self.events = 0
        self._format_name = format_name
        self._indexed = array("Q")  # digests of records 0, 1, 2, … as far as they follow each other
        self._named: dict[str, int] = {}  # and of all others
        self._count = 0
        self._provisional: str | None = None

    def __len__(self) -> int:
        return self._count

    def read_on(self, session: ReadableSession) -> None:
        """Take in the events since the last call."""
        for event in session.events(self.events):
            self.events += 1
            data = imported_as(event)
            if data is not None and data["format"] == self._format_name:
                provisional = data["digest"] if data.get(PROVISIONAL) else None
                self._provisional = provisional
                if provisional is None:
                    self._put(number_of(data), _short(data["digest"]))

    def skip(self, start: int, stop: int) -> None:
        """Do not look at events that the caller knows, if they are the next ones."""
        if start == self.events:
            self.events = stop

    def _put(self, number: RecordNumber, digest: int) -> None:
        self._count += self._get(number) == 0
        if number == len(self._indexed):
            self._indexed.append(digest)
        elif isinstance(number, int) and 0 <= number < len(self._indexed):
            self._indexed[number] = digest
        else:
            self._named[pointer(number)] = digest

    def _get(self, number: RecordNumber) -> int:
        if isinstance(number, int) and 0 <= number < len(self._indexed):
            return self._indexed[number]
        return self._named.get(pointer(number), 0)

    def standing(self, entry: Entry) -> Standing:
        """Tell whether a record is there, is there otherwise, or is new."""
        if entry.provisional and entry.digest == self._provisional:
            return "known"
        found = self._get(entry.number)
        if not found:
            # What is no document any more is not taken for the one that was imported.
            return "changed" if entry.provisional and entry.number == () and self._count else "new"
        return "known" if found == _short(entry.digest) and not entry.provisional else "changed"


def _short(digest: str) -> int:
    """Return eight bytes of a digest, not zero."""
    return int(digest[:16], 16) or 1
