"""Kills an operation before every single thing that it does, and has it done again.

A whole conversation is killed at random times too, and goes on after each.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faults.campaign import Case, Outcome
from faults.checker import check, check_told
from faults.killing import Fuse, count_steps, run_child, start_child, wait_for
from faults.operations import Operation, operations
from faults.stages import NAME, FilesStage, PostgresStage, Stage, postgres_server
from faults.talk import expected, finish, say, talk, talking, told

CONVERSATION = "conversation"
"""The name of what is killed at random times."""
TURNS = 14
"""Turns of that."""
HABITS = [("exit", True), ("sync", True), ("async", True), ("sync", False), ("async", False)]
"""Durability, and whether a turn that was cut off goes on; else the next message just comes."""


@contextmanager
def kill_cases(kinds: tuple[str, ...], only: frozenset[str]) -> Iterator[list[Case]]:
    """A case for every step of every operation, while the context lasts.

    Args:
        kinds: `files` or `postgres`, or both.
        only: Names of operations, or `conversation`; all of them if empty.
    """
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        stages: list[Stage] = []
        if "files" in kinds:
            stages.append(FilesStage(folder / "base"))
        if "postgres" in kinds:
            server = held.enter_context(postgres_server())
            stages.append(PostgresStage(server, "postgres", folder).empty("base"))
        steps = [
            case
            for stage in stages
            for operation in operations(stage.kind)
            if not only or operation.name in only
            for case in _cases(_prepare(stage), operation)
        ]
        talks = [
            Case(
                f"kills/{stage.kind}/{CONVERSATION}-{durability}-{patient}/{seed}",
                partial(_interrupt, stage, durability, patient, seed),
            )
            for stage in map(_prepare, stages)
            if not only or CONVERSATION in only
            for durability, patient in HABITS
            for seed in range(20)
        ]
        yield [*steps, *talks]


def _prepare(base: Stage) -> Stage:
    """A stage with the conversation on it."""
    if base.read().session is None:
        count_steps(lambda: talk(base), base.folder, _errors(base))
    return base


def _cases(talked: Stage, operation: Operation) -> list[Case]:
    base = talked if operation.before else talked.empty("nothing")
    if operation.breaks:
        base = talked.copy("broken")
        for file in operation.breaks:
            (base.folder / NAME / file).unlink()
    trial = base.copy("trial")
    steps = count_steps(lambda: operation.act(trial, True), trial.folder, _errors(base))
    wrong = _missing(trial, operation)
    assert not wrong, f"{operation.name} does not do its work: {wrong}"
    name = f"kills/{base.kind}/{operation.name}"
    return [_case(f"{name}/{k}", base, operation, k) for k in range(1, steps + 1)]


def _case(name: str, base: Stage, operation: Operation, step: int) -> Case:
    return Case(name, lambda: _kill(base, operation, step))


def _kill(base: Stage, operation: Operation, step: int) -> Outcome:
    """Kill before a step, look, do it again, look again."""
    stage, errors, patient = base.copy("killed"), _errors(base), step % 2 == 0
    end = run_child(lambda: operation.act(stage, True), errors, Fuse(stage.folder, step))
    if end not in (0, -9):
        return Outcome([f"it fails before it is killed: {errors.read_text()[-1_000:]}"])
    found = check(stage.read())
    problems = check_told(found, operation.before, operation.after)
    problems += [] if operation.breaks else found.problems
    if run_child(lambda: operation.act(stage, patient), errors):
        problems.append(f"doing it again fails: {errors.read_text()[-1_000:]}")
    else:
        problems += _missing(stage, operation)
    return Outcome(problems, Counter(kills=int(end != 0)))


def _missing(stage: Stage, operation: Operation) -> list[str]:
    """What is wrong after an operation got through."""
    raw = stage.read()
    found = check(raw)
    told = check_told(found, operation.after, operation.after)
    return [*found.problems, *told, *operation.wants(stage, raw)]


def _errors(base: Stage) -> Path:
    return base.folder.with_name("errors")


def _interrupt(base: Stage, durability: str, patient: bool, seed: int) -> Outcome:
    """Have a conversation that is killed three times, at random, and then comes to its end."""
    nothing, errors, chance = base.empty("nothing"), _errors(base), random.Random(seed)
    stage, longest = nothing.copy("interrupted"), 0.6
    go_on = partial(_go_on, stage, durability, patient)
    problems: list[str] = []
    kills = 0
    while kills < 3:
        if _is_killed(go_on, errors, chance.uniform(0, longest)):
            kills += 1
            problems += _lost(stage, patient)
        else:  # it was through before: once more from the beginning, and sooner
            stage, longest = nothing.copy("interrupted"), longest / 2
    if run_child(partial(go_on, lambda: None), errors):
        problems.append(f"it does not come to its end: {errors.read_text()[-1_000:]}")
    found = check(stage.read())
    if len(found.users) != TURNS or (patient and list(found.messages) != expected(TURNS)):
        problems.append(f"at its end are {len(found.messages)} messages")
    return Outcome([*problems, *_lost(stage, patient)], Counter(kills=kills))


def _is_killed(work: Callable[[Callable[[], None]], None], errors: Path, seconds: float) -> bool:
    """Begin something and kill it so long after it is ready; false if it was through before."""
    reading, writing = os.pipe()
    child = start_child(lambda: work(partial(os.close, writing)), errors)
    os.close(writing)
    os.read(reading, 1)  # until the child has closed its end, or ended
    os.close(reading)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return wait_for(child) == -signal.SIGKILL


def _go_on(stage: Stage, durability: Any, patient: bool, ready: Callable[[], None]) -> None:
    """Go on with the conversation where it stopped, to its end."""
    with talking(stage) as (graph, _):
        ready()
        if patient:
            finish(graph, durability=durability)
        for number in range(len(check(stage.read()).users), TURNS):
            say(graph, number, patient=False, durability=durability)


def _lost(stage: Stage, patient: bool) -> list[str]:
    """What is wrong with what is there; a reply that was cut off is missing without patience."""
    found = check(stage.read())
    if patient:
        return [*found.problems, *check_told(found, [], expected(TURNS))]
    order = iter(expected(TURNS))
    whole = found.users == [told(number) for number in range(len(found.users))]
    whole = whole and all(message in order for message in found.messages)
    return [*found.problems, *([] if whole else [f"not what was said: {found.messages}"])]
