"""Rounds: a user message with everything up to the next one."""

from __future__ import annotations

from hypothesis import given, strategies as st

from topicloom.state.rounds import Round, group_rounds
from topicloom.state.stored_message import MessageRole, StoredMessage

ROLES: list[MessageRole] = ["user", "assistant", "tool", "system"]


def messages_of(*roles: MessageRole) -> list[StoredMessage]:
    return [
        StoredMessage(seq=n, role=r, text=f"{r} {n}", time="") for n, r in enumerate(roles, start=1)
    ]


def test_each_user_message_begins_a_block() -> None:
    rounds = group_rounds(
        messages_of("user", "assistant", "user", "assistant", "tool", "assistant", "user")
    )
    assert [b.ids for b in rounds] == [("m1", "m2"), ("m3", "m4", "m5", "m6"), ("m7",)]


def test_what_comes_before_the_first_user_message_is_a_block() -> None:
    rounds = group_rounds(messages_of("system", "assistant", "user", "assistant"))
    assert [b.ids for b in rounds] == [("m1", "m2"), ("m3", "m4")]


def test_nothing_has_no_blocks() -> None:
    assert group_rounds([]) == []


def test_a_block_knows_its_ends_and_its_text() -> None:
    first, second, third = messages_of("user", "assistant", "tool")
    round_ = Round((first.model_copy(update={"opens": True}), second, third))
    assert (round_.first, round_.last, round_.opens) == (1, 3, True)
    assert round_.text == "user 1\nassistant 2\ntool 3"
    assert not Round((second,)).opens


def test_what_comes_after_a_round_has_its_reply_for_a_context_not_a_tools_result() -> None:
    rounds = group_rounds(messages_of("user", "assistant", "tool", "user"))
    assert [r.context for r in rounds] == ["", "assistant 2"]


@given(st.lists(st.sampled_from(ROLES)))
def test_blocks_part_nothing_and_lose_nothing(roles: list[MessageRole]) -> None:
    messages = messages_of(*roles)
    rounds = group_rounds(messages)
    assert [r for b in rounds for r in b.messages] == messages
    assert all(b.messages for b in rounds)
    for round_ in rounds:
        assert "user" not in [r.role for r in round_.messages[1:]]
    assert all(b.messages[0].role == "user" for b in rounds[1:])
