"""Peers through their own public interfaces; those that are not installed are skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from openai_behaviours import Reply
from openai_server import OpenAIServer
from talks import talk

from topicloom.lab import HashingEmbedder, LangChainEmbeddings, open_model
from topicloom_lab.strategies import STRATEGIES, Strategy, StrategyOptions
from topicloom_lab.strategies.peers import (
    ExtractiveChatModel,
    context_of,
    tokens_of,
)

# What the peers' own code warns of is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")

EMBEDDER = HashingEmbedder(256)
TALK = talk(40)
SUMMARIES = ["langchain-summary", "langmem-summary"]


def peer(
    name: str, folder: Path, budget: int = 400, server: OpenAIServer | None = None
) -> Strategy:
    recipe = STRATEGIES[name]
    if recipe.missing:
        pytest.skip(recipe.missing)
    chat = None
    if server is not None:
        chat = open_model("openai:gpt-4o", base_url=server.base_url, api_key="test", max_retries=0)
    return recipe.make(StrategyOptions(EMBEDDER, folder, 400, "en", chat))


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_stands_for_what_is_out_of_view(name: str, tmp_path: Path) -> None:
    made = peer(name, tmp_path)
    calls = made.feed(TALK.messages)
    context = made.context("What about the first visit?", 400)
    assert calls["summary"] > 1
    assert context.tokens <= 400
    assert context.sources[-1] == TALK.messages[-1].id
    in_view = {m.id for m in context.messages}
    extracted = set(context.sources) - in_view
    assert extracted  # what the stand-in kept word for word counts as found
    assert "ummary of the conversation" in context.text


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_configured_model_writes_the_summaries(
    name: str, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.otherwise(Reply("Visits and what they cost."))
    made = peer(name, tmp_path, server=openai_server)
    calls = made.feed(TALK.messages)
    context = made.context("What about the first visit?", 400)
    assert calls["summary"] + context.calls.get("summary", 0) == len(openai_server.requests)
    assert "Visits and what they cost." in context.text


def test_mem0_finds_by_its_own_search_and_writes_where_it_may(tmp_path: Path) -> None:
    made = peer("mem0", tmp_path)
    made.feed(TALK.messages)
    assert "u11" in made.context("What did the tax of visit 11 come to?", 200).sources
    made.close()
    assert os.environ["MEM0_TELEMETRY"] == "False"
    assert (tmp_path / "history.db").exists()


def test_a_store_ranks_as_its_vectors_do(tmp_path: Path) -> None:
    asked = "What did the tax of visit 11 come to?"
    by_store = peer("langgraph-store", tmp_path)
    by_vectors = STRATEGIES["dense"].make(StrategyOptions(EMBEDDER, tmp_path, 300))
    by_store.feed(TALK.messages)
    by_vectors.feed(TALK.messages)
    assert by_store.context(asked, 300).sources == by_vectors.context(asked, 300).sources


def test_the_extractive_model_answers_with_lines_of_its_prompt() -> None:
    model = ExtractiveChatModel.of(EMBEDDER, 20)
    said = [HumanMessage("oak table\noak chair", name="Yue"), AIMessage("an oak door")]
    lines = str(model.invoke(said).content).splitlines()
    assert lines
    assert set(lines) <= {"Yue: oak table", "oak chair", "ai: an oak door"}


def test_embeddings_and_counts_are_ours() -> None:
    embeddings = LangChainEmbeddings(EMBEDDER)
    assert embeddings.embed_query("oak") == EMBEDDER.embed(["oak"])[0].tolist()
    assert tokens_of([HumanMessage("abc", name="Yue"), ("system", "abcd")]) == 3 + 2


def test_turns_and_quoted_lines_both_count_as_found() -> None:
    heard = TALK.messages[:6]
    prompt = [
        HumanMessage(f"In short:\nYue: {heard[0].text}\nassistant: Noted", id="s"),
        HumanMessage(heard[4].text, id=heard[4].id, name="Yue"),
    ]
    assert context_of(prompt, heard, {}).sources == ("u1", "u3")
