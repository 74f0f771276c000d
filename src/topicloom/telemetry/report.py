"""Sends spans and measurements to OpenTelemetry, where the process has set it up, and to listeners.

What receives them is the application's own choice: its providers, exporters and samplers. Nothing
of OpenTelemetry is imported before somebody else has.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from topicloom.state.receipt import Call, Receipt
from topicloom.telemetry.metrics import (
    METRICS,
    Measurement,
    measure_calls,
    measure_failed_turn,
    measure_turn,
)
from topicloom.telemetry.spans import (
    WORKFLOW,
    Attribute,
    SpanRecord,
    TurnTexts,
    describe_calls,
    describe_turn,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer

TelemetryLevel = Literal["off", "numbers", "contents"]
"""What OpenTelemetry is told: nothing; numbers, names and ids; what was said as well."""
Listener = Callable[[Sequence[Measurement]], object]


@dataclass(slots=True)
class Work:
    """Work between turns, such as a review, as whoever does it describes it."""

    attributes: dict[str, Attribute]
    calls: list[Call] = field(default_factory=list)
    """The calls of roles that it made."""


class Telemetry:
    """Tells of the turns and reviews of a graph."""

    def __init__(self, level: TelemetryLevel, providers: Mapping[str, str]) -> None:
        """What is told, and the providers of the models that are known so far."""
        self._level = level
        self.providers = dict(providers)
        """The providers of chat models, by the names of the models."""
        self.listeners: list[Listener] = []
        """Called with the measurements of each turn."""

    def report_turn(self, receipt: Receipt, thread: str, read: Callable[[], TurnTexts]) -> None:
        """Tell of a turn that ended now; `read` reads what was said in it."""
        if self._is_heard():
            texts = read() if self._level == "contents" else None
            turn = describe_turn(receipt, thread, time.time(), self.providers, texts)
            self._send(turn, measure_turn(receipt, turn, self.providers))

    def report_failure(self, thread: str, began: float, error: Exception) -> None:
        """Tell of a turn that raised an exception now, and so has no receipt."""
        if self._is_heard():
            ended, kind = time.time(), type(error).__name__
            attributes = {
                "gen_ai.operation.name": WORKFLOW,
                "gen_ai.workflow.name": "topicloom",
                "gen_ai.conversation.id": thread,
                "error.type": kind,
            }
            failure = str(error) if self._level == "contents" else ""
            span = SpanRecord(f"{WORKFLOW} topicloom", began, ended, attributes, failure=failure)
            self._send(span, measure_failed_turn(ended - began, kind))

    @contextmanager
    def watch(self, name: str, thread: str, **attributes: Attribute) -> Iterator[Work]:
        """Tell of work between turns when it has ended, and of the exception that ended it."""
        work, began = Work({"gen_ai.conversation.id": thread, **attributes}), time.time()
        failure: str | None = None
        try:
            yield work
        except BaseException as error:
            work.attributes["error.type"] = type(error).__name__
            failure = str(error) if self._level == "contents" else ""
            raise
        finally:
            if self._is_heard():
                about, calls, known = work.attributes, work.calls, self.providers
                span = describe_calls(name, began, time.time(), about, calls, known)
                self._send(replace(span, failure=failure), [*measure_calls(calls, known)])

    def watch_memory(
        self, operation: str, thread: str, **attributes: Attribute
    ) -> AbstractContextManager[Work]:
        """The same of an operation on what is remembered, as the conventions name it."""
        names = {"gen_ai.operation.name": operation, "gen_ai.memory.store.id": thread}
        return self.watch(operation, thread, **names, **attributes)

    def _is_heard(self) -> bool:
        return bool(self.listeners) or self._asks_opentelemetry()

    def _asks_opentelemetry(self) -> bool:
        return self._level != "off" and "opentelemetry.trace" in sys.modules

    def _send(self, span: SpanRecord, measured: Sequence[Measurement]) -> None:
        for listen in self.listeners:
            listen(measured)
        if self._asks_opentelemetry():
            tracer, record = _open_opentelemetry()
            for measurement in measured:
                record[measurement.metric.name](measurement.value, measurement.attributes)
            _send_span(tracer, span)


@cache
def _open_opentelemetry() -> tuple[Tracer, Mapping[str, Callable[..., Any]]]:
    """The tracer, and what records a value of each metric; providers may be set later."""
    from opentelemetry.metrics import get_meter
    from opentelemetry.trace import get_tracer

    meter, record = get_meter("topicloom"), dict[str, Callable[..., Any]]()
    for name, unit, description, _, buckets in METRICS:
        if buckets:
            record[name] = meter.create_histogram(
                name, unit, description, explicit_bucket_boundaries_advisory=buckets
            ).record
        else:
            record[name] = meter.create_counter(name, unit, description).add
    return get_tracer("topicloom"), record


def _send_span(tracer: Tracer, record: SpanRecord, around: Context | None = None) -> None:
    """Send a span and those below it; within what the application itself traces, if it does."""
    from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

    span = tracer.start_span(
        record.name,
        around,
        SpanKind.CLIENT if record.remote else SpanKind.INTERNAL,
        record.attributes,
        start_time=int(record.began * 1e9),
    )
    if record.failure is not None:
        span.set_status(Status(StatusCode.ERROR, record.failure or None))
    if span.is_recording():
        inside = set_span_in_context(span, around)
        for child in record.children:
            _send_span(tracer, child, inside)
    span.end(int(record.ended * 1e9))
