"""An application's own recall source: one class, from the search to the prompt and the receipt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import isclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from curations import ready
from domains import CONFIG, ScriptedPlanner, open_domain, say
from inspected import inspect
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from sessions import last_receipt, prompt_of, thread
from tickets import PRINTER, Tickets

import topicloom.domain
from topicloom import (
    SELECTOR,
    ConfigurationError,
    Domain,
    RecallHit,
    TurnOptions,
    TurnPlan,
    get_session,
)
from topicloom.context.token_count import EstimatingCounter
from topicloom.context.windows import PromptWindow
from topicloom.domain.curate import make_sources
from topicloom.domain.curation import scale_weights
from topicloom.domain.lore import DocumentLoreIndex
from topicloom.domain.plan import DomainWeights, SearchIntent
from topicloom.domain.recall_source import BUILT_IN_KINDS
from topicloom.domain.selector import build_selector_prompt, parse_selection
from topicloom.domain.state import DomainInput
from topicloom.hosting import CompiledSessionGraph
from topicloom.prompts.loader import Prompts
from topicloom.search.hashing import HashingEmbedder
from topicloom.state.layers import CuratedItem
from topicloom.testing import ScriptedResponder, fake_roles


def open_desk(
    folder: Path,
    *sources: Any,
    responder: ScriptedResponder | None = None,
    selector: Any = None,
    plan: TurnPlan | None = None,
) -> CompiledSessionGraph:
    roles = fake_roles(responder).replace(SELECTOR, selector)
    domain = Domain(sources=sources, deadline=20)
    planner = ScriptedPlanner([plan] if plan else [])
    graph = open_domain(folder, roles, planner=planner, domain=domain, embedder="hashing")
    assert isinstance(graph, CompiledSessionGraph)
    return graph


async def test_what_a_source_finds_reaches_the_prompt_the_receipt_and_the_inspector(
    tmp_path: Path,
) -> None:
    responder, tickets = ScriptedResponder(), Tickets()
    graph = open_desk(tmp_path, tickets, responder=responder)
    config = thread("lake")
    options = TurnOptions(user_id="ann", scope="desk")
    asked = DomainInput(messages=[HumanMessage("Why does the printer jam?")], document={})
    await graph.ainvoke(asked, config, context=options)

    (query,) = tickets.queries
    assert (query.session, query.user_id, query.scope) == ("lake", "ann", "desk")
    assert query.text.startswith("Why does the printer jam?")
    entry = '<memory id="ticket_T-7" type="ticket" title="Printer jams">'
    assert f"<relevant_memories>\n{entry}\n{PRINTER}" in prompt_of(responder.requests[-1])
    item = CuratedItem(id="ticket_T-7", kind="ticket", title="Printer jams")
    assert last_receipt(tmp_path, graph, config).curated == (item,)
    transport = httpx.ASGITransport(inspect(graph))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8322") as page:
        await page.get("/?key=secret")
        receipt = (await page.get("/api/session/lake/receipts/m1")).json()
    assert receipt["curated"] == [item.model_dump()]


def test_a_selector_is_told_what_the_kinds_are(tmp_path: Path) -> None:
    selector = ready()
    say(open_desk(tmp_path, Tickets(), selector=selector), "Why does the printer jam?", {})
    (request,) = selector.requests
    assert [(c.id, c.tags) for c in request.candidates] == [("ticket_T-7", ("solved",))]
    window = PromptWindow.of(8_000, EstimatingCounter("o200k"), Prompts())
    text = "\n".join(str(m.content) for m in build_selector_prompt(request, window))
    assert "\n`ticket`: tickets of the help desk\n[ticket_T-7] Printer jams (solved): The" in text
    assert parse_selection("I take ticket_T-7.", request.kinds).ids == ("ticket_T-7",)


def test_knowledge_stands_apart_from_what_happened(tmp_path: Path) -> None:
    responder = ScriptedResponder()
    handbook = Tickets("guide", "the handbook", True)
    say(open_desk(tmp_path, handbook, responder=responder), "Why does the printer jam?", {})
    assert '<knowledge_base>\n<entry id="guide_T-7" type="guide"' in prompt_of(
        responder.requests[-1]
    )


def test_own_kinds_weigh_like_lore_or_like_the_conversation() -> None:
    search = SearchIntent(weights=DomainWeights(narrative=0.2, lore=0.8, event=0.4))
    weights = scale_weights(search, {"guide": True, "ticket": False})
    assert (weights["guide"], weights["ticket"]) == (weights["lore"], weights["narrative"])


@pytest.mark.parametrize(
    ("hits", "curated"),
    [
        ((), ()),
        ((RecallHit("1", "A", math.nan), RecallHit("2", "B", 7.0)), ("ticket_2",)),
        ((RecallHit("1", "A", 0.9), RecallHit("1", "B", 0.8)), ("ticket_1",)),
        ((RecallHit("\ud800", "half \ud800 text", 0.9),), ("ticket_-",)),
        ((RecallHit("1", "word " * 100_000, 0.9),), ("ticket_1",)),
    ],
)
def test_odd_hits_do_no_harm(
    tmp_path: Path, hits: Sequence[RecallHit], curated: Sequence[str]
) -> None:
    graph = open_desk(tmp_path, Tickets(hits=hits))
    say(graph, "Why does the printer jam?", {})
    assert tuple(item.id for item in last_receipt(tmp_path, graph, CONFIG).curated) == curated


@pytest.mark.parametrize(
    ("hits", "said"),
    [(("a text",), "not a RecallHit"), ((RecallHit("1", "A", "x"),), "'x'")],  # type: ignore[arg-type]
)
def test_a_wrong_answer_is_named_in_the_receipt_and_costs_only_its_source(
    tmp_path: Path, hits: Sequence[Any], said: str
) -> None:
    guide = Tickets("guide", "the handbook", True)
    graph = open_desk(tmp_path, Tickets(hits=hits), guide)
    say(graph, "Why does the printer jam?", {})
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert [item.id for item in receipt.curated] == ["guide_T-7"]
    failures = [call.failure or "" for call in receipt.failures]
    assert any("ticket" in failure and said in failure for failure in failures), failures


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ([Tickets("lore")], "two recall sources have the kind 'lore'"),
        ([Tickets(), Tickets()], "two recall sources have the kind 'ticket'"),
        ([Tickets("Help desk")], "'Help desk': name it by one word"),
        ([Tickets("")], "is ''"),
        ([object()], "object is no recall source"),
    ],
)
def test_a_kind_that_cannot_be_used_is_refused(
    tmp_path: Path, sources: Sequence[Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        open_desk(tmp_path, *sources)


def test_every_source_of_the_package_is_made_for_a_turn(tmp_path: Path) -> None:
    """A class that finds candidates and that no turn asks would look like it works."""
    graph = open_desk(tmp_path)
    say(graph, "Hello", {})
    session = get_session(graph, CONFIG)
    made = make_sources(
        session,
        graph.builder.workspaces.open(session.id, None).store.topic_table(session),
        document={},
        focus=None,
        lore=DocumentLoreIndex([Document("A")], HashingEmbedder(16)),
        domain=Domain(sources=[Tickets()]),
    )
    assert made.keys() == {*BUILT_IN_KINDS, "ticket"}
    assert {type(source) for source in made.values()} == set(list_source_classes())


def list_source_classes() -> list[type]:
    """The classes of the package that search as a `CandidateSource` does."""
    found = []
    for file in Path(topicloom.domain.__path__[0]).glob("*.py"):
        module = import_module(f"topicloom.domain.{file.stem}")
        for value in vars(module).values():
            search: Callable[..., Any] | None = getattr(value, "search", None)
            own = isclass(value) and value.__module__ == module.__name__
            if own and not getattr(value, "_is_protocol", False) and search is not None:
                found.append(value)
    return found
