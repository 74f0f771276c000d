"""Sessions whose models fail over HTTP: what becomes of turns, and how much is kept of it."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from domains import the_document
from langchain_core.messages import HumanMessage
from openai_behaviours import Behaviour, Reply, Request
from openai_server import OpenAIServer
from sessions import thread

from faults.campaign import Case, Outcome
from faults.checker import check
from faults.operations import run_command
from faults.providers import FAULTS, INNER, KEY, ROLES, ROW, newest, play_well, prompt_of
from faults.stages import NAME, FilesStage
from topicloom import (
    Domain,
    ReplyError,
    Settings,
    TurnOptions,
    build_session_graph,
    reflect_once,
    review_session,
)
from topicloom.graph.deps import make_deps
from topicloom.graph.parts import GraphParts
from topicloom.hosting import Graph

CONFIG = thread(NAME)
BEGUN = 8
"""Turns before anything fails; by then there are topics."""
SPLITS = (4, 7)
"""Turns of these before which the older messages move into topics."""
SECRET, ANSWERED = "zyxwvutsium4711", "abcdefghium0815"
"""Said in the third turn, and answered there; both go with messages `m5` and `m6`."""
SUBJECTS = ("tea", "rain", "bread", "music")
BUDGETS = {
    "most checkpoint bytes": ROW,
    "most receipt bytes": 60_000,
    "most prompt bytes": 150_000,
    "most calls": 150,
}
"""Limits of a turn's row of the checkpoint, receipt and requests, whatever models say.

