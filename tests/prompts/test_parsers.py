"""Parsers: every way in which models bend the form, and any text at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.errors import UnusableAnswerError
from topicloom.roles.brief import Brief, parse_brief
from topicloom.roles.reader import ParsedReading, parse_readings
from topicloom.roles.rewriter import parse_query
from topicloom.roles.router import Route, parse_routing
from topicloom.roles.splitter import parse_split
from topicloom.state.splitting import LOOSE_ENDS, Assignment

PARSERS: list[Callable[[str], object]] = [
    parse_readings,
    parse_split,
    parse_routing,
    parse_brief,
    parse_query,
]
READING = ParsedReading(0.85, (("m42", "m42"), ("m57", "m57")), "They chose <b>oak</b>.")

READINGS = {
    "as asked for": """<topic_result>
<relevance_score>0.85</relevance_score>
<referenced_messages>
m42
m57
</referenced_messages>
<summary>
They chose <b>oak</b>.
</summary>
</topic_result>""",
    "fence and prose": """Here you go:
```xml
<topic_result><relevance_score>0.85</relevance_score>
<referenced_messages>- m42 (the price)
- m57</referenced_messages>
<summary>They chose <b>oak</b>.</summary></topic_result>
```
Tell me if you need more.""",
    "thoughts first": """<think>Maybe <relevance_score>0.1</relevance_score>? No.</think>
<topic_result><relevance_score>0.85</relevance_score><referenced_messages>m42, m57
</referenced_messages><summary>They chose &lt;b&gt;oak&lt;/b&gt;.</summary></topic_result>""",
    "thoughts without their opening tag": """Hm, 0.1?</think><topic_result>
<relevance_score>0.85</relevance_score><referenced_messages>m42 m57</referenced_messages>
<summary>They chose <b>oak</b>.</summary></topic_result>""",
    "nothing closed": """<topic_result>
<relevance_score>0.85
<referenced_messages>[m42], [m57]
<summary>They chose <b>oak</b>.""",
    "no root": """<relevance_score>0.85</relevance_score>
<referenced_messages>M42；msg-057</referenced_messages><summary>They chose <b>oak</b>.</summary>""",
    "capitals and spaces": """< Topic_Result >< RELEVANCE_SCORE > .85 </ RELEVANCE_SCORE >
<Referenced_Messages>m 42
m#57</Referenced_Messages><Summary>They chose <b>oak</b>.</Summary></Topic_Result>""",
    "full-width": """＜topic_result＞＜relevance_score＞０．８５＜／relevance_score＞
＜referenced_messages＞ｍ４２、ｍ５７＜／referenced_messages＞
＜summary＞They chose ＜b＞oak＜／b＞.＜／summary＞＜／topic_result＞""",
    "percent and repeated ids": """<topic_result><relevance_score>85 %</relevance_score>
<referenced_messages>m42，m57，m42</referenced_messages>
<summary>They chose <b>oak</b>.</summary></topic_result>""",
    "bare numbers": """<topic_result><relevance_score>0,85</relevance_score>
<referenced_messages>42
057</referenced_messages><summary>They chose <b>oak</b>.</summary></topic_result>""",
    "JSON": """{"relevance_score": 0.85, "referenced_message_ids": ["m42", "msg-057"],
 "summary": "They chose <b>oak</b>."}""",
    "JSON with prose, a fence and strings": """The result {of the topic}:
```json
{"relevance_score": "85%", "referenced_message_ids": "m42, m57",
 "summary": "They chose <b>oak</b>."}
```""",
    "JSON in an object of its name": """{"topic_result": {"relevance_score": 0.85,
 "referenced_messages": ["m42", "m57"], "summary": "They chose <b>oak</b>."}}""",
    "JSON with numbers for ids": """{"Relevance_Score": 0.85, "referenced_message_ids": [42, 57],
 "summary": "They chose <b>oak</b>."}""",
}


@each_row("text", READINGS.values())
def test_a_reading_is_read_in_every_form(text: str) -> None:
    (reading,) = parse_readings(text)
    assert set(reading.ranges) == set(READING.ranges)
    assert replace(reading, ranges=READING.ranges) == READING


def test_several_topics_are_read_from_one_answer() -> None:
    tags = """<topic_result topic="t3">
<referenced_messages>m4-m6, m9</referenced_messages>
<relevance_score>0.8</relevance_score>
<summary>Oak.</summary>
</topic_result>
<topic_result topic="t5"><relevance_score>0.1</relevance_score></topic_result>"""
    expected = (
        ParsedReading(0.8, (("m4", "m6"), ("m9", "m9")), "Oak.", "t3"),
        ParsedReading(0.1, topic="t5"),
    )
    assert parse_readings(tags) == expected
    by_schema = """{"topics": [
{"topic": "t3", "referenced_messages": ["m4-m6", "m9"], "relevance_score": 0.8, "summary": "Oak."},
{"topic": "t5", "referenced_messages": [], "relevance_score": 0.1, "summary": ""}]}"""
    assert parse_readings(by_schema) == expected


