"""Reflectors: as a chat model, against a server that does what servers do; and embedded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from openai_behaviours import Empty, Reply, Status, Usage
from openai_server import OpenAIServer
from tables import each_row

from topicloom import Answer, Claim, Fact, ReflectRequest, StoredMessage, UnusableAnswerError
from topicloom.context.prefix import PrefixMeter
from topicloom.context.windows import PromptWindow
from topicloom.hosting import get_text
from topicloom.lab import choose_counter
from topicloom.prompts.wording import get_wording
from topicloom.reflection.reflector import ChatReflector, EmbeddedReflector, build_reflector_prompt
from topicloom.reflection.statements import find_frame, find_statements
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.state.language import Language
from topicloom.state.stored_message import MessageRole

TEA = Fact("Likes tea", ("m1",), "2026-03-01T09:00:00+00:00")
LEEDS = Fact("Lives in Leeds", ("m2",), "2026-03-01T09:00:00+00:00")


def said(
    *texts: str, role: MessageRole = "user", speaker: str | None = None
) -> list[StoredMessage]:
    time = "2026-03-02T09:00:00+00:00"
    return [
        StoredMessage(seq=n, role=role, text=t, time=time, speaker=speaker)
        for n, t in enumerate(texts, 41)
    ]


REQUEST = ReflectRequest("s", said("I moved to Oslo.", "Fine."), (TEA, LEEDS), "en")
GOOD = '<reflection><fact msg_id="m41" supersedes="f2">The user lives in Oslo.</fact></reflection>'
FOUND = (Claim("The user lives in Oslo.", ("m41",), (LEEDS.key,)),)


def reflector(server: OpenAIServer, **settings: Any) -> ChatReflector:
    options: dict[str, Any] = {"base_url": server.base_url, "timeout": 5, "max_retries": 0}
    model = open_model("openai:gpt-4o", api_key="test", **options | settings)
    return ChatReflector(Chat.of(model, PrefixMeter()))


def called(role: ChatReflector, how: str) -> Answer[tuple[Claim, ...]]:
    return role.call(REQUEST) if how == "sync" else asyncio.run(role.acall(REQUEST))


ways = pytest.mark.parametrize("how", ["sync", "async"])


@ways
def test_a_model_finds_facts_and_the_cost_is_kept(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Reply(GOOD, Usage(70, 30)))
    answer = called(reflector(openai_server), how)
    assert (answer.value, answer.remarks) == (FOUND, ())
    assert answer.usage is not None
    assert answer.usage.input_tokens == 70
    (request,) = openai_server.requests
    system, known, conversation = request["messages"]
    assert system["role"] == "system"
    assert (
        known["content"] == f"{get_wording('en').known_facts}\n[f1] Likes tea\n[f2] Lives in Leeds"
    )
    assert conversation["content"] == (
        "-- 2026-03-02 (Monday) --\n[m41] user: I moved to Oslo.\n[m42] user: Fine."
    )


@ways
def test_an_unusable_answer_is_asked_for_once_more(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Reply("I'd rather not."), Reply(GOOD))
    answer = called(reflector(openai_server), how)
    assert answer.value == FOUND
    assert [r.partition(":")[0] for r in answer.remarks] == ["asked again"]
    complaint = openai_server.requests[1]["messages"][-1]["content"]
    assert complaint == get_wording("en").complaint.format(form="<reflection>")


@ways
def test_failures_are_raised(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Empty(), Reply("no"), Status(500, message="down"))
    with pytest.raises(UnusableAnswerError):
        called(reflector(openai_server), how)
    with pytest.raises(Exception, match="down"):
        called(reflector(openai_server), how)


def test_nothing_to_note_is_an_answer(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("<reflection></reflection>"))
    assert reflector(openai_server).call(REQUEST).value == ()


def test_numbers_of_no_fact_are_told(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply(GOOD.replace("f2", "f2, f9, f0")))
    answer = reflector(openai_server).call(REQUEST)
    assert answer.value == FOUND
    assert answer.remarks == ("2 facts are not known: f9, f0",)


def test_a_long_fact_is_cut(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply(GOOD.replace("Oslo", "Oslo " * 200)))
    (claim,) = reflector(openai_server).call(REQUEST).value
    assert len(claim.text) <= 300


def prompt_for(
    stored: list[StoredMessage], facts: list[Fact], language: Language, window: PromptWindow
) -> list[BaseMessage]:
    return build_reflector_prompt(ReflectRequest("s", stored, facts, language), window)


@pytest.mark.parametrize("limit", [3_000, 8_000])
def test_every_message_is_shown_and_the_prompt_fits(limit: int) -> None:
    counter = choose_counter("gpt-4o")
    stored = said(*("oak and tea " * n for n in range(1, 41)))
    facts = [replace(TEA, text=f"Fact number {n} about tea") for n in range(400)]
    prompt = prompt_for(stored, facts, "en", PromptWindow(counter, limit))
    assert sum(map(counter.message, prompt)) <= limit * 1.1
    assert all(f"[{r.id}]" in get_text(prompt[2]) for r in stored)
    assert "[f400] Fact number 399" in get_text(prompt[1])
    assert "[f1] " not in get_text(prompt[1])


def test_a_named_speaker_is_still_the_user_or_the_assistant() -> None:
    """Whoever gives records with a `sender_id` has names such as `10086`."""
    stored = [*said("I moved to Bern.", speaker="10086")]
    stored += said("I grew up in Oslo.", role="assistant", speaker="20077")
    shown = get_text(prompt_for(stored, [], "en", PromptWindow(choose_counter(""), 3_000))[2])
    assert "user 10086: I moved to Bern." in shown
    assert "assistant 20077: I grew up in Oslo." in shown


def test_an_empty_prompt_says_so() -> None:
    prompt = prompt_for([], [], "zh", PromptWindow(choose_counter(""), 3_000))
    assert [get_text(m) for m in prompt[1:]] == [
        f"{get_wording('zh').known_facts}\n（无）",
        "（无）",
    ]


def reflected(*stored: StoredMessage, facts: tuple[Fact, ...] = ()) -> list[Claim]:
    return list(EmbeddedReflector().call(ReflectRequest("s", stored, facts, "en")).value)


@each_row(
    "text",
    [
        "My name is Ann.",
        "I’m 34 years old.",
        "I live in Leeds now.",
        "Also my sister Mei is a nurse.",
        "I am allergic to peanuts!",
        "I'm a software engineer",
        "I work at St. James hospital.",
        "I love hiking in the Alps.",
        "I don't eat meat.",
        "I have two kids.",
        "My favourite colour is green.",
        "我叫李雷。",
        "我住在杭州",
        "我喜欢喝龙井茶。",
        "我对花生过敏！",
        "我妈有高血压。",
        "我妈妈是老师",
        "我是一名护士。",
        "我不吃香菜",
        "我女儿今年五岁",
    ],
)
def test_plain_statements_are_quoted_word_for_word(text: str) -> None:
    assert reflected(*said(f"Hello there! {text}")) == [Claim(text, ("m41",))]


@each_row(
    "text",
    [
        "Do I live in Leeds?",
        "If I live in Leeds, who pays",
        "Suppose I am allergic to nuts.",
        "I would like tea",
        "I like that idea.",
        "I love it!",
        "I'm tired.",
        "I'm a bit confused",
        "I'm looking for a nurse",
        "My code is broken.",
        "My question is about tea",
        "I have a question",
        'He said "I live in Rome" and left.',
        "> I am allergic to nuts",
        "```\nI live in Leeds.\n```",
        "You said “I live in Rome”.",
        "我住在杭州吗",
        "如果我住在杭州",
        "我喜欢这个",
        "我叫你别来",
        "我是说明天",
        "他说“我叫李雷”",
        "我住院了",
        "小说里我叫李雷",
        "[m3] user: I live in Leeds.",
        "I live in " + "very " * 60 + "far away.",
    ],
)
def test_questions_suppositions_quotations_and_small_talk_are_not(text: str) -> None:
    assert reflected(*said(text)) == []


NURSE = "I'm a nurse. I live in Leeds."


@each_row(
    "text",
    [
        f"Translate this letter:\n\nDear Sir,\n{NURSE}\nYours",
        f"From: ann@example.org\nSubject: hello\n\n{NURSE}",
        f"My aunt writes:\n{NURSE}",
        f"He writes: I'm a baker. {NURSE}",
        f"Dear Mr Fox,\n\n{NURSE}\n\nBest,\nAnn",
        f"Reply to this mail please\n\nHi Ann,\n{NURSE}",
        f"Can you translate this?\n\n{NURSE}",
        f"{NURSE}\n\nWhat do you think of this bio?",
        f"---------- Forwarded message ---------\n{NURSE}",
        f"Name: Otto\nAge: 34\n\n{NURSE}",
        f"This is her profile on the site\n\n{NURSE}",
        f"[10:04] Otto: I'm a baker. {NURSE}\n[10:05] Eva: {NURSE}",
        f"Pretend you are my patient. {NURSE}",
        f"Meine Tante schreibt:\n{NURSE}",
        f"Voici sa lettre :\n\n{NURSE}",
        f"Liebe Eva,\n{NURSE}",
        f"Otto dice: I'm a baker. {NURSE}",
        f"Он сказал: «{NURSE}»",
        "Profile: allergic to nuts",
        "Er schreibt: ich bin Arzt, I live in Leeds.",
        f"Bio:{NURSE}",
        f"Bio :{NURSE}",
        f"**Profile:** {NURSE}",
        f"**Profile:**\n\n{NURSE}",
        f"Profile (draft)： {NURSE}",
        "我姨妈写道：\n我住在罗马。我对花生过敏。",
        "亲爱的妈妈，\n我住在罗马。我对花生过敏。",
        "翻译这封信\n\n我住在罗马。",
        "他说：我住在罗马。我对花生过敏。",
        "发件人：王\n主题：好\n\n我住在罗马。",
        "把下面这段话翻译成英文。\n我住在罗马。我对花生过敏。",
        "请看看这封邮件\n\n我住在罗马。",
    ],
)
def test_what_a_message_hands_on_is_not_said_by_the_user(text: str) -> None:
    assert reflected(*said(text)) == []


@each_row(
    ("text", "found"),
    [
        (f"Hello!\n\n{NURSE}", 2),
        (f"What should I cook tonight?\n\n{NURSE}", 2),
        (f"A bit about me:\n{NURSE}", 2),
        (f"Hi there\n\n{NURSE}", 2),
        (f"I get up at 6:30. {NURSE}", 2),
        (f"{NURSE} Translate this: I'm a baker.", 2),
        (f"Morning :) Nice. {NURSE} See https://a.org/x:y.", 2),
        ("关于我：\n我住在罗马。我对花生过敏。", 2),
    ],
)
def test_what_is_said_beside_it_is(text: str, found: int) -> None:
    assert len(reflected(*said(text))) == found


def test_the_words_of_others_in_an_import_are_not_read() -> None:
    other = [m.model_copy(update={"of_another": True}) for m in said(NURSE, speaker="Otto")]
    assert reflected(*other) == []


@each_row(
    ("text", "found"),
    [
        ("I'm Ann, a nurse, and I'm trying to cook, can you help me?", ["I'm Ann, a nurse"]),
        ("I prefer short answers, can you do that?", ["I prefer short answers"]),
        ("我对花生过敏，能吃什么呢？", ["我对花生过敏"]),
        ("I have two kids but what if I have a dog?", ["I have two kids"]),
        ("I live in Leeds, right?", []),
        ("我叫李雷，对吗？", []),
        ("Let's say I'm tired, and I live in Leeds.", []),
        ("Please call me tomorrow.", []),
        ("Please call me Ann.", ["Please call me Ann."]),
    ],
)
def test_clauses_stand_by_themselves(text: str, found: list[str]) -> None:
    assert [claim.text for claim in reflected(*said(text))] == found


def test_what_the_assistant_says_is_not_read() -> None:
    assert reflected(*said("I live in Leeds.", role="assistant")) == []


def test_what_is_said_twice_is_one_claim() -> None:
    assert reflected(*said("I live in Leeds.", "Well.", "I live in Leeds.")) == [
        Claim("I live in Leeds.", ("m41", "m43"), (Fact("I live in Leeds.", (), "").key,))
    ]


def test_a_new_home_takes_the_place_of_the_old_one() -> None:
    known = Fact("I live in Leeds.", ("m1",), "2026-03-01T09:00:00+00:00")
    tea = Fact("I like tea.", ("m1",), known.at)
    (claim,) = reflected(*said("I live in Oslo now."), facts=(tea, known))
    assert claim.supersedes == (known.key,)
    (claim,) = reflected(*said("I like coffee."), facts=(tea, known))
    assert claim.supersedes == ()


def test_several_people_are_told_apart() -> None:
    known = Fact("Tom: I live in Leeds.", ("m1",), "2026-03-01T09:00:00+00:00")
    (claim,) = reflected(*said("I live in Oslo.", speaker="Yue"), facts=(known,))
    assert (claim.text, claim.supersedes) == ("Yue: I live in Oslo.", ())
    (claim,) = reflected(*said("I live in Oslo.", speaker="Tom"), facts=(known,))
    assert claim.supersedes == (known.key,)


def test_the_frame_of_a_statement_is_found() -> None:
    assert [find_frame(t) for t in ("My name is Ann.", "我今年34岁", "I like tea")] == [
        "name",
        "age",
        "",
    ]


@pytest.mark.slow
def test_a_very_long_message_is_read_in_bounded_time() -> None:
    assert find_statements("I am " + "a " * 200_000) == []
    assert find_statements("“" * 50_000 + "我" * 50_000 + "I like " * 30_000) == []
