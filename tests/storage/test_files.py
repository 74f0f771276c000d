"""What only files can suffer: crashes, editors, other processes, folders that are none."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from failing_storage import unwritable
from langgraph.checkpoint.memory import InMemorySaver
from sessions import past, record, tell, thread

from topicloom import (
    FileStorage,
    Memory,
    MissingRecordError,
    Settings,
    StorageError,
    StorageUnavailableError,
    build_session_graph,
)
from topicloom.testing import Clock, fake_roles


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def texts_at(root: Path, head: str | None, chain: str = "c") -> list[str]:
    log = FileStorage(root).open("s")
    return [body["text"] for body in log.read(chain, log.refs(chain, head))]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="rights are otherwise")
def test_what_would_be_forgotten_is_told_where_nothing_can_be_written() -> None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        graph = build_session_graph(
            settings=Settings.model_validate({"window": 2_000, "fsync": False}),
            roles=fake_roles(),
            storage=FileStorage(folder),
            clock=Clock(),
        ).compile(checkpointer=InMemorySaver())
        record(graph, thread(), *past("茶", "雨", rounds=3))
        tell(graph, thread(), "雨：还有吗？", keep=0)
        alone = Memory(FileStorage(folder), "s", embedder="hashing")
        for memory in (Memory.of(graph, thread()), alone):
            expected = memory.forget("t1", "m8", dry_run=True)
            with unwritable(folder):
                assert memory.forget("t1", "m8", dry_run=True) == expected
                with pytest.raises(StorageUnavailableError, match="write to"):
                    memory.forget("t1")
            assert memory.forget("t1", "m8", dry_run=True) == expected


def test_files_lie_where_the_layout_says(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path / "deep" / "root")
    log = storage.open("Ann Lee")
    log.refs("transcript", None)
    assert storage.sessions() == []
    assert list(tmp_path.iterdir()) == []
    log.append("transcript", None, said("x"))
    log.append("ranges", None, said("x"))
    folder = tmp_path / "deep" / "root" / "Ann%20Lee"
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert found - {".lock"} == {"session.json", "transcript.jsonl", "ranges.jsonl"}
    assert json.loads((folder / "session.json").read_text())["name"] == "Ann Lee"


def test_a_chain_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    FileStorage(tmp_path / "root").open("s").append("../../x/\0", None, said("x"))
    assert [p.name for p in tmp_path.iterdir()] == ["root"]
    assert [p.name for p in (tmp_path / "root").iterdir()] == ["s"]


def test_repeating_writes_nothing(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    storage.open("s").append("c", None, said("a", "b"))
    before = (tmp_path / "s/c.jsonl").read_bytes()
    FileStorage(tmp_path).open("s").append("c", None, said("a", "b"))
    assert (tmp_path / "s/c.jsonl").read_bytes() == before


@pytest.mark.parametrize("first", ["refs", "append"])
def test_a_torn_last_line_is_set_aside(tmp_path: Path, first: str) -> None:
    head = FileStorage(tmp_path).open("s").append("c", None, said("a", "b"))
    path = tmp_path / "s/c.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"text":"cut o')
    log = FileStorage(tmp_path).open("s")
    if first == "refs":
        with pytest.raises(MissingRecordError, match="cut off"):
            log.refs("c", "f" * 16)
    else:
        log.append("c", None, said("a"))
    assert path.read_bytes() == whole
    assert (tmp_path / "s/c.jsonl.torn").read_bytes() == b'{"text":"cut o\n'
    [report] = log.reports()
    assert "c.jsonl.torn" in report
    log.append("c", head, said("c"))
    assert len(path.read_bytes().splitlines()) == 3
    assert len(log.reports()) == 1


def test_a_lost_last_line_is_missing_and_can_be_appended_again(tmp_path: Path) -> None:
    log = FileStorage(tmp_path).open("s")
    first = log.append("c", None, said("a"))
    head = log.append("c", first, said("b"))
    path = tmp_path / "s/c.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    again = FileStorage(tmp_path).open("s")
    with pytest.raises(MissingRecordError, match=str(head)):
        again.refs("c", head)
    assert again.append("c", first, said("b")) == head
    assert texts_at(tmp_path, head) == ["a", "b"]
    # The first log finds the file shorter than it knew it, and reads it anew.
    assert log.append("c", head, said("c"))


def test_a_strange_line_is_passed_over(tmp_path: Path) -> None:
    head = FileStorage(tmp_path).open("s").append("c", None, said("a"))
    with (tmp_path / "s/c.jsonl").open("ab") as file:
        file.write(b"what is this\n\n")
    log = FileStorage(tmp_path).open("s")
    head = log.append("c", head, said("b"))
    assert texts_at(tmp_path, head) == ["a", "b"]
    assert ["line 2" in r or "line 3" in r for r in log.reports()] == [True, True]


def test_a_line_edited_by_hand(tmp_path: Path) -> None:
    head = FileStorage(tmp_path).open("s").append("c", None, said("a", "good", "c"))
    path = tmp_path / "s/c.jsonl"
    path.write_bytes(path.read_bytes().replace(b"good", b"evil"))
    log = FileStorage(tmp_path).open("s")
    refs = log.refs("c", head)
    assert log.read("c", refs[:1]) == said("a")
    with pytest.raises(StorageError, match=rf"c\.jsonl, line 2: entry {refs[1]} .* backup"):
        log.read("c", refs)
    assert log.read("c", refs[2:]) == said("c")


def test_a_file_edited_while_it_is_open(tmp_path: Path) -> None:
    log = FileStorage(tmp_path).open("s")
    head = log.append("c", None, said("good", "b"))
    path = tmp_path / "s/c.jsonl"
    path.write_bytes(path.read_bytes().replace(b"good", b"better"))
    with pytest.raises(StorageError, match="is not what was written"):
        log.read("c", log.refs("c", head))


def test_a_second_opening_sees_the_firsts_appends(tmp_path: Path) -> None:
    one, two = (FileStorage(tmp_path).open("s") for _ in range(2))
    head = one.append("c", None, said("a"))
    head = two.append("c", head, said("b"))
    head = one.append("c", head, said("c"))
    assert [body["text"] for body in two.read("c", two.refs("c", head))] == ["a", "b", "c"]


def grow(root: Path, worker: int, turns: int) -> str | None:
    log = FileStorage(root, fsync=False).open("s")
    head = log.append("c", None, said("root"))
    for turn in range(turns):
        head = log.append("c", head, said(f"{worker}.{turn}", "x" * 5000))
    return head


@pytest.mark.slow
def test_two_processes_append_at_once(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        heads = pool.starmap(grow, [(tmp_path, worker, 40) for worker in range(2)])
        pool.close()
        pool.join()
    for worker, head in enumerate(heads):
        found = texts_at(tmp_path, head)
        assert found[:1] + found[1::2] == ["root", *(f"{worker}.{turn}" for turn in range(40))]
    assert len((tmp_path / "s/c.jsonl").read_bytes().splitlines()) == 161


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(StorageUnavailableError, match="not a folder"):
        FileStorage(file)
    storage = FileStorage(file / "below")
    for use in (
        storage.sessions,
        lambda: storage.open("s").append("c", None, said("x")),
        lambda: storage.lock("s").__enter__(),
    ):
        with pytest.raises(StorageUnavailableError, match=r"file.*another storage folder"):
            use()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(StorageUnavailableError, match="another storage folder"):
        FileStorage(tmp_path).open("s").append("c", None, said("x"))
    tmp_path.chmod(stat.S_IRWXU)


def test_a_write_that_stops_half_way_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="limits on files are POSIX")
    log = FileStorage(tmp_path).open("s")
    head = log.append("c", None, said("a"))
    path = tmp_path / "s/c.jsonl"
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        with pytest.raises(StorageUnavailableError, match=r"c\.jsonl"):
            log.append("c", head, said("b", "x" * 1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    head = log.append("c", head, said("b"))
    assert texts_at(tmp_path, head) == ["a", "b"]
    assert log.reports() == []


def test_a_chain_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "s/c.jsonl").mkdir(parents=True)
    with pytest.raises(StorageUnavailableError, match=r"c\.jsonl"):
        FileStorage(tmp_path).open("s").append("c", None, said("x"))


def test_a_folder_of_another_session(tmp_path: Path) -> None:
    FileStorage(tmp_path).open("Ann").append("c", None, said("x"))
    # As a file system that ignores case would find it.
    (tmp_path / "Ann").rename(tmp_path / "ann")
    with pytest.raises(StorageUnavailableError, match="'Ann'"):
        FileStorage(tmp_path).open("ann")


def test_a_session_with_a_damaged_card_is_still_listed(tmp_path: Path) -> None:
    for name, card in (("a b", b"{"), ("b", b"[]"), ("c", b'{"name":1}')):
        FileStorage(tmp_path).open(name).append("c", None, said("x"))
        (tmp_path / name.replace(" ", "%20") / "session.json").write_bytes(card)
    assert FileStorage(tmp_path).sessions() == ["a b", "b", "c"]
    assert FileStorage(tmp_path).open("a b").append("c", None, said("y"))


def test_line_ends_of_windows_change_nothing(tmp_path: Path) -> None:
    """Such as after a copy by git; what is appended later has those of before."""
    text = "two lines\r\nand \r one"
    head = FileStorage(tmp_path).open("s").append("c", None, said("a", text))
    path = tmp_path / "s/c.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    log = FileStorage(tmp_path).open("s")
    head = log.append("c", head, said("c"))
    assert log.append("c", None, said("a"))  # repeated
    assert texts_at(tmp_path, head) == ["a", text, "c"]
    assert FileStorage(tmp_path).open("s").reports() == []
    assert path.read_bytes().count(b"\n") == 3
