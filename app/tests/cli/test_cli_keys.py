"""A key of its own for what the commands keep."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, run
from postgres import open_postgres

from topicloom.hosting import open_postgres_store

__all__ = ["run"]
SECRET = "the walnut table"


def is_readable(folder: Path) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return any(SECRET.encode() in path.read_bytes() for path in files)


@pytest.mark.slow
def test_a_folder_is_encrypted_and_gets_another_key(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sessions"
    assert run("chat", "house", stdin=f"I want {SECRET}.\n").code == 0
    assert is_readable(folder)
    assert "no key is set" in run("key", "encrypt", "--yes").err
    keys = [run("key", "new").out.strip() for _ in range(2)]
    assert len(set(keys)) == 2
    monkeypatch.setenv("TOPICLOOM_ENCRYPTION_KEY", keys[0])
    assert "topicloom key encrypt" in run("transcript", "house").err
    for key in (keys[0], f"{keys[1]},{keys[0]}", keys[1]):
        monkeypatch.setenv("TOPICLOOM_ENCRYPTION_KEY", key)
        assert run("key", "encrypt", "--yes").code == 0
        assert not is_readable(folder)
        assert SECRET in run("transcript", "house").out
    assert run("chat", "house", stdin="And a lamp.\n").code == 0
    assert run("check").code == 0
    monkeypatch.setenv("TOPICLOOM_ENCRYPTION_KEY", keys[0])
    assert "another key" in run("transcript", "house").err
    monkeypatch.delenv("TOPICLOOM_ENCRYPTION_KEY")
    assert "TOPICLOOM_ENCRYPTION_KEY" in run("transcript", "house").err


@pytest.mark.long
def test_a_database_is_encrypted_by_the_same_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_postgres() as uri:
        store = open_postgres_store(uri)
        store.put(("topicloom", "a", "facts"), "key", {"fact": SECRET})
        monkeypatch.setenv("TOPICLOOM_POSTGRES", uri)
        monkeypatch.setenv("TOPICLOOM_ENCRYPTION_KEY", run("key", "new").out.strip())
        done = run("key", "encrypt", "--yes")
        assert done.code == 0
        assert "VACUUM" in done.out
        items = store.search(("topicloom",))
        assert items
        assert SECRET not in str(items)
