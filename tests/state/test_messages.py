"""What the messages of a turn mean: what they call for, what leaves the channel."""

from __future__ import annotations

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from tables import each_row

from topicloom.state.language import detect_language
from topicloom.state.messages import (
    find_edit_calls,
    find_other_calls,
    find_search_request,
    split_visible,
    strip_tool_calls,
)
from topicloom.state.session import SearchRequest
from topicloom.state.stored_message import StoredMessage, to_stored_message

HELLO = HumanMessage("Hello", id="u1")
REPLY = AIMessage("Good day", id="a1")
CALL = {"name": "look", "args": {"at": "it"}, "id": "c1"}


def stored(*messages: AnyMessage) -> list[StoredMessage]:
    return [to_stored_message(m, seq=n, time="2026-03-02") for n, m in enumerate(messages, 1)]


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

    @each_row(
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
    assert [m.id for m in split_visible(rounds, 3)[0] if m.id] == ["u0", "u1"]
    assert list(split_visible(rounds, 100)[0]) == []


def test_the_language_of_texts_is_detected() -> None:
    assert detect_language(["Hello there"]) == "en"
    assert detect_language(["我们去喝茶吧", "ok"]) == "zh"
