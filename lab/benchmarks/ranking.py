"""Ranks recorded conversations without a session, and chooses weights with a whole kind left out.

    python lab/benchmarks/ranking.py chat=locomo.jsonl meetings=qmsum.jsonl ... [--questions 20]

Evidence recall under some budgets of the package's ranking (`topicloom.index.ranking`) and of flat
searches, for each kind. "left out" has the weights that were best on all other kinds, among those
of `CANDIDATES`, one choice for every conversation, however many speak in it; "worst" has the other
manner of the two on each, and shows what the floor is worth. The last rows say what is quoted with
excerpts of long messages and without: whole messages, tokens of the evidence, answers, tokens that
are shown and the share of these that is evidence. Vectors are made once and kept in a folder. What
a quote costs beside its line in a session (number, day, heading of its topic) is `FRAME` tokens
here, as it came to in LoCoMo (2.8) and REALTALK; topics that stay closed and what is in view
already are not looked at, so `topicloom eval memory` has the last word.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from topicloom.context.tokens import count_budget_tokens
from topicloom.context.transcript import show_stretches
from topicloom.index.bm25 import LexicalIndex, select_sentences
from topicloom.index.embedder import Embedder, Vectors
from topicloom.index.encoders import default_embedder
from topicloom.index.ranking import (
    Floats,
    Messages,
    RankWeights,
    keep_floor,
    rank,
    rank_again,
    search_flat,
    trust_words,
    weights_for,
    words_of_day,
)
from topicloom.index.session_index import worth
from topicloom.recordings.conversations import Conversation, RecordedMessage
from topicloom.recordings.replay import iso_time
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


@dataclass
class KeptEmbedder:
    """An encoder whose vectors are kept on disk, a file for each list of texts."""

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
        """Read or make the vectors of some texts."""
        digest = hashlib.sha256("\0".join((self.fingerprint, *texts)).encode()).hexdigest()
        path = self.folder / f"{digest[:24]}.npy"
        if not path.exists():
            parts = [self.encoder.embed(texts[i : i + 32]) for i in range(0, len(texts), 32)]
            np.save(path, np.concatenate(parts))
        self.known |= zip(texts, np.load(path), strict=True)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts that were prepared."""
        return np.stack([self.known[text] for text in texts])


@dataclass(frozen=True)
class Case:
    """A question, and all that a ranking is told of the messages before it."""

    kind: str
    conversation: str
    query: str
    cosine: Floats
    lexical: Floats
    trust: float
    messages: Messages
    words: LexicalIndex
    """The words of these messages."""
    evidence: frozenset[int]
    gold: int
    """Messages of evidence, those included that nobody could find."""
    others: dict[str, list[float]]
    """Recall of flat searches, by budget."""
    spoken: Sequence[RecordedMessage]
    """These messages."""
    answer: str
    """The expected answer, or ""."""

    def recalls(
        self, weights: RankWeights, *, floor: bool = True, again: bool = True
    ) -> list[float]:
        """Recall of the ranking, by budget."""
        best = self.best(weights, again=again)
        orders = (self.kept(best, b) if floor else best for b in BUDGETS)
        return [self.recall(*pair) for pair in zip(orders, BUDGETS, strict=True)]

    def best(self, weights: RankWeights, *, again: bool = True) -> Places:
        """Messages by place, the best first."""
        given = self.query, self.cosine, self.lexical, self.messages, weights, self.trust
        echoes = partial(self.words.echoes, query=self.query)
        scores = rank_again(*given, echoes) if again else rank(*given)
        return np.argsort(-scores, kind="stable")

    def kept(self, best: Places, budget: float) -> Places:
        """The same with the floor."""
        flat = search_flat(self.cosine, self.lexical, self.trust)
        return keep_floor(best, flat, self.messages.costs, budget)

    def shown(self, order: Places, budget: int, *, in_part: bool) -> tuple[float, ...]:
        """Recall, share of the evidence's tokens, 1 for an answer; tokens shown, those of evidence.

        An answer that is not known is no number.
        """
        costs = self.messages.costs
        worths = worth(np.minimum(costs, budget)[order], budget)
        found = zip(order.tolist(), worths.tolist(), strict=True)
        quotes = tuple(Quote(id=f"m{place}", weight=weight) for place, weight in found if weight)
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
        found, costs = 0, self.messages.costs[order] + FRAME
        place = 0
        while (fits := np.flatnonzero(costs[place:] <= budget)).size:
            place += int(fits[0])
            budget -= costs[place]
            found += int(order[place]) in self.evidence
            place += 1
        return found / self.gold


def cases(kind: str, trial: Trial, kept: KeptEmbedder) -> Iterator[Case]:
    """The questions of a conversation."""
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
    for chunk, due in trial.stretches():
        for message in chunk:
            lexical.add(name_of(message) or message.role, message.text)
        spoken += chunk
        for strategy in flat.values():
            strategy.feed(chunk)
        messages, words = messages_of(spoken), deepcopy(lexical) if due else lexical
        vectors = kept.embed(list(map(line_of, spoken)))
        for question in due:
            gold = set(question.evidence)
            others = {}
            for name, strategy in flat.items():
                shown = [set(strategy.context(question.question, b).sources) for b in BUDGETS]
                others[name] = [len(gold & s) / len(gold) for s in shown]
            found, cover = lexical.scores(question.question)
            yield Case(
                kind,
                trial.conversation.id,
                question.question,
                (vectors @ kept.embed([question.question])[0]).astype(float),
                found,
                trust_words(question.question, cover),
                messages,
                words,
                frozenset(i for i, m in enumerate(spoken) if m.id in gold),
                len(gold),
                others,
                spoken[:],
                question.answer,
            )


