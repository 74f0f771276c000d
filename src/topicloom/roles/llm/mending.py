"""Mending answers: what had to be dropped or cut, in words for the receipt."""

from __future__ import annotations

from collections.abc import Sequence

_NAMED = 5


def clip(text: str, characters: int) -> str:
    """A text of at most some characters, an ellipsis at its end if it was longer."""
    text = text.strip()
    return text if len(text) <= characters else text[: characters - 1].rstrip() + "…"


def remark(things: Sequence[str], one: str, many: str) -> tuple[str, ...]:
    """A remark that counts and names some things; none if there are none.

    Args:
        things: Their names; the first few are named.
        one: What is said of one, such as "id is not in the topic".
        many: What is said of several, such as "ids are not in the topic".
    """
    if not things:
        return ()
    named = ", ".join(things[:_NAMED]) + (", ..." if len(things) > _NAMED else "")
    return (f"{len(things)} {one if len(things) == 1 else many}: {named}",)
