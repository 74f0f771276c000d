"""Is this message known, is it an edit, is it gone? One table for each who hands messages over."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from topicloom.errors import InputError, NoNewMessageError
from topicloom.state.identity import (
    MessageStatus,
    align_ids,
    count_unchanged,
    find_edit,
    find_new_messages,
    judge,
    map_numbers,
    mark_seen,
    select_missing,
    select_unstored,
)
from topicloom.state.stored_message import REMOVED, StoredMessage, to_stored_message

HELLO = HumanMessage("Hello", id="u1")
REPLY = AIMessage("Good day", id="a1")
MORE = HumanMessage("More", id="u2")
OTHER = HumanMessage("Something else", id="u1")
CALL = {"name": "look", "args": {"at": "it"}, "id": "c1"}
CALLS = AIMessage("", tool_calls=[CALL], id="a2")
SEEN = ToolMessage("seen", tool_call_id="c1", id="t1")
BLOCKS = HumanMessage([{"type": "text", "text": "Hello"}], id="u1")
NO_ID = HumanMessage("Hello")


def stored(*messages: AnyMessage) -> list[StoredMessage]:
    return [to_stored_message(m, seq=n, time="2026-03-02") for n, m in enumerate(messages, 1)]


def purged(message: AnyMessage) -> StoredMessage:
    return stored(message)[0].model_copy(update={"text": REMOVED, "whole": None})


@pytest.mark.parametrize(
    ("message", "of_its_id", "verdict"),
    [
        pytest.param(HELLO, [], "new", id="an unknown id"),
        pytest.param(NO_ID, [], "new", id="no id"),
        pytest.param(HELLO, stored(HELLO), "known", id="the same id and words"),
        pytest.param(CALLS, stored(CALLS), "known", id="the same calls"),
        pytest.param(SEEN, stored(SEEN), "known", id="the same result of a tool"),
        pytest.param(OTHER, stored(HELLO), "edited", id="other words"),
        pytest.param(BLOCKS, stored(HELLO), "edited", id="other content blocks"),
        pytest.param(
            AIMessage("", tool_calls=[{**CALL, "args": {}}], id="a2"),
            stored(CALLS),
            "edited",
            id="other arguments of a call",
        ),
        pytest.param(AIMessage("Hello", id="u1"), stored(HELLO), "edited", id="another role"),
        pytest.param(HELLO, stored(OTHER, HELLO), "known", id="one of two of its id"),
        pytest.param(HELLO, [purged(HELLO)], "gone", id="purged"),
        pytest.param(OTHER, [purged(HELLO)], "gone", id="purged, in other words"),
        pytest.param(HELLO, [purged(OTHER), *stored(HELLO)], "known", id="said again since"),
        pytest.param(HumanMessage(" ", id="u1"), stored(HELLO), "empty", id="no words"),
        pytest.param(AIMessage("", id="a9"), [], "new", id="a reply without words"),
    ],
)
def test_one_message(
    message: AnyMessage, of_its_id: list[StoredMessage], verdict: MessageStatus
) -> None:
    assert judge(message, of_its_id) == verdict
    taken_in = select_unstored([message], of_its_id) == [message]
    assert taken_in == (verdict in ("new", "edited"))


@pytest.mark.parametrize(
    ("channel", "shown", "first", "answer", "expected"),
    [
        # What is in the channel, what is stored, the first number that the channel showed, whether
        # there is something to answer; numbers that are removed and changed, and one said again.
        pytest.param([HELLO, REPLY], [HELLO, REPLY], 1, True, ([], [], 0), id="nothing changed"),
        pytest.param([REPLY, MORE], [HELLO, REPLY], 1, True, ([1], [], 0), id="one is missing"),
        pytest.param([REPLY, MORE], [HELLO, REPLY], 2, True, ([], [], 0), id="one was not shown"),
        pytest.param([REPLY, MORE], [HELLO, REPLY], 0, True, ([], [], 0), id="not known if shown"),
        pytest.param([OTHER, REPLY, MORE], [HELLO, REPLY], 1, True, ([], [1], 0), id="changed"),
        pytest.param([OTHER, REPLY], [HELLO, REPLY], 1, True, ([1, 2], [], 1), id="said anew"),
        pytest.param(
            [OTHER, REPLY], [HELLO, REPLY], 1, False, ([], [1], 0), id="nothing to answer"
        ),
    ],
)
def test_an_edited_channel(
    channel: list[AnyMessage],
    shown: list[AnyMessage],
    first: int,
    answer: bool,
    expected: tuple[list[int], list[int], int],
) -> None:
    edit, _ = find_edit(channel, stored(*shown), first, answer=answer)
    assert ([*edit.removed], [m.seq for m in edit.changed], edit.again) == expected


def test_what_is_purged_is_no_edit() -> None:
    edit, left = find_edit([OTHER, REPLY], [purged(HELLO), *stored(REPLY)], 1, answer=False)
    assert not edit.numbers
    assert left == [OTHER, REPLY]


@pytest.mark.parametrize(
    ("sent", "ids"),
    [
        pytest.param([HELLO, REPLY], ["u1", "a1"], id="with the ids"),
        pytest.param([NO_ID, AIMessage("Good day"), MORE], ["u1", "a1", "u2"], id="without ids"),
        pytest.param(
            [HumanMessage("Hello", id="x"), AIMessage("Good day", id="y")],
            ["u1", "a1"],
            id="under other ids",
        ),
        pytest.param(
            [HumanMessage("Hello", id="x"), AIMessage("Well", id="y"), HumanMessage("Now", id="z")],
            ["u1", "y", "z"],
            id="up to other words",
        ),
        pytest.param([REPLY, HELLO], ["a1", "u1"], id="in another order"),
    ],
)
def test_a_conversation_that_is_sent_anew(sent: list[AnyMessage], ids: list[str]) -> None:
    assert [m.id for m in align_ids(sent, stored(HELLO, REPLY))] == ids


class TestNew:
    def test_what_is_not_in_the_transcript(self) -> None:
        assert find_new_messages([HELLO, REPLY, MORE], stored(HELLO, REPLY)) == [MORE]

    def test_an_id_that_is_used_again_for_something_else(self) -> None:
        assert select_unstored([OTHER], stored(HELLO, REPLY)) == [OTHER]

    def test_what_was_removed_on_purpose_is_not(self) -> None:
        assert select_unstored([HELLO], [purged(HELLO)]) == []

    def test_nothing_new(self) -> None:
        with pytest.raises(NoNewMessageError):
            find_new_messages([HELLO, REPLY], stored(HELLO, REPLY))
        assert find_new_messages([HELLO, REPLY], stored(HELLO, REPLY), silent=True) == []

    def test_an_empty_message(self) -> None:
        with pytest.raises(InputError, match="empty"):
            find_new_messages([HumanMessage(" ")], [])

    def test_one_that_still_waits_is_not_taken_in_again(self) -> None:
        called = CALLS.model_copy(update={"id": "a1"})
        assert find_new_messages([HELLO], stored(HELLO)) == []
        assert find_new_messages([HELLO, called, SEEN], stored(HELLO)) == []
        taken_in = find_new_messages([HELLO, called, SEEN], stored(HELLO), answer=False)
        assert taken_in == [called, SEEN]


@pytest.mark.parametrize(
    ("messages", "unchanged"),
    [
        pytest.param([HELLO, REPLY], 2, id="the same"),
        pytest.param([HELLO, REPLY, MORE], 2, id="one more"),
        pytest.param([OTHER, REPLY, MORE], 0, id="one changed"),
        pytest.param([HELLO], 0, id="one is missing"),
        pytest.param([NO_ID, REPLY], 0, id="another id"),
    ],
)
def test_the_state_of_an_agent(messages: list[AnyMessage], unchanged: int) -> None:
    assert count_unchanged(messages, mark_seen([HELLO, REPLY])) == unchanged
    assert count_unchanged(messages, None) == 0


def test_another_writer() -> None:
    mine, theirs = stored(HELLO, REPLY, MORE), stored(HELLO, OTHER, REPLY)
    assert [m.text for m in select_missing(theirs, mine)] == ["Something else"]
    assert map_numbers(stored(HELLO, REPLY), theirs) == {1: 1, 2: 3}
