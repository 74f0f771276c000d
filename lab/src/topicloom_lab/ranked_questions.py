"""Questions of recorded conversations, ranked without a session, each asked in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topicloom import Quote, Reading, count_budget_tokens
from topicloom.lab import (
    Asked,
    LexicalIndex,
    Messages,
    PromptCosts,
    RankedSentences,
    Readings,
    Recipe,
    Stretches,
    parse_message_number,
    select_quotes,
    show_stretches,
    weigh_by_rank,
)
from topicloom_app.recordings.conversations import Conversation, RecordedMessage
from topicloom_lab.comparison.config import Comparison, load_source
from topicloom_lab.comparison.measures import answer_stands_in, count_evidence
from topicloom_lab.comparison.run import Bench, Trial
from topicloom_lab.kept_vectors import KeptEmbedder
from topicloom_lab.strategies.base import StrategyOptions, line_of
from topicloom_lab.strategies.catalogue import STRATEGIES
from topicloom_lab.strategies.search import Dense, Lexical, Mixed, Pairs, SearchStrategy

BUDGETS = (1_000, 2_000, 4_000)
"""Tokens that are recalled for a question."""
FRAME, MARK = 3, 24
"""Tokens that a quote costs beside its line, and those that mark an excerpt."""
FLAT = (
    *("dense", "hybrid", "hybrid+1"),
    *("bm25", "bm25+1", "bm25-user", "bm25-stems+1", "last"),
)
"""Strategies of `eval run` that search flat."""
HALF = "hybrid, 1/2 before"
"""One of our own: what was said before counts half as much."""
Places = NDArray[np.intp]
Recalls = dict[str, list[float]]
"""Recall by budget, of each of some searches."""


@dataclass(frozen=True)
class Case:
    """A question, and all that a ranking is told of the messages before it."""

    kind: str
    conversation: str
    asked: Asked
    """The question and the messages; nothing is known of topics."""
    evidence: frozenset[int]
    gold: int
    """Messages of evidence, those included that nobody could find."""
    others: Recalls
    """Recall of flat searches, by budget."""
    spoken: Sequence[RecordedMessage]
    """These messages."""
    in_view: int
    """The newest of them that are in view and are not quoted again."""
    answer: str
    """The expected answer, or ""."""

    def recalls(self, recipe: Recipe) -> list[float]:
        """Recall of a ranking, by budget."""
        return [self.recall(self.best(recipe, budget), budget) for budget in BUDGETS]

    def best(self, recipe: Recipe, budget: float) -> Places:
        """Messages by place, the best first; what is larger than the budget is quoted in part."""
        costs = np.minimum(self.asked.messages.costs, budget)
        messages = replace(self.asked.messages, costs=costs)
        scores = recipe.rank(replace(self.asked, messages=messages))
        return np.argsort(-scores, kind="stable")

    @property
    def first_in_view(self) -> int:
        """The place of the first message that is in view."""
        return len(self.spoken) - self.in_view

    def shown(self, order: Places, budget: int, *, in_part: bool) -> tuple[float, ...]:
        """Recall, share of the evidence's tokens, 1 for an answer; tokens shown, those of evidence.

        An answer that is not known is no number.
        """
        costs = self.asked.messages.costs
        worths = weigh_by_rank(np.minimum(costs, budget)[order], budget)
        quotes = tuple(
            Quote(id=f"m{place}", weight=weight)
            for place, weight in zip(order.tolist(), worths.tolist(), strict=True)
            if weight and place < self.first_in_view
        )
        reading = Reading(topic="t1", score=1, quotes=quotes, source="index")

        def text(message_id: str) -> str:
            return self.spoken[parse_message_number(message_id)].text

        def excerpt(message_id: str, room: int) -> tuple[Stretches, int]:
            room -= MARK
            if not in_part or room < MARK:
                return (), 0
            said = text(message_id)
            stretches = RankedSentences.of(said, self.asked.text).select(room, count_budget_tokens)
            shown = show_stretches(said, stretches, message_id, "en")
            return stretches, count_budget_tokens(shown) + FRAME

        prices = PromptCosts(
            quote=lambda i: int(costs[parse_message_number(i)]) + FRAME,
            excerpt=excerpt,
            day=lambda _: "",
            text=count_budget_tokens,
            heading=lambda _: 0,
            shorten=lambda *_: "",
            passage=lambda _: 0,
            day_line=0,
            frame=0,
        )
        notes, _ = select_quotes(Readings([], [reading]), {}, prices, budget, ())
        whole = [i for note in notes for i in note.quotes if i not in note.partial]
        whole += [f"m{place}" for place in range(self.first_in_view, len(self.spoken))]
        parts = [pair for note in notes for pair in note.excerpts.items()]
        context = "\n".join(
            [*map(text, whole), *(show_stretches(text(i), s, i, "en") for i, s in parts)]
        )
        recall = len(self.evidence & {parse_message_number(i) for i in whole}) / self.gold
        held = count_evidence([self.spoken[i].text for i in self.evidence], context)
        answered = answer_stands_in(context, self.answer)
        said = np.nan if answered is None else float(answered)
        return recall, held.share or 0.0, said, count_budget_tokens(context), held.held

    def recall(self, order: Places, budget: float) -> float:
        """Recall of messages by place; one that does not fit is passed over."""
        order = order[order < self.first_in_view]
        found = sum(place >= self.first_in_view for place in self.evidence)
        costs = self.asked.messages.costs
        for place, cost in zip(order.tolist(), costs[order].tolist(), strict=True):
            if cost + FRAME <= budget:
                budget -= cost + FRAME
                found += place in self.evidence
        return found / self.gold


def cases(kind: str, trial: Trial, kept: KeptEmbedder, recent: int = 0) -> Iterator[Case]:
    """The questions of a conversation, each asked in its place."""
    spoken: list[RecordedMessage] = []
    lexical = LexicalIndex()
    options = StrategyOptions(kept, Path(), max(BUDGETS), trial.language)
    flat = {name: STRATEGIES[name].make(options) for name in FLAT}
    flat[HALF] = SearchStrategy(
        Mixed(
            (
                (1.0, Dense(kept)),
                (0.5, Dense(kept, previous=True)),
                (0.5, Lexical()),
                (0.25, Lexical(previous=True)),
            )
        )
    )
    heard = 0
    for chunk, due in trial.stretches():
        for message in chunk:
            lexical.add(name_of(message) or message.role, message.text)
        spoken += chunk
        turns = all(question.asked_at is not None for question in due)
        in_view = min(recent, len(spoken)) if turns else 0
        # A flat search is not told of what is in view: it would quote it again.
        outside = spoken[heard : len(spoken) - in_view]
        heard += len(outside)
        for strategy in flat.values():
            strategy.feed(outside)
        messages, vectors = messages_of(spoken), kept.embed(list(map(line_of, spoken)))
        seen = {m.id for m in spoken[len(spoken) - in_view :]}
        for question in due:
            gold = set(question.evidence)
            others = {}
            for name, strategy in flat.items():
                shown = [set(strategy.context(question.question, b).sources) for b in BUDGETS]
                others[name] = [len(gold & (s | seen)) / len(gold) for s in shown]
            cosine = (vectors @ kept.embed([question.question])[0]).astype(float)
            found = lexical.scores(question.question)
            yield Case(
                kind,
                trial.conversation.id,
                Asked(question.question, messages, cosine, *found),
                frozenset(i for i, m in enumerate(spoken) if m.id in gold),
                len(gold),
                others,
                spoken[:],
                in_view,
                question.answer,
            )


@cache
def count_line(line: str) -> int:
    """Tokens of a line."""
    return count_budget_tokens(line)


def name_of(message: RecordedMessage) -> str:
    """The speaker's name as a session has it; "" for a role."""
    return message.speaker if message.speaker and message.speaker != message.role else ""


