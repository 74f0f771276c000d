"""decline, refuse: a document that cannot be used leaves no trace but its error.

What comes into the `document` channel goes through `keeping`. It may not raise there, in the middle
of LangGraph's own step, or nobody could read the state of the thread any more. So what cannot be
used is held with its error, beside the document that there was. `decline` puts that one back and
takes the messages that came with the other out of the channel; `refuse` raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from topicloom.domain.document import REFUSED, Document
from topicloom.errors import InputError
from topicloom.nodes.step import Update, current_session, node, open_workspace
from topicloom.nodes.workspace import Workspaces
from topicloom.state.channels import DomainState
from topicloom.state.messages import select_unstored
from topicloom.state.stored_message import get_message_type

_KEPT = "kept"


def make_document_reducer(
    admitted: Callable[[object], Document],
) -> Callable[[Document, Document], Document]:
    """The reducer of the `document` channel.

    Args:
        admitted: Gives a document that can be used, or raises `InputError`.
    """

    def kept(old: Document, new: Document) -> Document:
        try:
            return admitted(new)
        except InputError as error:
            return {REFUSED: str(error), _KEPT: old.get(_KEPT) if is_refused(old) else old}

    return kept


def is_refused(document: Mapping[str, Any]) -> bool:
    """Whether the channel holds a document that cannot be used."""
    return REFUSED in document


def decline(*, workspaces: Workspaces) -> Runnable[DomainState, Update]:
    """The node that puts everything back as it was before the input."""

    def step(state: DomainState) -> Update:
        session = current_session(state)
        workspace = open_workspace(workspaces, session)
        messages = state.get("messages", [])
        given = _select_given(select_unstored(messages, workspace.recent(session, messages)))
        return {
            "document": Overwrite(state["document"][_KEPT]),
            "refused": state["document"][REFUSED],
            "messages": [RemoveMessage(id=m.id) for m in given if m.id is not None],
        }

    return node(step, "decline")


def refuse() -> Runnable[DomainState, Update]:
    """The node that raises the error.

    Raises:
        InputError: Always.
    """

    def step(state: DomainState) -> Update:
        raise InputError(state["refused"])

    return node(step, "refuse")


def _select_given(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Those that came with the input: a tool loop that was cut off before it stays."""
    users = (n for n, m in enumerate(messages) if get_message_type(m) == "human")
    return messages[next(users, len(messages)) :]
