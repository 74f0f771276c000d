"""OpenTelemetry set up in the test's process, with what is exported kept in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@dataclass(frozen=True, slots=True)
class Exported:
    """What was exported since it was cleared last."""

    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader

    def clear(self) -> None:
        """Forget the spans so far."""
        self.exporter.clear()

    def spans(self) -> list[ReadableSpan]:
        """Spans of topicloom, in the order in which they began, each behind the one around it."""
        found = [s for s in self.exporter.get_finished_spans() if _is_ours(s)]
        return sorted(found, key=lambda span: (span.start_time or 0, -(span.end_time or 0)))

    def one(self, name: str) -> ReadableSpan:
        """The only span of a name."""
        (found,) = (span for span in self.spans() if span.name == name)
        return found

    def below(self, span: ReadableSpan) -> list[ReadableSpan]:
        """The spans right below one."""
        around = span.get_span_context()
        assert around is not None
        return [s for s in self.spans() if s.parent and s.parent.span_id == around.span_id]

    def points(self, name: str) -> Sequence[Any]:
        """The data points of a metric so far; its values add up over the tests of a process."""
        data = self.reader.get_metrics_data() or MetricsData([])
        found = (m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics)
        return [point for m in found if m.name == name for point in m.data.data_points]


def _is_ours(span: ReadableSpan) -> bool:
    return span.instrumentation_scope is not None and span.instrumentation_scope.name == "topicloom"


@cache
def set_up() -> Exported:
    """Set up the providers of this process: OpenTelemetry takes them once."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return Exported(exporter, reader)


@pytest.fixture
def exported() -> Iterator[Exported]:
    """What a test exports."""
    found = set_up()
    found.clear()
    yield found
    found.clear()
