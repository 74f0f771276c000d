"""The embedded selector: what words and vectors found, and what the best of it names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from topicloom.index.words import NameFinder
from topicloom.roles.base import Answer, Local
from topicloom.roles.planning import Selection, SelectRequest
from topicloom.state.candidates import Candidate
from topicloom.state.curation import FAINT
from topicloom.state.session import Language

_ASKED = 0.2
"""Bonus for a candidate that the message names."""
_LINKED = 0.5
"""Share of its own worth that a candidate lends to those it names. On HotpotQA (docs/curation.md)
.4 to .8 do about the same; without it, .68 of the questions have all they need picked, not .88."""


_WORDS: Mapping[Language, tuple[str, str, str]] = {
    "en": ("Asked for by name: {}.", "“{}” is named by “{}”.", "Nearest in words and meaning."),
    "zh": ("点名问到：{}。", "“{}”见于“{}”。", "措辞和意思最接近。"),
}


class EmbeddedSelector(Local[SelectRequest, Selection]):
    """Picks candidates by score, raising what is asked for by name and what the others name.

    A question of two steps ("where does the director of that film live?") finds the film by its
    words; the director, whom no word of the question fits, is found because the film names her.
    """

    def call(self, request: SelectRequest) -> Answer[Selection]:
        """Pick from the previews."""
        candidates = request.candidates
        names = NameFinder([c.title for c in candidates])
        asked = names.within(" ".join([request.query, *request.plan.search.keywords]))
        own = [c.score + _ASKED * (row in asked) for row, c in enumerate(candidates)]
        source = _sources(candidates, names, own)
        worth = [own[r] + (_LINKED * own[s] if s is not None else 0) for r, s in enumerate(source)]
        order = sorted(range(len(candidates)), key=lambda row: -worth[row])
        picks = [row for row in order if worth[row] >= FAINT][: request.limit]
        why = _rationale(candidates, picks, asked, source, request.language)
        return Answer(Selection(tuple(candidates[row].id for row in picks), why))


def _sources(
    candidates: Sequence[Candidate], names: NameFinder, worth: Sequence[float]
) -> list[int | None]:
    """For each candidate, the best other that names it."""
    best: list[int | None] = [None] * len(candidates)
    for row in sorted(range(len(candidates)), key=lambda row: -worth[row]):
        for named in names.within(candidates[row].preview):
            if best[named] is None and candidates[named].title != candidates[row].title:
                best[named] = row
    return best


def _rationale(
    candidates: Sequence[Candidate],
    picks: Sequence[int],
    asked: Collection[int],
    source: Sequence[int | None],
    language: Language,
) -> str:
    """Why these were picked, as far as it was by name."""
    asking, linking, otherwise = _WORDS[language]
    titles = [c.title for c in candidates]
    named = ", ".join(dict.fromkeys(f"“{titles[row]}”" for row in picks if row in asked))
    reasons = [asking.format(named)] if named else []
    for row in picks:
        by = source[row]
        if by is not None and row not in asked:
            reasons.append(linking.format(titles[row], titles[by] or candidates[by].id))
    return " ".join(reasons) or (otherwise if picks else "")