def messages_of(spoken: Sequence[RecordedMessage]) -> Messages:
    """Recorded messages as ranking takes them."""
    names = [name_of(m) for m in spoken]
    all_names = sorted({"", *names})
    return Messages(
        costs=np.array([count_line(line_of(m)) for m in spoken], dtype=float),
        from_user=np.array([m.role == "user" for m in spoken], dtype=float),
        names=all_names,
        speaker=np.array([all_names.index(name) for name in names]),
        topics=np.zeros(len(spoken), dtype=np.int64),
        opens=np.zeros(len(spoken), dtype=np.bool_),
    )


def read(
    kind: str, source: str, questions: int, kept: KeptEmbedder, recent: int = 0
) -> Iterator[Case]:
    """The questions of a source, at most so many of each conversation."""
    comparison = Comparison(files=(source,), questions=questions, out=Path())
    for conversation in load_source(source):
        asked = comparison.chosen(conversation)
        kept.known.clear()
        kept.prepare([*texts_of(conversation), *(q.question for q in asked)])
        trial = Trial(source, conversation, asked, Bench(kept, ""))
        yield from cases(kind, trial, kept, recent)


def texts_of(conversation: Conversation) -> list[str]:
    """Messages as they are embedded, by themselves and with the one before, each text once."""
    lines = [line_of(m) for m in conversation.messages if m.text.strip()]
    return list(dict.fromkeys((*lines, *Pairs(True).texts(lines))))
