"""The selector: it picks the candidates worth the main model's reading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Protocol

from langchain_core.messages import BaseMessage

from topicloom.context.windows import PromptWindow, recent_text
from topicloom.domain.curation import FAINT, Candidate, collapse_whitespace
from topicloom.domain.plan import TurnPlan
from topicloom.domain.recall_source import BUILT_IN_KINDS
from topicloom.effects import Step
from topicloom.errors import UnusableAnswerError
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.chat import ChatRole
from topicloom.roles.markup import (
    find_child_text,
    find_elements,
    find_json_values,
    first_of,
    has_tag,
    stringify_values,
)
from topicloom.roles.values import note_repairs
from topicloom.search.words import NameFinder
from topicloom.state.fence import fence, fence_line
from topicloom.state.language import Language
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import StoredMessage

_RATIONALE = 300
"""Characters of a rationale."""
_RECENT_TOKENS = 1_000
"""Tokens of the newest messages."""
_MOST = 50
_ASKED = 0.2
"""Bonus for a candidate that the message names."""
_REFERENCE_SHARE = 0.5
"""Share of a candidate's score that is added to the score of each candidate that it names. On
HotpotQA (docs/guides/curation.md) .4 to .8 do about the same. Without it, .68 of the questions have
all that they need, and not .88."""


@dataclass(frozen=True, slots=True)
class SelectRequest:
    """Candidates to choose from."""

    session: str
    query: str
    tail: Sequence[StoredMessage]
    """The newest messages, oldest first."""
    plan: TurnPlan
    candidates: Sequence[Candidate]
    """Best first."""
    limit: int
    language: Language
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of the application's own sources, by their kinds."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The candidates that were chosen."""

    ids: tuple[str, ...]
    """Best first."""
    rationale: str = ""


class Selector(Role[SelectRequest, Selection], Protocol):
    """Picks the few candidates that are worth the main model's reading."""


class ChatSelector(ChatRole[SelectRequest, Selection]):
    """Picks with a model, which takes out what merely sounds alike."""

    role = "selector"

    def step(self, request: SelectRequest) -> Step[Answer[Selection]]:
        """Pick; ids that are no candidates, and those past the limit, are dropped."""
        prompt = build_selector_prompt(request, self._chat.prompt_window)
        known = {c.id for c in request.candidates}
        asked = yield from self.ask(
            request,
            "selector",
            prompt,
            lambda t: _parse_known(t, known, request.kinds),
            "<selection>",
        )
        unknown = [i for i in asked.value.ids if i not in known]
        ids = [i for i in asked.value.ids if i in known]
        repairs = (
            *note_repairs(unknown, "id is no candidate", "ids are no candidates"),
            *note_repairs(ids[request.limit :], "pick too many", "picks too many"),
        )
        chosen = Selection(tuple(ids[: request.limit]), clip(asked.value.rationale, _RATIONALE))
        return Answer(chosen, remarks=asked.remarks + repairs)


def _parse_known(text: str, known: Set[str], kinds: Iterable[str]) -> Selection:
    """A selection of at least one candidate, unless nothing was to be picked."""
    selection = parse_selection(text, kinds)
    if selection.ids and known.isdisjoint(selection.ids):
        raise UnusableAnswerError(f"none of {len(selection.ids)} picked ids is a candidate")
    return selection


