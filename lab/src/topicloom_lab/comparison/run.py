"""Running the cells of a comparison, and what they were made with."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Collection, Iterator
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from topicloom_lab.comparison.config import Comparison, load_source
from topicloom_lab.comparison.results import Cell, Key, Results
from topicloom_lab.comparison.trial import Bench, Trial
from topicloom_lab.strategies.catalogue import STRATEGIES, StrategyEntry


def open_cells(
    comparison: Comparison, results: Results, again: Collection[str] = ()
) -> dict[Key, None]:
    """Cells that have to be run, in order: those not finished, those that failed, and `again`.

    Raises `NotAConversationError` if a file holds something else.
    """
    done = {key for key, cell in results.cells().items() if cell.failure is None}
    return {
        key: None
        for source in comparison.files
        for conversation in load_source(source, comparison.folder)
        if comparison.chosen(conversation)
        for recipe in _recipes(comparison)
        for budget in comparison.budgets
        if (key := (source, conversation.id, recipe.name, budget)) not in done
        or recipe.name in again
    }


def run_comparison(
    comparison: Comparison,
    results: Results,
    bench: Bench,
    cells: Collection[Key],
    told: Callable[[str, int, int], None] = lambda *_: None,
) -> Iterator[Cell]:
    """Run cells, and keep each as soon as it is finished; yields them.

    Args:
        comparison: What they are of.
        results: Where they go.
        bench: What to run with.
        cells: Those to run.
        told: Is told how far the cells of a strategy have got: name, steps done, steps in all.

    Raises:
        NotAConversationError: If a file holds something else.
        StorageUnavailableError: If a result cannot be written.
    """
    for source in comparison.files:
        for conversation in load_source(source, comparison.folder):
            waiting = [key for key in cells if key[:2] == (source, conversation.id)]
            if not waiting:
                continue
            trial = Trial(source, conversation, comparison.chosen(conversation), bench, told)
            for recipe in _recipes(comparison):
                budgets = [budget for _, _, name, budget in waiting if name == recipe.name]
                for group in _groups(recipe, budgets):
                    trial.warm_up()
                    for cell in trial.run(recipe, group):
                        results.add(cell)
                        yield cell


def _recipes(comparison: Comparison) -> list[StrategyEntry]:
    """The strategies that can run here."""
    found = [STRATEGIES[name] for name in comparison.strategies]
    return [recipe for recipe in found if recipe.missing is None]


def _groups(recipe: StrategyEntry, budgets: list[int]) -> list[list[int]]:
    """Budgets that one instance of a strategy serves together."""
    if recipe.by_budget:
        return [[budget] for budget in budgets]
    return [budgets] if budgets else []


_PACKAGES = (
    "topicloom",
    "topicloom-lab",
    "langgraph",
    "langchain-core",
    "langchain",
    "langmem",
    "mem0ai",
    "qdrant-client",
    "faiss-cpu",
    "onnxruntime",
    "tokenizers",
    "numpy",
)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on, as far as they are here."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """The machine in one line."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def code_hash() -> str:
    """Twelve hex digits that change with any line of package or laboratory: versions are coarse."""
    digest = sha256()
    for root in (Path(str(files(package))) for package in ("topicloom", "topicloom_lab")):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
