"""What earlier versions packed: read where it is, and made plain at the first write, or refused."""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from kills import every_kill
from langgraph.store.base import BaseStore, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from packed import pack_file, pack_items
from tables import each_row

from topicloom.errors import MissingRecordError, StorageError
from topicloom.storage import FileStorage, StoreStorage
from topicloom.storage.chain import draft, join_line

CHAIN = "topics/topic-t1"
PLAIN = "s/topics/topic-t1.jsonl"
MARCH = "s/topics/archived/2026-03/topic-t1.jsonl"
ITEMS = ("topicloom", "s", "topics%2Ftopic-t1")
TEXTS = ["first words", "secret words", "last words"]
Write = Callable[[Any, str], None]


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def texts_at(log: Any, head: str) -> list[str | None]:
    return [body.get("text") for body in log.read(CHAIN, log.refs(CHAIN, head))]


def opened(root: Path) -> Any:
    return FileStorage(root, fsync=False).open("s")


def filled(root: Path, *, added: bool = False) -> str:
    """A chain that was packed; with `added`, another entry was appended to it since."""
    head = opened(root).append(CHAIN, None, said(*TEXTS))
    pack_file(root / PLAIN, brief="secret words")
    if added:
        # As the earlier version did: into a new plain file.
        line = join_line(draft(head, said("plain")[0]))
        (root / PLAIN).write_bytes(line)
    return str(head)


def files_in(root: Path) -> set[str]:
    found = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    return found - {"s/.lock", "s/session.json", "s/purges.jsonl"}


def append(log: Any, head: str) -> None:
    log.append(CHAIN, head, said("more"))


def archive(log: Any, head: str) -> None:
    log.archive(CHAIN, "2026-04")


def restore(log: Any, head: str) -> None:
    log.restore(CHAIN)


def purge(log: Any, head: str) -> None:
    log.purge(CHAIN, [log.refs(CHAIN, head)[1]])


WRITES = [append, archive, restore, purge]


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_is_killed_anywhere_loses_nothing(
    tmp_path: Path, write: Write, added: bool
) -> None:
    model, root = tmp_path / "model", tmp_path / "root"
    head = filled(model, added=added)

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(model, root)

    after = [TEXTS[0], None, TEXTS[2]] if write is purge else TEXTS
    kills = 0
    for _ in every_kill(root, prepare, lambda: write(opened(root), head)):
        kills += 1
        assert texts_at(opened(root), head) in (TEXTS, after)
        assert opened(root).reports() == []
        write(opened(root), head)
        assert texts_at(opened(root), head) == after
        assert len(opened(root).entries(CHAIN)) == 3 + added + (write is append)
        [left] = files_in(root)  # one plain file, and nothing packed
        assert left.endswith(".jsonl")
        assert not (write is purge and b"secret" in (root / left).read_bytes())
    assert kills >= 4


class Killed(BaseException):
    """The process ends here."""


class MortalStore(InMemoryStore):
    """A store whose process is killed before one of its writes."""

    left: float = float("inf")

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        if any(isinstance(op, PutOp) for op in listed):
            if self.left <= 0:
                raise Killed
            self.left -= 1
        return super().batch(listed)


def filled_store(store: BaseStore) -> str:
    log = StoreStorage(store).open("s")
    head = log.append(CHAIN, None, said(*TEXTS))
    lines, prev = [], None
    for body in said(*TEXTS):
        entry = draft(prev, body)
        lines.append(join_line(entry))
        prev = entry.ref
    pack_items(store, ITEMS, lines)
    return str(head)


@each_row("write", WRITES)
def test_a_write_to_a_store_that_is_killed_anywhere_loses_nothing(write: Write) -> None:
    for writes in range(20):
        store = MortalStore()
        head = filled_store(store)
        store.left = writes
        try:
            write(StoreStorage(store).open("s"), head)
        except Killed:
            pass
        else:
            break
        store.left = float("inf")
        after = [TEXTS[0], None, TEXTS[2]] if write is purge else TEXTS
        assert texts_at(StoreStorage(store).open("s"), head) in (TEXTS, after)
        write(StoreStorage(store).open("s"), head)
        log = StoreStorage(store).open("s")
        assert texts_at(log, head) == after
        assert log.reports() == []
        assert len(log.entries(CHAIN)) == 3 + (write is append)
        assert not [i for i in store.search((), limit=100) if "%archived" in i.namespace[-1]]
        assert not (write is purge and "secret" in str(store.search((), limit=100)))
    assert writes >= 2


def flip_a_byte(path: Path) -> None:
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


