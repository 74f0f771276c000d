"""What is known of the user in a turn: facts are read, chosen at a split, and shown in prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topicloom.context.notes import format_facts
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import open_workspace, read_graph_store, turn_options
from topicloom.state import facts
from topicloom.state.facts import KnownFact, drop_outdated
from topicloom.state.session import Session


def choose_facts(deps: Deps, session: Session, refs: Sequence[str]) -> Session:
    """The session with the facts that its prompts show from now on, as long as the prefix lasts.

    They are the newest, of the branch that the transcript's `refs` are of, and come to no more
    tokens than a turn may recall.
    """
    chosen = facts.choose_facts(
        _read_facts(deps, session),
        refs,
        deps.window.counter.text,
        tokens=deps.window.recall,
        most=deps.settings.facts,
    )
    now = deps.clock().isoformat(timespec="seconds") if session.user_id else ""
    return session.model_copy(update={"facts": chosen, "facts_chosen": now})


def show_facts(deps: Deps, session: Session) -> str:
    """The caller's instructions for the turn, and the chosen facts as they stand in the prompt.

    "" if there is neither. A fact that is kept no more is not shown.
    """
    known = _read_facts(deps, session) if session.facts else {}
    return "\n\n".join(filter(None, [turn_options().instructions, format_chosen(session, known)]))


def format_chosen(session: Session, known: Mapping[str, KnownFact]) -> str:
    """The session's chosen facts, as far as they are known, as they stand in the prompt."""
    kept = [(day, known[key].text) for key, day in session.facts.items() if key in known]
    return format_facts(kept, session.language)


def _read_facts(deps: Deps, session: Session) -> dict[str, KnownFact]:
    """The facts of the session, or those of its user, by key, the newest last."""
    workspace = open_workspace(deps.workspaces, session)
    if not deps.settings.facts:
        return {}
    if session.user_id:
        now = deps.clock().timestamp()
        store = workspace.store
        found = read_graph_store(
            workspace, lambda kept, _: deps.person_facts(kept, store, session, now), session
        )
        return dict(found or {})
    known = read_graph_store(workspace, deps.known_facts, session) or {}
    return drop_outdated(known, workspace.store.superseded(session))
