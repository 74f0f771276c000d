"""Questions of recorded conversations, ranked without a session, each asked in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topicloom import Quote, Reading, count_budget_tokens
from topicloom.lab import (
    Floats,
    LexicalIndex,
    Messages,
    PromptCosts,
    RankedSentences,
    RankWeights,
    Readings,
    Stretches,
    keep_floor,
    level_languages,
    listed_things,
    parse_message_number,
    rank,
    rank_again,
    script_shares,
    search_flat,
    select_quotes,
    show_stretches,
    trust_words,
    weigh_by_rank,
    words_of_day,
)
from topicloom_app.recordings.conversations import Conversation, RecordedMessage
from topicloom_app.recordings.times import iso_time
from topicloom_lab.comparison.config import Comparison, load_source
from topicloom_lab.comparison.measures import answer_stands_in, count_evidence
from topicloom_lab.comparison.run import Bench, Trial
from topicloom_lab.kept_vectors import KeptEmbedder
from topicloom_lab.strategies.base import StrategyOptions, line_of
from topicloom_lab.strategies.catalogue import STRATEGIES
from topicloom_lab.strategies.search import Dense, Lexical, Mixed, Pairs, SearchStrategy

BUDGETS = (2_000, 4_000, 8_000)
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
    """A question, and all that a ranking is told of the messages before it.

    Its words grow with the conversation, so a case is measured before the next one is made.
    """

    kind: str
    conversation: str
    query: str
    cosine: Floats
    lexical: Floats
    trust: float
    listed: Sequence[Floats]
    """Scores of flat search for each thing that the question lists."""
    messages: Messages
    words: LexicalIndex
    """The words of these messages."""
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

    def recalls(
        self, weights: RankWeights, *, floor: bool = True, again: bool = True
    ) -> list[float]:
        """Recall of the ranking, by budget."""
        largest, found = float(self.messages.costs.max()), dict[float, Places]()
        recalls = []
        for budget in BUDGETS:
            limit = min(budget, largest)
            if limit not in found:
                found[limit] = self.best(weights, limit, again=again)
            order = self.kept(found[limit], budget) if floor else found[limit]
            recalls.append(self.recall(order, budget))
        return recalls

    def best(self, weights: RankWeights, budget: float = np.inf, *, again: bool = True) -> Places:
        """Messages by place, the best first; what is larger than the budget is quoted in part."""
        messages = replace(self.messages, costs=np.minimum(self.messages.costs, budget))
        given = self.query, self.cosine, self.lexical, messages, weights, self.trust
        echoes = partial(self.words.echoes, query=self.query)
        scores = rank_again(*given, echoes) if again else rank(*given)
        return np.argsort(-scores, kind="stable")

    def kept(self, best: Places, budget: float) -> Places:
        """The same with the floor."""
        flat = search_flat(self.cosine, self.lexical, self.trust)
        costs = np.minimum(self.messages.costs, budget)
        return keep_floor(best, flat, costs, budget, self.listed)

    @property
    def first_in_view(self) -> int:
        """The place of the first message that is in view."""
        return len(self.spoken) - self.in_view

    def shown(self, order: Places, budget: int, *, in_part: bool) -> tuple[float, ...]:
        """Recall, share of the evidence's tokens, 1 for an answer; tokens shown, those of evidence.

        An answer that is not known is no number.
        """
        costs = self.messages.costs
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
            stretches = RankedSentences.of(said, self.query).select(room, count_budget_tokens)
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

    def flat(self) -> list[float]:
        """Recall of the search that the floor is of, by budget; it pays for frames too."""
        order = np.argsort(-search_flat(self.cosine, self.lexical, self.trust), kind="stable")
        return [self.recall(order, budget) for budget in BUDGETS]

    def recall(self, order: Places, budget: float) -> float:
        """Recall of messages by place; one that does not fit is passed over."""
        order = order[order < self.first_in_view]
        found = sum(place >= self.first_in_view for place in self.evidence)
        for place, cost in zip(order.tolist(), self.messages.costs[order].tolist(), strict=True):
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
        messages = messages_of(spoken)
        compare = Comparer(kept, lexical, spoken)
        seen = {m.id for m in spoken[len(spoken) - in_view :]}
        for question in due:
            gold = set(question.evidence)
            others = {}
            for name, strategy in flat.items():
                shown = [set(strategy.context(question.question, b).sources) for b in BUDGETS]
                others[name] = [len(gold & (s | seen)) / len(gold) for s in shown]
            cosine, found, trust = compare(question.question)
            whole = search_flat(cosine, found, trust)
            things = listed_things(question.question)
            yield Case(
                kind,
                trial.conversation.id,
                question.question,
                cosine,
                found,
                trust,
                [whole + search_flat(*compare(thing)) for thing in things],
                messages,
                lexical,
                frozenset(i for i, m in enumerate(spoken) if m.id in gold),
                len(gold),
                others,
                spoken[:],
                in_view,
                question.answer,
            )


class Comparer:
    """Compares texts with messages as the index of a session does."""

    def __init__(
        self, kept: KeptEmbedder, lexical: LexicalIndex, spoken: Sequence[RecordedMessage]
    ) -> None:
        """The words are those of the messages."""
        self._kept, self._lexical = kept, lexical
        self._vectors = kept.embed(list(map(line_of, spoken)))
        self._chinese = np.array([is_chinese(m.text) for m in spoken])

    def __call__(self, text: str) -> tuple[Floats, Floats, float]:
        """Cosines and BM25 of all messages [n], and how far to trust BM25."""
        cosine = (self._vectors @ self._kept.embed([text])[0]).astype(float)
        found, cover = self._lexical.scores(text)
        return level_languages(cosine, self._chinese), found, trust_words(text, cover)


@cache
def is_chinese(text: str) -> bool:
    """True if most of a text is Chinese."""
    return bool(script_shares(text).chinese > 0.5)


@cache
def count_line(line: str) -> int:
    """Tokens of a line."""
    return count_budget_tokens(line)


def name_of(message: RecordedMessage) -> str:
    """The speaker's name as a session has it; "" for a role."""
    return message.speaker if message.speaker and message.speaker != message.role else ""