Every role is asked twice at most: 20 readers before the reply and after each of its two searches
are 120 calls, and all the others some 30.
"""


@contextmanager
def canary_cases(turns: int) -> Iterator[list[Case]]:
    """A case for every fault that may show a secret: nothing is left of it after a purge."""
    with _begun() as (server, base):
        faults = ("400-prompt", "401-key", "cut-tags", "nested-tags", "tool-unknown")
        yield [Case(f"canary/purge/{f}", partial(_purge, server, base, f, turns)) for f in faults]


@contextmanager
def _begun() -> Iterator[tuple[OpenAIServer, FilesStage]]:
    """A server of models, and a session that has topics."""
    with tempfile.TemporaryDirectory() as folder, OpenAIServer() as server:
        base = FilesStage(Path(folder) / "base")
        trial = _Trial(server, base)
        trial.play({})
        for number in range(BEGUN):
            trial.say(number)
        trial.close()
        yield server, base


@contextmanager
def http_cases(turns: int, only: frozenset[str]) -> Iterator[list[Case]]:
    """A case for every fault of every role, and of all inner roles at once.

    Args:
        turns: How often the models fail in a case.
        only: Names of roles, or `inner` for all but the responder; all of them if empty.
    """
    with _begun() as (server, base):
        groups: dict[str, tuple[str, ...]] = {role: (role,) for role in ROLES}
        groups["inner"] = INNER
        yield [
            Case(f"http/{group}/{fault}", partial(_fail, server, base, roles, fault, turns))
            for group, roles in groups.items()
            if not only or group in only
            for fault in FAULTS
        ]


def message(number: int) -> str:
    """What the user says in a turn."""
    subject = SUBJECTS[number // 3 % 4]
    if number == 2:
        return f"I am allergic to {SECRET}, and I like tea. " + "There is more of it. " * 12
    if number % 9 == 8:
        told = f"about {subject}, and what I am allergic to"
        return f"Did you forget? I told you {told}, in message {number}."
    search = "Search for it. " if number % 7 == 6 else ""
    return f"{search}{number} is about {subject}. " + f"{subject} has a word {number}. " * 12


class _Trial:
    """A session whose models are behind a server, and what is measured of it."""

    def __init__(self, server: OpenAIServer, stage: FilesStage) -> None:
        self.server, self.stage = server, stage
        self.figures: Counter[str] = Counter()
        self.streamed: list[str] = []
        self.open()

    def open(self, seconds: float = 60.0) -> None:
        """Open the session, with so many seconds for each answer of a model."""
        stage, server = self.stage, self.server
        self._held = stage.open()
        self._opened = self._held.__enter__()
        self._settings = Settings(
            model="openai:responder",
            role_models={role: f"openai:{role}" for role in INNER},
            base_url=server.base_url,
            api_key=KEY,
            folder=stage.root,
            window=1_600,
            recall_tokens=400,
            topic_window=1_500,
            role_seconds=seconds,
            reply_seconds=seconds,
            max_retries=1,
            fsync=False,
            embedder="hashing",
        )
        self._graph: Graph = build_session_graph(
            settings=self._settings, storage=self._opened.storage, domain=Domain()
        ).compile(checkpointer=self._opened.saver, store=self._opened.store)

    def play(self, faults: dict[str, str]) -> None:
        """Have some roles fail from now on."""

        def answer(request: Request) -> Behaviour:
            good, fault = play_well(request), faults.get(request["model"])
            if request["model"] in ("brief", "reader") and SECRET in prompt_of(request):
                good = replace(good, text=re.sub(r"(A [bs]\w+)", rf"\1 of {SECRET}", good.text))
            if request["model"] == "responder" and SECRET in newest(request):
                good = Reply(f"I note {ANSWERED}.")
            self._most("most prompt bytes", len(prompt_of(request).encode()))
            return FAULTS[fault](request, good) if fault else good

        self.server.otherwise(answer)

    def say(self, number: int) -> None:
        """Take a turn; raises what the turn raises."""
        self.server.requests.clear()
        given: dict[str, Any] = {"messages": [HumanMessage(message(number), id=f"u{number}")]}
        if number == 0:
            given["document"] = the_document()
        try:
            keep = TurnOptions(keep_messages=2) if number in SPLITS else None
            modes: list[Any] = ["messages", "custom"]
            for part in self._graph.stream(given, CONFIG, context=keep, stream_mode=modes):
                self.streamed.append(str(part))
        finally:
            self._most("most calls", len(self.server.requests))
            self._most("most threads", threading.active_count())

    def look_back(self) -> None:
        """Review the session, and reflect upon it."""
        roles = make_deps(GraphParts(settings=self._settings)).roles
        opened = self._opened
        review_session(self._graph, CONFIG)
        reflect_once(
            NAME,
            force=True,
            checkpointer=opened.saver,
            storage=opened.storage,
            store=opened.store,
            roles=roles,
        )

    def close(self) -> None:
        """Close what is open."""
        self._held.__exit__(None, None, None)

    def weigh(self) -> None:
        """Measure what is kept."""
        with closing(sqlite3.connect(self.stage.root / "checkpoints.sqlite")) as database:
            sizes = "SELECT max(length(checkpoint) + length(metadata)) FROM checkpoints"
            self._most("most checkpoint bytes", database.execute(sizes).fetchone()[0])
            sizes = "SELECT max(length(value)) FROM writes"
            self._most("most checkpoint bytes", database.execute(sizes).fetchone()[0] or 0)
        lines = (self.stage.root / NAME / "turns.jsonl").read_bytes().splitlines()
        self._most("most receipt bytes", max(map(len, lines)))

    def _most(self, name: str, value: int) -> None:
        self.figures[name] = max(self.figures[name], value)


def _fail(
    server: OpenAIServer, base: FilesStage, roles: tuple[str, ...], fault: str, turns: int
) -> Outcome:
    """Have turns with failing roles, then two whose models work, and look at what is left."""
    stage = base.copy("failing")
    trial = _Trial(server, stage)
    trial.play(dict.fromkeys(roles, fault))
    if fault in ("hang", "drip"):  # else no model is so slow that it may not be waited for
        trial.close()
        trial.open(seconds=1.0)
    problems: list[str] = []
    # What the main model says is the conversation, and kept whole, however much it is.
    whole = roles == ("responder",) and fault in ("4MB", "no-finish", "length")
    expected = ReplyError if roles == ("responder",) else ()
    for number in range(BEGUN, BEGUN + turns):
        try:
            trial.say(number)
        except expected:
            trial.figures["replies refused"] += 1
        except Exception as error:  # noqa: BLE001 - what is raised is what is looked for
            problems.append(f"turn {number}: {type(error).__name__}: {error!s:.300}")
    if not {"reviewer", "merger", "reflector"}.isdisjoint(roles):
        trial.look_back()
    trial.close()
    trial.open()
    trial.play({})
    total = BEGUN + turns + 2
    for number in (total - 2, total - 1):
        trial.say(number)
    trial.weigh()
    trial.close()
    trial.figures["turns"] = turns
    return Outcome([*problems, *_breaches(trial, total, bounded=not whole)], trial.figures)


def _purge(server: OpenAIServer, base: FilesStage, fault: str, turns: int) -> Outcome:
    """Have inner roles fail, reflect, and purge what held the secrets: nobody has them then."""
    stage = base.copy("canary")
    trial = _Trial(server, stage)
    trial.play(dict.fromkeys(INNER, fault))
    logged: list[str] = []
    with _logging(logged):
        for number in range(BEGUN, BEGUN + turns):
            trial.say(number)
        trial.play({})
        trial.look_back()
    trial.close()
    before = {secret: stage.places_of(secret.encode()) for secret in (SECRET, ANSWERED, KEY)}
    problems = [f"the key is in {before[KEY]}"] if before[KEY] else []
    for text in (SECRET, KEY):
        problems += [f"logged: {line:.200}" for line in logged if text in line]
    # What says it again later is named, too: the model may, whenever it is quoted the first.
    rows = map(json.loads, (stage.root / NAME / "transcript.jsonl").read_text("utf-8").splitlines())
    telling = [r["id"] for r in rows if SECRET in r["text"] or ANSWERED in r["text"]]
    run_command(stage, "purge", NAME, "--yes", "--message", ",".join(telling))
    after = {secret: stage.places_of(secret.encode()) for secret in before}
    problems += [f"after a purge: {secret} in {where}" for secret, where in after.items() if where]
    problems += [] if before[SECRET] and before[ANSWERED] else ["the secrets were never there"]
    figures = Counter(places_before=sum(map(len, before.values())))
    return Outcome(problems, figures + Counter(places_after=sum(map(len, after.values()))))


@contextmanager
def _logging(lines: list[str]) -> Iterator[None]:
    """Collect what is logged by the package, and by anyone that something is wrong."""
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(_line_of(record))  # type: ignore[method-assign]
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _line_of(record: logging.LogRecord) -> str:
    return logging.Formatter().format(record)


def _breaches(trial: _Trial, total: int, *, bounded: bool) -> Iterator[str]:
    found = check(trial.stage.read())
    yield from found.problems
    if found.users != [message(number) for number in range(total)]:
        yield f"what the user said is not there in order: {[text[:12] for text in found.users]}"
    budgets = BUDGETS if bounded else {}
    for name, limit in budgets.items():
        if trial.figures[name] > limit:
            yield f"{name}: {trial.figures[name]:,}, over {limit:,}"
    places = trial.stage.places_of(KEY.encode())
    if places:
        yield f"the key is in {places}"
    if any(KEY in text for text in trial.streamed):
        yield "the key was streamed to the user"
    prompts = ("You read topics", "You sort messages", "You find the topics", "You rewrite the")
    if any(prompt in text for text in trial.streamed for prompt in prompts):
        yield "a prompt was streamed to the user"
