"""How layers of an application's domain read in the prompt (spec 004, 5.2 and 6.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from topicloom.state.curation import Entry
from topicloom.state.layers import Layer

_KNOWLEDGE = frozenset({"lore"})
"""Kinds of sources that say how things are; the others say what happened."""


def layer_text(layer: Layer) -> str:
    """A layer in its frame. What comes from outside is escaped, so that nothing can close it."""
    if layer.kind == "deterministic":
        since = f" since={quoteattr(layer.since)}" if layer.since else ""
        return _framed(f'type="deterministic"{since}', [layer.text])
    model = f" model={quoteattr(layer.model)}" if layer.model else ""
    rationale = f"<rationale>{escape(layer.rationale)}</rationale>" if layer.rationale else ""
    known = [e for e in layer.entries if e.kind in _KNOWLEDGE]
    remembered = [e for e in layer.entries if e.kind not in _KNOWLEDGE]
    parts = [
        rationale,
        *_listed("knowledge_base", "entry", known),
        *_listed("relevant_memories", "memory", remembered),
    ]
    return _framed(f'type="probabilistic"{model}', filter(None, parts))


def _listed(around: str, tag: str, entries: Sequence[Entry]) -> list[str]:
    if not entries:
        return []
    return [f"<{around}>", *(_entry(tag, e) for e in entries), f"</{around}>"]


def _entry(tag: str, entry: Entry) -> str:
    title = f" title={quoteattr(entry.title)}" if entry.title else ""
    head = f"<{tag} id={quoteattr(entry.id)} type={quoteattr(entry.kind)}{title}>"
    return f"{head}\n{escape(entry.text)}\n</{tag}>"


def _framed(attributes: str, parts: Iterable[str]) -> str:
    return "\n".join([f"<context_layer {attributes}>", *parts, "</context_layer>"])
