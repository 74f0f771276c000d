"""With a model, what its readers name is quoted: over HTTP, with a server that reads as told."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from openai_behaviours import Reply, Request
from openai_server import OpenAIServer
from sessions import last_receipt, open_after, past, prompt_of, tell, thread

from topicloom import READER, Receipt, Roles
from topicloom.context.prefix import PrefixMeter
from topicloom.prompts.wording import get_wording
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.roles.reader import ChatReader
from topicloom.testing import NameRouter, ScriptedResponder, fake_roles, make_topic_search

CONFIG = thread()
TAGS = ("茶", "雨", "山", "海", "灯", "桥")
QUESTION = "雨：第2次说到雨的事情"
Read = Callable[[str, Sequence[str]], str]
"""The answer on a topic, by its name and the ids of its messages."""
WORDS = get_wording("zh")


def shown(request: Request) -> dict[str, list[str]]:
    """Ids of the messages of each topic in a reader's prompt, by the topic's id."""
    text = "\n".join(str(m["content"]) for m in request["messages"][1:])
    head = text.partition(WORDS.these_topics)[0]
    _, *parts = re.split(r"^=== 话题 (t\d+).*===$", head, flags=re.M)
    return {
        topic: re.findall(r"^\[(m\d+)\]", part, re.M)
        for topic, part in zip(parts[::2], parts[1::2], strict=True)
    }


def named(request: Request) -> dict[str, str]:
    """Names of the topics in a reader's prompt, by id."""
    text = "\n".join(str(m["content"]) for m in request["messages"][1:])
    listed = text.partition(WORDS.these_topics)[2].partition(WORDS.now)[0]
    return dict(re.findall(r"^(t\d+): (.*)$", listed, re.M))


def answer(score: float, ids: Sequence[str] = ()) -> str:
    return (
        f"<referenced_messages>{', '.join(ids)}</referenced_messages>"
        f"<relevance_score>{score}</relevance_score><summary>合计 240 元。</summary>"
    )


def refuse(name: str, ids: Sequence[str]) -> str:
    return answer(0.05)


def play(server: OpenAIServer, read: Read, **others: Any) -> Roles:
    """Roles whose reader is a model on this server."""

    def reply(request: Request) -> Reply:
        names = named(request)
        blocks = (
            f'<topic_result topic="{topic}">{read(names[topic], ids)}</topic_result>'
            for topic, ids in shown(request).items()
        )
        return Reply("\n".join(blocks))

    server.otherwise(reply)
    model = open_model("openai:cheap", base_url=server.base_url, api_key="k")
    reader = ChatReader(Chat.of(model, PrefixMeter(), window=64_000))
    return fake_roles(**others).replace(READER, reader)


def ask(folder: Path, roles: Roles, rounds: int = 8, **settings: Any) -> Receipt:
    """The receipt of a question on one of six topics."""
    options: dict[str, Any] = {"window": 32_000, "recall_tokens": 2_000, **settings}
    graph = open_after(past(*TAGS, rounds=rounds), folder, roles, **options)
    tell(graph, CONFIG, QUESTION, keep=0)
    return last_receipt(folder, graph, CONFIG)


def quotes(receipt: Receipt) -> list[str]:
    return [i for note in receipt.quoted for i in note.quotes]


@pytest.mark.slow
def test_where_all_readers_refuse_three_originals_are_quoted_at_most(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    receipt = ask(tmp_path, play(openai_server, refuse))
    assert receipt.calls
    assert set(receipt.scores.values()) == {0.05}
    assert len(quotes(receipt)) <= 3


@pytest.mark.slow
def test_what_one_reader_finds_is_nearly_all_that_is_quoted(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    right: list[str] = []

    def read(name: str, ids: Sequence[str]) -> str:
        if name != "桥":
            return answer(0.05)
        right.extend(ids[::2])
        return answer(0.95, ids[::2])

    receipt = ask(tmp_path, play(openai_server, read), rounds=14)
    assert set(right) <= set(quotes(receipt))
    assert len(set(right)) >= 0.8 * len(quotes(receipt))
    (best, *_) = receipt.quoted
    assert best.summary == "合计 240 元。"


@pytest.mark.slow
def test_a_topic_that_is_named_whole_is_quoted_whole(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    whole: list[str] = []

    def read(name: str, ids: Sequence[str]) -> str:
        if name != "桥":
            return answer(0.05)
        whole.extend(ids)
        return answer(1.0, [f"{ids[0]}-{ids[-1]}"])

    receipt = ask(tmp_path, play(openai_server, read))
    assert receipt.scores[receipt.quoted[0].topic] == 1.0
    assert set(whole) <= set(quotes(receipt))


@pytest.mark.slow
def test_answers_that_name_what_is_not_there_cost_nothing(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    alone = ask(tmp_path / "alone", fake_roles().replace(READER, fake_roles().stand_in(READER)))
    for garbage in ("m1-m9999", "m900001, m900002"):
        for weight in ("decide", "advise"):
            folder = tmp_path / f"{garbage} {weight}"

            def name_garbage(name: str, ids: Sequence[str], named: str = garbage) -> str:
                return answer(0.9, [named])

            roles = play(openai_server, name_garbage)
            receipt = ask(folder, roles, readers=weight)
            assert quotes(receipt) == quotes(alone)


@pytest.mark.slow
def test_small_topics_are_read_together_and_whole(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    receipt = ask(tmp_path, play(openai_server, refuse), rounds=2)
    (request,) = openai_server.requests
    assert len(shown(request)) == len(TAGS)
    assert sum(map(len, shown(request).values())) == 2 * 2 * len(TAGS)
    assert receipt.scores.keys() == shown(request).keys()


@pytest.mark.slow
def test_a_reader_is_shown_each_message_once_and_the_proposals_last(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    ask(tmp_path, play(openai_server, refuse))
    for request in openai_server.requests:
        *said, last = (str(m["content"]) for m in request["messages"][1:])
        ids = re.findall(r"^\[(m\d+)\]", "\n".join(said), re.M)
        assert len(ids) == len(set(ids))
        proposed = re.findall(r"m\d+", last.partition(WORDS.proposed)[2])
        assert set(proposed) <= {i for own in shown(request).values() for i in own}


@pytest.mark.slow
def test_a_search_for_the_same_words_reads_nothing_again(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    responder = ScriptedResponder(make_topic_search(QUESTION), "没有了。")
    router = NameRouter({"雨": 0.9})
    roles = play(openai_server, refuse, responder=responder, router=router)
    receipt = ask(tmp_path, roles)
    read = [topic for request in openai_server.requests for topic in shown(request)]
    assert len(read) == len(set(read))
    assert len(receipt.searches) == 1
    assert WORDS.searched.partition("{")[0] in prompt_of(responder.requests[-1])
