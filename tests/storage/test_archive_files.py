"""Archives in files: their layout, kills at every step, damage, other processes."""

from __future__ import annotations

import json
import lzma
import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kills import every_kill

from topicloom.errors import MissingRecordError, StorageError
from topicloom.storage import FileStorage

CHAIN = "topics/topic-t1"
PLAIN = "s/topics/topic-t1.jsonl"
PACKED = "s/topics/archived/2026-03/topic-t1.jsonl.xz"
CARD = "s/topics/archived/2026-03/topic-t1.json"
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
        log.archive(CHAIN, "2026-03", {"name": "words", "count": 3})
    return str(head)


def files_in(root: Path) -> set[str]:
    found = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    return found - {"s/.lock", "s/session.json", "s/purges.jsonl", "s/vectors-a.bin"}


def test_the_layout(tmp_path: Path) -> None:
    head = filled(tmp_path)
    plain = (tmp_path / PLAIN).read_bytes()
    opened(tmp_path).archive(CHAIN, "2026-03", {"name": "words", "count": 3})
    assert files_in(tmp_path) == {PACKED, CARD}
    assert lzma.decompress((tmp_path / PACKED).read_bytes()) == plain
    card = json.loads((tmp_path / CARD).read_text("utf-8"))
    assert list(card) == ["name", "count", "refs"]
    assert card["refs"] == [" ".join(["0" * 16, *opened(tmp_path).refs(CHAIN, head)])]
    opened(tmp_path).append(CHAIN, head, said("more"))
    assert files_in(tmp_path) == {PACKED, CARD, PLAIN}
    opened(tmp_path).archive(CHAIN, "2026-04", {})
    april = {PACKED.replace("-03", "-04"), CARD.replace("-03", "-04")}
    assert files_in(tmp_path) == april
    opened(tmp_path).restore(CHAIN)
    assert files_in(tmp_path) == {PLAIN}
    assert (tmp_path / PLAIN).read_bytes().startswith(plain)


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in "ab":
        filled(tmp_path / name, archived=True)
    assert (tmp_path / "a" / PACKED).read_bytes() == (tmp_path / "b" / PACKED).read_bytes()
    before = (tmp_path / "a" / PACKED).stat()
    opened(tmp_path / "a").archive(CHAIN, "2026-03", {"name": "words", "count": 3})
    assert (tmp_path / "a" / PACKED).stat() == before


def test_names_from_outside_stay_inside(tmp_path: Path) -> None:
    log = opened(tmp_path)
    chain = "../../x/\0[a-z]*"
    head = log.append(chain, None, said("x"))
    log.archive(chain, "2026-03", {})
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
    assert opened(tmp_path).read(chain, [head]) == said("x")


def archive(log: Any) -> None:
    log.archive(CHAIN, "2026-04", {"name": "words"})


def restore(log: Any) -> None:
    log.restore(CHAIN)


@pytest.mark.parametrize("act", [archive, restore])
@pytest.mark.parametrize("before", ["plain", "archived", "both"])
def test_killed_between_any_two_steps(
    tmp_path: Path, act: Callable[[Any], None], before: str
) -> None:
    """Everything is there at once, further appends work, and the same call finishes."""
    model = tmp_path / "model"
    head = filled(model, archived=before != "plain")
    fork = opened(model).append(CHAIN, None, said("fork")) if before == "both" else head
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
        assert not [name for name in files_in(root) if name.endswith(".new")]
        expected = {PLAIN} if act is restore else {f.replace("-03", "-04") for f in (PACKED, CARD)}
        assert files_in(root) == expected
        assert len(opened(root).entries(CHAIN)) == len(opened(model).entries(CHAIN)) + 1
    assert kills >= 3 or (before, act) == ("plain", restore)


