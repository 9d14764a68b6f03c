"""rm deletes sealed sessions, and others only with --force."""

from __future__ import annotations

import sealog


def left(store) -> list[str]:
    with sealog.open(store, read_only=True) as opened:
        return opened.session_ids()


def test_rm_deletes_a_sealed_session(invoke, store):
    result = invoke("rm", "agent-2", "--store", store)
    assert (result.exit_code, result.output) == (0, "")
    assert left(store) == ["agent-1", "agent-3"]


def test_rm_refuses_one_that_is_not_sealed_and_goes_on(invoke, store):
    result = invoke("rm", "agent-1", "agent-2", "nosuch", "--store", store)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 2
    assert "session 'agent-1' is not sealed, so it was not deleted; --force" in result.stderr
    assert left(store) == ["agent-1", "agent-3"]
    assert invoke("rm", "--force", "agent-1", "--store", store).exit_code == 0
    assert left(store) == ["agent-3"]


def test_rm_deletes_what_cannot_be_read_with_force_only(invoke, store):
    (store / "agent-2" / "log").write_bytes(b"no log" * 20)
    result = invoke("rm", "agent-2", "--store", store)
    assert result.exit_code == 1
    assert "--force" in result.stderr
    assert invoke("rm", "-f", "agent-2", "--store", store).exit_code == 0
    assert left(store) == ["agent-1", "agent-3"]


def test_rm_leaves_a_session_that_is_in_use(run, store):
    with sealog.open(store) as opened, opened.open_session("agent-1"):
        done = run("rm", "--force", "agent-1", "--store", store)
    assert done.returncode == 2
    assert left(store) == ["agent-1", "agent-2", "agent-3"]


def test_rm_of_an_id_like_an_option(invoke, tmp_path):
    with sealog.open(tmp_path / "store") as opened:
        opened.create_session("--force")
        opened.create_session("other")
    result = invoke("rm", "--store", tmp_path / "store", "--", "--force")
    assert result.exit_code == 2
    assert left(tmp_path / "store") == ["--force", "other"]
    assert invoke("rm", "--force", "--store", tmp_path / "store", "--", "--force").exit_code == 0
    assert left(tmp_path / "store") == ["other"]
