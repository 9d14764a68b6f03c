"""A really full disk: a file-size limit of the process, which the kernel enforces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import sealog

if TYPE_CHECKING:
    from .child import Children

pytest.importorskip("resource")


def test_a_file_size_limit_is_a_full_disk_that_can_be_made_larger(children: Children) -> None:
    lines = children.run(
        """
import errno, resource
store = sealog.open(path)
session = store.create_session("s")
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
count = 0
try:
    while True:
        assert session.append("m", f"{count}", "x" * 700) == count
        count += 1
except sealog.StorageFullError as error:
    say(errno.errorcode[error.errno], count, "nothing was written" in str(error))
say(*[after(lambda: session.append("m", "y" * 700)) for _ in range(3)])
futures = [session.append_nowait("m", "z" * 700) for _ in range(3)]
say(*[type(future.exception()).__name__ for future in futures])
say(after(lambda: session.attach(b"x" * 30_000)), os.listdir(session.path + "/attachments"))
say(len(session) == count, store.stats().restarts, store.describe("s").status)
say(session.append("m", "short") == count)  # what fits still fits
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
say(session.append("m", "y" * 700) == count + 1, session.attach(b"x" * 30_000) == count + 2)
store.close()
"""
    )
    assert lines[0].startswith("EFBIG ")
    assert lines[0].endswith(" True")
    count = int(lines[0].split()[1])
    assert count > 10
    assert lines[1:] == [
        "StorageFullError StorageFullError StorageFullError",
        "StorageFullError StorageFullError StorageFullError",
        "StorageFullError []",
        "True 0 ok",
        "True",
        "True True",
    ]
    with sealog.open(children.path) as store:
        session = store.open_session("s")
        assert session.recovered is None
        assert [event.text for event in session[:count]] == [str(number) for number in range(count)]
        assert len(session) == count + 3
        assert store.verify("s").ok


def test_descriptors_that_run_out_are_said_and_the_session_goes_on(children: Children) -> None:
    lines = children.run(
        """
import resource
store = sealog.open(path)
session = store.create_session("s")
session.append("m", "zero")
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
used = len(os.listdir("/proc/self/fd"))
held = []
resource.setrlimit(resource.RLIMIT_NOFILE, (used + 4, hard))
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
say(session.append("m", "one"), len(session), session[1].text)
say(after(lambda: store.create_session("t")), after(lambda: session.attach(b"x")))
for fd in held: os.close(fd)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
say(session.append("m", "two"), session.attach(b"x"), store.create_session("t").append("m", "x"))
store.close()
"""
    )
    assert lines == ["1 2 one", "OSError OSError", "2 3 0"]
