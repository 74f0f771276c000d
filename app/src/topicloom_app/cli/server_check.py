"""What a user's own model server takes, found out by two small requests."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, get_args

from langchain_core.messages import HumanMessage, SystemMessage

from topicloom.hosting import Need, Server, describe_error, take_retries

_LONGEST_CHECK = 30.0
"""Seconds that each request may take."""
_TOOL: Mapping[str, Any] = {
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object", "properties": {}},
}


def describe_server(server: Server) -> str:
    """A line on what one's own server takes, after a request with a tool and one by a schema.

    It says nothing of how well the model uses that. Empty for a model that is served elsewhere.
    """
    if server.model is None or not server.own:
        return ""
    once, _ = take_retries(server.model)
    schemas: list[dict[str, str] | None] = [{"type": "object"}, None]
    while schemas:
        try:
            asked = server.shape([SystemMessage("Say yes."), *map(HumanMessage, ("A.", "B."))])
            bare = schemas[-1] or "tools" in server.refused
            model = once if bare else once.bind_tools([dict(_TOOL)])
            model.invoke(asked, **server.limit(1, _LONGEST_CHECK, schemas[-1]))
            schemas.pop()
        except Exception as error:  # noqa: BLE001 - a failure is the answer
            if not server.learn(error, server.context or sys.maxsize):
                return f"no answer: {describe_error(error)}"
    size = f"{server.context:,} tokens" if server.context else "of a size that it does not say"
    unknown = {*server.refused, "later system", "images"}  # none was sent
    takes = ", ".join(need for need in get_args(Need) if need not in unknown)
    return "; ".join([f"context {size}", f"takes {takes}", *server.remarks])
