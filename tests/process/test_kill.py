"""SIGKILL, again and again: what was acknowledged over a pipe is there, in order and once (INV-1, 2, 3)."""

from __future__ import annotations

import collections
import hashlib
from typing import TYPE_CHECKING

import sealog

if TYPE_CHECKING:
    from pathlib import Path

    from .child import Children

KILLS = 10
ANSWERS_BEFORE_A_KILL = 60

WORKER = """
import itertools
generation = hear()
store = sealog.open(path, max_live_sessions=2)
for name in ("a", "b", "c"):
    if name not in store.session_ids():
        store.create_session(name)
sessions = {name: store.open_session(name) for name in ("a", "b", "c")}
def work(worker):
    for number in itertools.count():
        name = "abc"[(worker + number) % 3]
        session, text = sessions[name], f"{generation}-{worker}-{number}"
        kind = number % 5
        if kind == 0:
            positions = session.append_many([sealog.Event("m", f"{text}.{at}") for at in range(4)])
            say("batch", name, positions.start, text)
        elif kind == 1:
            futures = [session.append_nowait("m", f"{text}.{at}") for at in range(6)]
            for at, future in enumerate(futures):
                say("one", name, future.result(), f"{text}.{at}")
        elif kind == 2 and number % 20 == 2:
            say("file", name, session.attach(text.encode() * 100, text=text), text)
        elif kind == 3 and number % 40 == 3:
            mine = store.create_session(f"sealed-{text}")
            mine.append("m", text)
            say("sealed", mine.session_id, mine.seal().receipt.sha256, text)
        else:
            say("one", name, session.append("m", text, key=text), text)
for worker in range(6):
    threading.Thread(target=work, args=(worker,), daemon=True).start()
time.sleep(1000)
"""


class Acknowledged:
    """What the killed processes had said was on disk."""

    def __init__(self) -> None:
        self.at: dict[tuple[str, int], str] = {}
        self.files: dict[tuple[str, int], str] = {}
        self.sealed: dict[str, tuple[str, str]] = {}

    def hear(self, line: str) -> None:
        what, name, value, text = line.split()
        if what == "batch":
            for at in range(4):
                self._add(name, int(value) + at, f"{text}.{at}")
        elif what == "sealed":
            self.sealed[name] = (value, text)
        else:
            self._add(name, int(value), text)
            if what == "file":
                self.files[name, int(value)] = text

    def _add(self, name: str, position: int, text: str) -> None:
        assert self.at.setdefault((name, position), text) == text, f"{name} {position} given out twice"

    def check(self, path: Path) -> None:
        """Compare with what a new owner finds."""
        with sealog.open(path) as store:
            for report in store.recover_all():
                assert report.status in ("clean", "recovered"), report
            for name in ("a", "b", "c"):
                session = store.open_session(name)
                texts = [event.text for event in session.events()]
                for (of, position), text in self.at.items():
                    if of == name:
                        assert texts[position] == text
                counts = collections.Counter(texts)
                assert not [text for text, count in counts.items() if count > 1]
                check_order(texts)
                check_batches(texts)
                for attachment in session.attachments():
                    assert attachment.bytes == attachment.text.encode() * 100
                for (of, position), text in self.files.items():
                    if of == name:
                        assert session.read_attachment(position).text == text
            for name, (sha256, text) in self.sealed.items():
                session = store.open_session(name)
                assert session.is_sealed
                assert session.seal().receipt.sha256 == sha256
                assert [event.text for event in session.events()] == [text]
                assert store.verify(name).ok


def check_order(texts: list[str]) -> None:
    """Each thread's own order is kept."""
    last: dict[str, tuple[int, int]] = {}
    for text in texts:
        generation, worker, rest = text.split("-")
        number, _, at = rest.partition(".")
        place = (int(number), int(at or 0))
        assert last.get(f"{generation}-{worker}", (-1, 0)) < place, text
        last[f"{generation}-{worker}"] = place


def check_batches(texts: list[str]) -> None:
    """A batch is whole or absent, and nothing stands in it."""
    for position, text in enumerate(texts):
        number, _, at = text.rpartition(".")
        if number and at == "0" and int(number.split("-")[2]) % 5 == 0:
            assert texts[position : position + 4] == [f"{number}.{piece}" for piece in range(4)]


def test_what_was_acknowledged_survives_kill_after_kill(children: Children) -> None:
    acknowledged = Acknowledged()
    for generation in range(KILLS):
        worker = children.start(WORKER)
        worker.say(str(generation))
        for _ in range(ANSWERS_BEFORE_A_KILL):
            acknowledged.hear(worker.hear())
        for line in worker.kill():
            acknowledged.hear(line)
        acknowledged.check(children.path)
    assert len(acknowledged.at) > KILLS * ANSWERS_BEFORE_A_KILL / 2
    assert acknowledged.files
    assert acknowledged.sealed


def test_a_kill_in_the_middle_of_an_attachment_leaves_only_what_the_next_owner_sweeps(
    children: Children,
) -> None:
    worker = children.start(
        """
class Slow:
    name = "slow"
    def __init__(self):
        self.given = 0
    def read(self, size):
        self.given += 1
        if self.given == 3:
            say("half")
            time.sleep(1000)
        return b"x" * 1000
store = sealog.open(path)
store.create_session("s").attach(Slow())
"""
    )
    assert worker.hear() == "half"
    worker.kill()
    folder = children.path / "s" / "attachments"
    assert [path.name.startswith(".stage-") for path in folder.iterdir()] == [True]
    with sealog.open(children.path) as store:
        session = store.open_session("s")
        assert list(folder.iterdir()) == []
        assert session.recovered is not None
        assert len(session.recovered.leftovers) == 1
        assert session.attach(b"whole") == 0
        assert hashlib.sha256(b"whole").hexdigest() == session.read_attachment(0).sha256


def test_a_kill_while_sessions_are_made_and_deleted_leaves_whole_ones_only(children: Children) -> None:
    for _ in range(3):
        worker = children.start(
            """
import itertools, contextlib
store = sealog.open(path)
def work(worker):
    for number in itertools.count():
        name = f"s{worker}"
        with contextlib.suppress(sealog.SessionExistsError):
            store.create_session(name, labels={"number": str(number)}).append("m", "x")
        say("made")
        store.delete_session(name)
for worker in range(4):
    threading.Thread(target=work, args=(worker,), daemon=True).start()
time.sleep(1000)
"""
        )
        for _ in range(40):
            worker.hear()
        worker.kill()
        with sealog.open(children.path) as store:
            entries = {path.name for path in children.path.iterdir()} - {".sealog"}
            assert entries == set(store.session_ids()), "what is dead was not swept"
            for name in store.session_ids():
                assert len(store.open_session(name)) in (0, 1)
