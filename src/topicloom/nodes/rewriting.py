"""Resolving what a message refers to, before topics are looked for."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.roles.calls import ask_role
from topicloom.roles.rewriter import REWRITER, RewriteRequest
from topicloom.state.receipt import Call
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage

_REFERRED = 6
"""Messages before one that it may refer to: three rounds."""


def rewrite_query(
    deps: Deps, session: Session, query: str, recent: Sequence[StoredMessage], calls: list[Call]
) -> Step[str]:
    """The query with references resolved, if there is a rewriter, and topics to look for.

    `recent` are the messages before it, of which the newest are shown. Adds to `calls`.
    """
    rewriter = deps.roles.get(REWRITER)
    if rewriter is None or not session.topics:
        return query
    request = RewriteRequest(session.id, query, recent[-_REFERRED:], session.language)
    waits = deps.waits.get(session.id)
    rewritten, call = yield from ask_role("rewriter", rewriter, request, waits=waits)
    calls.append(call)
    return rewritten or query
