"""Packed lines, cards and tombstones by themselves."""

from __future__ import annotations

import json
import lzma
from typing import Any

import pytest
from chain_data import bodies, joined, refs
from hypothesis import given, strategies as st

from topicloom.storage.chain import (
    RawEntry,
    draft,
    is_intact,
    is_tombstone,
    join_line,
    load_body,
    merged,
    tombstone,
)
from topicloom.storage.packing import (
    BLOCK_BYTES,
    blocks_in,
    card_text,
    entries_in,
    lines_in,
    pack,
    read_card,
    unpack,
)


@given(st.lists(bodies, max_size=6))
def test_packed_lines_come_back(said: list[dict[str, Any]]) -> None:
    entries = [draft(None, body) for body in said]
    lines = [join_line(raw) for raw in entries]
    blocks = pack(lines)
    assert pack(lines) == blocks
    assert [line for block in blocks for line in lines_in(unpack(block) or b"")] == lines
    assert entries_in(lines) == entries
    if blocks:
        assert lzma.decompress(b"".join(blocks)) == b"".join(lines)


def big_lines(count: int) -> list[bytes]:
    return [bytes([65 + n]) * (BLOCK_BYTES - 1) + b"\n" for n in range(count)]


def test_damage_costs_its_block() -> None:
    lines = big_lines(4)
    blocks = pack(lines)
    assert len(blocks) == 4
    spoilt = blocks[1][:30] + bytes([blocks[1][30] ^ 0xFF]) + blocks[1][31:]
    found = list(blocks_in(blocks[0] + spoilt + blocks[2] + blocks[3][:-5]))
    assert [block.text for block in found] == [lines[0], None, lines[2], None]
    assert sum(block.size for block in found) == sum(map(len, blocks)) - 5
    assert unpack(blocks[0]) == lines[0]
    assert unpack(blocks[0] + blocks[2]) is None
    assert unpack(b"") is None


def test_lines_end_at_newlines_only() -> None:
    assert lines_in(b"a\rb\x0b\n\nc") == [b"a\rb\x0b\n", b"\n", b"c"]


@given(st.dictionaries(refs, st.none() | refs, max_size=8))
def test_a_card_holds_the_refs(prevs: dict[str, str | None]) -> None:
    prevs = {ref: prev for ref, prev in prevs.items() if prev != "0" * 16}
    entries = [RawEntry(ref, prev, b"{}") for ref, prev in prevs.items()]
    card = read_card(card_text({"name": "\ud800 é"}, entries), "2026-03")
    assert (card.month, card.summary, card.refs) == ("2026-03", {"name": "\ud800 é"}, prevs)


def test_a_card_is_for_people() -> None:
    entries = [RawEntry("a" * 16, None, b""), RawEntry("b" * 16, "a" * 16, b"")]
    entries.append(RawEntry("c" * 16, "a" * 16, b""))
    text = card_text({"name": "Gärten"}, entries).decode()
    runs = [" ".join(["0" * 16, "a" * 16, "b" * 16]), f"{'a' * 16} {'c' * 16}"]
    assert text == json.dumps({"name": "Gärten", "refs": runs}, indent=2, ensure_ascii=False) + "\n"


@given(bodies, bodies, st.none() | refs.filter(lambda ref: ref != "0" * 16))
def test_a_tombstone(body: dict[str, Any], keep: dict[str, Any], prev: str | None) -> None:
    raw = draft(prev, body)
    left = tombstone(raw.ref, prev, keep)
    assert (left.ref, left.prev) == (raw.ref, prev)
    assert (is_intact(raw), is_intact(left)) == (True, True)
    assert (is_tombstone(raw), is_tombstone(left)) == (False, True)
    found = load_body(left.body)
    assert len(found.pop("purged")) == 16
    assert repr(found) == repr(joined(keep))
    assert entries_in([join_line(left)]) == [left]
    assert not is_intact(left._replace(ref="0" * 16))
    assert merged([raw], [left]) == merged([left], [raw]) == {raw.ref: left}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"purged":1}', b'{"purged":null}'])
def test_bodies_that_are_unsound(body: bytes) -> None:
    assert not is_intact(RawEntry("0" * 16, None, body))
