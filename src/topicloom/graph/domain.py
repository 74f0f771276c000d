"""What the domain of an application adds to the session graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, cast, get_type_hints

from langchain_core.runnables import Runnable

from topicloom.context.domain import Domain
from topicloom.context.schema import admitted, checker
from topicloom.context.skeleton import Skeletons
from topicloom.domain.planner import PLANNER, EmbeddedPlanner
from topicloom.graph.curating import curation_node
from topicloom.nodes.admit import decline, keeping, refuse
from topicloom.nodes.deps import Deps
from topicloom.nodes.edit import edit
from topicloom.nodes.plan import plan
from topicloom.nodes.skeleton import SkeletonDesk, skeleton
from topicloom.state.channels import DomainInput, DomainState, SessionInput, SessionState
from topicloom.state.document import Document
from topicloom.state.edits import Check
from topicloom.state.events import Event, events_of, is_active


@dataclass(frozen=True, slots=True)
class DomainRuntime:
    """A domain with the collaborators of its nodes."""

    domain: Domain
    deps: Deps
    check: Check | None
    """The application's JSON schema."""
    desk: SkeletonDesk
    curate: Runnable[Any, Any] | None = None
    """The node that looks for what else is worth knowing; None to do without."""

    @classmethod
    def of(cls, domain: Domain, deps: Deps) -> DomainRuntime:
        """Get a domain ready.

        Raises:
            ConfigurationError: If its schema or a template cannot be used.
        """
        check = checker(domain.schema) if domain.schema is not None else None
        desk = SkeletonDesk(Skeletons(domain), deps.window)
        return cls(domain, deps, check, desk, curation_node(domain, deps))

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
            "skeleton": skeleton(workspaces=workspaces, desk=self.desk),
            "edit": edit(workspaces=workspaces, check=self.check),
        }
        return nodes | ({"curate": self.curate} if self.curate is not None else {})

    def _active(self, document: Document) -> list[Event]:
        return [e for e in events_of(document, self.domain.events) if is_active(e)]

    def schemas(self) -> tuple[type[SessionState], type[SessionInput]]:
        """State and input of the graph, with the document as a channel.

        What comes into the channel is checked as it comes, so that a document which is refused
        leaves no trace: neither in the state nor, by its message, in the conversation.
        """

        kept = keeping(lambda document: admitted(document, self.check))
        return (
            cast("type[SessionState]", _with_document("State", DomainState, kept)),
            cast("type[SessionInput]", _with_document("Input", DomainInput, kept)),
        )


def _with_document(
    name: str, schema: type[Any], kept: Callable[[Document, Document], Document]
) -> type[Any]:
    """A state schema whose document goes through a function."""
    hints = get_type_hints(schema, include_extras=True)
    fields = {**hints, "document": Annotated[dict[str, Any], kept]}
    made: type[Any] = TypedDict(name, fields, total=False)  # type: ignore[misc]
    return made
