"""200 changes of facts, in English and Chinese: what holds now is shown, and what held on a day.

`samples/fact_changes.jsonl` has forty matters of eight users, each with six statements of which the
later one takes the place of the one before. The extractor is always right: what is tried is what is
kept, ended, chosen and found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from examples import scaled
from people import People

SAMPLES = Path(__file__).parent / "samples" / "fact_changes.jsonl"
THREADS = ("web", "slack", "voice")
DAYS = 7
"""Days from one statement to the next."""


@dataclass
class Score:
    """How many of how many were as they have to be."""

    now: int = 0
    """What holds was in the prompt, and what it took the place of was not."""
    then: int = 0
    """What held on a day that was asked for was in the prompt, with the days on which it held."""
    asked: int = 0
    faults: str = ""


def load_chains(language: str) -> dict[str, list[dict[str, Any]]]:
    """The matters of each user."""
    users: dict[str, list[dict[str, Any]]] = {}
    for line in SAMPLES.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["language"] == language:
            users.setdefault(row["user"], []).append(row)
    return users


Statement = tuple[dict[str, Any], int, datetime]
"""A matter, the number of the statement of it, and when it is made."""


def list_statements(chains: list[dict[str, Any]], first: datetime) -> Iterator[Statement]:
    """Each matter's statements in turn."""
    time = first
    for number in range(len(chains[0]["texts"])):
        for chain in chains:
            yield chain, number, time
            time += timedelta(days=DAYS)


def name_day(day: datetime, language: str) -> str:
    if language == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    return f"{day.day} {day:%B} {day.year}"


def measure(folder: Path, language: str, chains: list[dict[str, Any]]) -> Score:
    """Tell it all, ask after each change, and then ask for a day within each span."""
    people, score = People(folder), Score()
    told = list(list_statements(chains, people.clock.now))
    for place, (chain, number, time) in enumerate(told):
        people.clock.now = time
        text = chain["texts"][number]
        people.subjects[text] = chain["about"]
        people.say(THREADS[place % 3], text)
        people.reflect(THREADS[place % 3])
        people.pass_days(1)
        if number:
            score.asked += 1
            prompt = people.say(f"now {place}", chain["now"])
            right = text in prompt and chain["texts"][number - 1] not in prompt
            score.now += right
            score.faults += "" if right else f"now: {text}\n"
    span = timedelta(days=DAYS * len(chains))
    for place, (chain, number, time) in enumerate(told):
        if number + 1 < len(chain["texts"]):
            asked = chain["then"].format(day=name_day(time + span / 2, language))
            prompt = people.say(f"then {place}", asked)
            right = f" – {time + span:%Y-%m-%d}: {chain['texts'][number]}" in prompt
            score.then += right
            score.faults += "" if right else f"then: {asked} {chain['texts'][number]}\n"
    return score


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_holds_is_shown_and_what_held_is_found(tmp_path: Path, language: str) -> None:
    (chain, *_) = load_chains(language)[f"{language}-0"]
    score = measure(tmp_path, language, [{**chain, "texts": chain["texts"][:3]}])
    assert (score.asked, score.now, score.then) == (2, 2, 2), score.faults


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_hundred_changes(tmp_path: Path, language: str) -> None:
    users = list(load_chains(language).items())
    users = users[: scaled(len(users))]
    scores = [measure(tmp_path / user, language, chains) for user, chains in users]
    faults = "".join(score.faults for score in scores)
    asked = sum(score.asked for score in scores)
    assert asked == 25 * len(users)
    assert sum(score.now for score in scores) >= 0.99 * asked, faults
    assert sum(score.then for score in scores) >= 0.95 * asked, faults
