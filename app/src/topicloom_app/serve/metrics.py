"""What is measured of turns, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from topicloom.hosting import METRICS, Measurement, Metric

CONTENT_TYPE = CONTENT_TYPE_LATEST


class MetricsPage:
    """The metrics of one endpoint: those that OpenTelemetry is told, and those of the process.

    Names follow OpenTelemetry's rules for Prometheus: `gen_ai.client.operation.duration` is
    `gen_ai_client_operation_duration_seconds` here.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._made = {metric.name: self._make(metric) for metric in METRICS}

    def take(self, measured: Sequence[Measurement]) -> None:
        """Add the measurements of a turn."""
        for metric, value, attributes in measured:
            made = self._made[metric.name]
            if metric.labels:
                made = made.labels(*(attributes.get(label, "") for label in metric.labels))
            if isinstance(made, Histogram):
                made.observe(value)
            else:
                made.inc(value)

    def write(self) -> bytes:
        """All of them, in Prometheus' text format."""
        return generate_latest(self._registry)

    def _make(self, metric: Metric) -> Histogram | Counter:
        name, labels = _rename(metric.name), [_rename(label) for label in metric.labels]
        unit = "seconds" if metric.unit == "s" else ""
        if not metric.buckets:
            return Counter(name, metric.description, labels, registry=self._registry)
        return Histogram(
            name,
            metric.description,
            labels,
            unit=unit,
            buckets=metric.buckets,
            registry=self._registry,
        )


def _rename(name: str) -> str:
    return name.replace(".", "_")
