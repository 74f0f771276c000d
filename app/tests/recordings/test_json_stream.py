"""JSON read entry by entry: the same as read at once, with what is no JSON named."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import NotAConversationError
from topicloom_app.recordings import json_stream
from topicloom_app.recordings.json_stream import read_entries

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)


def read(text: str, key: str = "said") -> list[Any]:
    """The entries; one with that key is a conversation."""
    entries = read_entries(io.StringIO(text), lambda v: isinstance(v, dict) and key in v)
    return [entry.value for entry in entries]


@pytest.mark.slow
@given(st.lists(OBJECTS | st.integers(), max_size=6), st.sampled_from([None, 1]), st.integers(1, 9))
def test_lists_and_lines_are_read_as_a_whole_is(
    values: list[Any], indent: int | None, step: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_READ", step)
        assert read(json.dumps(values, indent=indent)) == values
        lines = "".join(json.dumps(value, indent=indent) + "\n" for value in values)
        assert read(lines, key="\0") == values


@pytest.mark.parametrize(
    "envelope", ["{{{}}}", '{{"about": "x", "chats": {{"n": 1, {}}}, "z": 2}}']
)
def test_the_conversations_of_an_object_are_its_entries(envelope: str) -> None:
    said = [{"said": n} for n in range(3)]
    assert read(envelope.format(f'"list": {json.dumps(said)}')) == said


def test_an_object_without_conversations_is_an_entry() -> None:
    value = {"messages": [{"role": "user"}, 1], "empty": [], "said": True}
    assert read(json.dumps(value), key="other") == [value]


@each_row("torn", ['{"a": ', '{"a": {', '{"a": [1', '"a', "{]", "]", "}", ":"])
def test_a_torn_line_is_named_and_the_others_are_read(torn: str) -> None:
    one, none, other = read(f'{{"n": 1}}\n{torn}\n{{"n": 2}}\n')
    assert (one, other) == ({"n": 1}, {"n": 2})
    assert isinstance(none, NotAConversationError)
    assert "line 2 is not JSON" in str(none)


def test_a_list_that_breaks_off_gives_what_stands_before_that() -> None:
    one, none = read('[{"n": 1}, {"n": "2')
    assert one == {"n": 1}
    assert "line 1 is not JSON" in str(none)


def test_memory_is_that_of_an_entry() -> None:
    class Counting(io.StringIO):
        longest = 0

        def read(self, size: int | None = -1) -> str:
            self.longest = max(self.longest, size or 0)
            return super().read(size)

    file = Counting(json.dumps([{"said": "x" * 1_000}] * 2_000))
    assert sum(1 for _ in read_entries(file, lambda _: False)) == 2_000
    assert 0 < file.longest < 200_000
