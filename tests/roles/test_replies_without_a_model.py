"""What is said without a model: what is closest in what was said, and that this is a search."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from tables import each_row

from topicloom import (
    ReplyRequest,
    Settings,
    StoredMessage,
    build_session_graph,
    default_embedder,
    open_session,
)
from topicloom.hosting import find_keywords, strip_own_replies
from topicloom.roles.responder import EmbeddedResponder
from topicloom.state.stored_message import MessageRole

FOUND = {
    "en": "No model is set. Closest to this in what was said:",
    "zh": "未设置模型。说过的话里与此最接近的：",
}
NOTHING = {
    "en": "Kept. My search found nothing close to this.",
    "zh": "已留下。我的查找没有发现与此相近的内容。",
}


def reply_to(question: str, sources: list[StoredMessage]) -> str:
    """The reply to a question, of sources in their order."""
    request = ReplyRequest("s", [], [], question, sources, "en")
    stream = EmbeddedResponder(default_embedder()).stream(request)
    return "".join(str(chunk.content) for chunk in stream)


def talk(*said: str) -> list[str]:
    """The replies to messages, one after the other."""
    messages = list[StoredMessage]()

    def add(role: MessageRole, text: str) -> None:
        time = "2026-05-01T09:00:00+00:00"
        messages.append(StoredMessage(seq=len(messages) + 1, role=role, text=text, time=time))

    for text in said:
        reply = reply_to(text, list(reversed(messages)))
        add("user", text)
        add("assistant", reply)
    return [m.text for m in messages[1::2]]


def shown_in(reply: str) -> list[str]:
    """The quotes of a reply."""
    return re.findall("“(.*)”", reply)


@each_row(
    ("message", "language"),
    [
        ("Hi!", "en"),
        ("How are you?", "en"),
        ("My mother arrives on 16 May.", "en"),
        ("What is the capital of Peru?", "en"),
        ("Write me a packing list", "en"),
        ("你好呀！", "zh"),
        ("法国的首都是哪里？", "zh"),
        ("我妈妈五月来。", "zh"),
    ],
)
def test_where_nothing_is_close_it_says_that_its_search_found_nothing(
    message: str, language: str
) -> None:
    assert talk("The boiler lost pressure again.", message)[-1] == NOTHING[language]


def test_what_is_closest_stands_with_its_day_its_speaker_and_its_topic() -> None:
    time = "2026-05-01T09:00:00+00:00"
    said = [
        StoredMessage(seq=1, role="user", text="The jar is on the sill.", time=time),
        StoredMessage(seq=2, role="user", text="罐子在窗台上。", time=time, speaker="Yue"),
    ]
    for question, language, line in (
        ("Where is the jar?", "en", "– 2026-05-01, you (Jars): “The jar is on the sill.”"),
        ("罐子在哪儿？", "zh", "– 2026-05-01，Yue：“罐子在窗台上。”"),
    ):
        request = ReplyRequest("s", [], [], question, said, "en", topics={1: "Jars"})
        stream = EmbeddedResponder(default_embedder()).stream(request)
        first, best, *_ = "".join(str(chunk.content) for chunk in stream).splitlines()
        assert (first, best) == (FOUND[language], line)


def test_the_words_of_a_question_count_beside_its_meaning() -> None:
    said = [
        "Behind the old switch he found a newspaper of 1931.",
        "That is a job for a registered electrician.",
        "An electrician may leave holes in the wall.",
        "The electrician comes on Monday at eight.",
    ]
    assert shown_in(talk(*said, "What was behind the old switch, electrician?")[-1])[0] == said[0]


@each_row(
    ("said", "question", "quote"),
    [
        ("We run Python 3.8 here.", "Which version of Python?", "We run Python 3.8 here."),
        ("I read events.log daily.", "Where are the events?", "I read events.log daily."),
        ("Prof. Lee mends knees.", "Who mends knees?", "Prof. Lee mends knees."),
        ("旧服务器用Python 3.8。", "旧服务器用什么？", "旧服务器用Python 3.8。"),
    ],
)
def test_whole_sentences_are_shown(said: str, question: str, quote: str) -> None:
    assert shown_in(talk(said, question)[-1]) == [quote]


@each_row(
    ("said", "asked", "fact"),
    [
        (
            "My son Emil is lactose intolerant, any place for breakfast?",
            "Who is lactose intolerant?",
            "Emil",
        ),
        (
            "Can you note that my PIN for the gate is 8841?",
            "What is the PIN for the gate?",
            "8841",
        ),
        ("我女儿对芒果过敏，有没有不含芒果的蛋糕？", "谁对芒果过敏？", "女儿"),
    ],
)
def test_what_was_said_in_a_question_was_said(said: str, asked: str, fact: str) -> None:
    first, second = talk("It rains.", said, asked, asked)[-2:]
    assert fact in first
    assert fact in second
    assert shown_in(first) == shown_in(second), "a question that was only asked says nothing"


def test_what_only_asks_comes_last_and_is_no_version() -> None:
    said = ["How much is my rent?", "He raises the rent from 880 to 940 euros from March."]
    for order in (said, said[::-1]):
        _, first, second, _ = talk(*order, "Delete everything about the rent")[-1].splitlines()
        assert "880" in first
        assert second.startswith("– ")
        assert said[0] in second


@each_row(
    ("message", "quoted"),
    [
        ("Delete everything about the boiler", True),
        ("Please forget what I said about the boiler.", True),
        ("forget the PIN", False),
        ("把锅炉的事都删掉", False),
    ],
)
def test_a_wish_to_forget_is_told_how(message: str, quoted: bool) -> None:
    reply = talk("The boiler lost pressure again.", message)[-1]
    assert ("/forget m1 " in reply) == quoted, "what would go"
    assert "/forget" in reply
    assert strip_own_replies(reply).strip() == ""


def test_no_topic_is_named_after_talk_about_the_talk() -> None:
    own = talk("Hi", "The jar is blue", "What is blue?", "Where is Rome?", "你好", "罐子在哪儿")
    asides = ["By the way, something else.", "换个话题，顺便说一下", "Do you remember?"]
    assert find_keywords([*own, *asides, "The blue jar"], 12) == ["blue jar"]


def test_what_was_said_on_a_day_need_not_be_like_the_question() -> None:
    """All of it answers the question for that day, and nothing of other days does."""
    texts = {"2026-03-03": "The boiler reads 2 bar.", "2026-03-04": "We said nothing on 3 March."}
    said = [
        StoredMessage(seq=n, role="user", text=text, time=f"{day}T09:00:00+00:00")
        for n, (day, text) in enumerate(texts.items(), 1)
    ]
    question, days = "What did we talk about on 3 March?", ("2026-03-03", "2026-03-03")
    request = ReplyRequest("s", [], [], question, said, "en", days=days)
    reply = "".join(str(c.content) for c in EmbeddedResponder(default_embedder()).stream(request))
    assert shown_in(reply) == ["The boiler reads 2 bar."]


def test_a_sentence_is_shown_once() -> None:
    *_, reply = talk("The jar is on the sill.", "The jar is on the sill.", "Where is the jar?")
    assert len(shown_in(reply)) == 1


@pytest.mark.slow
def test_replies_that_no_model_wrote_take_no_room_in_recall(tmp_path: Path) -> None:
    """They stand beside what is asked for, and cost less."""
    settings = Settings(folder=tmp_path, window=2_000, fsync=False)
    graph = build_session_graph(settings=settings).compile(checkpointer=InMemorySaver())
    thread: RunnableConfig = {"configurable": {"thread_id": "s"}}
    for day in range(1, 9):
        told = f"Day {day} at the lake house: the boat wanted {day + 3} buckets bailed. " * 10
        graph.invoke({"messages": [HumanMessage(told)]}, thread)
    question = HumanMessage("How many buckets did the boat want on day 2?")
    reply = graph.invoke({"messages": [question]}, thread)["messages"][-1]
    assert "wanted 5 buckets" in reply.text
    session, store = open_session(graph, thread)
    (receipt,) = store.receipts(session, 1)
    quoted = [q for topic in receipt.quoted for q in topic.quotes]
    assert quoted
    numbers = [int(short_id[1:]) for short_id in quoted]
    assert all(m.role == "user" for m in store.pick(session, numbers).values())


@each_row(
    ("asked", "quote"),
    [
        ("What may my mother not eat?", "大虾、肺片、浓汤、啤酒，没有一样我妈能吃的！"),
        ("我妈不能吃什么？", "大虾、肺片、浓汤、啤酒，没有一样我妈能吃的！"),
        ("厨房装修的预算是多少？", "The budget for the kitchen is 18,500 euros."),
    ],
)
def test_a_question_is_answered_from_the_other_language(asked: str, quote: str) -> None:
    said = [
        "The mother of all storms came over the lake, we may not sail.",
        "大虾、肺片、浓汤、啤酒，没有一样我妈能吃的！",
        "The budget for the kitchen is 18,500 euros.",
        "I ran nine kilometres along the coast road.",
        "我们周末去看了一场电影，票价很便宜。",
    ]
    assert f"“{quote}”" in talk(*said, asked)[-1]


@each_row(
    ("said", "asked", "newest"),
    [
        (
            ["The rent is 900 euros a month.", "The rent is 950 euros a month from June on."],
            "How much is the rent?",
            "950",
        ),
        (["我们的房租是每月900欧。", "房租从六月起涨到每月950欧。"], "房租多少？", "950"),
        (
            ["我们的房租是每月900欧。", "房租从六月起涨到每月950欧。"],
            "现在我们的房租是每月多少？",
            "950",
        ),
    ],
)
def test_the_newest_version_stands_first(said: list[str], asked: str, newest: str) -> None:
    reply = talk(said[0], "The cellar is dry.", said[1], asked)[-1]
    _, first, second = reply.splitlines()
    assert newest in first
    assert second.strip().startswith(("before that, 2026-05-01", "此前 2026-05-01"))


def test_a_quote_of_a_reply_names_the_assistant_in_the_language_of_the_reply() -> None:
    time = "2026-05-01T09:00:00+00:00"
    said = [
        StoredMessage(seq=1, role="user", text="里斯本住哪里？", time=time),
        StoredMessage(seq=2, role="assistant", text="Casa Azul 在 Alfama，一晚 95 欧。", time=time),
    ]
    reply = reply_to("里斯本的 Casa Azul 一晚多少钱？", list(reversed(said)))
    assert "– 2026-05-01，助手：“Casa Azul" in reply
