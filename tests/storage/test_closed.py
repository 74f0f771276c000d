"""What is stored is its owner's alone, and no session takes the place of a file of the folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, recording, run

from topicloom import FileStorage, Settings
from topicloom.hosting import safe_name
from topicloom.storage.names import original_name
from topicloom_app.cli.context import make_context

__all__ = ["recording", "run"]

RESERVED = [
    "checkpoints.sqlite",
    "Store.SQLite-wal",
    "store.sqlite-shm",
    "CON",
    "nul.txt",
    "Com1",
    "lpt9.tar.gz",
    "lore-a.bin",
]


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def open_to_others(root: Path) -> dict[str, str]:
    """Files and folders that others may use, with their modes."""
    modes = {path: path.stat().st_mode for path in (root, *root.rglob("*"))}
    return {
        path.name: stat.filemode(mode)
        for path, mode in modes.items()
        if stat.S_IMODE(mode) != (0o700 if path.is_dir() else 0o600)
    }


@pytest.mark.skipif(os.name != "posix", reason="needs modes")
@pytest.mark.usefixtures("umask")
@pytest.mark.slow
def test_what_the_commands_make_is_closed(run: Run, recording: Path, tmp_path: Path) -> None:
    root = tmp_path / "deep" / "er"
    arguments = ("--session", "talk", "--no-questions", "--window", "1000")
    assert run("replay", str(recording), *arguments, folder=root).code == 0
    assert run("reflect", "talk", "--force", folder=root).code == 0
    assert run("memory", "talk", "--out", str(tmp_path / "out"), folder=root).code == 0
    assert run("export", "talk", "--out", str(tmp_path / "talk.txt"), folder=root).code == 0
    context = make_context(root, Settings())
    with context.open_checkpoints() as saver, context.open_store() as store:
        assert list(saver.list(None, limit=1))
        store.put(("a",), "b", {})
        assert (root / "checkpoints.sqlite-wal").exists()
        assert open_to_others(root) == {}
    assert open_to_others(tmp_path / "deep") == {}
    assert open_to_others(tmp_path / "out") == {}
    assert open_to_others(tmp_path / "talk.txt") == {}


@pytest.mark.skipif(os.name != "posix", reason="needs modes")
@pytest.mark.usefixtures("umask")
def test_what_storage_makes_is_closed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    storage = FileStorage(root)
    with storage.lock("s"):
        log = storage.open("s")
        head = log.append("one", None, [{"text": "a"}, {"text": "b"}])
        log.append("two", None, [{"text": "c"}])
        log.vectors("space").append(list(log.refs("one", head)), np.ones((2, 3)))
        log.purge("one", list(log.refs("one", head))[:1])
        with (root / "s/two.jsonl").open("ab") as file:
            file.write(b'{"torn')
        FileStorage(root).open("s").entries("two")
    assert (root / "s/two.jsonl.torn").exists()
    assert open_to_others(root) == {}


@pytest.mark.parametrize("name", RESERVED)
def test_a_reserved_name_is_a_session_like_any(name: str, tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    storage.open(name).append("transcript", None, [{"text": "x"}])
    assert not (tmp_path / name).exists()
    assert original_name(safe_name(name)) == name
    assert FileStorage(tmp_path).sessions() == [name]
    with make_context(tmp_path, Settings()).open_checkpoints() as saver:
        assert list(saver.list(None)) == []


@pytest.mark.slow
def test_a_chat_may_be_called_as_the_file_of_checkpoints(run: Run) -> None:
    for _ in range(2):
        assert run("chat", "checkpoints.sqlite", stdin="Hello.\n").code == 0
    assert run("transcript", "checkpoints.sqlite").out.count("Hello.") >= 2
