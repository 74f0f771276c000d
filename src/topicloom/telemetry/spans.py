"""A turn or a review as spans, made of its receipt or report. Nothing is sent here.

Names are those of OpenTelemetry's semantic conventions 1.41 for generative AI, and of their memory
operations. Names that begin with `topicloom.` are ours, where there is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from topicloom.state.receipt import Call, Receipt

Attribute = str | int | float | bool | Sequence[str] | Sequence[float]
Providers = Mapping[str, str]
"""The providers of chat models, by the names of the models; "" where it is not known."""

WORKFLOW, CHAT, SEARCH = "invoke_workflow", "chat", "search_memory"
"""Operations, as the conventions name them."""
_SEARCHING = frozenset({"retrieve", "amnesia", "activate_topic", "assemble"})
"""Steps that are parts of a search through memory; what is read goes on between them."""
_ERROR = re.compile(r"\w{0,60}(?:Error|Exception|Timeout)\b")


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """A span that has ended, with those below it."""

    name: str
    began: float
    """Seconds since the epoch."""
    ended: float
    attributes: Mapping[str, Attribute]
    remote: bool = False
    """True for a call of a service."""
    failure: str | None = None
    """What went wrong, in words; "" where these are not to be told."""
    children: tuple[SpanRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnTexts:
    """The texts of a turn, which are told only if a setting says so."""

    asked: str = ""
    replied: str = ""
    quoted: Mapping[str, str] = field(default_factory=dict)
    """What was quoted, by short id."""


def is_model_call(call: Call, providers: Providers) -> bool:
    """True for a call of a model that counts tokens, not of an embedded role."""
    return call.model in providers or (call.model != "embedded" and call.input_tokens > 0)


def name_error(failure: str) -> str:
    """The class of a failure: `timeout`, the name of an exception, or `_OTHER`."""
    if failure.startswith("no answer within"):
        return "timeout"
    found = _ERROR.match(failure)
    return found[0] if found else "_OTHER"


def describe_model(call: Call, providers: Providers) -> dict[str, str]:
    """The model of a call, as attributes of spans and of metrics."""
    named = {
        "gen_ai.operation.name": CHAT,
        "gen_ai.provider.name": providers.get(call.model, ""),
        "gen_ai.request.model": call.model,
        "error.type": name_error(call.failure) if call.failure else "",
    }
    return {name: value for name, value in named.items() if value}


def describe_turn(
    receipt: Receipt, thread: str, ended: float, providers: Providers, texts: TurnTexts | None
) -> SpanRecord:
    """A turn by its receipt; without `texts`, nothing of what was said is in it."""
    steps = [*_describe_steps(receipt, thread, texts)]
    began = steps[0].began if steps else ended - receipt.seconds
    calls = [
        _describe_call(call, thread, began, providers, receipt.scores, told=texts is not None)
        for call in receipt.calls
    ]
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": WORKFLOW,
        "gen_ai.workflow.name": "topicloom",
        "gen_ai.conversation.id": thread,
        "topicloom.turn.number": receipt.turn,
        "topicloom.turn.message": receipt.user,
        "topicloom.turn.idle": receipt.idle,
        "topicloom.turn.quotes": [q for note in receipt.quoted for q in note.quotes],
        "topicloom.turn.active": receipt.active,
        "topicloom.turn.activated": receipt.activated,
        "topicloom.turn.deactivated": receipt.deactivated,
        "topicloom.turn.split": receipt.split,
        "topicloom.prompt.tokens": sum(receipt.sections.values()),
        "topicloom.prompt.window": receipt.window,
        **{f"topicloom.limit.{scope}": used for scope, used in receipt.limits.items()},
    }
    if texts:
        attributes["gen_ai.input.messages"] = _write_message("user", texts.asked)
        attributes["gen_ai.output.messages"] = _write_message("assistant", texts.replied)
    whole = SpanRecord(f"{WORKFLOW} topicloom", began, ended, attributes)
    return _nest(whole, steps, calls)


def describe_calls(
    name: str,
    began: float,
    ended: float,
    attributes: Mapping[str, Attribute],
    calls: Sequence[Call],
    providers: Providers,
) -> SpanRecord:
    """Work between turns, such as a review, with the calls of roles that it made."""
    thread = str(attributes["gen_ai.conversation.id"])
    made = [_describe_call(call, thread, began, providers, {}, told=False) for call in calls]
    return _nest(SpanRecord(name, began, ended, attributes), [], made)


def _describe_steps(receipt: Receipt, thread: str, texts: TurnTexts | None) -> Sequence[SpanRecord]:
    parts: list[SpanRecord] = []
    for searching, some in groupby(receipt.steps, lambda step: step.name in _SEARCHING):
        steps = [*some]
        if searching:
            about: dict[str, Attribute] = {
                "gen_ai.operation.name": SEARCH,
                "gen_ai.conversation.id": thread,
                "gen_ai.memory.store.id": thread,
                "topicloom.search.by_model": steps[0].name == "activate_topic",
            }
            parts.append(SpanRecord(SEARCH, steps[0].began, steps[-1].ended, about))
        else:
            parts += (SpanRecord(f"topicloom.step.{s.name}", s.began, s.ended, {}) for s in steps)
    last = max((n for n, part in enumerate(parts) if part.name == SEARCH), default=None)
    if last is not None:
        found = _describe_found(receipt, texts)
        parts[last] = replace(parts[last], attributes={**parts[last].attributes, **found})
    return parts


def _describe_found(receipt: Receipt, texts: TurnTexts | None) -> dict[str, Attribute]:
    """What the searches of a turn found: a receipt does not say which of them found it."""
    quoted = {q: note.score for note in receipt.quoted for q in note.quotes}
    found: dict[str, Attribute] = {
        "gen_ai.memory.record.count": len(quoted),
        "topicloom.search.topics": [*receipt.scores],
        "topicloom.search.scores": [*receipt.scores.values()],
    }
    if texts:
        asked = receipt.searches[-1].query if receipt.searches else texts.asked
        rows = [
            {"id": id_, "content": texts.quoted.get(id_, ""), "score": score}
            for id_, score in quoted.items()
        ]
        found["gen_ai.memory.query.text"] = asked
        found["gen_ai.memory.records"] = json.dumps(rows, ensure_ascii=False)
    return found


def _describe_call(
    call: Call,
    thread: str,
    began: float,
    providers: Providers,
    scores: Mapping[str, float],
    *,
    told: bool,
) -> SpanRecord:
    """A call of a role; one that does not say when it was made began with what is around it."""
    began = call.began or began
    remote = is_model_call(call, providers)
    about: dict[str, Attribute | None] = {
        "gen_ai.conversation.id": thread,
        "topicloom.role": call.role,
        "topicloom.topic": call.topic,
        "topicloom.score": scores.get(call.topic or ""),
        "topicloom.prompt.repeated": call.repeated,
    }
    attributes: dict[str, Attribute] = {k: v for k, v in about.items() if v is not None}
    if remote:
        attributes |= describe_model(call, providers)
        attributes |= {
            "gen_ai.usage.input_tokens": call.input_tokens,
            "gen_ai.usage.output_tokens": call.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": call.cached_tokens,
        }
    elif call.failure:
        attributes["error.type"] = name_error(call.failure)
    name = f"{CHAT} {call.model}" if remote else f"topicloom.role.{call.role}"
    failure = call.failure and (call.failure if told else "")
    return SpanRecord(name, began, began + call.seconds, attributes, remote, failure)


def _nest(
    whole: SpanRecord, parts: Sequence[SpanRecord], calls: Sequence[SpanRecord]
) -> SpanRecord:
    """A whole with its parts, each with the calls that began in it."""
    inside: dict[int, list[SpanRecord]] = {place: [] for place in range(-1, len(parts))}
    for call in calls:
        places = (n for n, part in enumerate(parts) if part.began <= call.began <= part.ended)
        inside[max(places, default=-1)].append(call)
    nested = [replace(part, children=tuple(inside[n])) for n, part in enumerate(parts)]
    children = sorted([*nested, *inside[-1]], key=lambda part: part.began)
    return replace(whole, children=tuple(children))


def _write_message(role: str, text: str) -> str:
    parts = [{"type": "text", "content": text}]
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)
