"""Linking entries and writing them as lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chain_data import bodies, joined, refs
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import InputError, StorageError
from topicloom.storage.chain import (
    RawEntry,
    draft,
    dump_body,
    is_tombstone,
    join_line,
    link,
    load_body,
    load_intact,
    split_line,
    split_tail,
    tombstone,
)


@given(bodies, st.none() | refs)
def test_a_line_holds_an_entry(body: dict[str, Any], prev: str | None) -> None:
    ref = link(prev, body)
    line = join_line(draft(prev, body))
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert split_tail(line) == (ref, None if prev == "0" * 16 else prev)
    entry = split_line(line)
    assert entry is not None
    assert repr(load_body(entry.body)) == repr(joined(body))
    assert link(prev, load_body(entry.body)) == ref
    whole = json.loads(line)
    assert list(whole)[-2:] == ["prev", "ref"]


def line_of(body: dict[str, Any], prev: str | None, ref: str) -> bytes:
    return join_line(RawEntry(ref, prev, dump_body(body)))


def test_the_shape_of_a_line() -> None:
    assert line_of({"b": "né", "a": 1}, None, "0123456789abcdef") == (
        '{"b":"né","a":1,"prev":"0000000000000000","ref":"0123456789abcdef"}\n'.encode()
    )
    assert line_of({}, "f" * 16, "0" * 15 + "1") == (
        b'{"prev":"ffffffffffffffff","ref":"0000000000000001"}\n'
    )
    assert line_of({"x": "é\ud800"}, None, "0" * 16).startswith(rb'{"x":"\u00e9\ud800",')


def test_refs_do_not_change_between_versions() -> None:
    first = link(None, {"text": "Hello", "seq": 1})
    assert first == "4d21cce5c0d5a543"
    assert link(first, {"text": "Hello", "seq": 1}) == "81acefbe6a5ec0d6"


def test_order_and_time_do_not_count() -> None:
    assert link(None, {"a": 1, "b": 2, "time": "x"}) == link(None, {"b": 2, "a": 1})
    assert link(None, {"a": {"time": 1}}) != link(None, {"a": {"time": 2}})
    assert link(None, {"a": 1}) != link("0" * 16, {"a": 1})


@each_row("key", ["prev", "ref", "purged"])
def test_reserved_keys_are_refused_in_a_body(key: str) -> None:
    with pytest.raises(InputError, match=key):
        line_of({key: 1}, None, "0" * 16)


@each_row(
    "line",
    [
        b"",
        b"\n",
        b"hello\n",
        b'{"a":1}\n',
        b'"prev":"0000000000000000","ref":"0123456789abcdef"}\n',
        b'{"a":1,"prev":"0000000000000000","ref":"0123456789ABCDEF"}\n',
        b'{"a":1,"prev":"0000000000000000","ref":"0123456789abcdef"}',
        b'{"a":1"prev":"0000000000000000","ref":"0123456789abcdef"}\n',
        b'{"a":\xff,"prev":"0000000000000000","ref":"0123456789abcdef"}\n',
    ],
)
def test_lines_that_are_none(line: bytes) -> None:
    raw = split_line(line)
    if raw is not None:
        with pytest.raises(StorageError):
            load_body(raw.body)


@pytest.mark.slow
@given(bodies, bodies, st.none() | refs.filter(lambda ref: ref != "0" * 16))
def test_a_tombstone(body: dict[str, Any], keep: dict[str, Any], prev: str | None) -> None:
    raw = draft(prev, body)
    left = tombstone(raw.ref, prev, keep)
    assert (left.ref, left.prev) == (raw.ref, prev)
    assert load_intact(raw) == load_body(raw.body)
    assert (is_tombstone(raw), is_tombstone(left)) == (False, True)
    found = load_intact(left)
    assert found is not None
    assert len(found.pop("purged")) == 16
    assert repr(found) == repr(joined(keep))
    assert split_line(join_line(left)) == left
    assert load_intact(left._replace(ref="0" * 16)) is None


@each_row("body", [b"", b"{", b"[]", b"null", b'{"purged":1}', b'{"purged":null}'])
def test_bodies_that_are_unsound(body: bytes) -> None:
    assert load_intact(RawEntry("0" * 16, None, body)) is None
