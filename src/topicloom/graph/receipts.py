"""Receipts as a typed stream of LangGraph's newest form of event streams."""

from __future__ import annotations

from typing import Any

from langgraph.stream import ProtocolEvent, StreamChannel, StreamTransformer

from topicloom.state.receipt import Receipt


class ReceiptStream(StreamTransformer):
    """The receipts of a run, as `run.extensions["receipts"]`.

    A session graph and an agent with `TopicMiddleware` have it by themselves:

        with graph.stream_events(given, thread, version="v3") as run:
            for receipt in run.extensions["receipts"]:
                print(receipt.active, receipt.seconds)

    A graph around them takes it at `compile(transformers=[ReceiptStream])`; there they come with
    the part that they are of.
    """

    required_stream_modes = ("custom",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        """For the graph, or the part of one, that a scope names."""
        super().__init__(scope)
        self._receipts: StreamChannel[Receipt] = StreamChannel()

    def init(self) -> dict[str, Any]:
        """The stream, by its name."""
        return {"receipts": self._receipts}

    def process(self, event: ProtocolEvent) -> bool:
        """Take the receipt out of an event that has one; every event goes on to others."""
        params = event["params"]
        if event["method"] == "custom" and tuple(params["namespace"]) == self.scope:
            match params["data"]:
                case {"type": "receipt", "receipt": receipt}:
                    self._receipts.push(Receipt.model_validate(receipt))
        return True
