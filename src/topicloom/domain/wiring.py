"""What the domain of an application adds to the session graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast, get_type_hints

from filelock import FileLock
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import ValidationError

from topicloom.domain.curate import curate
from topicloom.domain.curation import CurationPolicy
from topicloom.domain.curator import Curator
from topicloom.domain.document import Document
from topicloom.domain.domain import Domain
from topicloom.domain.edit import edit
from topicloom.domain.edits import DocumentCheck
from topicloom.domain.events import DocumentEvent, is_active, list_events
from topicloom.domain.lore import LoreIndex
from topicloom.domain.lore_stores import DocumentLoreIndex, VectorStoreLoreIndex
from topicloom.domain.plan_turn import plan
from topicloom.domain.planner import PLANNER, EmbeddedPlanner
from topicloom.domain.schema import make_checker, validate_document
from topicloom.domain.selector import SELECTOR, EmbeddedSelector
from topicloom.domain.skeleton import SkeletonRenderer, SkeletonService, render_skeleton
from topicloom.domain.validate_document import decline, make_document_reducer, refuse
from topicloom.errors import ConfigurationError
from topicloom.index.embedder import Embedder
from topicloom.nodes.deps import Deps
from topicloom.state.channels import DomainInput, DomainState, SessionInput, SessionState
from topicloom.storage.file_rows import vectors_in
from topicloom.storage.names import safe_name
from topicloom.storage.vectors import VectorLog


@dataclass(frozen=True, slots=True)
class DomainRuntime:
    """A domain with the collaborators of its nodes."""

    domain: Domain
    deps: Deps
    check: DocumentCheck | None
    """The application's JSON schema."""
    desk: SkeletonService
    curate: Runnable[Any, Any] | None = None
    """The node that looks for what else is worth knowing; None to do without."""

    @classmethod
    def of(cls, domain: Domain, deps: Deps) -> DomainRuntime:
        """Get a domain ready.

        Raises:
            ConfigurationError: If its schema or a template cannot be used.
        """
        check = make_checker(domain.schema) if domain.schema is not None else None
        desk = SkeletonService(SkeletonRenderer(domain), deps.window)
        return cls(domain, deps, check, desk, build_curation_node(domain, deps))

    @property
    def streams(self) -> tuple[str, ...]:
        """Nodes that run beside the readers."""
        return ("skeleton", "curate") if self.curate is not None else ("skeleton",)

    def nodes(self) -> dict[str, Runnable[Any, Any]]:
        """The nodes of the domain, by name."""
        workspaces, roles = self.deps.workspaces, self.deps.roles
        own = EmbeddedPlanner()
        nodes = {
            "decline": decline(workspaces=workspaces),
            "refuse": refuse(),
            "plan": plan(
                workspaces=workspaces,
                planner=roles.get(PLANNER) or own,
                fallback=roles.stand_in(PLANNER) or own,
                events=self._active,
                templates=self.desk.skeletons.names,
            ),
            "skeleton": render_skeleton(workspaces=workspaces, desk=self.desk),
            "edit": edit(workspaces=workspaces, check=self.check),
        }
        return nodes | ({"curate": self.curate} if self.curate is not None else {})

    def _active(self, document: Document) -> list[DocumentEvent]:
        return [e for e in list_events(document, self.domain.events) if is_active(e)]

    def schemas(self) -> tuple[type[SessionState], type[SessionInput]]:
        """State and input of the graph, with the document as a channel.

        What comes into the channel is checked as it comes, so that a document which is refused
        leaves no trace: neither in the state nor, by its message, in the conversation.
        """

        kept = make_document_reducer(lambda document: validate_document(document, self.check))
        return (
            cast("type[SessionState]", _add_document_channel("State", DomainState, kept)),
            cast("type[SessionInput]", _add_document_channel("Input", DomainInput, kept)),
        )


def _add_document_channel(
    name: str, schema: type[Any], kept: Callable[[Document, Document], Document]
) -> type[Any]:
    """A state schema whose document goes through a function."""
    hints = get_type_hints(schema, include_extras=True)
    fields = {**hints, "document": Annotated[dict[str, Any], kept]}
    made: type[Any] = TypedDict(name, fields, total=False)  # type: ignore[misc]
    return made


def build_curation_node(domain: Domain, deps: Deps) -> Runnable[Any, Any]:
    """The node that looks for what else is worth knowing.

    Args:
        domain: Says where to look, and for how long.
        deps: Of the session graph.

    Raises:
        ConfigurationError: If the domain's numbers make no sense, or two documents of its lore have
            the same id.
    """
    shelf = _open_lore(domain, deps.settings.folder, deps.embedder)
    curator = Curator(deps.roles.get(SELECTOR) or EmbeddedSelector(), _make_policy(domain), shelf)
    return curate(
        workspaces=deps.workspaces,
        window=deps.window,
        curator=curator,
        lore=shelf,
        events=domain.events,
    )


def _make_policy(domain: Domain) -> CurationPolicy:
    try:
        return CurationPolicy(
            deadline=domain.deadline, candidates=domain.candidates, picks=domain.picks
        )
    except ValidationError as error:
        wrong = "; ".join(f"{e['loc'][0]}={e['input']!r}: {e['msg']}" for e in error.errors())
        raise ConfigurationError(f"domain: {wrong}") from error


def _open_lore(domain: Domain, folder: Path | None, embedder: Embedder) -> LoreIndex | None:
    if isinstance(domain.lore, VectorStore):
        return VectorStoreLoreIndex(domain.lore)
    vectors = _open_vector_log(folder, embedder) if folder is not None else None
    return DocumentLoreIndex(domain.lore, embedder, vectors) if domain.lore else None


def _open_vector_log(folder: Path, embedder: Embedder) -> VectorLog:
    """Vectors of lore in a folder, beside the sessions."""

    @contextmanager
    def writing() -> Iterator[None]:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lore"):
            yield

    return vectors_in(folder / f"lore-{safe_name(embedder.fingerprint)}.bin", writing)
