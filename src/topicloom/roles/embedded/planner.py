"""The embedded planner: rules over cue phrases, names and times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from topicloom.index.words import words_of
from topicloom.prompts.phrases import cue_list, word_groups
from topicloom.roles.base import Answer, Local
from topicloom.roles.embedded.edit_forms import Forms
from topicloom.roles.embedded.phrases import keywords
from topicloom.roles.embedded.things import Things
from topicloom.roles.planning import PlanRequest
from topicloom.state.cues import Cues
from topicloom.state.document import anchor_of, label_of
from topicloom.state.events import Event
from topicloom.state.plan import DomainWeights, Plan, SearchIntent

When = Literal["now", "past", "future"]

_MOST_KEYWORDS = 8
_LONGEST_EDIT = 200
"""Characters of a message that may only be an edit."""
_NAMES = re.compile(r"(?<![.!?。！？] )(?<!^)\b[A-Z][\w'’-]+(?: (?:of |the )?[A-Z][\w'’-]+)*")
_QUOTED = re.compile(r"[\"“「『《]([^\"”」』》]{2,40})[\"”」』》]")
_WEIGHTS: Mapping[When, DomainWeights] = {
    "past": DomainWeights(narrative=0.8, lore=0.3, event=0.6),
    "now": DomainWeights(narrative=0.4, lore=0.6, event=0.5),
    "future": DomainWeights(narrative=0.4, lore=0.4, event=0.8),
}
_EXPLAINING = 0.9
"""Weight of the background where the user asks what something is."""


class EmbeddedPlanner(Local[PlanRequest, Plan]):
    """Plans by rules. A turn is a state edit only if the edit itself is certain."""

    def call(self, request: PlanRequest) -> Answer[Plan]:
        """Plan one turn."""
        things = Things(request.document, word_groups("fields"))
        if len(request.query) <= _LONGEST_EDIT:
            forms = Forms(things, request.document, word_groups("statuses"))
            edit = forms.edit_in(request.query)
            if edit is not None:
                search = SearchIntent(enabled=False)
                return Answer(Plan(kind="state_edit", search=search, edits=(edit,)))
        focus = focus_of(request)
        when = when_of(request.query)
        return Answer(
            Plan(
                focus=anchor_of(focus) if focus else None,
                goal=label_of(focus) if focus else "",
                template=_template(focus, request.templates),
                search=SearchIntent(
                    keywords=_keywords(request.query, things),
                    when=when,
                    weights=_weights(request.query, when),
                ),
            )
        )


def focus_of(request: PlanRequest) -> Event | None:
    """The active event that a message is about.

    The one that shares the rarest words with it; else the one of the turn before, if it still goes
    on; else the only one there is.
    """
    said = set(words_of(request.query))
    words = [set(words_of(_told(event))) for event in request.events]
    worth = [sum(1 / sum(w in other for other in words) for w in own & said) for own in words]
    best = max(worth, default=0.0)
    if best > 0 and worth.count(best) == 1:
        return request.events[worth.index(best)]
    before = request.previous.focus if request.previous else None
    kept = next((e for e in request.events if anchor_of(e) == before), None)
    if kept is not None:
        return kept
    return request.events[0] if len(request.events) == 1 else None


def when_of(text: str) -> When:
    """Which time a message is about: the one that more of its words speak of."""
    past, future = _cues("past").count_in(text), _cues("future").count_in(text)
    if past > future:
        return "past"
    return "future" if future > past else "now"


def _told(event: Event) -> str:
    """What an event says of itself."""
    return " ".join(str(v) for v in event.values() if isinstance(v, str))


def _template(focus: Event | None, templates: Sequence[str]) -> str:
    """The template that the event in focus asks for, if there is one of that name."""
    wanted: Any = focus.get("template") if focus else None
    return wanted if isinstance(wanted, str) and wanted in templates else "default"


def _keywords(text: str, things: Things) -> tuple[str, ...]:
    """NameFinder first: of things in the document, quoted, in capitals; then the rarer words."""
    named = [label_of(place.value) or place.anchor for place in things.mentioned(text)]
    named += _QUOTED.findall(text)
    named += _NAMES.findall(text)
    rest = [w for w in keywords([text], _MOST_KEYWORDS) if not any(w in n.lower() for n in named)]
    return tuple(dict.fromkeys(n for n in [*named, *rest] if n))[:_MOST_KEYWORDS]


def _weights(text: str, when: When) -> DomainWeights:
    weights = _WEIGHTS[when]
    if when == "now" and _explaining().found_in(text):
        return weights.model_copy(update={"lore": _EXPLAINING})
    return weights


@cache
def _cues(time: Literal["past", "future"]) -> Cues:
    return cue_list("past_en", "past_zh") if time == "past" else cue_list("future_en", "future_zh")


@cache
def _explaining() -> Cues:
    return cue_list("explain")
