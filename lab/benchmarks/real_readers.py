"""Measures a real model as the reader, with the index and alone.

    python lab/benchmarks/real_readers.py FILE ... --model openai:NAME --base-url URL --record OUT

The embedded roles take a conversation in; only the questions are put to the model, without anything
in view. Each topic is read once: what the model says is kept in a file, and each of the settings
reads it from there, as does a run that goes on from another. `alone` is what the readers named, the
best topic first, as much as fits.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import mean
from threading import Lock
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from rich.console import Console
from rich.table import Table

from topicloom import (
    READER,
    RESPONDER,
    Answer,
    FileStorage,
    Reading,
    ReadRequest,
    Settings,
    build_session_graph,
    count_budget_tokens,
    default_embedder,
    embedded_roles,
)
from topicloom.lab import Chat, ChatReader, PrefixMeter, Step, open_model
from topicloom.testing import ScriptedResponder
from topicloom_app import RecordedResponder
from topicloom_app.recordings.conversations import Conversation, Question
from topicloom_app.recordings.replay import cut_rounds, feed_round
from topicloom_lab.asking import BudgetCounter, Questioner, Shown
from topicloom_lab.comparison.config import load_named, place_of
from topicloom_lab.comparison.measures import count_evidence
from topicloom_lab.comparison.results import mean_interval
from topicloom_lab.recorded_time import RecordedClock

SETTINGS = ("decide", "advise")


class RecordedAnswers(BaseCache):
    """What a model said, by its prompt, in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        """Begin with what the file has."""
        self._path, self._lock = path, Lock()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.said: dict[str, dict[str, Any]] = {r["prompt"]: r for r in map(json.loads, lines)}

    def lookup(self, prompt: str, llm_string: str) -> Sequence[Generation] | None:
        """The answer to the prompt, if it is known; how long one may wait for it is no matter."""
        said = self.said.get(prompt)
        if said is None:
            return None
        message = AIMessage(said["text"], usage_metadata=said["usage"])
        return [ChatGeneration(message=message)]

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        """Keep an answer."""
        (generation,) = return_val
        assert isinstance(generation, ChatGeneration)
        message = generation.message
        assert isinstance(message, AIMessage)
        said = {"prompt": prompt, "text": generation.text, "usage": message.usage_metadata}
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            self.said[prompt] = said
            file.write(json.dumps(said, ensure_ascii=False) + "\n")

    def clear(self, **kwargs: Any) -> None:
        """Forget nothing: what a model said stays said."""


class NotedReader(ChatReader):
    """A chat model's reader that keeps its readings."""

    readings: list[tuple[ReadRequest, Reading]]

    def step(self, request: ReadRequest) -> Step[Answer[tuple[Reading, ...]]]:
        """Read the topics; see `ChatReader.step`."""
        answer = yield from super().step(request)
        self.readings += [(request, reading) for reading in answer.value]
        return answer


@dataclass(frozen=True, slots=True)
class Run:
    """A conversation in a session, and who is asked about it."""

    conversation: Conversation
    questions: Sequence[Question]
    settings: Settings
    chat: Chat
    readings: list[tuple[ReadRequest, Reading]] = field(default_factory=list)

    def rows(self, folder: Path) -> Iterator[dict[str, Any]]:
        """One row a question and setting."""
        oracle = ScriptedResponder(otherwise="-")
        recorded, storage = RecordedResponder(oracle), FileStorage(folder, fsync=False)
        clock, saver = RecordedClock.of(self.conversation.messages), InMemorySaver()
        config: RunnableConfig = {"configurable": {"thread_id": self.conversation.id}}
        roles = embedded_roles(default_embedder()).replace(RESPONDER, recorded)
        reader = NotedReader(self.chat)
        reader.readings = self.readings
        read_by = {"no model": (roles, self.settings)}
        for name in SETTINGS:
            chosen = self.settings.model_copy(update={"readers": name})
            read_by[name] = roles.replace(READER, reader), chosen
        graphs = {
            name: build_session_graph(
                roles=own, settings=chosen, storage=storage, clock=clock, counter=BudgetCounter()
            ).compile(checkpointer=saver)
            for name, (own, chosen) in read_by.items()
        }
        questioners = {n: Questioner(g, config, storage, oracle) for n, g in graphs.items()}
        heard, waiting = 0, self.questions
        for round_ in [*cut_rounds(self.conversation), None]:
            places = {q.id: place_of(q, self.conversation.messages) for q in waiting}
            end = heard + len(round_) if round_ else heard
            due = [q for q in waiting if round_ is None or places[q.id] < end]
            waiting = [q for q in waiting if q not in due]
            for question in due:
                yield from self._ask(question, questioners)
            if round_ is None or not waiting:
                return
            clock.now = clock.after(round_.said)
            feed_round(graphs["no model"], recorded, round_, config)
            heard = end

    def _ask(
        self, question: Question, questioners: Mapping[str, Questioner]
    ) -> Iterator[dict[str, Any]]:
        for name, questioner in questioners.items():
            self.readings.clear()
            began = time.monotonic()
            shown = questioner.ask(question.question)
            yield self._measure(question, name, shown) | {"seconds": time.monotonic() - began}
            if name == SETTINGS[0]:
                yield self._measure_alone(question)

    def _measure(self, question: Question, name: str, shown: Shown) -> dict[str, Any]:
        found = {m.source for m in shown.originals if m.text in shown.note}
        calls = [c for c in shown.receipt.calls if c.role == READER.name and c.model != "embedded"]
        return self._row(question, name, found, shown.note) | {
            "read": sum(c.failure is None for c in calls),
            "failed": sum(c.failure is not None for c in calls),
            "reader_tokens": shown.receipt.reading_tokens,
        }

    def _measure_alone(self, question: Question) -> dict[str, Any]:
        """What the readers named for the last question."""
        left, quoted = self.settings.recall_tokens or 0, []
        for request, reading in sorted(self.readings, key=lambda r: -r[1].score):
            texts = {m.id: m for window in request.windows for m in window.messages}
            for message in (texts[quote.id] for quote in reading.quotes):
                tokens = count_budget_tokens(message.text)
                if tokens <= left:
                    left -= tokens
                    quoted.append(message)
        note = "\n".join(m.text for m in quoted)
        return self._row(question, "alone", {m.source for m in quoted}, note)

    def _row(
        self, question: Question, name: str, found: set[str | None], note: str
    ) -> dict[str, Any]:
        wanted = set(question.evidence)
        gold = [m.text for m in self.conversation.messages if m.id in wanted]
        tokens = count_budget_tokens(note)
        return {
            "file": self.conversation.id.split("/")[0],
            "question": f"{self.conversation.id} {question.id}",
            "setting": name,
            "recall": len(wanted & found) / len(wanted),
            "tokens": tokens,
            "evidence_share": count_evidence(gold, note).held / tokens if tokens else None,
        }


