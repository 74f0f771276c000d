"""Measures what OpenTelemetry costs a turn, and shows the trace of one.

    python benchmarks/telemetry.py [--turns 60]
    python benchmarks/telemetry.py --trace

Three processes take the same turns, one after the other, in another order each time: one in which
OpenTelemetry cannot be imported, one with its API alone, one whose SDK exports everything into
memory. A ratio is the median of those of pairs. Targets: 1.02 at most.

The trace is that of a turn with scripted models that take .2 s, as the SDK exports it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from slow_models import answer

from topicloom import RESPONDER, Settings, TurnOptions, build_session_graph
from topicloom.testing import ScriptedResponder, fake_roles
from topicloom_lab.talk import said

WAYS = ("not installed", "API alone", "SDK")
TALK = (
    "u1t0 kitchen: the oak worktop costs 140 euros a metre, and the delivery 60.",
    "u1t1 guitar: it needs new strings before Friday.",
    "u1t2 journey: the train to Lisbon leaves at nine.",
)


class ScriptedModel(BaseChatModel):
    """Answers as each role is asked to, after a moment."""

    model_name: str
    seconds: float = 0.2

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        time.sleep(self.seconds)
        text = answer(convert_to_openai_messages(messages))
        used = sum(len(message.text) for message in messages) // 4, len(text) // 4
        usage = UsageMetadata(input_tokens=used[0], output_tokens=used[1], total_tokens=sum(used))
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(text, usage_metadata=usage))]
        )


def trace(folder: Path) -> None:
    """Print the spans of a turn that splits, searches and replies."""
    exporter = set_up()
    graph = build_session_graph(
        model=ScriptedModel(model_name="strong"),
        cheap_model=ScriptedModel(model_name="cheap", seconds=0.1),
        role_models={"rewriter": "embedded"},
        settings=Settings(folder=folder, window=4_000, beginning="whole"),
    ).compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "ann"}}
    for text in TALK:
        graph.invoke({"messages": [("user", text)]}, thread)
    for asked in ("u1t3 journey: when do I go?", "u1t4 kitchen: what does the worktop cost?"):
        exporter.clear()
        once = TurnOptions(keep_messages=1)  # splits now, not when the window is full
        graph.invoke({"messages": [("user", asked)]}, thread, context=once)
    spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time)
    show(spans, None, spans[0].start_time)


def show(spans: Any, around: int | None, start: int, depth: int = 0) -> None:
    """Print the spans below one: when each began, how long it took, and what it says."""
    kept = ("role", "usage.input_tokens", "output_tokens", "record.count", "scores", "quotes")
    for span in spans:
        if (span.parent and span.parent.span_id) != around:
            continue
        began, took = (span.start_time - start) / 1e6, (span.end_time - span.start_time) / 1e6
        name = "  " * depth + span.name
        told = {k: v for k, v in span.attributes.items() if k.endswith(kept) and v not in ("", ())}
        shown = "  ".join(f"{k.rpartition('.')[2]}={v}" for k, v in told.items())
        print(f"{began:6.0f} ms {took:6.0f} ms  {name:<38}{shown}".rstrip())
        show(spans, span.context.span_id, start, depth + 1)


def set_up() -> Any:
    """Have the SDK export into memory."""
    from opentelemetry import metrics, trace as tracing
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
    return exporter


def take_turns(way: str) -> None:
    """Take a turn for each line that comes in, and print the seconds that it took."""
    if way == "not installed":
        sys.modules["opentelemetry"] = None  # type: ignore[assignment]
    if way == "SDK":
        set_up()
    roles = fake_roles().replace(RESPONDER, ScriptedResponder(otherwise="Noted."))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(folder=Path(folder), window=8_000, fsync=False)
        app = build_session_graph(settings=settings, roles=roles).compile(
            checkpointer=InMemorySaver()
        )
        thread: Any = {"configurable": {"thread_id": "telemetry"}}
        for number, _ in enumerate(sys.stdin):
            began = time.perf_counter()
            app.invoke({"messages": [("user", said(number, 60))]}, thread, durability="exit")
            print(time.perf_counter() - began, flush=True)


def compare(turns: int) -> None:
    """Have the three processes take turns by turns, and print their ratios."""
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--way", way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for way in WAYS
    ]
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(turns):
        for place in range(len(WAYS)):
            which = (place + number) % len(WAYS)
            process = started[which]
            assert process.stdin
            assert process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            took[WAYS[which]].append(float(process.stdout.readline()))
    for process in started:
        process.communicate()
    warm = turns // 3
    for way in WAYS:
        pairs = zip(took[way][warm:], took[WAYS[0]][warm:], strict=True)
        ratio = statistics.median(one / other for one, other in pairs)
        middle = 1_000 * statistics.median(took[way][warm:])
        print(f"{way}: {middle:.1f} ms at the median, {ratio:.3f} of the first")


def main() -> None:
    """Measure, or show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--trace", action="store_true", help="show the trace of a turn")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        take_turns(given.way)
    elif given.trace:
        with tempfile.TemporaryDirectory() as folder:
            trace(Path(folder))
    else:
        compare(given.turns)


if __name__ == "__main__":
    main()
