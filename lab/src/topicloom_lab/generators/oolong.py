"""An aggregation task after OOLONG (Bertsch et al., 2025): answers have to be counted.

Many small items with a label each stand in a chat; the questions are about all of them, so no
reader of a few of them can answer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, validate_call

from topicloom_app.recordings.conversations import Conversation, Question
from topicloom_lab.generators.spec import make_chat

_THINGS = {
    "fruit": "a crate of pears,ten lemons,some plums,a melon,two bags of cherries".split(","),
    "tool": "a hammer,two files,a hand drill,a spirit level,a box of nails".split(","),
    "fabric": "a roll of linen,some wool,three metres of silk,a cotton sheet,felt".split(","),
    "paper": "a ledger,forty envelopes,a road map,two notebooks,a stack of cards".split(","),
    "pottery": "a blue bowl,six cups,a clay pot,a glazed jug,two saucers".split(","),
    "toy": "a wooden train,a kite,some marbles,a spinning top,a cloth bear".split(","),
}
"""Things by label; a reader could tell the label from the thing as well."""
_PEOPLE = ("Ada", "Bo", "Carmen", "Dmitri", "Esi", "Farid")


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of the book."""

    number: int
    label: str
    person: str
    text: str

    @property
    def line(self) -> str:
        """The entry as text."""
        return f"Entry {self.number}: {self.person} brought {self.text}. Label: {self.label}."


@validate_call
def oolong(
    *,
    items: Annotated[int, Field(ge=10, le=1_000_000)] = 500,
    message: Annotated[int, Field(ge=1)] = 1,
    conversations: Annotated[int, Field(ge=1)] = 1,
    seed: int = 0,
) -> Iterator[Conversation]:
    """Labelled items in a chat; questions on counts, the most frequent, comparisons.

    Args:
        items: How many.
        message: Items in a message.
        conversations: How many conversations.
        seed: Where chance begins.

    Yields:
        Conversations with the questions' kinds as categories, and as evidence all messages with
        items that count. Answers are scored by `scoring.score`.
    """
    return (_conversation(items, message, seed, n) for n in range(1, conversations + 1))


def _conversation(items: int, message: int, seed: int, number: int) -> Conversation:
    draw = random.Random(f"oolong-{seed}-{number}")
    entries = _entries(draw, items)
    lines = [entry.line for entry in entries]
    groups = (lines[i : i + message] for i in range(0, len(lines), message))
    asked = [
        *_counts(entries, message),
        *_extremes(entries, message),
        *_comparisons(draw, entries, message),
        *_people(draw, entries, message),
    ]
    questions = [
        q.model_copy(update={"id": f"{q.category}-{i}"}) for i, q in enumerate(asked, start=1)
    ]
    return Conversation(
        id=f"oolong-{items}-{seed}-{number}",
        messages=tuple(make_chat("\n".join(group) for group in groups)),
        questions=tuple(questions),
    )


def _entries(draw: random.Random, items: int) -> list[Item]:
    labels = list(_THINGS)
    weights = [draw.uniform(0.5, 2.0) for _ in labels]
    drawn = draw.choices(labels, weights, k=items)
    return [
        Item(n, label, draw.choice(_PEOPLE), draw.choice(_THINGS[label]))
        for n, label in enumerate(drawn, start=1)
    ]


def _counts(entries: Sequence[Item], message: int) -> Iterator[Question]:
    for label in _THINGS:
        chosen = [e for e in entries if e.label == label]
        text = f"How many entries of the book have the label {label}? Answer with a number."
        yield _question("count", text, str(len(chosen)), chosen, message)


def _extremes(entries: Sequence[Item], message: int) -> Iterator[Question]:
    """Most and least frequent label; left out where several are."""
    counts = Counter(e.label for e in entries)
    for word, extreme in (("most", max), ("least", min)):
        found = [label for label, n in counts.items() if n == extreme(counts.values())]
        if len(found) == 1:
            text = f"Which label is the {word} frequent one in the book? Answer with the label."
            yield _question(f"{word} frequent", text, found[0], entries, message)


def _comparisons(draw: random.Random, entries: Sequence[Item], message: int) -> Iterator[Question]:
    counts = Counter(e.label for e in entries)
    labels = draw.sample(list(_THINGS), len(_THINGS))
    for one, other in zip(labels[::2], labels[1::2], strict=True):
        more = (counts[one] > counts[other]) - (counts[one] < counts[other])
        answer = {1: "more often", -1: "less often", 0: "as often"}[more]
        text = (
            f"Does the label {one} come more often, less often or as often as the label {other}?"
            ' Answer with "more often", "less often" or "as often".'
        )
        chosen = [e for e in entries if e.label in (one, other)]
        yield _question("comparison", text, answer, chosen, message)


def _people(draw: random.Random, entries: Sequence[Item], message: int) -> Iterator[Question]:
    for person in _PEOPLE:
        label = draw.choice(list(_THINGS))
        chosen = [e for e in entries if e.person == person and e.label == label]
        text = f"How many entries with the label {label} did {person} bring? Answer with a number."
        yield _question("count by person", text, str(len(chosen)), chosen, message)


def _question(
    category: str, text: str, answer: str, chosen: Sequence[Item], message: int
) -> Question:
    evidence = dict.fromkeys(f"u{(e.number - 1) // message + 1}" for e in chosen)
    return Question(
        id="", category=category, question=text, answer=answer, evidence=tuple(evidence)
    )