@pytest.mark.parametrize("before", ["plain", "archived", "both"])
def test_a_purge_killed_between_any_two_steps(tmp_path: Path, before: str) -> None:
    model = tmp_path / "model"
    head = filled(model, archived=before == "archived")
    if before == "both":  # an archiving that was killed before the plain file went
        plain = (model / PLAIN).read_bytes()
        opened(model).archive(CHAIN, "2026-03", {"brief": "secret words"})
        (model / PLAIN).write_bytes(plain)
    (model / (PLAIN + ".torn")).write_bytes(b'{"text":"secret words","pr\n')
    secret = opened(model).refs(CHAIN, head)[1]
    root = tmp_path / "root"

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(model, root)

    def purge() -> None:
        opened(root).purge(CHAIN, [secret])

    kills = 0
    for _ in every_kill(root, prepare, purge):
        kills += 1
        found = texts_at(root, head)
        assert found in (TEXTS, [TEXTS[0], None, TEXTS[2]])
        purge()
        assert texts_at(root, head) == [TEXTS[0], None, TEXTS[2]]
        assert b"secret" not in everything_in(root)
        assert bytes.fromhex(secret) not in (root / "s/vectors-a.bin").read_bytes()
    assert kills >= 4


def test_a_purge_removes_what_a_crash_left_half_written(tmp_path: Path) -> None:
    head = filled(tmp_path)
    for name in (PLAIN, PACKED, CARD):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / (name + ".new")).write_bytes(b"secret words")
    log = opened(tmp_path)
    log.purge(CHAIN, [log.refs(CHAIN, head)[1]])
    assert files_in(tmp_path) == {PLAIN}
    assert b"secret" not in everything_in(tmp_path)


def everything_in(root: Path) -> bytes:
    """All that is written under a folder, archives unpacked."""
    found = b""
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        data = path.read_bytes()
        found += lzma.decompress(data) if path.suffix == ".xz" else data
    return found


def damage_bytes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def drop_a_line(path: Path) -> None:
    lines = lzma.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(lzma.compress(b"".join(lines[:1] + lines[2:])))


def make_text(path: Path) -> None:
    path.write_bytes(b"hello\n")


