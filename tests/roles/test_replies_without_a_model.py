"""What is said without a model: greeted, acknowledged, quoted; never its own words."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from tables import each_row

from topicloom import (
    FileStorage,
    ReplyRequest,
    Settings,
    StoredMessage,
    TurnOptions,
    build_session_graph,
    default_embedder,
    open_session,
)
from topicloom.hosting import extract_keywords, strip_own_replies
from topicloom.prompts.loader import LANGUAGES
from topicloom.prompts.wording import get_wording
from topicloom.roles.responder import EmbeddedResponder
from topicloom.state.language import Language
from topicloom.state.stored_message import MessageRole
from topicloom_app import find_sample
from topicloom_app.recordings.replay import load_first_conversation

RECORD = TurnOptions(answer=False)
HONEST = {"en": " (No model is set: I can only quote what was said.)"} | {
    "zh": "（未设置模型：我只能引用说过的话。）"
}


def talk(*said: str) -> list[str]:
    """The replies to messages, one after the other."""
    responder, messages = EmbeddedResponder(default_embedder()), list[StoredMessage]()

    def add(role: MessageRole, text: str) -> None:
        time = "2026-05-01T09:00:00+00:00"
        messages.append(StoredMessage(seq=len(messages) + 1, role=role, text=text, time=time))

    for text in said:
        request = ReplyRequest("s", [], [], text, list(reversed(messages)), "en")
        reply = "".join(str(chunk.content) for chunk in responder.stream(request))
        add("user", text)
        add("assistant", reply)
    return [m.text for m in messages[1::2]]


@each_row(
    ("message", "reply"),
    [
        ("Hi!", "Hello!"),
        ("good morning everyone", "Hello!"),
        ("Hello, Anna.", "Hello!"),
        ("Thanks a lot!", "You are welcome."),
        ("ok, bye", "Goodbye! All of it is kept."),
        ("My mother arrives on 16 May.", "Noted."),
        ("Hi, my mother arrives on 16 May", "Noted."),
        ("asdf", "Noted."),
        ("Where is the jar?", "I have nothing about that."),
        ("tell me about the jar", "I have nothing about that."),
        ("write a poem", "I cannot write that."),
        ("Write me a packing list", "I cannot write that."),
        ("Could you draft a letter to the landlord?", "I cannot write that."),
        ("帮我写一份打包清单", "这个我写不了。"),
        ("Write down that the rent is due.", "Noted."),
        ("Draft beer was served yesterday.", "Noted."),
        ("Can you help me with the jar?", "I have nothing about that."),
        ("wat is the depozit", "I have nothing about that."),
        ("What was the first thing I told you?", "I have nothing about that."),
        ("你好呀！", "你好！"),
        ("多谢啦", "不客气。"),
        ("晚安", "再见！说过的都留着。"),
        ("我妈妈五月来。", "记下了。"),
        ("我什么都不吃", "记下了。"),
        ("罐子在哪儿", "没有找到相关的内容。"),
        ("提醒我罐子的事", "没有找到相关的内容。"),
    ],
)
def test_a_message_is_answered_by_its_kind(message: str, reply: str) -> None:
    (said,) = talk(message)
    assert said in {reply + honest for honest in HONEST.values()}
    assert strip_own_replies(said).strip() == ""


def test_the_words_of_a_question_count_beside_its_meaning() -> None:
    """Of the sample's messages on electrics, one has what was found, and others are more alike."""
    sample = load_first_conversation(find_sample(), None).messages
    said = [sample[number - 1].text for number in (33, 34, 35, 36, 112, 139, 142, 183, 184, 207)]
    reply = talk(*said, "What did the electrician find behind the old switch?")[-1]
    assert "a newspaper of 12 June 1931" in reply


def test_it_says_once_that_it_only_quotes() -> None:
    assert talk("Hi", "The jar is blue.", "Thanks") == [
        "Hello!" + HONEST["en"],
        "Noted.",
        "You are welcome.",
    ]


@each_row(
    ("said", "question", "quote"),
    [
        ("We run Python 3.8 here.", "Which version of Python?", "We run Python 3.8 here."),
        ("I read events.log daily.", "Where are the events?", "I read events.log daily."),
        ("Dr. Lee mends knees. He is kind.", "Who mends knees?", "Dr. Lee mends knees."),
        ("旧服务器用Python 3.8。日志在events.log里。", "日志在哪？", "日志在events.log里。"),
        ("我叫小黑。我住山上。", "我住哪儿？", "我住山上。"),
    ],
)
def test_a_question_is_answered_by_whole_sentences(said: str, question: str, quote: str) -> None:
    reply = talk(said, question)[-1]
    assert reply.splitlines()[1].partition(": ")[2] == f"“{quote}”"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("My left knee holds.", "You forgot what I told you about my knee!"),
        ("我妈有痛风。", "我跟你说过我妈的痛风！"),
    ],
)
def test_a_complaint_is_answered_by_what_was_said(said: str, complaint: str) -> None:
    assert f"“{said}”" in talk(said, complaint)[1]


def test_neither_questions_nor_own_replies_are_quoted() -> None:
    replies = talk("The jar is blue.", "What is blue?", "What is blue?", "What nothing do I quote?")
    assert (
        replies[1] == replies[2] == "Here is what was said:\n– 2026-05-01, you: “The jar is blue.”"
    )
    assert replies[3] == "I have nothing about that."


