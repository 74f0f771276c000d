"""What a purge leaves of notes, receipts and topics: what is named, and no other field."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from tables import each_row

from topicloom import Note, Receipt, Topic
from topicloom.state.changes import ChangeEntry
from topicloom.state.safe_text import KnownText
from topicloom.storage.purged_rows import PurgedTexts

SECRET = "the door opens with HERON77 at dusk"
GONE = PurgedTexts(
    messages=frozenset({"m3"}),
    topics=frozenset({"t1"}),
    names=frozenset({"The shed"}),
    words=KnownText(SECRET),
    referring=frozenset({"t2"}),
)


def part(topic: str, quote: str) -> dict[str, Any]:
    return {
        "topic": topic,
        "name": f"name of {topic}",
        "score": 0.5,
        "quotes": [quote],
        "partial": [quote],
        "excerpts": {quote: [[0, 9]]},
        "summary": "told",
    }


SCOPE = {"briefs": 3, "read": 2, "unsearched": 1, "other_days": True, "missed": "told"}
ELSEWHERE = {
    "thread": "web",
    "message": "m7",
    "topic": "t9",
    "fact": "f1",
    "since": "2026-03-02T09:00:00+08:00",
    "day": "2026-03-02",
}
NOTE: dict[str, Any] = {
    "after": 8,
    "topics": [part("t3", "m5")],
    "searched": "told",
    "scope": SCOPE,
    "listed": {"t3": "told"},
    "candidates": ["told"],
    "media": ["m5"],
    "layers": [
        {
            "kind": "probabilistic",
            "text": "",
            "since": "m1",
            "entries": [{"id": "topic_t3", "kind": "topic", "title": "told", "text": "told"}],
            "rationale": "told",
            "model": "m",
        }
    ],
    "other_threads": [ELSEWHERE],
}
SEARCH = {
    "query": "told",
    "when": "told",
    "days": ["2026-03-02", "2026-03-03"],
    "archived": True,
    "found": ["t3"],
    "listed": ["t3"],
    "candidates": ["told"],
    "scope": SCOPE,
    "reason": "told",
    "media": ["m5"],
}
RECEIPT: dict[str, Any] = {
    "turn": 4,
    "user": "m8",
    "started": "2026-03-02T09:00:00+08:00",
    "seconds": 1.5,
    "scores": {"t3": 0.5},
    "quoted": [part("t3", "m5")],
    "other_threads": [ELSEWHERE],
    "curated": [{"id": "lore_1", "kind": "lore", "title": "told"}],
    "crowded_out": ["m6"],
    "reading": {"added": ["m5"], "kept_out": ["m6"], "summaries": 1},
    "idle": False,
    "about": {"t1": 0.9},
    "view": 2,
    "noted": 1,
    "roster": "0123456789abcdef",
    "active": ["t3"],
    "activated": ["t3"],
    "deactivated": ["t3"],
    "sections": {"system": 10},
    "window": 2_000,
    "split": ["t3"],
    "searches": [SEARCH],
    "abandoned": 1,
    "calls": [
        {
            "role": "reader",
            "model": "m",
            "topic": "t3",
            "seconds": 0.5,
            "input_tokens": 1,
            "output_tokens": 2,
            "cached_tokens": 3,
            "repeated": 0.5,
            "failure": "told",
            "skipped": True,
            "remarks": ["told"],
        },
        {"role": "router", "failure": None},
    ],
    "steps": [],
    "unasked": {"router": "it was late"},
    "limits": {"user": 0.5},
    "plan": {"goal": "told"},
    "edits": [["SET", "door", "told"]],
    "edit_errors": ["told"],
    "events": ["told"],
}


def test_the_rows_of_this_test_have_every_field() -> None:
    """A field that is added later belongs here, and perhaps among those that stay."""
    assert NOTE.keys() == Note.model_fields.keys()
    assert RECEIPT.keys() == Receipt.model_fields.keys()
    assert Note.model_validate(NOTE).model_dump(mode="json") | NOTE == NOTE
    Receipt.model_validate(RECEIPT)


TOUCHED = [
    {"topics": [part("t1", "m5")]},
    {"topics": [part("t2", "m5")]},
    {"topics": [part("t3", "m3")]},
    {"after": 3},
    {"listed": {"t1": "told"}},
    {"candidates": ["The shed"]},
    {"layers": [{**NOTE["layers"][0], "entries": [{"id": "narrative_t1", "text": "told"}]}]},
]


@each_row("update", TOUCHED)
def test_a_note_that_tells_of_it_loses_every_text(update: dict[str, Any]) -> None:
    left = GONE.strip_note({**NOTE, **update, "of_later": "told"})
    assert "told" not in repr(left)
    assert "of_later" not in left
    note = Note.model_validate(left)
    assert note.media == ("m5",)
    assert [p.quotes for p in note.topics] == [
        tuple(p["quotes"]) for p in (update.get("topics") or NOTE["topics"])
    ]
    assert [p.name for p in note.topics] == [
        "topic t1" if p.topic == "t1" else f"name of {p.topic}" for p in note.topics
    ]
    assert (note.scope and note.scope.briefs) == 3
    assert GONE.strip_note(left) == left


@each_row(
    "update",
    [
        {"user": "m3"},
        {"quoted": [part("t1", "m5")]},
        {"crowded_out": ["m3"]},
        {"searches": [{**SEARCH, "found": ["t1"]}]},
    ],
)
def test_a_receipt_that_tells_of_it_keeps_what_was_counted(update: dict[str, Any]) -> None:
    row = {**RECEIPT, **update}
    left = GONE.strip_receipt({**row, "of_later": "told"})
    assert "told" not in repr(left)
    receipt = Receipt.model_validate(left)
    assert [c.failure for c in receipt.calls] == ["(removed on request)", None]
    assert (receipt.events, receipt.edits, receipt.plan) == ((), (), None)
    [search] = receipt.searches
    assert (search.query, search.days, search.archived) == ("", None, True)
    counted = ("turn", "seconds", "scores", "sections", "window", "active", "unasked", "limits")
    assert {key: left[key] for key in counted} == {key: row[key] for key in counted}
    assert GONE.strip_receipt(left) == left


def test_rows_that_tell_of_something_else_stay_as_they_are() -> None:
    assert GONE.strip_note(NOTE) == NOTE
    assert GONE.strip_receipt(RECEIPT) == RECEIPT
    active = {**RECEIPT, "active": ["t1"], "scores": {"t1": 0.5}}
    assert GONE.strip_receipt(active) == active, "that it was active tells nothing of it"


def test_ids_kinds_and_days_are_no_texts() -> None:
    """What the application names may be a word of the message too, and it is looked up by that."""
    entry = {"id": "lore_HERON77", "kind": "lore", "title": "HERON77", "text": "told"}
    note = GONE.strip_note({**NOTE, "layers": [{**NOTE["layers"][0], "entries": [entry]}]})
    assert note["layers"][0]["entries"] == [{**entry, "title": "…"}]
    dated = PurgedTexts(GONE.messages, GONE.topics, GONE.names, KnownText("on 2026-03-02"))
    [search] = dated.strip_receipt(RECEIPT)["searches"]
    assert search["days"] == SEARCH["days"]


def test_elsewhere_only_what_repeats_it_goes() -> None:
    row = {**RECEIPT, "events": [f"told of “The shed”: {SECRET}", "told"]}
    left = GONE.strip_receipt(row)
    assert left["events"][1] == "told"
    assert "HERON77" not in repr(left)
    assert "The shed" not in repr(left)
    assert {**left, "events": row["events"]} == row


@each_row(
    ("row", "name"),
    [
        ({"id": "t1", "name": "The shed"}, "topic t1"),
        ({"id": "t1", "name": "mine", "by_hand": ["named", "pinned"]}, "mine"),
        ({"id": "t1", "name": "HERON77", "by_hand": ["named", "pinned"]}, "topic t1"),
        ({"id": "t2", "name": "Rain"}, "Rain"),
        ({"id": "t2", "name": "HERON77"}, "topic t2"),
    ],
)
def test_a_topic_that_holds_or_refers_to_it(row: dict[str, Any], name: str) -> None:
    left = GONE.strip_topic({**row, "brief": "told", "summary": "told", "titled": True})
    topic = Topic.model_validate(left)
    assert (topic.name, topic.brief, topic.summary) == (name, "", "")
    assert topic.titled == (name == row["name"])
    if row.get("by_hand"):
        assert topic.by_hand == (("named", "pinned") if name == "mine" else ("pinned",))
    assert GONE.strip_topic(left) == left
    assert GONE.strip_topic({**row, "id": "t3"}) == {**row, "id": "t3"}


def test_the_journals() -> None:
    edit = {"turn": 1, "message": "m3", "edits": [["SET", "door", 1]], "before": "", "after": ""}
    assert GONE.strip_edit(edit) == {**edit, "edits": []}
    assert GONE.strip_edit({**edit, "message": "m5"}) == {**edit, "message": "m5"}
    change: dict[str, Any] = {
        "author": "Ann",
        "time": "2026-03-02T09:00:00+08:00",
        "event": "archived t1 “The shed”",
        "before": [None, None],
        "after": ["0123456789abcdef", "fedcba9876543210"],
    }
    left = GONE.strip_change(change)
    assert left == {**change, "event": "archived t1 “…”"}
    entry: BaseModel = ChangeEntry.model_validate(left)
    assert entry
