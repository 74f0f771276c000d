"""What the messages of a turn mean: which are new, what they call for, what leaves the channel."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from topicloom.errors import InputError, NoNewMessageError
from topicloom.state.language import detect_language
from topicloom.state.messages import (
    find_edit_calls,
    find_new_messages,
    find_other_calls,
    find_search_request,
    list_removals,
    select_unstored,
    strip_tool_calls,
)
from topicloom.state.session import SearchRequest
from topicloom.state.stored_message import REMOVED, StoredMessage, to_stored_message

HELLO = HumanMessage("Hello", id="u1")
REPLY = AIMessage("Good day", id="a1")
CALL = {"name": "look", "args": {"at": "it"}, "id": "c1"}


def stored(*messages: AnyMessage) -> list[StoredMessage]:
    return [to_stored_message(m, seq=n, time="2026-03-02") for n, m in enumerate(messages, 1)]


class TestNew:
    def test_what_is_not_in_the_transcript(self) -> None:
        more = HumanMessage("More", id="u2")
        assert find_new_messages([HELLO, REPLY, more], stored(HELLO, REPLY)) == [more]

    def test_an_id_that_is_used_again_for_something_else(self) -> None:
        other = HumanMessage("Something else", id="u1")
        assert select_unstored([other], stored(HELLO, REPLY)) == [other]

    def test_what_was_removed_on_purpose_is_not(self) -> None:
        gone = stored(HELLO)[0].model_copy(update={"text": REMOVED, "whole": None})
        assert select_unstored([HELLO], [gone]) == []

    def test_nothing_new_is_an_error_unless_silent(self) -> None:
        with pytest.raises(NoNewMessageError):
            find_new_messages([HELLO, REPLY], stored(HELLO, REPLY))
        assert find_new_messages([HELLO, REPLY], stored(HELLO, REPLY), silent=True) == []

    def test_an_empty_message_is_refused(self) -> None:
        with pytest.raises(InputError, match="empty"):
            find_new_messages([HumanMessage(" ")], [])

    def test_one_that_still_waits_is_not_taken_in_again(self) -> None:
        tool = ToolMessage("seen", tool_call_id="c1", id="t1")
        called = AIMessage("", tool_calls=[CALL], id="a1")
        assert find_new_messages([HELLO], stored(HELLO)) == []
        assert find_new_messages([HELLO, called, tool], stored(HELLO)) == []
        assert find_new_messages([HELLO, called, tool], stored(HELLO), answer=False) == [
            called,
            tool,
        ]


class TestCalls:
    def test_calls_are_told_by_their_tool(self) -> None:
        other = {"name": "count", "args": {}, "id": "c2"}
        message = AIMessage("", tool_calls=[CALL, other])
        assert find_edit_calls(message, "look") == [("c1", {"at": "it"})]
        assert [c["id"] for c in find_other_calls(message, "look")] == ["c2"]
        assert find_other_calls(message, "look", "count") == []
        assert find_edit_calls(HELLO, "look") == []

    def test_ones_that_cannot_be_read_count(self) -> None:
        broken = {"name": "look", "args": "{", "id": "c3", "error": None}
        message = AIMessage("", invalid_tool_calls=[{**broken, "type": "invalid_tool_call"}])
        assert find_edit_calls(message, "look") == [("c3", "{")]

    @pytest.mark.parametrize(
        ("args", "wanted"),
        [
            ({"query": "tea", "when": " "}, SearchRequest(query="tea")),
            ({"query": 3, "when": "May"}, SearchRequest(query="So", when="May")),
            (
                {"query": "tea", "include_archived": True},
                SearchRequest(query="tea", include_archived=True),
            ),
            ({"query": "tea", "include_archived": "yes"}, SearchRequest(query="tea")),
        ],
    )
    def test_the_arguments_of_a_search_are_read(
        self, args: dict[str, object], wanted: SearchRequest
    ) -> None:
        message = AIMessage("So", tool_calls=[{"name": "find", "args": args, "id": "c1"}])
        assert find_search_request(message, "find") == wanted
        assert find_search_request(message, "look") is None

    def test_words_stay_where_calls_are_taken_out(self) -> None:
        content: list[str | dict[str, object]] = [
            {"type": "text", "text": "So"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
        ]
        bare = strip_tool_calls(AIMessage(content, tool_calls=[CALL]))
        assert bare.content == [{"type": "text", "text": "So"}]
        assert not bare.tool_calls


def test_whole_rounds_leave_the_channel() -> None:
    rounds = [m for n in range(4) for m in (HumanMessage("x", id=f"u{n}"), AIMessage("y"))]
    assert [m.id for m in list_removals(rounds, 3)] == ["u0", "u1"]
    assert list_removals(rounds, 100) == []


def test_the_language_of_texts_is_detected() -> None:
    assert detect_language(["Hello there"]) == "en"
    assert detect_language(["我们去喝茶吧", "ok"]) == "zh"
