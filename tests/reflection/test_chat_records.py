"""What a reflection reads: the transcript, or what the application hands over."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import ReflectionPolicy, StoredMessage
from topicloom.reflection.chat_records import choose_chat_records, select_native
from topicloom.state.stored_message import MessageRole

POLICY = ReflectionPolicy()
NOON = 1_772_000_000.0


def native(*roles: MessageRole, at: str = "2026-02-25T06:13:20+00:00") -> list[StoredMessage]:
    return [StoredMessage(seq=n, role=r, text=f"word {n}", time=at) for n, r in enumerate(roles, 1)]


def external(number: int, **changed: Any) -> dict[str, Any]:
    made = {
        "role": "user",
        "sender_id": "yue",
        "timestamp": NOON + number,
        "content": f"word {number}",
        "is_processed": True,
    }
    return made | changed


OWN = native("user", "assistant")


def texts(given: object) -> list[str]:
    read = choose_chat_records(given, OWN)
    assert read.source == "external", read.reports
    return [r.text for r in read.messages]


def test_native_records_are_user_and_assistant_in_turn() -> None:
    said = native("user", "assistant", "tool", "assistant", "system", "user", "assistant")
    taken, last = select_native(said, NOON + 1e6, POLICY)
    assert [r.role for r in taken] == ["user", "assistant", "assistant", "user", "assistant"]
    assert last is not None
    assert last.seq == 7


def test_a_round_that_waits_for_its_reply_is_left_for_the_next_time() -> None:
    said = native("user", "assistant", "user")
    taken, last = select_native(said, NOON, POLICY)
    assert last is not None
    assert (len(taken), last.seq) == (2, 2)
    taken, last = select_native(said, NOON + POLICY.idle_seconds, POLICY)
    assert last is not None
    assert (len(taken), last.seq) == (3, 3)
    assert select_native(native("user"), NOON, POLICY) == ([], None)


def test_a_long_way_back_is_read_in_whole_rounds() -> None:
    roles: list[MessageRole] = ["user", "assistant"]
    said = native(*roles * 5)
    taken, last = select_native(said, NOON, POLICY.model_copy(update={"messages": 5}))
    assert last is not None
    assert (len(taken), last.seq) == (4, 4)
    taken, last = select_native(said, NOON, POLICY.model_copy(update={"messages": 1}))
    assert len(taken) == 2, "one round is read whatever its size"


def test_processed_ones_and_the_newest_new_message_of_the_user() -> None:
    given = [
        external(1),
        external(2, role="assistant"),
        external(3, is_processed=False),
        external(5, is_processed=False),
        external(4, is_processed=False),
        external(6, is_processed=False, role="assistant"),
    ]
    assert texts(given) == ["word 1", "word 2", "word 5"]


def test_duplicates_go_by_role_sender_time_and_content() -> None:
    twin = external(1)
    given = [
        twin,
        dict(twin),
        external(1, role="assistant"),
        external(1, sender_id="tom"),
        external(1, timestamp=NOON + 2),
        external(1, content="other"),
        external(1, is_processed=False),
    ]
    read = choose_chat_records(given, OWN)
    assert len(read.messages) == 5


@given(st.permutations(range(8)))
def test_order_is_by_time_however_they_come(order: list[int]) -> None:
    assert texts([external(n) for n in order]) == [f"word {n}" for n in range(8)]


def test_all_ways_to_write_a_time_are_one_time() -> None:
    ways = [
        NOON,
        int(NOON),
        NOON * 1_000,
        str(int(NOON)),
        str(int(NOON * 1_000)),
        "2026-02-25T06:13:20Z",
        "2026-02-25T06:13:20",
        "2026-02-25T14:13:20+08:00",
    ]
    given = [external(0, timestamp=way) for way in ways]
    (message,) = choose_chat_records(given, OWN).messages
    assert message.time == "2026-02-25T06:13:20+00:00"


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, True, "", "soon", float("nan"), float("inf"), 1e300, [], "9" * 400),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"),
    ],
)
def test_what_is_no_time(wrong: object) -> None:
    read = choose_chat_records([external(0, timestamp=wrong)], OWN)
    assert read.source == "native"
    assert read.reports[0].startswith("chat record 1: timestamp: ")


def test_a_sender_may_be_a_number() -> None:
    (record,) = choose_chat_records([external(1, sender_id=7)], OWN).messages
    assert (record.speaker, record.text, record.seq) == ("7", "word 1", 1)


def test_records_keep_their_ids_in_any_order() -> None:
    rows = [external(1, id="abc"), external(2)]
    first, again = choose_chat_records(rows, OWN), choose_chat_records(rows[::-1], OWN)
    assert first.ids == again.ids
    assert first.ids["m1"] == "abc"
    assert first.ids["m2"].startswith("x")
    assert choose_chat_records(None, OWN).ids == {"m1": "m1", "m2": "m2"}


@each_row(
    ("given", "report"),
    [
        ("chat", "chat_records: Input should be a valid list"),
        ({"a": 1}, "chat_records: Input should be a valid list"),
        ([external(1), "x"], "chat record 2: Input should be a valid dictionary"),
        ([external(1, role="bot")], "chat record 1: role: Input should be 'user', 'assistant'"),
        ([external(1, role=["user"])], "chat record 1: role: Input should be 'user', 'assistant'"),
        ([external(1, content=["a"])], "chat record 1: content: Input should be a valid string"),
        ([external(1, content="  ")], "chat record 1: content: String should match"),
        ([external(1, timestamp="noon")], "chat record 1: timestamp: Input should be a valid"),
        ([external(1, is_processed="yes")], "chat record 1: is_processed: Input should be a valid"),
        ([external(1, sender_id=[1])], "chat record 1: sender_id: Input should be a valid string"),
        ([], "nothing that was processed"),
        ([external(1, role="system")], "nothing that was processed"),
    ],
)
def test_malformed_ones_fall_back_to_the_native_and_say_why(given: object, report: str) -> None:
    read = choose_chat_records(given, OWN)
    assert read.source == "native"
    assert list(read.messages) == OWN
    assert report in read.reports[0]


def test_every_malformed_one_is_counted() -> None:
    reports = choose_chat_records([external(1), *[external(2, role="x")] * 9], OWN).reports
    assert len(reports) == 6
    assert reports[-1] == "4 more faults in chat records"


@each_row("field", ["role", "timestamp", "is_processed"])
def test_what_a_record_says_is_not_told_at_length(field: str) -> None:
    (report,) = choose_chat_records([external(1, **{field: "x" * 9_000})], OWN).reports
    assert len(report) < 400


def test_none_at_all_is_no_report() -> None:
    assert choose_chat_records(None, OWN).reports == ()


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*external(1), "id", "x"]) | st.text(max_size=3),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@given(json_like)
def test_anything_may_come(given: object) -> None:
    read = choose_chat_records(given, OWN)
    assert read.ids.keys() == {r.id for r in read.messages}
    assert read.source == "external" or list(read.messages) == OWN


def test_a_thousand_shuffled_are_sorted() -> None:
    rows = [external(n) for n in range(1_000)]
    random.Random(3).shuffle(rows)
    assert texts(rows) == [f"word {n}" for n in range(1_000)]
