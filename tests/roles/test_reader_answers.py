"""A reader is believed where its ids are of the topic and its summary says what was said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from openai_behaviours import Reply
from openai_server import OpenAIServer
from tables import each_row

from topicloom import Answer, Reading, ReadRequest, StoredMessage, Topic
from topicloom.context.prefix import PrefixMeter
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.roles.reader import ChatReader, find_unsaid

SAID = "Aunt Mei asked for 1,200 bricks today, the red ones that Karl's brother sells."
MESSAGE = StoredMessage(seq=1, role="user", text=SAID, time="2026-05-07T10:00:00+00:00")
REQUEST = ReadRequest("s", Topic(id="t1", name="Wall"), [MESSAGE], [], "How many bricks?", "en")


@each_row(
    "summary",
    [
        "They agreed on 1200 red bricks.",
        "On 7 May 2026 the aunt asked Karl for bricks.",
        "After that, Mei's plan was to buy from Karl.",
        "Settled on 2026-05-07.",
        "They settled it on that Thursday.",
        "那天说好了 1200 块红砖。",
        "",
    ],
)
def test_what_was_said_is_said(summary: str) -> None:
    undated = MESSAGE.model_copy(update={"time": "10:32 am"})
    assert find_unsaid(summary, [MESSAGE, undated]) == []


@each_row(
    ("summary", "unsaid"),
    [
        ("They met on October 22, 2023.", ["October", "22", "2023"]),
        ("Mei wanted 1,300 bricks.", ["1,300"]),
        ("She would ask Peter about it.", ["Peter"]),
        ("10月22日定下来了。", ["10", "22"]),
    ],
)
def test_what_nobody_said_is_found(summary: str, unsaid: list[str]) -> None:
    assert find_unsaid(summary, [MESSAGE]) == unsaid


def read(
    server: OpenAIServer, ids: str, summary: str, request: ReadRequest = REQUEST
) -> Answer[Reading]:
    server.then(
        Reply(
            "<topic_result><relevance_score>0.8</relevance_score>"
            f"<referenced_messages>{ids}</referenced_messages>"
            f"<summary>{summary}</summary></topic_result>"
        )
    )
    model = open_model("openai:cheap", base_url=server.base_url, api_key="k")
    return ChatReader(Chat.of(model, PrefixMeter(), window=8_000)).call(request)


def test_a_summary_that_names_what_nobody_said_is_refused(openai_server: OpenAIServer) -> None:
    answer = read(openai_server, "m1", "They met on October 22, 2023.")
    assert answer.value.summary == ""
    assert [q.id for q in answer.value.quotes] == ["m1"]
    (remark,) = answer.remarks
    assert "October" in remark


def test_so_is_one_without_a_quote(openai_server: OpenAIServer) -> None:
    answer = read(openai_server, "", "They agreed on red bricks.")
    assert answer.value.summary == ""
    assert answer.remarks == ("a summary without a quote",)


def test_one_that_holds_is_kept(openai_server: OpenAIServer) -> None:
    answer = read(openai_server, "m1", "They agreed on 1200 red bricks.")
    assert answer.value.summary == "They agreed on 1200 red bricks."
    assert answer.remarks == ()


def test_a_reader_that_names_strangers_alone_is_asked_again(openai_server: OpenAIServer) -> None:
    openai_server.then(
        Reply("<relevance_score>0.9</relevance_score><referenced_messages>m8</referenced_messages>")
    )
    answer = read(openai_server, "m1", "")
    assert [q.id for q in answer.value.quotes] == ["m1"]
    assert answer.remarks == ("asked again: none of the ids is in the topic: m8",)


@pytest.mark.parametrize(
    ("messages", "ids", "selective"),
    [
        (8, "m1-m8", False),
        (99, "m1-m9999", False),
        (8, "m1-m5, m8", False),
        (8, "m1-m4", True),
        (2, "m1, m2", True),
        (1, "m1", True),
    ],
)
def test_a_reader_that_names_nearly_everything_has_not_chosen(
    openai_server: OpenAIServer, messages: int, ids: str, selective: bool
) -> None:
    said = [MESSAGE.model_copy(update={"seq": n}) for n in range(1, messages + 1)]
    answer = read(openai_server, ids, "", replace(REQUEST, messages=said))
    assert answer.value.selective == selective
    assert ("names nearly everything" in answer.remarks) != selective


def test_the_score_of_one_that_has_not_chosen_is_no_more_than_the_index_gives(
    openai_server: OpenAIServer,
) -> None:
    said = [MESSAGE.model_copy(update={"seq": n}) for n in range(1, 9)]
    answer = read(openai_server, "m1-m8", "", replace(REQUEST, messages=said, prior=0.1))
    assert answer.value.score == 0.1


def test_an_echo_of_the_example_is_asked_again(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("<relevance_score>0.9</relevance_score><summary>‹summary›</summary>"))
    answer = read(openai_server, "m1", "")
    assert answer.remarks == ("asked again: the answer repeats ‹summary› of the prompt's example",)
