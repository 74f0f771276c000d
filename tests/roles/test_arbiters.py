"""The contract of every arbiter."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from openai_behaviours import Reply
from openai_server import OpenAIServer
from tiny_models import tiny_cross_encoder

from topicloom import Arbiter, BoundaryQuestion
from topicloom.context.prefix import PrefixMeter
from topicloom.roles.arbiter import ChatArbiter, CrossEncoderArbiter
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model

QUESTION = BoundaryQuestion(
    summary="write a snake game",
    request="put it on a server",
    reply="the game is finished",
    prior=0.4,
    language="en",
)
QUESTIONS = {
    "usual": QUESTION,
    "Chinese": replace(QUESTION, summary="写一个贪吃蛇", request="部署到服务器", language="zh"),
    "empty": BoundaryQuestion("", "", "", 0.5, "en"),
    "long": replace(QUESTION, summary="word " * 20_000, request="词" * 20_000, prior=0.0),
    "odd": replace(QUESTION, summary="cut\x00 short", request="[SEP] 👩‍👩‍👧", prior=1.0),
}


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoderArbiter:
    folder: Path = tiny_cross_encoder(tmp_path_factory.mktemp("arbiters"))
    return CrossEncoderArbiter(folder)


@pytest.fixture(params=["cross_encoder", "chat"])
def arbiter(request: pytest.FixtureRequest, openai_server: OpenAIServer) -> Arbiter:
    if request.param == "cross_encoder":
        found: CrossEncoderArbiter = request.getfixturevalue("cross_encoder")
        return found
    openai_server.otherwise(Reply("YES"))
    model = open_model("openai:tiny", base_url=openai_server.base_url)
    return ChatArbiter(Chat.of(model, PrefixMeter(), deadline=5))


class TestContract:
    @pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
    def test_a_probability_the_same_in_both_forms(
        self, arbiter: Arbiter, question: BoundaryQuestion
    ) -> None:
        value = arbiter.call(question).value
        assert isinstance(value, float)
        assert 0 <= value <= 1
        assert asyncio.run(arbiter.acall(question)).value == pytest.approx(value, abs=1e-6)

    def test_the_same_question_has_the_same_answer(self, arbiter: Arbiter) -> None:
        assert arbiter.call(QUESTION).value == arbiter.call(QUESTION).value

    @pytest.mark.slow
    def test_an_arbiter_serves_several_threads(self, arbiter: Arbiter) -> None:
        expected = [arbiter.call(q).value for q in QUESTIONS.values()]
        with ThreadPoolExecutor(4) as pool:
            found = [a.value for a in pool.map(arbiter.call, [*QUESTIONS.values()] * 3)]
        assert found == pytest.approx(expected * 3, abs=1e-6)

    async def test_many_at_once(self, arbiter: Arbiter) -> None:
        expected = arbiter.call(QUESTION).value
        answers = await asyncio.gather(*(arbiter.acall(QUESTION) for _ in range(5)))
        assert [a.value for a in answers] == pytest.approx([expected] * 5, abs=1e-6)
