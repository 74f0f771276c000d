"""The nodes and channels that the domain of an application adds to the session graph.

The first of these nodes is here: `plan` decides on the kind of turn, its subject and its search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore

from topicloom.domain import Domain
from topicloom.domain.curate import curate
from topicloom.domain.curator import Curator
from topicloom.domain.document import Document, list_active_events
from topicloom.domain.edit import edit
from topicloom.domain.edits import replay_edits
from topicloom.domain.lore import DocumentLoreIndex, LoreIndex, VectorStoreLoreIndex
from topicloom.domain.plan import TurnPlan
from topicloom.domain.planner import PLANNER, EmbeddedPlanner, PlanRequest, sanitize_plan
from topicloom.domain.recall_source import check_sources
from topicloom.domain.selector import SELECTOR, EmbeddedSelector
from topicloom.domain.skeleton import SkeletonRenderer, SkeletonService, render_skeleton
from topicloom.domain.state import DomainState, current_plan
from topicloom.domain.validate_document import make_checker, validate_document
from topicloom.effects import Step
from topicloom.errors import ConfigurationError
from topicloom.nodes.catch_up import Replay
from topicloom.nodes.deps import Deps
from topicloom.nodes.rewriting import rewrite_query
from topicloom.nodes.step import Node, Update, dump, dumped, open_turn
from topicloom.roles.calls import ask_first
from topicloom.search.embedder import Embedder
from topicloom.state.receipt import Call
from topicloom.storage.disk import make_folder
from topicloom.storage.file_rows import BatchFile
from topicloom.storage.files import FileStorage
from topicloom.storage.names import safe_name
from topicloom.storage.protection import find_inner, protect_vectors
from topicloom.storage.vectors import VectorLog

if TYPE_CHECKING:
    from topicloom.storage.encryption import EncryptionKeys


@dataclass(frozen=True, slots=True)
class DomainRuntime:
    """A domain that is ready to be built into a graph."""

    nodes: dict[str, Runnable[Any, Any]]
    skeletons: SkeletonService
    replay: Replay
    """Makes edits of other writers."""
    lore: LoreIndex | None
    validate: Callable[[object], Document]
    """A document as it came from outside, checked; raises `InputError` if it cannot be used."""

    parallel_nodes = ("skeleton", "curate")
    """Nodes that run at the same time as the readers."""

    @classmethod
    def prepare(
        cls, domain: Domain, deps: Deps, running: DomainRuntime | None = None
    ) -> DomainRuntime:
        """Make the runtime of a domain. It shares the lore of one that is `running` already.

        Raises:
            ConfigurationError: If its schema, a template, a source or a number of it cannot be
                used, or two documents of its lore have the same id.
        """
        _check_numbers(domain)
        check_sources(domain.sources)
        check = make_checker(domain.schema) if domain.schema is not None else None
        skeletons = SkeletonService(SkeletonRenderer(domain), deps)
        lore = running.lore if running else _open_lore(domain, deps)
        curator = Curator(deps.roles.get(SELECTOR) or EmbeddedSelector(), domain.deadline)
        nodes = {
            "plan": plan(deps, lore, domain.events, skeletons.renderer.templates),
            "skeleton": render_skeleton(skeletons),
            "edit": edit(deps, check),
            "curate": curate(deps, curator, lore, domain),
        }
        return cls(
            nodes,
            skeletons,
            partial(replay_edits, check=check),
            lore,
            partial(validate_document, check=check),
        )


def _check_numbers(domain: Domain) -> None:
    for name, least in (("deadline", 0), ("candidates", 1), ("picks", 1)):
        number = getattr(domain, name)
        if not number >= least:
            raise ConfigurationError(f"domain: {name}={number!r} has to be at least {least}")


def _open_lore(domain: Domain, deps: Deps) -> LoreIndex | None:
    if isinstance(domain.lore, VectorStore):
        return VectorStoreLoreIndex(domain.lore)
    storage, folder = find_inner(deps.workspaces.storage), deps.settings.folder
    if folder is None and isinstance(storage, FileStorage):
        folder = storage.root
    keys = deps.workspaces.keys
    open_log = partial(_open_vector_log, folder, keys) if folder is not None else None
    if not domain.lore:
        return None
    # The other half is the selector's.
    return DocumentLoreIndex(domain.lore, deps.embedder, open_log, patience=domain.deadline / 2)


def _open_vector_log(folder: Path, keys: EncryptionKeys | None, embedder: Embedder) -> VectorLog:
    """Vectors of lore in a folder, beside the sessions."""

    @contextmanager
    def writing() -> Iterator[None]:
        make_folder(folder, fsync=False)
        with FileLock(folder / ".lore", mode=0o600):
            yield

    rows = BatchFile(folder / f"lore-{safe_name(embedder.fingerprint)}.bin")
    return VectorLog(protect_vectors(rows, keys, "lore"), writing)


_TAIL = 6
"""Messages before the new one that a planner sees."""


def plan(
    deps: Deps, lore: LoreIndex | None, events: str, templates: Mapping[str, str]
) -> Runnable[DomainState, Update]:
    """The node that has the turn planned; another planner stands in for one that fails.

    Meanwhile lore is embedded, so that a process's first curation need not wait for that.
    """
    planners = (*deps.roles.in_turn(PLANNER), EmbeddedPlanner())[:2]

    def step(state: DomainState) -> Step[Update]:
        if isinstance(lore, DocumentLoreIndex):
            lore.prepare()
        session, turn, workspace = open_turn(deps.workspaces, state)
        document = state.get("document") or {}
        request = PlanRequest(
            session=session.id,
            query=turn.query,
            tail=workspace.store.messages(session, turn.first - _TAIL, turn.first - 1),
            document=document,
            events=list_active_events(document, events),
            templates=templates,
            previous=current_plan(state),
            language=session.language,
        )
        calls: list[Call] = []
        found = yield from ask_first(
            "planner", planners, request, calls, waits=deps.waits.get(session.id)
        )
        made, _ = sanitize_plan(found or TurnPlan(), request)
        fast, query = made.kind == "state_edit", turn.query
        if turn.answer and not fast:
            query = yield from rewrite_query(deps, session, query, request.tail, calls)
        turn = turn.model_copy(update={"fast": fast, "query": query})
        return {
            **dump(turn=turn),
            "plan": made.model_dump(mode="json", exclude_defaults=True),
            "layers": None,
            "calls": dumped(calls),
        }

    return Node(step, "plan")
