"""A model on trial as a reader: what it makes of twenty short cases whose answers are known."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from topicloom import (
    READER,
    Reader,
    ReadRequest,
    Settings,
    StoredMessage,
    Topic,
    TopicWindow,
    UnusableAnswerError,
    open_roles,
)
from topicloom.hosting import FilledText

Use = Literal["decide", "advise", "none"]

_DECIDES = 0.8
"""Share of cases to read right to decide: readers that are wrong one time in five keep .9 of the
evidence of LoCoMo (`docs/research/benchmarks.md`)."""
_ADVISES = 0.5
"""Share of cases to read right to advise: under it, what readers cost is mostly spent on errors."""


@dataclass(frozen=True, slots=True)
class Case:
    """A topic, a question, and the messages that its answer rests on."""

    request: ReadRequest
    right: frozenset[str]
    """Short ids of these messages; empty if the topic has nothing to do with the question."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What a reader named in one case."""

    right: frozenset[str]
    named: frozenset[str] | None
    """None if the answer could not be read."""
    seconds: float

    @property
    def found(self) -> bool:
        """True if it named all that is right."""
        return self.named is not None and self.right <= self.named

    @property
    def too_much(self) -> bool:
        """True if more than half of what it named is wrong."""
        named = self.named or frozenset[str]()
        return 2 * len(named - self.right) > len(named)


def load_cases() -> Iterator[Case]:
    """The cases that ship: ten in English, then ten in Chinese."""
    text = files("topicloom_app").joinpath("samples", "reader_cases.json").read_text("utf-8")
    for number, given in enumerate(json.loads(text), start=1):
        said = [
            StoredMessage(seq=seq, role=role, text=words, time="")
            for seq, (role, words) in enumerate(given["messages"], start=1)
        ]
        topic = Topic(id=f"t{number}", name=given["topic"])
        for case in given["cases"]:
            asked = StoredMessage(seq=len(said) + 1, role="user", text=case["query"], time="")
            request = ReadRequest(
                session=f"trial {number}",
                windows=[TopicWindow(topic, said)],
                tail=[asked],
                query=asked.text,
                language=given["language"],
            )
            yield Case(request, frozenset(f"m{seq}" for seq in case["right"]))


def open_reader(settings: Settings, model: str) -> Reader:
    """The reader that settings would have with another cheap model."""
    others = {role: own for role, own in settings.role_models.items() if role != READER.name}
    changed = {"cheap_model": model, "role_models": others}
    return open_roles(settings=settings.model_copy(update=changed))[READER]


def try_reader(reader: Reader) -> list[CaseResult]:
    """Have a reader read all cases, one after another.

    Raises what the reader raises, except for an answer that cannot be read.
    """
    results = list[CaseResult]()
    for case in load_cases():
        began = time.monotonic()
        try:
            readings = reader.call(case.request).value
            named = frozenset(quote.id for reading in readings for quote in reading.quotes)
        except UnusableAnswerError:
            named = None
        results.append(CaseResult(case.right, named, time.monotonic() - began))
    return results


def recommend(right: int, cases: int) -> tuple[Use, str]:
    """How a model that read so many of the cases right is best used as a reader, and why."""
    if right >= _DECIDES * cases:
        return "decide", FilledText(
            "set TOPICLOOM_READERS=decide, because at most one answer in five is wrong"
        )
    if right >= _ADVISES * cases:
        return "advise", FilledText(
            "set TOPICLOOM_READERS=advise, because more than one answer in five is wrong"
        )
    return "none", FilledText(
        "name `embedded` as the reader in TOPICLOOM_ROLE_MODELS, because most answers are wrong"
    )


def describe_trial(results: Sequence[CaseResult]) -> tuple[Use, str]:
    """How to use the reader that gave the results, and a sentence that says how it did."""
    relevant = [r for r in results if r.right]
    others = [r for r in results if not r.right]
    right = sum(r.found and not r.too_much for r in results)
    use, advice = recommend(right, len(results))
    return use, FilledText(
        "{right} of {cases} cases right, {seconds:.1f} s each: {parsed} answers could be read,"
        " {found} of {relevant} named all that is needed, {refused} of {others} rightly named"
        " nothing, {much} named too much. Advice: {advice}",
        right=right,
        cases=len(results),
        seconds=sum(r.seconds for r in results) / len(results),
        parsed=sum(r.named is not None for r in results),
        found=sum(r.found for r in relevant),
        relevant=len(relevant),
        refused=sum(r.found and not r.too_much for r in others),
        others=len(others),
        much=sum(r.too_much for r in results),
        advice=advice,
    )
