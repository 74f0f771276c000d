"""The selector as a chat model: it picks candidates by their previews."""

from __future__ import annotations

from collections.abc import Set

from topicloom.context.choosing import selector_messages
from topicloom.effects import Step
from topicloom.errors import UnusableAnswerError
from topicloom.prompts.selections import ParsedSelection, parse_selection
from topicloom.roles.base import Answer
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import clip, remark
from topicloom.roles.planning import Selection, SelectRequest

_RATIONALE = 300
"""Characters of a rationale."""


class LLMSelector(LLMRole[SelectRequest, Selection]):
    """Takes out what merely sounds alike (spec 004, 6.3)."""

    role = "selector"

    def step(self, request: SelectRequest) -> Step[Answer[Selection]]:
        """Pick; ids that are no candidates, and those past the limit, are dropped."""
        prompt = selector_messages(
            request.query,
            request.tail,
            request.candidates,
            request.limit,
            request.language,
            self._chat.counter,
            self._chat.limit,
        )
        known = {c.id for c in request.candidates}
        asked = yield from self.ask(
            request, "selector", prompt, lambda t: _parsed(t, known), "selection"
        )
        ids = [i for i in asked.value.ids if i in known]
        remarks = (
            *remark(
                [i for i in asked.value.ids if i not in known],
                "id is no candidate",
                "ids are no candidates",
            ),
            *remark(ids[request.limit :], "pick too many", "picks too many"),
        )
        chosen = Selection(tuple(ids[: request.limit]), clip(asked.value.rationale, _RATIONALE))
        return Answer(chosen, asked.usage, asked.remarks + remarks)


def _parsed(text: str, known: Set[str]) -> ParsedSelection:
    """A selection of at least one candidate, unless nothing was to be picked.

    Raises:
        UnusableAnswerError: If it cannot be read, or picks nothing but what does not exist.
    """
    selection = parse_selection(text)
    if selection.ids and known.isdisjoint(selection.ids):
        raise UnusableAnswerError(f"none of {len(selection.ids)} picked ids is a candidate")
    return selection
