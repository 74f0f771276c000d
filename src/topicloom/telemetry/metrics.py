"""The metrics of turns and reviews: which there are, and what is measured of a receipt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from topicloom.state.receipt import Call, Receipt
from topicloom.telemetry.spans import (
    SEARCH,
    Providers,
    SpanRecord,
    describe_model,
    is_model_call,
    name_error,
)


class Metric(NamedTuple):
    """A metric, by OpenTelemetry's name."""

    name: str
    unit: str
    description: str
    labels: tuple[str, ...]
    """The attributes that a measurement may have."""
    buckets: tuple[float, ...] = ()
    """Upper bounds of the buckets of a histogram; empty for a counter."""


class Measurement(NamedTuple):
    """One value of a metric."""

    metric: Metric
    value: float
    attributes: Mapping[str, str]


_MODEL = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "topicloom.role")
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The bounds of the conventions, as those of tokens below."""
TOKENS = Metric(
    "gen_ai.client.token.usage",
    "{token}",
    "Number of input and output tokens used.",
    (*_MODEL, "gen_ai.token.type"),
    tuple(4.0**power for power in range(14)),
)
DURATION = Metric(
    "gen_ai.client.operation.duration",
    "s",
    "GenAI operation duration.",
    (*_MODEL, "error.type"),
    _SECONDS,
)
TURN = Metric("topicloom.turn.duration", "s", "Duration of turns.", ("error.type",), _SECONDS)
QUOTES = Metric(
    "topicloom.turn.quotes",
    "{message}",
    "Earlier messages quoted in a turn.",
    (),
    (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
)
FAILURES = Metric(
    "topicloom.role.failures",
    "{call}",
    "Calls of roles that contributed nothing.",
    ("topicloom.role", "gen_ai.request.model", "error.type"),
)
LIMITS = Metric(
    "topicloom.limit.used",
    "1",
    "Share of a daily limit that is used at the end of a turn.",
    ("topicloom.limit.scope",),
    (0.25, 0.5, 0.8, 0.9, 1.0),
)
METRICS = (TOKENS, DURATION, TURN, QUOTES, FAILURES, LIMITS)
"""All there are."""


def measure_turn(receipt: Receipt, turn: SpanRecord, providers: Providers) -> list[Measurement]:
    """What is measured of a turn: of its receipt, and of the spans made of that."""
    quotes = sum(len(note.quotes) for note in receipt.quoted)
    searches = (part for part in turn.children if part.name == SEARCH)
    return [
        Measurement(TURN, turn.ended - turn.began, {}),
        *([Measurement(QUOTES, quotes, {})] if receipt.sections else []),
        *(
            Measurement(LIMITS, used, {"topicloom.limit.scope": scope})
            for scope, used in receipt.limits.items()
        ),
        *(
            Measurement(DURATION, part.ended - part.began, {"gen_ai.operation.name": SEARCH})
            for part in searches
        ),
        *measure_calls(receipt.calls, providers),
    ]


def measure_failed_turn(seconds: float, error: str) -> list[Measurement]:
    """What is measured of a turn that raised an exception."""
    return [Measurement(TURN, seconds, {"error.type": error})]


def measure_calls(calls: Sequence[Call], providers: Providers) -> Iterator[Measurement]:
    """What is measured of calls of roles: seconds and tokens of those that models played."""
    for call in calls:
        if call.failure:
            error = {"gen_ai.request.model": call.model, "error.type": name_error(call.failure)}
            yield Measurement(FAILURES, 1, {"topicloom.role": call.role, **error})
        if not is_model_call(call, providers):
            continue
        model = {**describe_model(call, providers), "topicloom.role": call.role}
        yield Measurement(DURATION, call.seconds, model)
        model.pop("error.type", None)
        for kind, count in (("input", call.input_tokens), ("output", call.output_tokens)):
            if count:
                yield Measurement(TOKENS, count, {**model, "gen_ai.token.type": kind})