def draw(
    file: str, conversations: int, messages: int, count: int, seed: int, skip: Collection[str]
) -> Iterator[tuple[Conversation, list[Question]]]:
    """The beginnings of conversations, with questions that rest on them and are asked in them.

    Of fewer questions, more have the same.
    """
    cut = {c: c.messages[:messages] for c in load_named([file], conversations)}
    pairs = []
    for conversation, said in cut.items():
        known = {m.id for m in said}
        for question in conversation.questions:
            rests_on = {*question.evidence, question.asked_at or said[0].id}
            if question.evidence and question.category not in skip and rests_on <= known:
                pairs.append((conversation, question))
    random.Random(seed).shuffle(pairs)
    for conversation, said in cut.items():
        begun = conversation.model_copy(update={"messages": said})
        yield begun, [q for c, q in pairs[:count] if c is conversation]


def make_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The means by file and setting, with intervals of 95 % for recall."""
    heads = ("file", "setting", "questions", "recall", "95 %", "lead over no model", "tokens")
    table = Table(*heads, "evidence in the note", "read", "failed", "reader tokens")
    base = {r["question"]: r["recall"] for r in rows if r["setting"] == "no model"}
    for file in [*dict.fromkeys(r["file"] for r in rows), "all"]:
        for name in ("no model", "alone", *SETTINGS):
            own = [r for r in rows if r["setting"] == name and file in (r["file"], "all")]
            if not own:
                continue
            by, low, high = mean_interval([r["recall"] for r in own], seed=0)
            lead = mean_interval([r["recall"] - base[r["question"]] for r in own], seed=0)
            shares = [r["evidence_share"] for r in own if r["evidence_share"] is not None]
            costs = [f"{mean(r.get(k, 0) for r in own):,.1f}" for k in ("read", "failed")]
            table.add_row(
                *(file, name, str(len(own)), f"{by:.3f}", f"{low:.3f} to {high:.3f}"),
                "{:+.3f} ({:+.3f} to {:+.3f})".format(*lead),
                f"{mean(r['tokens'] for r in own):,.0f}",
                f"{mean(shares):.3f}" if shares else "-",
                *costs,
                f"{mean(r.get('reader_tokens', 0) for r in own):,.0f}",
            )
    return table


def main() -> None:
    """Ask, keep the rows beside the record, and print a table after each conversation."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url")
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--conversations", type=int, default=1, help="of a file")
    parser.add_argument("--messages", type=int, default=400, help="of a conversation at most")
    parser.add_argument("--questions", type=int, default=4, help="of a file")
    parser.add_argument("--skip", action="append", default=[], help="category not to ask")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--window", type=int, default=8_000)
    parser.add_argument("--topic-window", type=int, default=2_000)
    parser.add_argument("--topics", type=int, default=3, help="topics read for a question at most")
    parser.add_argument("--budget", type=int, default=1_000, help="tokens recalled at most")
    parser.add_argument("--answer", type=int, default=300, help="tokens of a reader's answer")
    given = parser.parse_args()
    model = open_model(given.model, base_url=given.base_url, timeout=3_600, max_retries=0)
    answers = RecordedAnswers(given.record)
    keyed = model.model_copy(update={"cache": answers, "temperature": 0.0})
    chat = Chat.of(keyed, PrefixMeter(), window=given.topic_window, answer=given.answer)
    few = {"ceiling": given.topics, "usual": given.topics, "floor": 1}
    windows = {"window": given.window, "topic_window": given.topic_window}
    settings = Settings.model_validate(windows | {"recall_tokens": given.budget, "activation": few})
    rows: list[dict[str, Any]] = []
    drawn = given.conversations, given.messages, given.questions, given.seed, given.skip
    for conversation, questions in chain.from_iterable(draw(f, *drawn) for f in given.files):
        with tempfile.TemporaryDirectory() as folder:
            for row in Run(conversation, questions, settings, chat).rows(Path(folder)):
                rows.append(row)
                print(json.dumps(row), flush=True)
    Console(width=160).print(make_table(rows))


if __name__ == "__main__":
    main()
