"""The arbiter: it decides where the boundary adsorber is in doubt."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from langchain_core.messages import BaseMessage

from topicloom.context.windows import PromptWindow
from topicloom.effects import Step
from topicloom.errors import UnknownModelError, UnusableAnswerError
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.chat import ChatRole
from topicloom.roles.values import parse_verdict
from topicloom.search.embedder import readable
from topicloom.search.pretrained import open_pretrained
from topicloom.state.fence import fence
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import get_text
from topicloom.topics.boundary_policy import BoundaryQuestion

_SHOWN = 4_000
"""Characters shown of what went before, and of the request; a boundary shows in far fewer."""
_REPLY = 1_000
"""Characters shown of the reply between them."""
_MAX_TOKENS = 512
"""Tokens read of the two texts together; rerankers are trained on pairs of about that length."""
_CHARACTERS = 6
"""Characters tokenized of each text for a token that may be read. Cutting a pair of long texts to
its tokens takes the tokenizer time that grows with the square of their length."""


class Arbiter(Role[BoundaryQuestion, float], Protocol):
    """Says how likely a message that the boundary model is unsure of continues the open topic."""


class ChatArbiter(ChatRole[BoundaryQuestion, float]):
    """YES is 1 and NO is 0; whatever else comes back leaves the prior, which `remarks` tells."""

    role = "arbiter"

    def step(self, request: BoundaryQuestion) -> Step[Answer[float]]:
        """Ask once, without a second try."""
        messages = build_arbiter_prompt(request, self._chat.prompt_window)
        answer = yield from self.send("", "arbiter", messages)
        try:
            return Answer(float(parse_verdict(get_text(answer))))
        except UnusableAnswerError as error:
            return Answer(request.prior, remarks=(f"{error}: left at {request.prior:.2f}",))


def build_arbiter_prompt(question: BoundaryQuestion, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which a boundary is judged; the request stands last."""
    words = get_wording(question.language)
    return window.messages(
        "arbiter",
        question.language,
        f"{words.task}\n{clip(fence(question.summary), _SHOWN) or words.nothing}",
        f"{words.reply}\n{clip(fence(question.reply), _REPLY) or words.nothing}",
        f"{words.request}\n{clip(fence(question.request), _SHOWN)}",
    )


class _PairScorer(Protocol):
    """The part that is used of a `sentence_transformers.CrossEncoder`."""

    max_seq_length: int

    def predict(
        self, inputs: Sequence[tuple[str, str]], *, activation_fn: object, show_progress_bar: bool
    ) -> Sequence[float]: ...


class CrossEncoderArbiter(LocalRole[BoundaryQuestion, float]):
    """Scores the request against what went before. Needs sentence-transformers.

    The model is loaded when the first question comes. It takes one pair at a time, so that
    threads may share it.
    """

    def __init__(self, model: str | Path, deadline: float | None = None) -> None:
        """Configure without loading anything.

        `model` is a folder, or a name on the Hugging Face hub, and gives one score a pair; after
        `deadline` seconds the screening's answer stands.
        """
        self.model, self.deadline = str(model), deadline
        self._path = model
        self._lock = threading.Lock()
        self._scorer: _PairScorer | None = None

    def call(self, request: BoundaryQuestion) -> Answer[float]:
        """The score of the request against what went before; raises what `check_coherence` does."""
        # Rerankers are trained on a short query and a longer passage, in this order.
        return Answer(self.check_coherence(request.request, request.summary))

    def check_coherence(self, text_a: str, text_b: str) -> float:
        """The sigmoid of the model's score of two texts in this order: 1 if they belong together.

        Raises `ConfigurationError` without sentence-transformers, and `UnknownModelError` if the
        folder or name holds no cross-encoder with one score, or neither the hub nor its cache has
        it.
        """
        with self._lock:
            scorer = self._scorer = self._scorer or self._open()
            longest = _CHARACTERS * _MAX_TOKENS
            pair = (readable(text_a, longest), readable(text_b, longest))
            # Without the model's own activation, which may be a sigmoid already or none.
            identity = import_module("torch.nn").Identity()
            (score,) = scorer.predict([pair], activation_fn=identity, show_progress_bar=False)
        return _sigmoid(float(score))

    def _open(self) -> _PairScorer:
        opened, _ = open_pretrained("CrossEncoder", self._path)
        _check_head(opened, self.model)
        scorer = cast("_PairScorer", opened)
        scorer.max_seq_length = min(scorer.max_seq_length, _MAX_TOKENS)
        return scorer


def _check_head(opened: Any, model: str) -> None:
    """Raise `UnknownModelError` without a trained head: the library would make one up at random."""
    architectures = opened.model.config.architectures or []
    if not any(a.endswith(("ForSequenceClassification", "ForCausalLM")) for a in architectures):
        raise UnknownModelError(
            '{model!r} is no cross-encoder but {kind}: give one such as "BAAI/bge-reranker-v2-m3"',
            model=model,
            kind=", ".join(architectures) or "unknown",
        )
    if opened.num_labels != 1:
        raise UnknownModelError(
            "{model!r} gives {count} scores a pair: an arbiter needs one",
            model=model,
            count=opened.num_labels,
        )


def _sigmoid(score: float) -> float:
    """The logistic function of any float, without overflow."""
    small = math.exp(-abs(score))
    return 1 / (1 + small) if score >= 0 else small / (1 + small)


ARBITER: RoleSpec[Arbiter] = RoleSpec(
    name="arbiter",
    purpose="decides whether a message continues the open topic where the boundary model is unsure",
    answer_tokens=300,
    answers=float,
    played="if named",
    chat=ChatArbiter,
    named={"rerank:": CrossEncoderArbiter},
    without="the boundary model's likelier answer stands",
)
