"""Ranks recorded conversations without a session, and chooses weights with a whole kind left out.

    python lab/benchmarks/ranking.py chat=locomo.jsonl meetings=qmsum.jsonl ... [--questions 20]

Evidence recall under some budgets of the package's ranking (`topicloom.index.ranking`) and of flat
searches, for each kind. "left out" has the weights that were best on all other kinds, among those
of `CANDIDATES`, one choice for every conversation, however many speak in it; "worst" has the other
manner of the two on each, and shows what the floor is worth. The last rows say what is quoted with
excerpts of long messages and without: whole messages, tokens of the evidence, answers, tokens that
are shown and the share of these that is evidence. Vectors are made once and kept in a folder, which
several runs may share. What a quote costs beside its line in a session (number, day, heading of its
topic) is `FRAME` tokens here, as it came to in LoCoMo (2.8) and REALTALK; topics that stay closed
are not looked at, so `topicloom eval memory` has the last word.

A question that is a turn of the conversation (`asked_at`) is asked in its place: only what was said
before is ranked. With `--recent N` the newest N messages before it are in view, as they are in a
session: they are ranked like all others, but are not quoted again, and what is in view is found.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from topicloom.context.tokens import count_budget_tokens
from topicloom.context.transcript import show_stretches
from topicloom.index.bm25 import LexicalIndex, select_sentences
from topicloom.index.embedder import Embedder, Vectors
from topicloom.index.encoders import default_embedder, script_shares
from topicloom.index.ranking import (
    Floats,
    Messages,
    RankWeights,
    keep_floor,
    level_languages,
    listed_things,
    rank,
    rank_again,
    search_flat,
    trust_words,
    weights_for,
    words_of_day,
)
from topicloom.index.session_index import worth
from topicloom.recordings.conversations import Conversation, RecordedMessage
from topicloom.recordings.times import iso_time
from topicloom.state.quoting import PromptCosts, select_quotes
from topicloom.state.recall import Quote, Reading, Stretches, parse_message_number
from topicloom_lab.comparison.config import Comparison, load_source
from topicloom_lab.comparison.measures import answer_stands_in, count_evidence
from topicloom_lab.comparison.results import mean_interval, table
from topicloom_lab.comparison.run import Bench, Trial
from topicloom_lab.strategies.base import StrategyOptions, line_of
from topicloom_lab.strategies.catalogue import STRATEGIES
from topicloom_lab.strategies.search import Dense, Lexical, Mixed, Pairs, SearchStrategy

BUDGETS = (2_000, 4_000, 8_000)
FRAME, MARK = 3, 24
FLAT = (
    *("dense", "hybrid", "hybrid+1"),
    *("bm25", "bm25+1", "bm25-user", "bm25-stems+1", "last"),
)
HALF = "hybrid, 1/2 before"
CANDIDATES = [
    RankWeights(1.0, 2 * around, around, alone, reach, price, named)
    for around, alone, reach, price, named in itertools.product(
        (0.5, 0.7, 1.0), (0.2, 1.0), (80.0, 200.0), (0.6, 0.9), (1.0, 2.0)
    )
]
Places = NDArray[np.intp]
Recalls = dict[str, list[float]]
"""Recall by budget, of each of some searches."""


@dataclass
class KeptEmbedder:
    """An encoder whose vectors are kept on disk, each text once; runs may share the folder."""

    encoder: Embedder
    folder: Path
    known: dict[str, Vectors] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        return self.encoder.fingerprint

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def prepare(self, texts: Sequence[str]) -> None:
        """Read the vectors of some texts, or make them; a run that was stopped goes on."""
        wanted = {self._key(text): text for text in texts if text not in self.known}
        with closing(sqlite3.connect(self.folder / "vectors.sqlite", timeout=600)) as kept:
            kept.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB)")
            for key in list(wanted):
                for (value,) in kept.execute("SELECT value FROM vectors WHERE key = ?", (key,)):
                    self.known[wanted.pop(key)] = np.frombuffer(value, dtype=np.float32)
            missed = list(wanted.items())
            for part in (missed[i : i + 32] for i in range(0, len(missed), 32)):
                made = self.encoder.embed([text for _, text in part]).astype(np.float32)
                rows = [(key, v.tobytes()) for (key, _), v in zip(part, made, strict=True)]
                with kept:
                    kept.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
                self.known |= zip((text for _, text in part), made, strict=True)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self.fingerprint}\0{text}".encode()).digest()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts that were prepared."""
        return np.stack([self.known[text] for text in texts])


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
        worths = worth(np.minimum(costs, budget)[order], budget)
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
            stretches = select_sentences(said, self.query, room, count_budget_tokens)
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
        notes = select_quotes([reading], {}, prices, budget, ())
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


def other_manner(messages: Messages) -> RankWeights:
    """The weights of a meeting for talk of two, and those of talk of two for a meeting."""
    two, three = (
        weights_for(Messages(one, one, [frozenset()], speaker * 0, names, speaker))
        for names, speaker in ((["a"], np.zeros(1, int)), (["a", "b", "c"], np.arange(3)))
        for one in [np.ones(len(speaker))]
    )
    return two if weights_for(messages) == three else three


def figures(rows: Sequence[Sequence[float]]) -> str:
    """The mean of each column, of the rows that have it; a dash if none has."""
    columns = np.array(rows).T
    known = [column[~np.isnan(column)] for column in columns]
    return " / ".join(f"{column.mean():.3f}" if len(column) else "-" for column in known)


