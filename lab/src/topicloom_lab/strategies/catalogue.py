"""The strategies that can be compared, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from topicloom import ConfigurationError, Embedder
from topicloom.lab import suggest, words_of
from topicloom_lab.strategies.base import Strategy, StrategyOptions
from topicloom_lab.strategies.peers import (
    Mem0Search,
    SummarizationMiddlewareStrategy,
    SummarizationNodeStrategy,
)
from topicloom_lab.strategies.search import (
    Dense,
    Lexical,
    Scorer,
    SearchStrategy,
    StoreSearch,
    hybrid,
)
from topicloom_lab.strategies.segments import (
    FirstAndLast,
    KeepEverything,
    LastTokens,
    SegmentSummaries,
)
from topicloom_lab.strategies.session_graph import SessionGraphStrategy

Kind = Literal["topicloom", "place", "summary", "search", "own"]
"""The signal that a strategy ranks by."""

INSTALL_PEERS = 'pip install "langchain>=1.4,<2" "langmem>=0.0.30,<0.1" "mem0ai>=2.2,<3"'
"""Installs the packages of the extra `peers`, as `lab/pyproject.toml` has them."""


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """A strategy's constructor, and its description for the report."""

    name: str
    kind: Kind
    what: str
    """A description in one line."""
    make: Callable[[StrategyOptions], Strategy]
    by_budget: bool = False
    """True if it has to be made for each budget, because it depends on it while it listens."""
    sums_up: bool = False
    """True if a model writes summaries for it; extracts stand in where none is set."""
    limited: bool = True
    """True if it keeps to the budget."""
    needs: str | None = None
    """A package that is no dependency of this one."""

    @property
    def missing(self) -> str | None:
        """Why it has to be left out; None if it can run."""
        if self.needs is None or find_spec(self.needs) is not None:
            return None
        return f"{self.needs} is not installed: {INSTALL_PEERS}"


def _search(
    name: str, what: str, scorer: Callable[[Embedder], Scorer], **given: Any
) -> StrategyEntry:
    """A flat search by what a scorer makes of messages; see `SearchStrategy`."""
    return StrategyEntry(
        name, "search", what, lambda options: SearchStrategy(scorer(options.embedder), **given)
    )


_STEMS = "the same on topicloom's own words: endings off, no function words"
_SEGMENTS = "first round, summaries of segments of 5 to 8 rounds, newest five rounds"
_SUMMARY: dict[str, Any] = {"by_budget": True, "sums_up": True}

_ALL = (
    StrategyEntry(
        "topicloom", "topicloom", "the session graph with its embedded roles", SessionGraphStrategy
    ),
    StrategyEntry(
        "everything", "place", "the whole conversation", lambda _: KeepEverything(), limited=False
    ),
    StrategyEntry("last", "place", "the newest messages that fit", lambda _: LastTokens()),
    StrategyEntry(
        "first+last", "place", "the first round and the newest five", lambda _: FirstAndLast()
    ),
    StrategyEntry("segments", "summary", _SEGMENTS, SegmentSummaries, sums_up=True),
    _search("bm25", "BM25", lambda _: Lexical()),
    _search("bm25+1", "BM25, with the message before and after", lambda _: Lexical(), neighbours=1),
    _search("bm25-stems+1", _STEMS, lambda _: Lexical(words_of), neighbours=1),
    _search("bm25-user", "BM25 over what the user said", lambda _: Lexical(), users_only=True),
    _search("dense", "vectors of messages", Dense),
    _search("hybrid", "vectors and BM25, of messages and of pairs of them", hybrid),
    _search("hybrid+1", "the same, with the message before and after", hybrid, neighbours=1),
    StrategyEntry(
        "langgraph-store", "search", "LangGraph's InMemoryStore with an index", StoreSearch
    ),
    StrategyEntry(
        "langchain-summary",
        "summary",
        "LangChain's SummarizationMiddleware",
        SummarizationMiddlewareStrategy,
        needs="langchain",
        **_SUMMARY,
    ),
    StrategyEntry(
        "langmem-summary",
        "summary",
        "LangMem's SummarizationNode",
        SummarizationNodeStrategy,
        needs="langmem",
        **_SUMMARY,
    ),
    StrategyEntry("mem0", "search", "mem0 with infer=False over Qdrant", Mem0Search, needs="mem0"),
)

STRATEGIES: dict[str, StrategyEntry] = {recipe.name: recipe for recipe in _ALL}
"""All strategies, in the order in which they run; behind them those that a run brought along."""


def find_strategies(names: Iterable[str], folder: Path | None = None) -> None:
    """Look for strategies by name, and take in those of one's own, each `module:Class`.

    Such a module stands in the folder, or is installed. The class is a `Strategy` that is made with
    `StrategyOptions`; the first line of its docstring is its line in the report.

    Raises:
        ConfigurationError: There is no such strategy.
    """
    for name in names:
        module, _, attribute = name.partition(":")
        if attribute and name not in STRATEGIES:
            STRATEGIES[name] = _load(name, module, attribute, folder or Path())
        elif name not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            meant = suggest(name, STRATEGIES)
            raise ConfigurationError(
                "no strategy {name!r}{meant}; there are {known}, and your own as module:Class",
                name=name,
                meant=meant,
                known=known,
            )


def _load(name: str, module: str, attribute: str, folder: Path) -> StrategyEntry:
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
    try:
        made = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            "strategy {name!r} cannot be loaded: {error}. Its module stands in {place}, or is"
            " installed",
            name=name,
            error=error,
            place=place,
        ) from error
    if not (isinstance(made, type) and issubclass(made, Strategy)):
        raise ConfigurationError("{name!r} is no topicloom_lab.strategies.Strategy", name=name)
    what = (made.__doc__ or name).strip().splitlines()[0].rstrip(".")
    make: Callable[[StrategyOptions], Strategy] = made
    return StrategyEntry(name, "own", what, make, by_budget=bool(getattr(made, "by_budget", False)))