def name_of(message: RecordedMessage) -> str:
    """The speaker's name as a session has it; "" for a role."""
    return message.speaker if message.speaker and message.speaker != message.role else ""


def messages_of(spoken: Sequence[RecordedMessage]) -> Messages:
    """Recorded messages as ranking takes them."""
    days = [iso_time(m.time)[:10] if m.time else "" for m in spoken]
    names = [name_of(m) for m in spoken]
    all_days, all_names = sorted(set(days)), sorted({"", *names})
    return Messages(
        costs=np.array([count_budget_tokens(line_of(m)) for m in spoken], dtype=float),
        from_user=np.array([m.role == "user" for m in spoken], dtype=float),
        days=[words_of_day(day) for day in all_days],
        day=np.array([all_days.index(day) for day in days]),
        names=all_names,
        speaker=np.array([all_names.index(name) for name in names]),
    )


def read(kind: str, source: str, questions: int, kept: KeptEmbedder) -> Iterator[Case]:
    """The questions of a source, at most so many of each conversation."""
    comparison = Comparison(files=(source,), questions=questions, out=Path())
    for conversation in load_source(source):
        asked = comparison.chosen(conversation)
        kept.known.clear()
        kept.prepare(texts_of(conversation))
        kept.prepare([question.question for question in asked])
        yield from cases(kind, Trial(source, conversation, asked, Bench(kept, "")), kept)


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
    """Means by budget."""
    return " / ".join(f"{np.nanmean(column):.3f}" for column in zip(*rows, strict=True))


def main() -> None:
    """Read, choose and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="+", metavar="KIND=FILE", help="a kind may come twice")
    parser.add_argument("--questions", type=int, default=10**6, help="of a conversation at most")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "ranking"))
    given = parser.parse_args()
    given.cache.mkdir(parents=True, exist_ok=True)
    kept = KeptEmbedder(default_embedder(), given.cache)
    found: dict[str, list[Case]] = {}
    for kind, _, source in (pair.partition("=") for pair in given.sources):
        found.setdefault(kind, []).extend(read(kind, source, given.questions, kept))
        print(f"{kind}: {len(found[kind])} questions", flush=True)
    print(report(found))


def report(found: dict[str, list[Case]]) -> str:
    """The table of all kinds, and the weights that were chosen without each."""
    tried = [{k: [c.recalls(w) for c in cs] for k, cs in found.items()} for w in CANDIDATES]

    def worth(choice: int, without: str) -> float:
        others = [np.mean(rows) for kind, rows in tried[choice].items() if kind != without]
        return float(np.mean(others)) if others else 0.0

    chosen = {}
    for kind in found:
        worths = [worth(choice, kind) for choice in range(len(CANDIDATES))]
        chosen[kind] = worths.index(max(worths))
    ours: dict[str, Callable[[Case], list[float]]] = {
        "as shipped": lambda c: c.recalls(weights_for(c.messages)),
        "without floor": lambda c: c.recalls(weights_for(c.messages), floor=False),
        "without second look": lambda c: c.recalls(weights_for(c.messages), again=False),
        "worst": lambda c: c.recalls(other_manner(c.messages)),
        "worst, without floor": lambda c: c.recalls(other_manner(c.messages), floor=False),
    }
    ours["flat search of the floor"] = Case.flat
    rows = {
        name: {k: [make(c) for c in cs] for k, cs in found.items()} for name, make in ours.items()
    }
    rows["left out"] = {k: tried[chosen[k]][k] for k in found}
    for name in (*FLAT, HALF):
        rows[name] = {k: [c.others[name] for c in cs] for k, cs in found.items()}
    lines = [[name, *(figures(by[k]) for k in found)] for name, by in rows.items()]
    lines += [
        [
            f"left out over the best other at {budget:,}",
            *(lead(rows, k, place, [c.conversation for c in cs]) for k, cs in found.items()),
        ]
        for place, budget in enumerate(BUDGETS)
    ]
    lines += [shown_line(found, *setup) for setup in itertools.product(BUDGETS, (False, True))]
    made = [f"{kind} left out: {CANDIDATES[i]}" for kind, i in chosen.items()]
    return "\n".join([table(["", *found], lines), "", *made])


def shown_line(found: dict[str, list[Case]], budget: int, in_part: bool) -> list[str]:
    """Recall, share of the evidence's tokens, and of the answers that are shown, by kind."""
    name = "with excerpts" if in_part else "whole messages alone"
    cells = [f"{name} at {budget:,}: recall / tokens / answers; shown, of it evidence"]
    for cases in found.values():
        orders = [
            (case, case.kept(case.best(weights_for(case.messages)), budget)) for case in cases
        ]
        rows = [c.shown(order, budget, in_part=in_part) for c, order in orders]
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
