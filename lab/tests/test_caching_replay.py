"""Recording the prompts of a replay: all that is sent, in the windows that it is sent to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.tools import tool

from topicloom import Settings
from topicloom.lab import LayoutName, get_wording
from topicloom_app import Conversation, RecordedMessage
from topicloom_lab.caching.measure import (
    BreakpointRule,
    CacheRule,
    DeepSeekRule,
    SentPrompt,
    Served,
    measure,
    prefixes,
)
from topicloom_lab.caching.replay import MAIN, record_prompts
from topicloom_lab.generators import generate


def chat(rounds: int) -> Conversation:
    """A conversation whose last message nobody answers."""
    (made,) = generate(f"oolong:items={10 * rounds},message=10,seed=1")
    last = RecordedMessage(id="u0", role="user", text="That is all.")
    return made.model_copy(update={"messages": (*made.messages, last)})


def recorded(
    folder: Path, rounds: int, *, layout: LayoutName = "ledger", turns: int = 100
) -> list[list[SentPrompt]]:
    settings = Settings(window=2_000, recall_tokens=300, layout=layout)
    return list(record_prompts(chat(rounds), folder, settings, turns=turns, instructions="Count."))


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> list[list[SentPrompt]]:
    return recorded(tmp_path_factory.mktemp("replay"), 16)


@pytest.mark.slow
def test_every_answered_turn_has_one_main_prompt(turns: list[list[SentPrompt]]) -> None:
    assert len(turns) == 16
    for number, batch in enumerate(turns):
        assert [p.window for p in batch].count(MAIN) == 1
        assert {p.at for p in batch} == {60.0 * number}


def test_what_was_said_stands_in_the_prompts_word_for_word(turns: list[list[SentPrompt]]) -> None:
    said = chat(16).messages
    for number, batch in enumerate(turns):
        (main,) = [p for p in batch if p.window == MAIN]
        assert said[2 * number].text in main.parts[-1].text
        assert main.reply is not None
        assert said[2 * number + 1].text in main.reply.text
        assert main.tokens < 2_000


def test_readers_are_asked_about_their_topics_once_there_are_some(
    turns: list[list[SentPrompt]],
) -> None:
    readers = [p for batch in turns for p in batch if p.window != MAIN]
    assert readers
    assert {p.window.partition(":")[0] for p in readers} == {"reader"}
    assert not any(p.window != MAIN for p in turns[0])
    for prompt in readers:
        first, topic, last = prompt.breakpoints
        # What the index proposes stands behind the last of them: it changes each time.
        assert (first, len(prompt.parts) - last) in {(1, 0), (1, 1)}
        assert get_wording("en").now in prompt.parts[topic].text.split("\n")


def test_tools_come_first_once_there_is_one_to_call(turns: list[list[SentPrompt]]) -> None:
    first, last = turns[0][0], turns[-1][-1]
    assert first.window == last.window == MAIN
    assert not first.parts[0].text.startswith("[")
    assert "activate_topic" in last.parts[0].text
    assert last.breakpoints == (2, len(last.parts))


def test_as_many_turns_as_are_asked_for(tmp_path: Path) -> None:
    assert len(recorded(tmp_path, 16, turns=3)) == 3


@pytest.mark.slow
def test_the_ledger_is_served_better_than_the_layout_of_the_spec(
    turns: list[list[SentPrompt]], tmp_path: Path
) -> None:
    spec = recorded(tmp_path, 16, layout="spec")

    def serve(rule: Callable[[], CacheRule]) -> tuple[Served, ...]:
        ways = ([p for batch in way for p in batch] for way in (turns, spec))
        return tuple(measure(prompts, rule(), lambda p: p.window)[MAIN] for prompts in ways)

    ledger, other = serve(DeepSeekRule)
    assert ledger.share > other.share
    # In so small a window, breakpoints serve the instructions alone, whatever stands behind them.
    ledger, other = serve(BreakpointRule)
    assert ledger.read >= other.read > 0


def test_the_applications_tools_are_recorded(tmp_path: Path) -> None:
    @tool
    def weigh(what: str) -> str:
        """Weigh something."""
        return what

    settings = Settings(window=2_000)
    (batch,) = record_prompts(chat(2), tmp_path, settings, turns=1, tools=[weigh])
    assert "weigh" in batch[0].parts[0].text
    assert len(prefixes(batch[0].parts)) == len(batch[0].parts)
