"""Topics of interleaved conversations against those known: ARI, 1-1, 1-VI, exact F1."""

from __future__ import annotations

import json
import lzma
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from topicloom.boundary.cues import Utterance
from topicloom.errors import ConfigurationError, NotAConversationError
from topicloom.index.embedder import Embedder
from topicloom.perception.rejoin.rejoiner import Rejoiner
from topicloom.perception.rejoin.threads import NOTICE, Placement, Threads

By = Literal["message", "block"]
"""When a message is judged: as it comes, or when the block that it is in is over."""

_ROLES = ("user", "assistant")
_DEED = re.compile(
    r"=== ([^\s\[\]]+) (?!.*\[\S+@)(?!(?:has (?:joined|left|quit)|is now known as|is away)\b)\S"
)
"""What a speaker of a channel does ("=== anna shrugs"); joining and leaving are no deeds."""
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)")


class ThreadMessage(BaseModel):
    """One message of an interleaved conversation."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    id: str
    time: float | str | None = Field(None, union_mode="left_to_right")
    """Seconds since an epoch, a clock ("03:21") or an ISO date."""
    speaker: str | None = None
    """Name or role of who said it."""
    text: str
    thread: str | None = None
    """The topic it is in; None where nobody labelled it."""
    system: bool = False
    """Whether the channel wrote it: a notice, or what a speaker does."""

    @property
    def voice(self) -> str | None:
        """Name or role of who said it, or who does it; None for a notice."""
        if self.speaker or not self.system:
            return self.speaker
        deed = _DEED.match(self.text)
        return deed.group(1) if deed else None


class ThreadedConversation(BaseModel):
    """A conversation whose topics are known."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    id: str
    lang: str = "en"
    messages: tuple[ThreadMessage, ...] = Field(min_length=1)

    def said(self) -> list[Utterance]:
        """Its messages as the rejoiner reads them; a clock that jumps back is past midnight."""
        found: list[Utterance] = []
        days = 0
        before: float | None = None
        for message in self.messages:
            hours = _hours(message.time)
            if hours is not None and isinstance(message.time, str):
                days += before is not None and hours < before - 12
                before = hours
                hours += 24 * days
            voice = message.voice
            role = NOTICE if message.system and not voice else None
            role = voice if voice in _ROLES else role
            speaker = None if role else voice
            found.append(Utterance(role=role, speaker=speaker, text=message.text, hours=hours))
        return found


@dataclass(frozen=True, slots=True)
class ThreadScores:
    """How well topics agree with the known ones: 1 is best."""

    ari: float
    """Adjusted Rand index."""
    one_to_one: float
    """Share of messages in the best matching of topics, one to one."""
    vi: float
    """1 - variation of information / log2 n."""
    exact: float
    """F1 of topics of two messages or more that are found exactly."""
    messages: int
    """Labelled messages."""


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """What came of one conversation."""

    id: str
    threads: tuple[int, ...]
    """Number of the topic of each message."""
    scores: ThreadScores | None
    """None where fewer than two messages are labelled."""

    def line(self) -> str:
        """The row of a results file."""
        return json.dumps({"id": self.id, "threads": list(self.threads)}, ensure_ascii=False)


def load_threads(path: Path) -> Iterator[ThreadedConversation]:
    """Read a file of interleaved conversations, one at a time.

    Args:
        path: `.jsonl` with a conversation a line, or that as `.xz`.

    Raises:
        NotAConversationError: If the file cannot be read or holds something else; the message
            names the line.
    """
    number = 0
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007
                if line.strip():
                    yield ThreadedConversation.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors()[0]
        raise NotAConversationError(
            f"{path}, line {number}: no interleaved conversation: {problem['loc']}: "
            f"{problem['msg']}"
        ) from error
    except (OSError, UnicodeDecodeError, lzma.LZMAError, EOFError) as error:
        raise NotAConversationError(f"{path} cannot be read: {error}") from error