def build_selector_prompt(request: SelectRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which candidates are picked; they stand last.

    Candidates that do not fit the window are left out, the worst first; messages go before them.
    """
    counter, language = window.counter, request.language
    words = get_wording(language)
    search = "; ".join(request.plan.search.keywords)
    parts = {words.message: request.query, words.goal: request.plan.goal, words.keywords: search}
    wanted = "\n".join(f"{line}\n{fence(text)}" for line, text in parts.items() if text)
    asked = f"{wanted}\n{words.candidates}\n"
    own = [f"`{kind}`: {fence_line(purpose)}" for kind, purpose in request.kinds.items()]
    asked += "\n".join([words.picks.format(limit=request.limit), *own])
    room = window.room("selector", language, asked)
    lines = [_candidate_line(c) for c in request.candidates]
    ends = accumulate(counter.text(line) + 1 for line in lines)
    listed = lines[: sum(end <= room * 3 // 4 for end in ends)]
    room -= sum(counter.text(line) + 1 for line in listed)
    recent = recent_text(request.tail, window, language, min(room, _RECENT_TOKENS))
    return window.messages(
        "selector",
        language,
        recent or words.nothing,
        "\n".join([asked, *(listed or [words.nothing])]),
    )


def _candidate_line(candidate: Candidate) -> str:
    """A candidate in one line: nothing in it can pass for a line of ours, or for its id."""
    tags = ", ".join(map(collapse_whitespace, candidate.tags))
    named = f"{collapse_whitespace(candidate.title)} {f'({tags})' if tags else ''}".strip()
    return f"[{fence(candidate.id)}] {fence_line(named)}: {fence_line(candidate.preview)}"


def parse_selection(text: str, kinds: Iterable[str] = ()) -> Selection:
    """The ids that a selector picked, of built-in and other `kinds`; they may be made up.

    Raises:
        UnusableAnswerError: If there is neither a pick nor an empty selection.
    """
    ids = re.compile(rf"(?:{'|'.join((*BUILT_IN_KINDS, *kinds))})_[\w.-]*\w", re.I)
    return first_of(
        text,
        "selection",
        _selection_of_picks,
        _selection_of_json,
        lambda t: _selection_of_words(t, ids),
    )


def _selection_of_picks(text: str) -> Selection | None:
    ids = _unique_ids(e.field("id") or e.body for e in find_elements(text, "pick", "selection"))
    return Selection(ids, _find_rationale(text)) if ids else None


def _selection_of_json(text: str) -> Selection | None:
    for value in find_json_values(text):
        for listed in value.values() if isinstance(value, dict) else [value]:
            if isinstance(listed, list):
                found = (v.get("id", "") if isinstance(v, dict) else v for v in listed)
                ids = _unique_ids(i for i in found if isinstance(i, str))
                if ids or not listed:
                    return Selection(ids, stringify_values(value).get("rationale", ""))
    return None


def _selection_of_words(text: str, pattern: re.Pattern[str]) -> Selection | None:
    inside = find_child_text(text, "selection") if has_tag(text, "selection") else text
    ids = _unique_ids(pattern.findall(inside))
    return Selection(ids, _find_rationale(text)) if ids or inside != text else None


def _find_rationale(text: str) -> str:
    return " ".join(find_child_text(text, "rationale", "pick", "selection").split())


def _unique_ids(found: Iterable[str]) -> tuple[str, ...]:
    bare = (text.strip(" \t\n[](){}\"'`“”‘’<>/,;，；、") for text in islice(found, _MOST))
    return tuple(dict.fromkeys(text for text in bare if text))


class EmbeddedSelector(LocalRole[SelectRequest, Selection]):
    """Picks candidates by score, raising what is asked for by name and what the others name.

    "Where does the director of that film live?": the film, found by words, names the director.
    """

    def call(self, request: SelectRequest) -> Answer[Selection]:
        candidates = request.candidates
        names = NameFinder([c.title for c in candidates])
        asked = names.within(" ".join([request.query, *request.plan.search.keywords]))
        own = [c.score + _ASKED * (row in asked) for row, c in enumerate(candidates)]
        source = _find_naming(candidates, names, own)
        scores = [
            own[r] + (_REFERENCE_SHARE * own[s] if s is not None else 0)
            for r, s in enumerate(source)
        ]
        order = sorted(range(len(candidates)), key=lambda row: -scores[row])
        picks = [row for row in order if scores[row] >= FAINT][: request.limit]
        return Answer(Selection(tuple(candidates[row].id for row in picks)))


def _find_naming(
    candidates: Sequence[Candidate], names: NameFinder, scores: Sequence[float]
) -> list[int | None]:
    best: list[int | None] = [None] * len(candidates)
    for row in sorted(range(len(candidates)), key=lambda row: -scores[row]):
        for named in names.within(candidates[row].preview):
            if best[named] is None and candidates[named].title != candidates[row].title:
                best[named] = row
    return best


SELECTOR: RoleSpec[Selector] = RoleSpec(
    name="selector",
    purpose="picks what else is worth knowing from what a curation found",
    answer_tokens=1_000,
    answers=Selection,
    played="with a domain",
    chat=ChatSelector,
    embedded=lambda embedder: EmbeddedSelector(),
    without="the candidates that score best are taken",
)