@dataclass(frozen=True)
class Measured:
    """What rankings and searches find for a question."""

    conversation: str
    rows: Recalls
    """Recall by budget of each of them."""
    tried: list[list[float]]
    """That of each of the `CANDIDATES`."""
    shown: dict[tuple[int, bool], tuple[float, ...]]
    """What is shown by budget, with excerpts and without; see `Case.shown`."""


def measure(case: Case) -> Measured:
    """Rank the messages of a question in all ways."""
    shipped, wrong = weights_for(case.messages), other_manner(case.messages)
    rows = {
        "as shipped": case.recalls(shipped),
        "without floor": case.recalls(shipped, floor=False),
        "without second look": case.recalls(shipped, again=False),
        "worst": case.recalls(wrong),
        "worst, without floor": case.recalls(wrong, floor=False),
        "flat search of the floor": case.flat(),
    }
    orders = {budget: case.kept(case.best(shipped, budget), budget) for budget in BUDGETS}
    shown = {
        (budget, in_part): case.shown(order, budget, in_part=in_part)
        for budget, order in orders.items()
        for in_part in (False, True)
    }
    tried = [case.recalls(weights) for weights in CANDIDATES]
    return Measured(case.conversation, rows | case.others, tried, shown)


def main() -> None:
    """Read, choose and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="+", metavar="KIND=FILE", help="a kind may come twice")
    parser.add_argument("--questions", type=int, default=10**6, help="of a conversation at most")
    parser.add_argument("--recent", type=int, default=0, help="messages in view before a turn")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "ranking"))
    given = parser.parse_args()
    given.cache.mkdir(parents=True, exist_ok=True)
    kept = KeptEmbedder(default_embedder(), given.cache)
    found: dict[str, list[Measured]] = {}
    for kind, _, source in (pair.partition("=") for pair in given.sources):
        cases_of = read(kind, source, given.questions, kept, given.recent)
        found.setdefault(kind, []).extend(map(measure, cases_of))
        print(f"{kind}: {len(found[kind])} questions", flush=True)
    print(report(found))


def report(found: dict[str, list[Measured]]) -> str:
    """The table of all kinds, and the weights that were chosen without each."""
    worths = {
        kind: np.mean([m.tried for m in measured], axis=(0, 2)) for kind, measured in found.items()
    }
    chosen = {
        kind: int(np.sum([w for other, w in worths.items() if other != kind], axis=0).argmax())
        for kind in found
        if len(found) > 1
    }
    rows = {
        name: {kind: [m.rows[name] for m in measured] for kind, measured in found.items()}
        for name in next(iter(found.values()))[0].rows
    }
    if chosen:
        left_out = {k: [m.tried[chosen[k]] for m in measured] for k, measured in found.items()}
        rows = {"left out": left_out, **rows}
    lines = [[name, *(figures(by[k]) for k in found)] for name, by in rows.items()]
    lines += [
        [
            f"left out over the best other at {budget:,}",
            *(lead(rows, k, place, [m.conversation for m in ms]) for k, ms in found.items()),
        ]
        for place, budget in enumerate(BUDGETS)
        if chosen
    ]
    lines += [shown_line(found, *setup) for setup in itertools.product(BUDGETS, (False, True))]
    made = [f"{kind} left out: {CANDIDATES[i]}" for kind, i in chosen.items()]
    return "\n".join([table(["", *found], lines), "", *made])


def shown_line(found: dict[str, list[Measured]], budget: int, in_part: bool) -> list[str]:
    """Recall, share of the evidence's tokens, and of the answers that are shown, by kind."""
    name = "with excerpts" if in_part else "whole messages alone"
    cells = [f"{name} at {budget:,}: recall / tokens / answers; shown, of it evidence"]
    for measured in found.values():
        rows = [m.shown[budget, in_part] for m in measured]
        tokens, held = (sum(row[place] for row in rows) for place in (3, 4))
        beside = f"{tokens / len(rows):,.0f}, {held / max(1, tokens):.3f}"
        cells.append(f"{figures([row[:3] for row in rows])}; {beside}")
    return cells


def lead(
    rows: dict[str, dict[str, list[list[float]]]],
    kind: str,
    place: int,
    conversations: Sequence[str],
) -> str:
    """What "left out" finds more than the best flat search at a budget, with its interval.

    Questions of one conversation have much in common, which the interval does not know: so it also
    says in how many conversations it is ahead and behind.
    """
    ours, *others = (
        [recalls[place] for recalls in rows[name][kind]] for name in ("left out", *FLAT, HALF)
    )
    best = max(others, key=mean)
    gaps = [a - b for a, b in zip(ours, best, strict=True)]
    by, low, high = mean_interval(gaps, 0)
    sums: dict[str, float] = {}
    for conversation, gap in zip(conversations, gaps, strict=True):
        sums[conversation] = sums.get(conversation, 0.0) + gap
    ahead, behind = (sum(sign * total > 1e-9 for total in sums.values()) for sign in (1, -1))
    where = f"ahead in {ahead}, behind in {behind} of {len(sums)}"
    name = (*FLAT, HALF)[others.index(best)]
    return f"{by:+.3f} ({low:+.3f} to {high:+.3f}), {where}; {name}"


if __name__ == "__main__":
    main()