def evaluate_threads(
    conversations: Iterable[ThreadedConversation],
    *,
    rejoiner: Rejoiner,
    embedder: Embedder,
    by: By = "message",
    report: Callable[[str], None] = lambda line: None,
) -> Iterator[ThreadRow]:
    """Tell the topics of conversations and judge them.

    Args:
        conversations: What to run; one at a time is in memory.
        rejoiner: Chooses topics.
        embedder: Makes vectors.
        by: "message" judges each message by the topic told when it came; "block" a block by the
            topic it had when it was over, its replies known.
        report: Takes a line about each conversation.

    Raises:
        ConfigurationError: If the libraries of the extra `eval` are not installed.
    """
    for conversation in conversations:
        said = conversation.said()
        vectors = embedder.embed([message.text for message in said])
        threads = Threads(rejoiner)
        placed = [threads.place(*pair) for pair in zip(said, vectors, strict=True)]
        topics = topics_of(placed, by)
        gold = [message.thread for message in conversation.messages]
        labelled = [i for i, thread in enumerate(gold) if thread is not None]
        scores = None
        if len(labelled) > 1:
            scores = thread_scores([gold[i] for i in labelled], [topics[i] for i in labelled])
            report(f"{conversation.id}: ARI {scores.ari:.3f}, 1-1 {scores.one_to_one:.3f}")
        yield ThreadRow(conversation.id, tuple(topics), scores)


def topics_of(placed: Sequence[Placement], by: By) -> list[int]:
    """Topic of each message by its own placement, or by the last one of its block."""
    if by == "message":
        return [placement.topic for placement in placed]
    final = {placement.block: placement.topic for placement in placed}
    return [final[placement.block] for placement in placed]


def thread_scores(gold: Sequence[Hashable], told: Sequence[Hashable]) -> ThreadScores:
    """Judge the topics of labelled messages [n], n of at least two.

    Raises:
        ConfigurationError: If the libraries of the extra `eval` are not installed.
    """
    metrics, optimize = _library("sklearn.metrics"), _library("scipy.optimize")
    known, found = _numbered(gold), _numbered(told)
    table = metrics.cluster.contingency_matrix(known, found)
    rows, columns = optimize.linear_sum_assignment(-table)
    shared = float(metrics.mutual_info_score(known, found))
    varied = _entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0)) - 2 * shared
    return ThreadScores(
        ari=float(metrics.adjusted_rand_score(known, found)),
        one_to_one=float(table[rows, columns].sum() / len(known)),
        vi=1 - max(0.0, varied) / float(np.log(len(known))),
        exact=_exact(known, found),
        messages=len(known),
    )


def summary(rows: Iterable[ThreadRow]) -> dict[str, float]:
    """Means over the conversations that were judged, and how many they are."""
    judged = [row.scores for row in rows if row.scores is not None]
    names = ("ari", "one_to_one", "vi", "exact")
    means = {n: float(np.mean([getattr(s, n) for s in judged])) if judged else 0.0 for n in names}
    return means | {"conversations": float(len(judged))}


def _exact(known: Sequence[int], found: Sequence[int]) -> float:
    gold, told = _sets(known), _sets(found)
    return 2 * len(gold & told) / (len(gold) + len(told)) if gold or told else 1.0


def _sets(labels: Sequence[int]) -> set[frozenset[int]]:
    """Topics of two messages or more, as sets of places."""
    members: defaultdict[int, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        members[label].append(place)
    return {frozenset(places) for places in members.values() if len(places) > 1}


def _numbered(labels: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]


def _entropy(counts: Any) -> float:
    """Entropy in nats of a distribution by its counts [k]."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _hours(time: float | str | None) -> float | None:
    if time is None:
        return None
    if isinstance(time, float):
        return time / 3600
    if clock := _CLOCK.fullmatch(time.strip()):
        return int(clock.group(1)) + int(clock.group(2)) / 60
    try:
        return datetime.fromisoformat(time).timestamp() / 3600
    except ValueError:
        return None


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"judging topics needs {name.split('.')[0]}: install topicloom[eval]"
        ) from error