@pytest.mark.parametrize("harm", [damage_bytes, truncate, drop_a_line, make_text, Path.unlink])
def test_a_damaged_archive(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """The chain can still be walked and added to; what cannot be read is told, with a way out."""
    head = filled(tmp_path, archived=True)
    whole = (tmp_path / PACKED).read_bytes()
    harm(tmp_path / PACKED)
    log = opened(tmp_path)
    refs = log.refs(CHAIN, head)
    assert len(refs) == 3
    with pytest.raises(StorageError, match=r"topic-t1\.jsonl\.xz.*Restore it from a backup"):
        log.read(CHAIN, refs)
    assert set(log.readable(CHAIN, refs)) < set(refs)
    [report] = log.reports()
    assert "topic-t1.jsonl.xz" in report
    later = log.append(CHAIN, head, said("more"))
    before = files_in(tmp_path)
    for move in (archive, restore):
        with pytest.raises(StorageError, match="Restore it from a backup"):
            move(opened(tmp_path))
    assert files_in(tmp_path) == before
    (tmp_path / PACKED).write_bytes(whole)
    assert texts_at(tmp_path, later) == [*TEXTS, "more"]
    assert log.read(CHAIN, refs) == said(*TEXTS)
    restore(log)
    assert texts_at(tmp_path, later) == [*TEXTS, "more"]


def test_a_damaged_archive_is_mended_by_the_same_appends(tmp_path: Path) -> None:
    head = filled(tmp_path, archived=True)
    (tmp_path / PACKED).unlink()
    assert opened(tmp_path).append(CHAIN, None, said(*TEXTS)) == head
    assert texts_at(tmp_path, head) == TEXTS
    archive(opened(tmp_path))
    assert texts_at(tmp_path, head) == TEXTS
    assert opened(tmp_path).reports() == []


def test_an_archive_edited_by_hand(tmp_path: Path) -> None:
    head = filled(tmp_path, archived=True)
    text = lzma.decompress((tmp_path / PACKED).read_bytes())
    (tmp_path / PACKED).write_bytes(lzma.compress(text.replace(b"secret", b"better")))
    log = opened(tmp_path)
    refs = log.refs(CHAIN, head)
    assert log.read(CHAIN, [refs[0], refs[2]]) == said(TEXTS[0], TEXTS[2])
    with pytest.raises(StorageError, match=rf"line 2 of what is packed in it: entry {refs[1]}"):
        log.read(CHAIN, refs)
    for move in (archive, restore):
        with pytest.raises(StorageError, match="line 2 of what is packed"):
            move(opened(tmp_path))
    # It may still be purged: that is what it asks for.
    assert log.purge(CHAIN, [refs[1]]) == 1
    restore(opened(tmp_path))
    assert texts_at(tmp_path, head) == [TEXTS[0], None, TEXTS[2]]


def test_nobody_can_purge_what_cannot_be_unpacked(tmp_path: Path) -> None:
    head = filled(tmp_path, archived=True)
    truncate(tmp_path / PACKED)
    log = opened(tmp_path)
    with pytest.raises(StorageError, match="cannot be unpacked"):
        log.purge(CHAIN, [head])
    (tmp_path / PACKED).unlink()
    assert log.purge(CHAIN, [head]) == 1
    [last] = opened(tmp_path).read(CHAIN, [head])
    assert list(last) == ["purged"]


@pytest.mark.parametrize("card", [None, b"", b"{", b"[]", b'{"refs": {"a": 1}, "name": "x"}'])
def test_a_damaged_card_harms_nothing(tmp_path: Path, card: bytes | None) -> None:
    head = filled(tmp_path, archived=True)
    if card is None:
        (tmp_path / CARD).unlink()
    else:
        (tmp_path / CARD).write_bytes(card)
    assert texts_at(tmp_path, head) == TEXTS
    found = opened(tmp_path).archived(CHAIN)
    assert found is not None
    assert found.refs == {}
    archive(opened(tmp_path))
    assert texts_at(tmp_path, head) == TEXTS


def test_archive_and_card_both_gone(tmp_path: Path) -> None:
    head = filled(tmp_path, archived=True)
    (tmp_path / PACKED).unlink()
    (tmp_path / CARD).unlink()
    with pytest.raises(MissingRecordError, match=head):
        opened(tmp_path).refs(CHAIN, head)


def test_damaged_lines_stay_where_people_can_mend_them(tmp_path: Path) -> None:
    head = filled(tmp_path)
    plain = (tmp_path / PLAIN).read_bytes()
    (tmp_path / PLAIN).write_bytes(plain.replace(b"secret", b"better") + b"what is this\n")
    archive(opened(tmp_path))
    left = (tmp_path / PLAIN).read_bytes()
    assert left == plain.splitlines(keepends=True)[1].replace(b"secret", b"better") + (
        b"what is this\n"
    )
    with pytest.raises(StorageError, match=r"topic-t1\.jsonl, line 1"):
        texts_at(tmp_path, head)
    (tmp_path / PLAIN).write_bytes(left.replace(b"better", b"secret"))
    assert texts_at(tmp_path, head) == TEXTS


def test_restoring_what_is_not_archived_touches_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / PLAIN
    path.write_bytes(b"what is this\n" + path.read_bytes())
    log = opened(tmp_path)
    log.append("topics/topic-t2", None, said("x"))
    log.archive("topics/topic-t2", "2026-03", {})
    before = path.stat()
    log.restore(CHAIN)
    assert path.stat() == before


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
            opened(tmp_path).archive(CHAIN, "2026-03", {})
            opened(tmp_path).restore(CHAIN)
            moves += 1
        assert reader.get() == 0
        pool.close()
        pool.join()
    log = opened(tmp_path)
    assert len(log.entries(CHAIN)) == 4
    assert len((tmp_path / PLAIN).read_bytes().splitlines()) == 4
    assert log.reports() == []
