"""Only what the user said is kept as a fact."""

from __future__ import annotations

import pytest

from topicloom.reflection.facts import Claim
from topicloom.reflection.reflect import find_flaw, ground_claims
from topicloom.state.stored_message import MessageRole, StoredMessage


def message(seq: int, role: MessageRole, text: str, speaker: str | None = None) -> StoredMessage:
    time = f"2026-03-0{seq}T09:00:00+00:00"
    return StoredMessage(seq=seq, role=role, text=text, time=time, speaker=speaker)


RECORDS = [
    message(1, "user", "Since May I live in Leeds, at 14 Mill Lane, with my sister Mei."),
    message(2, "assistant", "You are allergic to peanuts, aren't you?"),
    message(3, "user", "我对花生过敏，住在利兹。", "Yue"),
    message(4, "user", "OK"),
]
BY_ID = {r.id: r for r in RECORDS}


@pytest.mark.parametrize(
    ("text", "ids", "flaw"),
    [
        ("The user lives in Leeds.", ("m1",), ""),
        ("The user's sister is Mei.", ("m1",), ""),
        ("The user is living at 14 Mill Lane, Leeds.", ("m1", "m4"), ""),
        ("用户对花生过敏。", ("m3",), ""),
        ("Yue: 住在利兹", ("m3",), ""),
        ("The user is allergic to peanuts.", ("m2",), "rests on no message of the user"),
        ("The user is allergic to peanuts.", ("m4",), "is not in the user's words"),
        ("The user is allergic to peanuts.", ("m2", "m4"), "is not in the user's words"),
        ("The user lives at 15 Mill Lane, Leeds.", ("m1",), "is not in the user's words"),
        ("用户喜欢登山和摄影。", ("m3",), "is not in the user's words"),
        ("The user lives in Leeds.", (), "rests on no message"),
        ("The user lives in Leeds.", ("m1", "m9"), "rests on a message that was not shown"),
        ("The user.", ("m1",), "says nothing"),
    ],
)
def test_flaws(text: str, ids: tuple[str, ...], flaw: str) -> None:
    assert find_flaw(Claim(text, ids), BY_ID) == flaw


def test_what_is_dropped_is_counted_and_what_is_kept_is_dated() -> None:
    claims = [
        Claim("The user lives in Leeds", ("m1", "m3"), ("old",)),
        Claim("nonsense", ("m4",)),
        Claim("more nonsense", ("m4",)),
        Claim("nonsense", ("m8",)),
    ]
    kept = ground_claims(claims, RECORDS, {"m1": "a", "m3": "c", "m4": "d"})
    ((fact, supersedes),) = kept.facts
    assert (fact.messages, fact.at, supersedes) == (("a", "c"), RECORDS[2].time, ("old",))
    assert kept.dropped == {
        "is not in the user's words": 2,
        "rests on a message that was not shown": 1,
    }
