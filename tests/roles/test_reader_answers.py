"""Readers' answers: what is taken from them, and what makes one a failed one."""

from __future__ import annotations

import pytest
from openai_behaviours import Reply
from openai_server import OpenAIServer
from tables import each_row

from topicloom import Answer, Reading, ReadRequest, StoredMessage, Topic, TopicWindow
from topicloom.context.prefix import PrefixMeter
from topicloom.effects import run_step
from topicloom.roles.calls import ask_role
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.roles.reader import ChatReader

SAID = "Aunt Mei asked for 1,200 bricks today, the red ones that Karl's brother sells."


def window(topic: str, *numbers: int) -> TopicWindow:
    said = [
        StoredMessage(seq=n, role="user", text=SAID, time="2026-05-07T10:00:00+00:00")
        for n in numbers
    ]
    return TopicWindow(Topic(id=topic, name="Wall"), said)


ALONE = ReadRequest("s", [window("t1", 1, 2, 5, 6, 9)], [], "How many bricks?", "en")
TOGETHER = ReadRequest("s", [window("t1", 1, 2, 5), window("t2", 3, 4)], [], "Bricks?", "en")


def answer(ids: str, summary: str = "", topic: str = "") -> str:
    named = f' topic="{topic}"' if topic else ""
    return (
        f"<topic_result{named}><referenced_messages>{ids}</referenced_messages>"
        f"<relevance_score>0.8</relevance_score><summary>{summary}</summary></topic_result>"
    )


def open_reader(server: OpenAIServer) -> ChatReader:
    model = open_model("openai:cheap", base_url=server.base_url, api_key="k")
    return ChatReader(Chat.of(model, PrefixMeter(), window=8_000))


def read(
    server: OpenAIServer, text: str, request: ReadRequest = ALONE
) -> Answer[tuple[Reading, ...]]:
    server.then(Reply(text))
    return open_reader(server).call(request)


def quotes_of(found: Answer[tuple[Reading, ...]]) -> dict[str, list[str]]:
    return {r.topic: [q.id for q in r.quotes] for r in found.value}


def test_a_summary_stands_as_it_was_written(openai_server: OpenAIServer) -> None:
    """Sums, counts and names in another script are what a summary is for."""
    found = read(openai_server, answer("m1, m2", "2,400 bricks together, for Aunt May."))
    assert found.value[0].summary == "2,400 bricks together, for Aunt May."
    assert found.remarks == ()


@each_row(
    ("ids", "quoted"),
    [
        ("m5, m1", ["m5", "m1"]),
        ("m1-m9", ["m1", "m2", "m5", "m6", "m9"]),
        ("m2-m6", ["m2", "m5", "m6"]),
        ("m1, m2, m99", ["m1", "m2"]),
        ("m9-m1, m2, m5", ["m9", "m2", "m5"]),
    ],
)
def test_ids_of_the_topic_are_taken_in_their_order(
    openai_server: OpenAIServer, ids: str, quoted: list[str]
) -> None:
    """A range is what it holds of the topic: others' messages lie in between."""
    assert quotes_of(read(openai_server, answer(ids))) == {"t1": quoted}


def test_a_stray_id_is_named(openai_server: OpenAIServer) -> None:
    found = read(openai_server, answer("m1, m2, m99"))
    assert found.remarks == ("1 id is not in the topic: m99",)


@pytest.mark.slow
@each_row("ids", ["m8", "m1-m9999", "m1, m99", "m900001\nm900002"])
def test_an_answer_that_names_strangers_is_asked_for_again_and_then_fails(
    openai_server: OpenAIServer, ids: str
) -> None:
    openai_server.then(Reply(answer(ids)))
    found = read(openai_server, answer("m1"))
    assert quotes_of(found) == {"t1": ["m1"]}
    assert found.remarks[0].startswith("asked again: ids that were not shown: ")
    openai_server.otherwise(Reply(answer(ids)))
    value, call = run_step(ask_role("reader", open_reader(openai_server), ALONE, "t1"))
    assert value is None
    assert "ids that were not shown" in str(call.failure)


def test_an_echo_of_the_example_is_asked_again(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply(answer("m1", "The two locksmiths cost Ombrix 60 acorns together.")))
    found = read(openai_server, answer("m1"))
    assert found.remarks == ("asked again: the answer repeats Ombrix of the prompt's example",)


def test_each_topic_has_a_block_of_its_own(openai_server: OpenAIServer) -> None:
    both = answer("m5", "Red ones.", "t1") + answer("m4-m3, m3", "", "t2")
    found = read(openai_server, both, TOGETHER)
    assert quotes_of(found) == {"t1": ["m5"], "t2": ["m4", "m3"]}
    assert [r.summary for r in found.value] == ["Red ones.", ""]


def test_a_topic_that_is_left_out_has_nothing_to_do_with_it(openai_server: OpenAIServer) -> None:
    found = read(openai_server, answer("m3", topic="t2"), TOGETHER)
    assert [(r.topic, r.score) for r in found.value] == [("t1", 0.0), ("t2", 0.8)]


def test_a_block_without_a_name_is_about_the_topic_of_its_ids(openai_server: OpenAIServer) -> None:
    assert quotes_of(read(openai_server, answer("m3"), TOGETHER)) == {"t1": [], "t2": ["m3"]}