def messages_of(spoken: Sequence[RecordedMessage]) -> Messages:
    """Recorded messages as ranking takes them."""
    days = [iso_time(m.time)[:10] if m.time else "" for m in spoken]
    names = [name_of(m) for m in spoken]
    all_days, all_names = sorted(set(days)), sorted({"", *names})
    return Messages(
        costs=np.array([count_line(line_of(m)) for m in spoken], dtype=float),
        from_user=np.array([m.role == "user" for m in spoken], dtype=float),
        days=[words_of_day(day) for day in all_days],
        day=np.array([all_days.index(day) for day in days]),
        names=all_names,
        speaker=np.array([all_names.index(name) for name in names]),
    )


def read(
    kind: str, source: str, questions: int, kept: KeptEmbedder, recent: int = 0
) -> Iterator[Case]:
    """The questions of a source, at most so many of each conversation."""
    comparison = Comparison(files=(source,), questions=questions, out=Path())
    for conversation in load_source(source):
        asked = comparison.chosen(conversation)
        kept.known.clear()
        things = [thing for q in asked for thing in listed_things(q.question)]
        kept.prepare([*texts_of(conversation), *(q.question for q in asked), *things])
        trial = Trial(source, conversation, asked, Bench(kept, ""))
        yield from cases(kind, trial, kept, recent)


def texts_of(conversation: Conversation) -> list[str]:
    """Messages as they are embedded, by themselves and with the one before, each text once."""
    lines = [line_of(m) for m in conversation.messages if m.text.strip()]
    return list(dict.fromkeys((*lines, *Pairs(True).texts(lines))))
