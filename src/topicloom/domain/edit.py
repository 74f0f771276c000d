"""edit: change the application's document as the planner or the main model says, or say why not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel, Field

from topicloom.domain.document import Document, digest_json, to_json_native
from topicloom.domain.edits import AppliedEdit, DocumentCheck, EditResult, apply_edits, parse_edits
from topicloom.domain.plan import TurnPlan
from topicloom.domain.state import DomainState, current_plan
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Node, Update, dump, open_turn
from topicloom.prompts.wording import Wording, get_wording
from topicloom.state.journal import JournalEntry
from topicloom.state.messages import find_edit_calls, find_other_calls, strip_tool_calls
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import get_text
from topicloom.storage.sessions import SessionStore

EDIT_STATE = "edit_state"
_REPAIRS = 1
"""Times that the main model may repair edits that were refused; then the user is told."""


class EditState(BaseModel):
    """Change the application's data, as the user wants it.

    Use the anchors (`id` or `_anchor`) that the newest `<context_layer type="deterministic">`
    shows. A path is an anchor, a dot and one field; never anything deeper. All edits of a call are
    made, or none. Say in words what you changed.
    """

    edits: list[list[Any]] = Field(
        description='Edits in order: ["SET", "anchor.field", value], ["INC", "anchor.field", '
        'number], ["PUSH", "anchor of a container, or anchor.field of a list", value], '
        '["REMOVE", "anchor, or anchor.field"]'
    )


def edit(deps: Deps, check: DocumentCheck | None) -> Runnable[DomainState, Update]:
    """The node that makes the edits of the main model, or else those of the planner."""

    def step(state: DomainState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        document = state.get("document") or {}
        work = _DocumentEdit(session, turn, workspace.store, document, check)
        message = state["messages"][-1]
        if isinstance(message, AIMessage) and find_edit_calls(message, EDIT_STATE):
            return work.answer_calls(message)
        return work.follow_plan(current_plan(state) or TurnPlan())

    return Node(step, "edit")


@dataclass(slots=True)
class _DocumentEdit:
    """A turn's document while it is changed."""

    session: Session
    turn: Turn
    store: SessionStore
    document: Document
    check: DocumentCheck | None
    changed: bool = False

    def follow_plan(self, plan: TurnPlan) -> Update:
        """Make the planner's edits. If they cannot be made, the main model is asked."""
        made = self._apply(plan.edits)
        if made.errors:
            return dump(turn=self.turn)
        return self._update(AIMessage(plan.reply.strip() or self._confirm(made)))

    def answer_calls(self, message: AIMessage) -> Update:
        """Make the main model's edits, those of all its calls together, and answer the calls."""
        calls, wording = find_edit_calls(message, EDIT_STATE), get_wording(self.session.language)
        made = self._apply([edit for _, args in calls for edit in parse_edits(args)])
        if made.errors:
            self.turn = self.turn.model_copy(update={"attempts": self.turn.attempts + 1})
        words = [strip_tool_calls(message)] if get_text(message).strip() else []
        # What is said instead of a message that is only a call takes its place.
        removal = [RemoveMessage(id=message.id)] if message.id is not None else []
        if not find_other_calls(message, EDIT_STATE):
            if self.turn.attempts > _REPAIRS and made.errors:
                return self._update(*(words or removal), AIMessage(wording.not_made))
            if not made.errors and words:
                return self._update(*words)
            if not made.errors and self.turn.fast:
                return self._update(*removal, AIMessage(self._confirm(made)))
        status: Literal["error", "success"] = "error" if made.errors else "success"
        if made.errors:
            errors = "\n".join(f"- {error}" for error in made.errors)
            text = wording.edits_refused.format(errors=errors)
        else:
            text = wording.edits_made.format(changes=self._describe(made))
        return self._update(
            *(ToolMessage(text, name=EDIT_STATE, tool_call_id=i, status=status) for i, _ in calls)
        )

    def _apply(self, edits: Sequence[object]) -> EditResult:
        """Make edits and enter them in the journal, if all of them can be made."""
        made = apply_edits(self.document, edits, self.check)
        if made.errors:
            rejected = (*self.turn.rejected, *made.errors)
            self.turn = self.turn.model_copy(update={"rejected": rejected})
            return made
        done = tuple(map(tuple, to_json_native(edits, "edits")))
        entry = JournalEntry(
            turn=self.session.turn + 1,
            message=f"m{self.turn.user}",
            edits=done,
            before=digest_json(self.document),
            after=digest_json(made.document),
        )
        self.session = self.store.add_edits(self.session, entry)
        self.turn = self.turn.model_copy(update={"edited": (*self.turn.edited, *done)})
        self.document, self.changed = made.document, True
        return made

    def _confirm(self, made: EditResult) -> str:
        return get_wording(self.session.language).made.format(changes=self._describe(made))

    def _describe(self, made: EditResult) -> str:
        language = self.session.language
        changes = (_format_change(change, get_wording(language)) for change in made.changes)
        return ("；" if language == "zh" else "; ").join(changes)

    def _update(self, *messages: BaseMessage) -> Update:
        update = {**dump(self.session, self.turn), "messages": list(messages)}
        return update | ({"document": self.document} if self.changed else {})


def _format_change(change: AppliedEdit, words: Wording) -> str:
    form = words.set_field if change.label else words.set_own
    if change.operation == "PUSH":
        form = words.pushed
    elif change.operation == "REMOVE":
        form = words.removed_field if change.field else words.removed
    value = change.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return form.format(label=change.label or words.document, field=change.field, value=text)
