"""Archives in files: one file a chain, moved whole; kills at every step, other processes."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kills import every_kill

from topicloom.errors import StorageError
from topicloom.storage import FileStorage

CHAIN = "topics/topic-t1"
PLAIN = "s/topics/topic-t1.jsonl"
MARCH = "s/topics/archived/2026-03/topic-t1.jsonl"
APRIL = "s/topics/archived/2026-04/topic-t1.jsonl"
TEXTS = ["first words", "secret words", "last words"]


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def opened(root: Path) -> Any:
    return FileStorage(root, fsync=False).open("s")


def texts_at(root: Path, head: str | None) -> list[str | None]:
    log = opened(root)
    return [body.get("text") for body in log.read(CHAIN, log.refs(CHAIN, head))]


def filled(root: Path, *, archived: bool = False) -> str:
    log = opened(root)
    head = log.append(CHAIN, None, said(*TEXTS))
    log.vectors("a").append(list(log.refs(CHAIN, head)), np.ones((3, 2)))
    if archived:
        log.archive(CHAIN, "2026-03")
    return str(head)


def files_in(root: Path) -> set[str]:
    found = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    return found - {"s/.lock", "s/session.json", "s/purges.jsonl", "s/vectors-a.bin"}


def everything_in(root: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file())


def test_the_file_is_moved_as_it_is(tmp_path: Path) -> None:
    head = filled(tmp_path)
    plain = (tmp_path / PLAIN).read_bytes()
    assert opened(tmp_path).archive(CHAIN, "2026-03")
    assert files_in(tmp_path) == {MARCH}
    assert (tmp_path / MARCH).read_bytes() == plain
    opened(tmp_path).append(CHAIN, head, said("more"))
    assert files_in(tmp_path) == {MARCH}
    assert (tmp_path / MARCH).read_bytes().startswith(plain)
    assert not opened(tmp_path).archive(CHAIN, "2026-03")
    assert opened(tmp_path).archive(CHAIN, "2026-04")
    assert files_in(tmp_path) == {APRIL}
    assert opened(tmp_path).restore(CHAIN)
    assert files_in(tmp_path) == {PLAIN}
    assert not opened(tmp_path).restore(CHAIN)


def test_names_from_outside_stay_inside(tmp_path: Path) -> None:
    log = opened(tmp_path)
    chain = "../../x/\0[a-z]*"
    head = log.append(chain, None, said("x"))
    log.archive(chain, "2026-03")
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
    assert opened(tmp_path).read(chain, [head]) == said("x")


def archive(log: Any) -> None:
    log.archive(CHAIN, "2026-04")


def restore(log: Any) -> None:
    log.restore(CHAIN)


@pytest.mark.parametrize("act", [archive, restore])
@pytest.mark.parametrize("before", ["open", "archived", "copied"])
def test_killed_between_any_two_steps(
    tmp_path: Path, act: Callable[[Any], None], before: str
) -> None:
    """Everything is there at once, further appends work, and the same call finishes."""
    model = tmp_path / "model"
    head = filled(model, archived=before != "open")
    fork = head
    if before == "copied":  # by hand, or by a backup that was put over the folder
        fork = opened(model).append(CHAIN, None, said("fork"))
        lines = (model / MARCH).read_bytes().splitlines(keepends=True)
        (model / PLAIN).write_bytes(b"".join(lines[:2]))
    root = tmp_path / "root"

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(model, root)

    kills = 0
    for _ in every_kill(root, prepare, lambda: act(opened(root))):
        kills += 1
        assert texts_at(root, head) == TEXTS
        log = opened(root)
        assert len(log.entries(CHAIN)) == len(opened(model).entries(CHAIN))
        assert log.append(CHAIN, None, said(*TEXTS)) == head
        later = log.append(CHAIN, fork, said("later"))
        assert log.reports() == []
        act(opened(root))
        assert texts_at(root, head) == TEXTS
        assert texts_at(root, later)[-1:] == ["later"]
        assert files_in(root) == {PLAIN if act is restore else APRIL}
        assert len(opened(root).entries(CHAIN)) == len(opened(model).entries(CHAIN)) + 1
    assert kills >= 1 or (before, act) == ("open", restore)


@pytest.mark.parametrize("archived", [False, True])
def test_a_purge_killed_between_any_two_steps(tmp_path: Path, archived: bool) -> None:
    model = tmp_path / "model"
    head = filled(model, archived=archived)
    path = model / (MARCH if archived else PLAIN)
    path.with_name(path.name + ".torn").write_bytes(b'{"text":"secret words","pr\n')
    secret = opened(model).refs(CHAIN, head)[1]
    root = tmp_path / "root"

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(model, root)

    kills = 0
    for _ in every_kill(root, prepare, lambda: opened(root).purge(CHAIN, [secret])):
        kills += 1
        assert texts_at(root, head) in (TEXTS, [TEXTS[0], None, TEXTS[2]])
        opened(root).purge(CHAIN, [secret])
        assert texts_at(root, head) == [TEXTS[0], None, TEXTS[2]]
        assert b"secret" not in everything_in(root)
        assert bytes.fromhex(secret) not in (root / "s/vectors-a.bin").read_bytes()
    assert kills >= 3


def test_a_purge_removes_what_a_crash_left_half_written(tmp_path: Path) -> None:
    head = filled(tmp_path)
    for name in (PLAIN, MARCH, MARCH + ".xz", MARCH.replace("jsonl", "json")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / (name + ".new")).write_bytes(b"secret words")
        (tmp_path / (name + ".torn")).write_bytes(b"secret words")
    log = opened(tmp_path)
    log.purge(CHAIN, [log.refs(CHAIN, head)[1]])
    assert files_in(tmp_path) == {PLAIN}
    assert b"secret" not in everything_in(tmp_path)


def test_a_damaged_line_moves_with_its_file(tmp_path: Path) -> None:
    head = filled(tmp_path)
    whole = (tmp_path / PLAIN).read_bytes() + b"what is this\n"
    (tmp_path / PLAIN).write_bytes(whole.replace(b"secret", b"better"))
    log = opened(tmp_path)
    assert log.archive(CHAIN, "2026-04")
    assert (tmp_path / APRIL).read_bytes() == whole.replace(b"secret", b"better")
    with pytest.raises(StorageError, match=r"2026-04.topic-t1\.jsonl, line 2"):
        texts_at(tmp_path, head)
    (tmp_path / APRIL).write_bytes(whole)
    assert texts_at(tmp_path, head) == TEXTS


def test_a_line_that_was_torn_in_the_archive_is_set_aside(tmp_path: Path) -> None:
    head = filled(tmp_path, archived=True)
    with (tmp_path / MARCH).open("ab") as file:
        file.write(b'{"text":"half')
    log = opened(tmp_path)
    assert log.append(CHAIN, head, said("more"))
    assert files_in(tmp_path) == {MARCH, MARCH + ".torn"}
    [report] = log.reports()
    assert "archived" in report


def test_restoring_what_is_not_archived_touches_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    before = (tmp_path / PLAIN).stat()
    assert not opened(tmp_path).restore(CHAIN)
    assert (tmp_path / PLAIN).stat() == before


def test_a_tombstone_edited_by_hand(tmp_path: Path) -> None:
    head = filled(tmp_path)
    log = opened(tmp_path)
    log.purge(CHAIN, [head], {head: {"seq": 3}})
    path = tmp_path / PLAIN
    path.write_bytes(path.read_bytes().replace(b'"seq":3', b'"seq":4'))
    with pytest.raises(StorageError, match=r"topic-t1\.jsonl, line 3"):
        texts_at(tmp_path, head)


def read_over_and_over(root: Path, head: str, times: int) -> int:
    wrong = 0
    for _ in range(times):
        log = FileStorage(root, fsync=False, cache_bytes=0).open("s")
        for _ in range(5):
            wrong += log.read(CHAIN, log.refs(CHAIN, head)) != said(*TEXTS)
            log.append(CHAIN, head, said("more"))
    return wrong


@pytest.mark.slow
def test_beside_another_process(tmp_path: Path) -> None:
    """Another process reads and appends while this one moves the chain to and fro."""
    head = filled(tmp_path)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        reader = pool.apply_async(read_over_and_over, (tmp_path, head, 30))
        moves = 0
        while not reader.ready() or moves < 20:
            opened(tmp_path).archive(CHAIN, "2026-03")
            opened(tmp_path).restore(CHAIN)
            moves += 1
        assert reader.get() == 0
        pool.close()
        pool.join()
    log = opened(tmp_path)
    assert len(log.entries(CHAIN)) == 4
    assert len((tmp_path / PLAIN).read_bytes().splitlines()) == 4
    assert log.reports() == []