@pytest.mark.parametrize("harm", [flip_a_byte, truncate, drop_a_line, make_text, Path.unlink])
def test_a_damaged_pack_stays_until_it_is_mended(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """The chain can be walked and added to; what cannot be read is told, with a way out."""
    head = filled(tmp_path)
    packed = tmp_path / (MARCH + ".xz")
    whole = packed.read_bytes()
    harm(packed)
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
    for write in (archive, restore, purge):
        with pytest.raises(StorageError, match="Restore it from a backup"):
            write(opened(tmp_path), head)
    assert files_in(tmp_path) == before
    packed.write_bytes(whole)
    assert texts_at(opened(tmp_path), later) == [*TEXTS, "more"]
    restore(opened(tmp_path), head)
    assert texts_at(opened(tmp_path), later) == [*TEXTS, "more"]
    assert files_in(tmp_path) == {PLAIN}


@pytest.mark.parametrize("harm", [truncate, Path.unlink])
def test_the_same_appends_mend_a_damaged_pack(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    head = filled(tmp_path)
    harm(tmp_path / (MARCH + ".xz"))
    assert opened(tmp_path).append(CHAIN, None, said(*TEXTS)) == head
    assert texts_at(opened(tmp_path), head) == TEXTS
    purge(opened(tmp_path), head)
    assert texts_at(opened(tmp_path), head) == [TEXTS[0], None, TEXTS[2]]
    assert opened(tmp_path).reports() == []
    assert len(files_in(tmp_path)) == 1


def test_what_was_purged_in_a_damaged_pack_is_not_written_again(tmp_path: Path) -> None:
    log = opened(tmp_path)
    head = log.append(CHAIN, None, said(*TEXTS))
    purge(log, head)
    packed = pack_file(tmp_path / PLAIN)
    lines = lzma.decompress(packed.read_bytes()).splitlines(keepends=True)
    packed.write_bytes(lzma.compress(b"".join(lines[:2])))
    assert opened(tmp_path).append(CHAIN, None, said(*TEXTS[:2])) == log.refs(CHAIN, head)[1]
    assert opened(tmp_path).append(CHAIN, None, said(*TEXTS)) == head
    assert texts_at(opened(tmp_path), head) == [TEXTS[0], None, TEXTS[2]]


def test_a_pack_edited_by_hand_is_as_a_plain_file_that_was(tmp_path: Path) -> None:
    head = filled(tmp_path)
    packed = tmp_path / (MARCH + ".xz")
    text = lzma.decompress(packed.read_bytes())
    packed.write_bytes(lzma.compress(text.replace(b"secret", b"better")))
    log = opened(tmp_path)
    refs = log.refs(CHAIN, head)
    assert log.read(CHAIN, [refs[0], refs[2]]) == said(TEXTS[0], TEXTS[2])
    with pytest.raises(StorageError, match=rf"\.xz: entry {refs[1]} is not what was written"):
        log.read(CHAIN, refs)
    archive(opened(tmp_path), head)
    with pytest.raises(StorageError, match=rf"2026-04.*line 2: entry {refs[1]}"):
        opened(tmp_path).read(CHAIN, refs)
    assert log.purge(CHAIN, [refs[1]]) == 1
    assert texts_at(opened(tmp_path), head) == [TEXTS[0], None, TEXTS[2]]


@pytest.mark.parametrize("summary", [None, b"", b"{", b"[]", b'{"refs": {"a": 1}, "name": "x"}'])
def test_a_damaged_summary_harms_nothing(tmp_path: Path, summary: bytes | None) -> None:
    head = filled(tmp_path)
    path = tmp_path / MARCH.replace(".jsonl", ".json")
    path.unlink() if summary is None else path.write_bytes(summary)
    assert texts_at(opened(tmp_path), head) == TEXTS
    archive(opened(tmp_path), head)
    assert texts_at(opened(tmp_path), head) == TEXTS
    assert len(files_in(tmp_path)) == 1


def test_a_damaged_pack_without_a_summary_is_never_removed(tmp_path: Path) -> None:
    head = filled(tmp_path)
    (tmp_path / MARCH.replace(".jsonl", ".json")).unlink()
    truncate(tmp_path / (MARCH + ".xz"))
    opened(tmp_path).append(CHAIN, None, said(*TEXTS))
    with pytest.raises(StorageError, match="cannot be unpacked"):
        purge(opened(tmp_path), head)
    assert (tmp_path / (MARCH + ".xz")).exists()


def test_pack_and_summary_both_gone(tmp_path: Path) -> None:
    head = filled(tmp_path)
    (tmp_path / (MARCH + ".xz")).unlink()
    (tmp_path / MARCH.replace(".jsonl", ".json")).unlink()
    with pytest.raises(MissingRecordError, match=head):
        opened(tmp_path).refs(CHAIN, head)


def lose_a_block(store: BaseStore, key: str) -> None:
    store.delete((*ITEMS[:2], f"%archived-{ITEMS[2]}"), key)


def spoil_a_block(store: BaseStore, key: str) -> None:
    store.put((*ITEMS[:2], f"%archived-{ITEMS[2]}"), key, {"block": "AAAA"})


def empty_a_block(store: BaseStore, key: str) -> None:
    store.put((*ITEMS[:2], f"%archived-{ITEMS[2]}"), key, {})


@each_row("harm", [lose_a_block, spoil_a_block, empty_a_block])
def test_a_damaged_block_of_a_store(harm: Callable[[BaseStore, str], None]) -> None:
    store = InMemoryStore()
    head = filled_store(store)
    archived = store.search((*ITEMS[:2], f"%archived-{ITEMS[2]}"))
    [key] = [item.key for item in archived if item.key != "card"]
    harm(store, key)
    log = StoreStorage(store).open("s")
    refs = log.refs(CHAIN, head)
    assert len(refs) == 3
    with pytest.raises(StorageError, match="Restore it from a backup"):
        log.read(CHAIN, refs)
    assert log.readable(CHAIN, refs) == {}
    assert len(log.reports()) == 1
    later = str(log.append(CHAIN, head, said("more")))
    for write in (archive, restore, purge):
        with pytest.raises(StorageError, match="Restore it from a backup"):
            write(StoreStorage(store).open("s"), head)
    assert StoreStorage(store).open("s").append(CHAIN, None, said(*TEXTS)) == head
    assert texts_at(StoreStorage(store).open("s"), later) == [*TEXTS, "more"]
