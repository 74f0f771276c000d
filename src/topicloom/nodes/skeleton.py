"""skeleton: the application's document as text, as far as the prompt does not show it yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable

from topicloom.context.layers import layer_text
from topicloom.context.skeleton import Rendered, Skeletons
from topicloom.context.window import MainWindow
from topicloom.nodes.step import (
    Update,
    current_plan,
    current_session,
    current_turn,
    dumped,
    node,
    open_workspace,
)
from topicloom.nodes.workspace import Workspaces
from topicloom.state.channels import DomainState
from topicloom.state.layers import Layer, skeleton_layer
from topicloom.state.plan import Plan
from topicloom.state.receipt import Call
from topicloom.state.session import Session, Turn
from topicloom.storage.sessions import SessionStore


@dataclass(frozen=True, slots=True)
class SkeletonDesk:
    """Knows what the prompt shows of the document, and what it has to be told."""

    skeletons: Skeletons
    window: MainWindow

    def rendered(self, state: Mapping[str, Any]) -> Rendered:
        """The skeleton as it is now, whole."""
        plan = current_plan(state) or Plan()
        return self.skeletons.render(state.get("document") or {}, plan)

    def due(self, text: str, store: SessionStore, session: Session, turn: Turn) -> Layer | None:
        """What has to be said of a skeleton; None if the prompt shows it all."""
        notes = store.notes(session)
        if self.window.layout.order == "spec":
            # That order shows the notes of the turn and no others.
            notes = [n for n in notes if n.after == turn.user]
        return skeleton_layer(text, [(n.after, layer) for n in notes for layer in n.layers])

    def expected(
        self, state: Mapping[str, Any], store: SessionStore, session: Session, turn: Turn
    ) -> tuple[int, int]:
        """Tokens that the skeleton adds to the prompt of this turn, and that it has whole."""
        text = self.rendered(state).text
        layer, whole = self.due(text, store, session, turn), Layer(kind="deterministic", text=text)
        count = self.window.counter.text
        return count(layer_text(layer)) if layer else 0, count(layer_text(whole)) if text else 0


def skeleton(*, workspaces: Workspaces, desk: SkeletonDesk) -> Runnable[DomainState, Update]:
    """The node that hands the skeleton in for the note of the turn."""

    def step(state: DomainState) -> Update:
        session, turn = current_session(state), current_turn(state)
        store = open_workspace(workspaces, session).store
        rendered = desk.rendered(state)
        layer = desk.due(rendered.text, store, session, turn)
        update: Update = {}
        if layer is not None:
            update["layers"] = [layer.model_dump(mode="json", exclude_defaults=True)]
        if rendered.fault:
            update["calls"] = dumped([Call(role="skeleton", failure=rendered.fault)])
        return update

    return node(step, "skeleton")
