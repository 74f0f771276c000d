"""Checking documents against the application's schema, and refusing those that cannot be used.

The reducer of the `document` channel may not raise, in the middle of LangGraph's own step, or the
state of the thread could not be read any more. So a document that cannot be used is held with its
error, beside the one that there was; `decline` puts that back, and `refuse` raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import jsonschema
import referencing
from jsonschema.validators import validator_for
from langchain_core.messages import RemoveMessage
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite
from referencing.exceptions import Unresolvable

from topicloom.domain.document import REFUSED, Document, get_anchor, parse_document
from topicloom.domain.edits import DocumentCheck
from topicloom.domain.state import DomainState
from topicloom.errors import ConfigurationError, InputError
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, current_session, node, open_workspace
from topicloom.state.identity import select_unstored
from topicloom.state.stored_message import get_message_type

_KEPT = "kept"
_MOST_FAULTS = 3
"""Faults that are named at once."""
_LONGEST = 240
"""Characters of a fault."""


def make_checker(schema: Mapping[str, Any]) -> DocumentCheck:
    """A function that gives the faults of a document by a schema.

    Raises:
        ConfigurationError: If it is no JSON schema. The function itself raises one if the schema
            refers to something that is not in it: nothing is fetched.
    """
    rules = dict(schema)
    kind = validator_for(rules, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(rules)
    except jsonschema.SchemaError as error:
        raise ConfigurationError(f"domain.schema is not a JSON schema: {error.message}") from error
    validator = kind(rules, registry=referencing.Registry())

    def check(document: Document) -> list[str]:
        try:
            errors = list(islice(validator.iter_errors(document), _MOST_FAULTS))
        except Unresolvable as error:
            raise ConfigurationError(
                f"domain.schema has a reference that does not exist in it: {error}"
            ) from error
        return [_format_fault(document, e.absolute_path, e.message) for e in errors]

    return check


def _format_fault(document: Document, path: Iterable[str | int], message: str) -> str:
    """A fault under the flat path of where it is, as edits name it."""
    value: Any = document
    named: list[str] = []
    for step in path:
        value = value[step]
        own = get_anchor(value) if isinstance(value, dict) else None
        named = [own] if own else [*named, str(step)]
    text = message if len(message) <= _LONGEST else message[:_LONGEST] + "..."
    return f"{'.'.join(named) or 'document'}: {text}"


def validate_document(value: object, check: DocumentCheck | None) -> Document:
    """A document as it came from outside, as a copy that fits the schema.

    Raises:
        InputError: If it cannot be used; names the path.
    """
    document = parse_document(value)
    faults = check(document) if check else []
    if faults:
        raise InputError(f"the document does not fit the schema: {'; '.join(faults)}")
    return document


def make_document_reducer(check: DocumentCheck | None) -> Callable[[Document, Document], Document]:
    """The reducer of the `document` channel, for documents of a schema."""

    def reduce(old: Document, new: Document) -> Document:
        try:
            return validate_document(new, check)
        except InputError as error:
            return {REFUSED: str(error), _KEPT: old[_KEPT] if REFUSED in old else old}

    return reduce


def decline(deps: Deps) -> Runnable[DomainState, Update]:
    """The node that puts everything back as it was before the input."""

    def step(state: DomainState) -> Update:
        session = current_session(state)
        workspace = open_workspace(deps.workspaces, session)
        messages = state.get("messages", [])
        new = select_unstored(messages, workspace.recent(session, messages))
        # What stands before the user's message is a tool loop that was cut off; it stays.
        users = (n for n, m in enumerate(new) if get_message_type(m) == "human")
        given = new[next(users, len(new)) :]
        return {
            "document": Overwrite(state["document"][_KEPT]),
            "refused": state["document"][REFUSED],
            "messages": [RemoveMessage(id=m.id) for m in given if m.id is not None],
        }

    return node(step, "decline")


def refuse() -> Runnable[DomainState, Update]:
    """The node that raises `InputError`."""

    def step(state: DomainState) -> Update:
        raise InputError(state["refused"])

    return node(step, "refuse")
