"""What becomes of a reply that the main model gave: what of it stands, and what it asks for."""

from __future__ import annotations

from langchain_core.messages import AIMessage

from topicloom.state.message_form import make_storable
from topicloom.state.messages import (
    find_edit_calls,
    find_search_request,
    says_something,
    strip_tool_calls,
)
from topicloom.state.session import SearchRequest


def settle_reply(
    reply: AIMessage, *, seen: bool, cut: str, search: str, edit: str, runs_tools: bool
) -> tuple[AIMessage | None, SearchRequest | None]:
    """What of a reply stands, None if it says and calls nothing; and the search that it asks for.

    Raises `InputError` if it cannot be stored.

    Args:
        reply: As the model gave it.
        seen: True if the user saw it.
        cut: The reason why it ended too early; "" for a whole one.
        search: Name of the tool that searches topics; "" if none was offered.
        edit: Name of the tool that edits the application's document, likewise.
        runs_tools: True if somebody runs other tools.
    """
    message = make_storable(reply)
    if cut:
        # No tool runs with half of its arguments, and the mark goes wherever it is stored.
        kwargs = {**message.additional_kwargs, "cut": cut}
        message = strip_tool_calls(message.model_copy(update={"additional_kwargs": kwargs}))
    request = find_search_request(message, search) if search else None
    edits = bool(edit and find_edit_calls(message, edit))
    if edits and seen:
        request = None  # an edit that the user has read about goes before a search
    if (request and seen) or not (request or runs_tools or edits):
        # What the user saw stands, even if it goes on to ask for more topics, and so do the words
        # of a reply that calls a tool which was not offered.
        message = strip_tool_calls(message)
    stands = says_something(message) or message.tool_calls or edits
    return message if stands else None, request