def test_a_summary_may_speak_of_the_form_itself() -> None:
    text = (
        "<topic_result><relevance_score>0.9</relevance_score><summary>We agreed that the model "
        "writes <think> and </think> before <topic_result>.</summary></topic_result>"
    )
    assert parse_readings(text)[0].score == 0.9


@each_row(
    ("text", "score"),
    [
        ("0", 0.0),
        ("1", 1.0),
        ("1.0", 1.0),
        ("-0.2", 0.0),
        ("８５％", 0.85),
        ("8/10", 0.8),
        ("0.8 / 1", 0.8),
        ("1e-3", 0.001),
        ("0.7 (clearly needed)", 0.7),
        ("relevance: 0.7", 0.7),
    ],
)
def test_a_score_is_read_from_each_form(text: str, score: float) -> None:
    (reading,) = parse_readings(f"<relevance_score>{text}</relevance_score>")
    assert reading.score == score


@each_row("text", ["85", "7", "high", "", "150%", "5/0", "12/10", "9" * 5000])
def test_what_is_no_score_is_not_guessed(text: str) -> None:
    with pytest.raises(UnusableAnswerError):
        parse_readings(f"<relevance_score>{text}</relevance_score>")


@each_row("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "true"])
def test_json_numbers_that_are_no_score(number: str) -> None:
    with pytest.raises(UnusableAnswerError):
        parse_readings(f'{{"relevance_score": {number}}}')


def test_an_answer_that_is_cut_in_its_summary_keeps_what_comes_before() -> None:
    text = "<topic_result><referenced_messages>m4</referenced_messages><relevance_score>0.4"
    (reading,) = parse_readings(f"{text}</relevance_score><summary>and then th")
    assert (reading.score, reading.ranges) == (0.4, (("m4", "m4"),))


@each_row(
    ("text", "ids"),
    [
        ("m42-m45", "m42-m45"),
        ("m42-45", "m42-m45"),
        ("[m42] – [m45]", "m42 m45"),
        ("msg-042 to msg-044", "m42-m44"),
        ("m42到m44，m50", "m42-m44 m50"),
        ("m42..m44", "m42-m44"),
        ("m45-m42", "m45"),
        ("- m42\n- m57", "m42 m57"),
        ("m42 - 50 euros", "m42"),
        ("消息42、消息 57", "m42 m57"),
        ("message_id: m42", "m42"),
        ("m0, m1", "m1"),
        ("60m 42", ""),
        ("m99999999999", ""),
        ("on 2024-05-03 at 8", ""),
        ("none", ""),
    ],
)
def test_ids_are_read_from_each_form(text: str, ids: str) -> None:
    answer = f"<relevance_score>1</relevance_score><referenced_messages>{text}"
    (reading,) = parse_readings(answer)
    assert " ".join("-".join(dict.fromkeys(pair)) for pair in reading.ranges) == ids


SPLIT = (
    Assignment("m1", "t3"),
    Assignment("m2", None, "Kitchen > budget", "All about the kitchen."),
    Assignment("m3", "t1"),
    Assignment("m4", "t1"),
)
SPLITS = {
    "as asked for": """<topic_split>
<assignment msg_id="m1" topic="existing_active" topic_id="t3"></assignment>
<assignment msg_id="m2" topic="new" topic_name="Kitchen > budget">
<summary>All about the kitchen.</summary>a new matter</assignment>
<assignment msg_id="m3-m4" topic="existing_inactive" topic_id="t1">why</assignment>
</topic_split>""",
    "any order, any quotes": """<assignment topic_id='t3' topic='existing_active' msg_id='[m1]'/>
<assignment topic_name="Kitchen > budget" topic=new msg_id=“msg-002”>
<summary>All about the kitchen.</summary></assignment>
<assignment topic_id=T-1 msg_id="m3，m4" topic="existing_inactive">""",
    "never closed": """<topic_split>
<assignment msg_id="m1" topic="existing_active" topic_id="t3">
<assignment msg_id="m2" topic="new" topic_name="Kitchen > budget"><summary>All about the kitchen.
<assignment msg_id="m3" topic_id="t1" topic="existing_inactive">
<assignment msg_id="m4" topic_id="t1" topic="existing_inactive">
</topic_split>""",
    "children instead of attributes": """<topic_split>
<assignment><msg_id>m1</msg_id><topic>t3</topic></assignment>
<assignment><msg_id>m2</msg_id><topic>new</topic><topic_name>Kitchen &gt; budget</topic_name>
<summary>All about the kitchen.</summary></assignment>
<assignment><msg_id>m3, m4</msg_id><topic_id>topic-001</topic_id></assignment></topic_split>""",
    "JSON": """{"assignments": [{"msg_id": "m1", "topic": "existing_active", "topic_id": "t3"},
{"msg_id": "m2", "topic": "new", "topic_name": "Kitchen > budget",
 "summary": "All about the kitchen."},
{"msg_id": ["m3", "m4"], "topic": "existing_inactive", "topic_id": "t1"}]}""",
    "JSON in an object of its name": """{"topic_split": {"assignments": [
{"msg_id": "m1", "topic_id": "t3"}, {"msg_id": "m2", "topic": "new",
 "topic_name": "Kitchen > budget", "summary": "All about the kitchen."},
{"msg_id": "m3-m4", "topic_id": "t1"}]}}""",
    "a bare JSON list": """[{"id": 1, "topic_id": 3},
{"id": 2, "topic": "new", "name": "Kitchen > budget", "brief": "All about the kitchen."},
{"message_ids": [3, 4], "topic_id": "t1"}]""",
}


@each_row("text", SPLITS.values())
def test_a_split_is_read_in_every_form(text: str) -> None:
    assert parse_split(text) == SPLIT


@each_row(
    "text",
    [
        '<assignment msg_id="m1" topic_id="t3" also="topic-7,topic-009">',
        "<assignment msg_id=m1 topic_id=t3 also='[T7] [t9] [t7]'/>",
        '<assignment msg_id="m1" topic_id="t3" also="7, 9"></assignment>',
        '<assignment msg_id="m1" topic_id="t3"><also>t7、t9</also></assignment>',
        '{"assignments": [{"msg_id": "m1", "topic_id": "t3", "also": ["t7", "topic 9"]}]}',
    ],
)
def test_references_are_read_in_every_form(text: str) -> None:
    assert parse_split(text) == (Assignment("m1", "t3", also=("t7", "t9")),)


def test_references_may_name_topics_that_have_no_id_yet() -> None:
    (assignment,) = parse_split('<assignment msg_id="m1" topic_id="t3" also="Tea and milk， t7">')
    assert assignment.also == ("Tea and milk", "t7")


@each_row("also", ["", " , "])
def test_references_to_nothing_are_none(also: str) -> None:
    (assignment,) = parse_split(f'<assignment msg_id="m1" topic_id="t3" also="{also}">')
    assert assignment.also == ()


@each_row(
    "text",
    [
        '<assignment msg_id="m1" topic="small_talk"></assignment>',
        "<assignment msg_id=m1 topic='Small talk'/>",
        '{"assignments": [{"msg_id": "m1", "topic": "small-talk", "topic_name": "Chat"}]}',
    ],
)
def test_small_talk_is_a_loose_end(text: str) -> None:
    assert [(a.message, a.topic) for a in parse_split(text)] == [("m1", LOOSE_ENDS)]


@each_row(
    "text",
    [
        '<assignment msg_id="m1" topic="existing_active" topic_id="Kitchen renovation">',
        '<assignment msg_id="m1" topic="Kitchen renovation">',
        '<assignment msg_id="m1" topic="new" topic_id="Kitchen renovation">',
        '[{"id": 1, "topic": "existing_inactive", "topic_id": "Kitchen renovation"}]',
    ],
)
def test_a_name_may_stand_where_an_id_was_meant(text: str) -> None:
    assert parse_split(text) == (Assignment("m1", None, "Kitchen renovation"),)


def test_a_message_refers_to_a_few_topics_at_most() -> None:
    ids = ",".join(f"t{n}" for n in range(1, 60))
    (assignment,) = parse_split(f'<assignment msg_id="m1" topic_id="t99" also="{ids}">')
    assert assignment.also == ("t1", "t2", "t3", "t4")


def test_assignments_to_nothing_are_dropped() -> None:
    text = '<assignment msg_id="m1" topic="new"></assignment><assignment msg_id="m2" topic_id="t1">'
    assert parse_split(text) == (Assignment("m2", "t1"),)


ROUTE = Route({"t3": 0.9, "t1": 0.6, "t2": 0.3})
ROUTES = {
    "as asked for": """<topic_routing><matched_topics>
<topic id="t3" relevance="high">why</topic><topic id="t1" relevance="medium">why</topic>
<topic id="t2" relevance="low">why</topic></matched_topics></topic_routing>""",
    "figures, Chinese, nothing closed": """<topic relevance=0.9 id=t3>
<topic id='[t1]'>no relevance given<topic id="topic-2" relevance="低">""",
    "JSON": """{"matched_topics": [{"id": "t3", "relevance": "high"},
{"id": "t1", "relevance": 0.6},
{"topic_id": 2, "relevance": "low"}]}""",
}


@each_row("text", ROUTES.values())
def test_a_route_is_read_in_every_form(text: str) -> None:
    assert parse_routing(text) == ROUTE


def test_a_route_to_nowhere() -> None:
    reason = "<topic_routing><no_match_reason>nothing on travel</no_match_reason></topic_routing>"
    assert parse_routing(reason) == Route({}, "nothing on travel")
    assert parse_routing("<matched_topics></matched_topics>") == Route({})
    assert parse_routing('{"matched_topics": []}') == Route({})


@each_row(
    "text",
    [
        "<topic_brief><name>Oak\n table</name><brief>About the table.</brief></topic_brief>",
        "<name>Oak table</name>\n<brief>About the table.",
        '```json\n{"name": "Oak table", "brief": "About the table."}\n```',
    ],
)
def test_a_brief_is_read_in_every_form(text: str) -> None:
    assert parse_brief(text) == Brief("Oak table", "About the table.")


@each_row(
    "text",
    [
        "<query>How much is the hotel?</query>",
        "Sure: <query>How much is the hotel?",
        "I write it in <query>: <query>How much is the hotel?</query>",
        "In <query>, then: <query>How much is the hotel?",
        '{"query": "How much is the hotel?"}',
    ],
)
def test_a_query_is_read_in_every_form(text: str) -> None:
    assert parse_query(text) == "How much is the hotel?"


def test_between_two_opening_tags_may_stand_anything() -> None:
    with pytest.raises(UnusableAnswerError):
        parse_query("<query>Let me see what it refers to.<query>")


@each_row("parse", PARSERS)
@each_row("text", ["", "   ", "I cannot help with that.", "{}", "[]", "<", "</"])
def test_rubbish_is_unusable(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(UnusableAnswerError):
        parse(text)


PIECES = st.sampled_from(
    [
        "<topic_result>",
        "<relevance_score>",
        "</relevance_score>",
        "<referenced_messages>",
        "<summary>",
        "</summary>",
        "<assignment ",
        'msg_id="m1-m9"',
        "topic_id='t",
        "topic=new",
        "<topic id=“t1",
        "<think>",
        "</think>",
        "<query>",
        "<brief",
        '{"relevance_score":',
        '"assignments": [',
        "0.5",
        "m42",
        ">",
        "/>",
        '"',
        "{",
        "[",
        "]",
        "}",
        "\ud800",
        "１２",
    ]
)


@given(text=st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text())).map("".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in PARSERS:
        try:
            parse(text)
        except UnusableAnswerError:
            continue


@given(
    score=st.floats(0, 1),
    ids=st.lists(st.integers(1, 10**6), unique=True, max_size=20),
    summary=st.text(st.characters(exclude_characters="<>&", exclude_categories=["Cs"])),
)
def test_what_is_written_in_the_form_comes_back(score: float, ids: list[int], summary: str) -> None:
    listed = "\n".join(f"m{i}" for i in ids)
    text = (
        f"<topic_result><relevance_score>{score:.4f}</relevance_score>\n"
        f"<referenced_messages>\n{listed}\n</referenced_messages>\n"
        f"<summary>{summary}</summary></topic_result>"
    )
    named = tuple((f"m{i}", f"m{i}") for i in ids)
    assert parse_readings(text) == (ParsedReading(round(score, 4), named, summary.strip()),)


HOSTILE = [
    "<",
    "< ",
    "<assignment ",
    '<assignment msg_id="',
    "<assignment a='a=\"b=“",
    '<assignment msg_id="m1-m9999" topic_id="t1">',
    "<topic_result><relevance_score>",
    "<topic id=“",
    "<summary>",
    "<think>",
    "</think><",
    "{",
    "[",
    '{"a":',
    '[{"a":"',
    "&lt;",
    "a",
    '"',
    "m1-",
    "relevance_score",
    "１",
    "\n",
]


@pytest.mark.slow
@each_row("parse", PARSERS)
@each_row("piece", HOSTILE)
def test_a_megabyte_of_anything_is_read_or_refused(
    parse: Callable[[str], object], piece: str
) -> None:
    """In linear time: a parser that is not would be at it for a quarter of an hour."""
    with suppress(UnusableAnswerError):
        assert parse(piece * (1_000_000 // len(piece))) is not None
