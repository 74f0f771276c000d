"""Kills an operation before every single thing that it does, and has it done again."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from faults.campaign import Case, Outcome
from faults.checker import check, check_told
from faults.killing import Fuse, count_steps, run_child
from faults.operations import Operation, operations
from faults.stages import NAME, FilesStage, PostgresStage, Stage, postgres_server
from faults.talk import talk


@contextmanager
def kill_cases(kinds: tuple[str, ...], only: frozenset[str]) -> Iterator[list[Case]]:
    """A case for every step of every operation, while the context lasts.

    Args:
        kinds: `files` or `postgres`, or both.
        only: Names of operations; all of them if empty.
    """
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        stages: list[Stage] = []
        if "files" in kinds:
            stages.append(FilesStage(folder / "base"))
        if "postgres" in kinds:
            server = held.enter_context(postgres_server())
            stages.append(PostgresStage(server, "postgres", folder).empty("base"))
        yield [
            case
            for stage in stages
            for operation in operations(stage.kind)
            if not only or operation.name in only
            for case in _cases(_prepare(stage), operation)
        ]


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