def test_no_topic_is_named_after_talk_about_the_talk() -> None:
    own = talk("Hi", "The jar is blue", "What is blue?", "Where is Rome?", "你好", "罐子在哪儿")
    asides = ["By the way, something else.", "换个话题，顺便说一下", "Do you remember?"]
    assert extract_keywords([*own, *asides, "The blue jar"], 12) == ["blue jar"]


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
    assert reply == "Here is what was said:\n– 2026-03-03, you: “The boiler reads 2 bar.”"


def quote(question: str, *said: str, ranked: int = 0) -> list[str]:
    """The quotes in the reply to a question, of sources in their order."""
    sources = [
        StoredMessage(seq=n, role="user", text=text, time="2026-05-01T09:00:00+00:00")
        for n, text in enumerate(said, 1)
    ]
    request = ReplyRequest("s", [], [], question, sources, "en", ranked=ranked)
    reply = "".join(str(c.content) for c in EmbeddedResponder(default_embedder()).stream(request))
    return [line.partition("“")[2].rstrip("”") for line in reply.splitlines()[1:]]


def test_what_recall_ranks_first_is_quoted_first() -> None:
    """Of sentences that are alike the index knows the surroundings, the responder does not."""
    jars = [f"The {kind} jar is on shelf {n}." for n, kind in enumerate(("red", "blue", "tall"))]
    others = [f"On day {n} it rained, and we read in the kitchen." for n in range(40)]
    for first in jars:
        said = [first, *others, *(jar for jar in jars if jar != first)]
        assert quote("On which shelf is the jar?", *said, ranked=len(said))[0] == first


def test_a_sentence_that_tells_more_goes_before_a_few_words() -> None:
    sample = load_first_conversation(find_sample(), None).messages
    said = [m.text for m in sample if "Brandt" in m.text or "electrician" in m.text]
    first, *_ = quote("What did the electrician find behind the old switch in the kitchen?", *said)
    assert "behind the old switch he found a newspaper of 12 June 1931" in first


def test_a_sentence_is_quoted_once() -> None:
    *_, reply = talk("The jar is on the sill. " * 4, "The jar is on the sill.", "Where is the jar?")
    assert reply.count("The jar is on the sill.") == 1


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
    session, store = open_session(graph, thread, FileStorage(tmp_path))
    (receipt,) = store.receipts(session, 1)
    quoted = [q for topic in receipt.quoted for q in topic.quotes]
    assert quoted
    numbers = [int(short_id[1:]) for short_id in quoted]
    assert all(m.role == "user" for m in store.pick(session, numbers).values())


@each_row(
    ("asked", "language"),
    [
        ("What can you do?", "en"),
        ("so, who are you?", "en"),
        ("help", "en"),
        ("How can you help me?", "en"),
        ("你能做什么？", "zh"),
        ("你好，你会干什么呀", "zh"),
        ("你能帮我什么忙？", "zh"),
    ],
)
def test_it_says_what_it_can_do(asked: str, language: Language) -> None:
    assert talk("The oak is old.", asked)[-1] == get_wording(language).abilities


def test_what_it_says_of_itself_is_no_part_of_the_talk() -> None:
    for language in LANGUAGES:
        words = get_wording(language)
        for said in (words.abilities, words.no_writing + words.quoting_only):
            assert strip_own_replies(said).strip() == ""


@pytest.mark.parametrize(
    "asked",
    [
        "What was the first thing I told you?",
        "what's the very first message I ever sent you",
        "What did I tell you first?",
        "我最早跟你说的是什么？",
        "我一开始和你说了什么",
        "我跟你说的第一句话是什么？",
        "Do you remember what I told you first?",
        "一开始我们聊了什么",
    ],
)
def test_the_first_thing_is_known(tmp_path: Path, asked: str) -> None:
    settings = Settings(folder=tmp_path, window=2_000, fsync=False)
    graph = build_session_graph(settings=settings).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "s"}}
    said = ["Our boiler loses pressure.", *(f"Thing {n} is a stone. " * 12 for n in range(24))]
    graph.invoke({"messages": [HumanMessage(text) for text in said]}, config, context=RECORD)
    state = graph.invoke({"messages": [HumanMessage(asked)]}, config)
    reply = state["messages"][-1].text
    assert reply.splitlines()[1].endswith("“Our boiler loses pressure.”")
    assert len(reply.splitlines()) == 2


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("What was the first thing I told you about the cellar?", "The cellar is damp."),
        ("我第一次跟你说感冒是哪天？", "我感冒了。"),
    ],
)
def test_the_first_thing_about_something_is_looked_for(asked: str, found: str) -> None:
    reply = talk("Our boiler loses pressure.", "The cellar is damp.", "我感冒了。", asked)[-1]
    assert f"“{found}”" in reply
    assert "boiler" not in reply


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
    first, second = reply.splitlines()[1:3]
    assert newest in first
    assert newest not in second


def test_a_quote_of_a_reply_names_the_assistant_in_the_language_of_the_reply() -> None:
    time = "2026-05-01T09:00:00+00:00"
    said = [
        StoredMessage(seq=1, role="user", text="里斯本住哪里？", time=time),
        StoredMessage(seq=2, role="assistant", text="Casa Azul 在 Alfama，一晚 95 欧。", time=time),
    ]
    asked = "里斯本的 Casa Azul 一晚多少钱？"
    request = ReplyRequest("s", [], [], asked, list(reversed(said)), "en")
    stream = EmbeddedResponder(default_embedder()).stream(request)
    assert "– 2026-05-01, 助手: “Casa Azul" in "".join(str(chunk.content) for chunk in stream)
