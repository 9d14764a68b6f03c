"""Deciding what a log is worth: docs/recovery.md as code.

`judge` reads and decides, and changes nothing. `recover` carries out what the table allows: it copies the
tail to quarantine and cuts it off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec
from xxhash import xxh3_64_hexdigest

from .checkpoints import read_checkpoint
from .errors import CorruptionError
from .format import (
    FILE_HEADER_SIZE,
    FRAME_HEADER_SIZE,
    KIND_SEAL,
    KIND_SESSION_HEADER,
    SECTOR_SIZE,
    FormatKeys,
    Frame,
    Head,
    Receipt,
    SessionHeader,
    decode_receipt,
    decode_session_header,
    first_previous,
    parse_file_header,
    parse_mark,
)
from .index import FrameIndex
from .scan import Chain, find_frame_behind, last_nonzero, read_frame, read_payload, walk_chain
from .vfs import close_quietly, pieces

if TYPE_CHECKING:
    from collections.abc import Collection

    from .checkpoints import Checkpoint
    from .vfs import Directory, File

VERIFY_TAIL_BYTES: Final = 2 * 1024 * 1024
"""Opening checks the payloads of this much of the end of a log; the others are checked when read."""

INDEX_CHECKPOINT: Final = "index"
QUARANTINE: Final = "quarantine"
_PAGE_BYTES: Final = 4096

Reason = Literal["clean", "incomplete", "damaged"]


class RecoveryReport(msgspec.Struct, frozen=True):
    """What opening a session found.

    Args:
        session_id: the session.
        status: `clean`; `recovered` (a torn tail was cut off); `damaged`, `locked` or `failed` (not opened).
        events: events in the session, all intact or checked when read.
        dropped_bytes: size of the tail that was cut off.
        quarantined: path of the copy of that tail, None if nothing was cut off.
        reason: `incomplete` (a write that a crash interrupted), `damaged` (may have been acknowledged), or
            the error that kept the session closed.
        leftovers: half-made or dead attachment files that were removed.
    """

    session_id: str
    status: Literal["clean", "recovered", "damaged", "locked", "failed"]
    events: int
    dropped_bytes: int = 0
    quarantined: str | None = None
    reason: str | None = None
    leftovers: tuple[str, ...] = ()


class Judgement(msgspec.Struct):
    """A log as found: what is valid, what follows it, and what may be done about that.

    Args:
        keys: of the file header.
        header: of the session.
        head: end of the valid frames (E in docs/recovery.md).
        last: the frame that ends there.
        receipt: of the seal, None while unsealed.
        index: where frames stand.
        size: of the file.
        tail_end: offset behind the last byte that is not zero.
        reason: `clean`, or why the tail is cut off.
        checkpointed_end: how far an intact checkpoint covers the log.
    """

    keys: FormatKeys
    header: SessionHeader
    head: Head
    last: Frame
    receipt: Receipt | None
    index: FrameIndex
    size: int
    tail_end: int
    reason: Reason
    checkpointed_end: int


def judge(
    directory: Directory,
    file: File,
    mark_bytes: bytes,
    session_id: str,
    *,
    remembered: Head | None = None,
    full: bool = False,
) -> Judgement:
    """Read a log and decide by the table of docs/recovery.md. Changes nothing.

    Args:
        directory: of the session.
        file: its log.
        mark_bytes: start of the lock file, read before the log.
        session_id: the id that the header must name.
        remembered: an end that this process had acknowledged.
        full: check every payload, and ignore checkpoints.

    Raises:
        CorruptionError: acknowledged data is damaged or gone.
        UpgradeRequiredError: written by a newer version.
    """
    path = file.path
    keys = parse_file_header(file.pread(FILE_HEADER_SIZE, 0), path)
    if keys is None:
        raise CorruptionError(path, 0, 0, "this is not the header of a sealog log")
    checkpoint = read_checkpoint(directory, INDEX_CHECKPOINT, keys)
    size = file.stat().size_bytes  # after the mark and the checkpoint, since an owner may be appending
    header = _session_header(file, keys, session_id, size)
    index, start, covered = _start(file, keys, checkpoint, full=full)
    verify_from = 0 if full else size - VERIFY_TAIL_BYTES
    chain = _walk(file, keys, start, covered, size, index, verify_from)
    known = (parse_mark(keys, mark_bytes), remembered, None if checkpoint is None else checkpoint.head)
    _check_heads(path, chain.head, [head for head in known if head is not None])
    while True:
        last = chain.last or covered
        if last is None:
            raise CorruptionError(path, FILE_HEADER_SIZE, 0, "the log has no session header")
        tail_end = last_nonzero(file, chain.head.end, size)
        reason, damage = _judge_tail(file, keys, chain, tail_end, size, sealed=last.kind == KIND_SEAL)
        if reason == "clean":
            break
        # An owner may have appended since the walk, to a log that is only read here. It writes no frame
        # before the one at E is there (W1): where still none is, none was.
        size = file.stat().size_bytes
        more = walk_chain(file, keys, chain.head, size, index, verify_from)
        if more.last is None and (more.why, more.stopped_at) == (chain.why, chain.stopped_at):
            if damage is not None:
                raise damage
            break
        more.last = more.last or last
        chain = more
    receipt = read_receipt(file, last) if last.kind == KIND_SEAL else None
    checkpointed_end = 0 if covered is None else covered.end
    return Judgement(keys, header, chain.head, last, receipt, index, size, tail_end, reason, checkpointed_end)


def _start(
    file: File, keys: FormatKeys, checkpoint: Checkpoint | None, *, full: bool
) -> tuple[FrameIndex, Head, Frame | None]:
    """Return where the walk begins: behind the frame that a checkpoint covers, or behind the file header."""
    if checkpoint is not None:
        covered = read_frame(file, keys, checkpoint.offset)
        if not checkpoint.matches(covered):
            reason = "the log no longer holds what a checkpoint covers"
            raise CorruptionError(file.path, checkpoint.offset, checkpoint.position, reason)
        index = None if full else _decode_index(checkpoint.body)
        if index is not None:
            return index, checkpoint.head, covered
    return FrameIndex(), Head(FILE_HEADER_SIZE, 0, first_previous(keys)), None


def _walk(
    file: File,
    keys: FormatKeys,
    start: Head,
    covered: Frame | None,
    size: int,
    index: FrameIndex,
    verify_from: int,
) -> Chain:
    if covered is not None:
        if read_payload(file, keys, covered) is None:
            raise CorruptionError(
                file.path,
                covered.offset,
                covered.first_position,
                "a frame that a checkpoint covers is damaged",
            )
        if covered.kind == KIND_SEAL:
            return Chain(start, None, 0, "end", None)
    return walk_chain(file, keys, start, size, index, verify_from)


def _session_header(file: File, keys: FormatKeys, session_id: str, size: int) -> SessionHeader:
    frame = read_frame(file, keys, FILE_HEADER_SIZE)
    payload = None
    if (
        frame is not None
        and frame.kind == KIND_SESSION_HEADER
        and frame.end <= size
        and frame.previous == first_previous(keys)
    ):
        payload = read_payload(file, keys, frame)
    reason = "the log has no session header"
    if payload is not None:
        try:
            header = decode_session_header(payload)
        except msgspec.DecodeError as error:
            reason = f"the session header cannot be decoded: {error}"
        else:
            if header.session_id == session_id:
                return header
            reason = f"this is the log of session {header.session_id!r}, not of {session_id!r}"
    raise CorruptionError(file.path, FILE_HEADER_SIZE, 0, reason)


def _check_heads(path: str, head: Head, heads: list[Head]) -> None:
    """Row 2 of the table: what is known to have been synced must be there."""
    for known in heads:
        if known.end > head.end or (known.end == head.end and known != head):
            raise CorruptionError(
                path,
                head.end,
                head.position,
                f"acknowledged frames are missing or damaged: byte {known.end} and position {known.position} "
                "had been on disk",
            )


def _judge_tail(
    file: File, keys: FormatKeys, chain: Chain, tail_end: int, size: int, *, sealed: bool
) -> tuple[Reason, CorruptionError | None]:
    """Rows 3 to 5 of the table: what the tail is, and the error if it is no tail."""
    end, position = chain.head.end, chain.head.position
    if tail_end == end:
        return "clean", None
    if sealed:
        raise CorruptionError(file.path, end, position, "there are bytes behind the seal")
    if chain.why == "order":
        reason = "an intact frame here does not follow the one before it"
        return "damaged", CorruptionError(file.path, end, position, reason)
    later = find_frame_behind(file, keys, end + 1, size, position)
    if later is None:
        return _torn_reason(file, chain, size), None
    reason = f"the frame here is damaged, and a later one stands at byte {later.offset}"
    return "damaged", CorruptionError(file.path, end, position, reason)


def _torn_reason(file: File, chain: Chain, size: int) -> Reason:
    """Tell an interrupted write, parts of which never arrived, from bytes that were damaged."""
    start = chain.head.end
    end = start + FRAME_HEADER_SIZE
    if chain.why == "past-end" or size < end:
        return "incomplete"
    if chain.why == "digest" and chain.stopped_at is not None:
        end = chain.stopped_at.end
    while start < end:
        piece_end = min(end, (start // SECTOR_SIZE + 1) * SECTOR_SIZE)
        if not any(file.pread(piece_end - start, start)):
            return "incomplete"
        start = piece_end
    return "damaged"


def read_receipt(file: File, frame: Frame) -> Receipt:
    """Return what a seal frame says.

    Raises:
        CorruptionError: it cannot be decoded.
    """
    try:
        return decode_receipt(file.pread(frame.payload_length, frame.payload_offset))
    except msgspec.DecodeError as error:
        raise CorruptionError(
            file.path, frame.offset, frame.first_position, f"the seal cannot be decoded: {error}"
        ) from error


_encode_index = msgspec.msgpack.Encoder().encode
_decode_index_pair = msgspec.msgpack.Decoder(tuple[bytes, bytes]).decode


def encode_index(index: FrameIndex) -> bytes:
    """Return the body of the `index` checkpoint."""
    return _encode_index(index.to_bytes())


def _decode_index(body: bytes) -> FrameIndex | None:
    try:
        return FrameIndex.from_bytes(*_decode_index_pair(body))
    except (msgspec.DecodeError, ValueError):
        return None


def recover(directory: Directory, file: File, judgement: Judgement) -> RecoveryReport:
    """Carry out the last row of the table: keep a copy of the tail, then cut it off. Idempotent.

    Needs the session's lock. The order is copy, sync, truncate, sync: a crash in between loses nothing.

    Args:
        directory: of the session.
        file: its log, open for writing.
        judgement: of this log.

    Returns:
        A report with status `clean` or `recovered`.
    """
    session_id, events = judgement.header.session_id, judgement.head.position
    if judgement.reason == "clean":
        return RecoveryReport(session_id, "clean", events)
    end = judgement.head.end
    name = _quarantine(directory, file, end, judgement.tail_end)
    file.truncate(end)
    file.sync_data()
    return RecoveryReport(
        session_id,
        "recovered",
        events,
        judgement.tail_end - end,
        f"{directory.path}/{QUARANTINE}/{name}",
        judgement.reason,
    )


def _quarantine(directory: Directory, file: File, start: int, end: int) -> str:
    if directory.stat(QUARANTINE) is None:
        directory.make_directory(QUARANTINE)
    directory.sync()  # a dead owner may have made it and not synced: nothing is cut before its copy is safe
    quarantine = directory.open_directory(QUARANTINE)
    copy: File | None = None
    try:
        digest = xxh3_64_hexdigest(next(pieces(file, start, end)))
        name = f"{start}-{end - start}-{digest}"
        if quarantine.stat(name) is not None:  # of a recovery that was interrupted
            quarantine.unlink(name)
        copy = quarantine.open(name, create=True)
        written = 0
        for piece in pieces(file, start, end):
            copy.pwrite(piece, written)
            written += len(piece)
        copy.sync_data()
        quarantine.sync()
    finally:
        close_quietly(copy, quarantine)
    return name


def write_again(file: File, judgement: Judgement, synced: Collection[Head | None]) -> None:
    """Write the last frame again, unless it is known to be synced; the caller syncs.

    If its sync failed before its owner died, the page cache calls it clean and the disk does not hold it: no
    sync would bring it there. A session header was synced before the session got its name.
    """
    last = judgement.last
    if judgement.head not in synced and last.kind != KIND_SESSION_HEADER:
        file.pwrite(file.pread(last.end - last.offset, last.offset), last.offset)


def restore(file: File, head: Head) -> None:
    """Bring a log back to its acknowledged end after a failed write or sync, under the unbroken lock.

    The last partial page is written again: after a failed sync the page cache may hold bytes that the disk
    does not, and calls them clean.

    Raises:
        OSError: the disk still fails.
    """
    if file.stat().size_bytes > head.end:
        file.truncate(head.end)
    file.sync_data()
    page = head.end - head.end % _PAGE_BYTES
    if page < head.end:
        file.pwrite(file.pread(head.end - page, page), page)
    file.sync_data()
