"""The strategies that can be compared, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Literal

from topicloom.index.words import words_of
from topicloom_lab.strategies.base import Strategy, StrategyOptions
from topicloom_lab.strategies.peers import (
    Mem0Search,
    SummarizationMiddlewareStrategy,
    SummarizationNodeStrategy,
)
from topicloom_lab.strategies.recency import FirstAndLast, KeepEverything, LastTokens
from topicloom_lab.strategies.search import Dense, Lexical, SearchStrategy, StoreSearch, hybrid
from topicloom_lab.strategies.segments import SegmentSummaries
from topicloom_lab.strategies.session_graph import SessionGraphStrategy

Kind = Literal["topicloom", "place", "summary", "search"]
"""The signal that a strategy ranks by."""


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
        return f"{self.needs} is not installed: pip install 'topicloom-lab[peers]'"


_ALL = (
    StrategyEntry(
        "topicloom",
        "topicloom",
        "the session graph with its embedded roles",
        SessionGraphStrategy,
        by_budget=True,
    ),
    StrategyEntry(
        "everything", "place", "the whole conversation", lambda _: KeepEverything(), limited=False
    ),
    StrategyEntry("last", "place", "the newest messages that fit", lambda _: LastTokens()),
    StrategyEntry(
        "first+last", "place", "the first round and the newest five", lambda _: FirstAndLast()
    ),
    StrategyEntry(
        "segments",
        "summary",
        "first round, summaries of segments of 5 to 8 rounds, newest five rounds",
        SegmentSummaries,
        sums_up=True,
    ),
    StrategyEntry("bm25", "search", "BM25", lambda _: SearchStrategy(Lexical())),
    StrategyEntry(
        "bm25+1",
        "search",
        "BM25, with the message before and after",
        lambda _: SearchStrategy(Lexical(), neighbours=1),
    ),
    StrategyEntry(
        "bm25-stems+1",
        "search",
        "the same on topicloom's own words: endings off, no function words",
        lambda _: SearchStrategy(Lexical(words_of), neighbours=1),
    ),
    StrategyEntry(
        "bm25-user",
        "search",
        "BM25 over what the user said",
        lambda _: SearchStrategy(Lexical(), users_only=True),
    ),
    StrategyEntry(
        "dense",
        "search",
        "vectors of messages",
        lambda options: SearchStrategy(Dense(options.embedder)),
    ),
    StrategyEntry(
        "hybrid",
        "search",
        "vectors and BM25, of messages and of pairs of them",
        lambda options: SearchStrategy(hybrid(options.embedder)),
    ),
    StrategyEntry(
        "hybrid+1",
        "search",
        "the same, with the message before and after",
        lambda options: SearchStrategy(hybrid(options.embedder), neighbours=1),
    ),
    StrategyEntry(
        "langgraph-store", "search", "LangGraph's InMemoryStore with an index", StoreSearch
    ),
    StrategyEntry(
        "langchain-summary",
        "summary",
        "LangChain's SummarizationMiddleware",
        SummarizationMiddlewareStrategy,
        by_budget=True,
        sums_up=True,
        needs="langchain",
    ),
    StrategyEntry(
        "langmem-summary",
        "summary",
        "LangMem's SummarizationNode",
        SummarizationNodeStrategy,
        by_budget=True,
        sums_up=True,
        needs="langmem",
    ),
    StrategyEntry(
        "mem0",
        "search",
        "mem0 with infer=False over Qdrant",
        Mem0Search,
        needs="mem0",
    ),
)

STRATEGIES: Mapping[str, StrategyEntry] = MappingProxyType({recipe.name: recipe for recipe in _ALL})
"""All strategies, in the order in which they run."""
