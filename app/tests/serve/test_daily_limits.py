"""A daily limit of a key: its clients are told 429 until midnight, whatever protocol they speak."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from endpoints import listening
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from openai_behaviours import Reply, Usage
from openai_server import OpenAIServer

from topicloom import DailyLimits, InputError, Settings, build_session_graph
from topicloom_app import make_endpoint
from topicloom_app.cli.limits import change_limits

SAID: Any = [{"role": "user", "content": "Hello"}]
BODIES: dict[str, Any] = {
    "chat/completions": {"messages": SAID},
    "responses": {"input": "Hello"},
    "messages": {"messages": SAID, "max_tokens": 100},
}


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_every_protocol_is_told_when_to_come_again(
    tmp_path: Path, openai_server: OpenAIServer, stream: bool
) -> None:
    openai_server.otherwise(Reply("Hello", Usage(90, 10)))
    limits = change_limits(DailyLimits(), ["key:small=100", "session=1000"])
    settings = Settings.model_validate(
        {
            "folder": tmp_path,
            "fsync": False,
            "embedder": "hashing",
            "base_url": openai_server.base_url,
            "api_key": "k",
            "limits": limits,
        }
    )
    built = build_session_graph(model="openai:some", settings=settings)
    graph = built.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    app = make_endpoint(graph, keys={"small": "small", "large": "large"}, trusted=["large"])
    with listening(app) as url, httpx.Client(timeout=60) as client:

        def ask(path: str, key: str) -> httpx.Response:
            body = {"model": "topicloom", "stream": stream, **BODIES[path]}
            return client.post(f"{url}/{path}", json=body, headers={"x-api-key": key})

        assert ask("chat/completions", "small").status_code == 200
        asked = len(openai_server.requests)
        for path in BODIES:
            refused = ask(path, "small")
            assert refused.status_code == 429
            assert 0 < int(refused.headers["retry-after"]) <= 86_400
            assert refused.headers["x-should-retry"] == "false"
            assert "daily limit for this account is used up" in refused.text
        assert len(openai_server.requests) == asked
        assert ask("chat/completions", "large").status_code == 200
        metrics = client.get(url.replace("/v1", "/metrics"), headers={"x-api-key": "large"}).text
    assert 'topicloom_limit_used_count{topicloom_limit_scope="account"} 1.0' in metrics
    assert 'topicloom_limit_used_count{topicloom_limit_scope="session"} 2.0' in metrics
    assert 'duration_seconds_count{error_type="LimitReachedError"} 3.0' in metrics


def test_limits_of_the_command_line_go_before_those_of_the_settings() -> None:
    own = DailyLimits(session=1, user=2, accounts={"a": 3})
    changed = change_limits(own, ["user=20", "key=5", "key:b=4.5"])
    assert changed == DailyLimits(session=1, user=20, account=5, accounts={"a": 3, "b": 4.5})


@pytest.mark.parametrize("text", ["user", "user=", "user=0", "nobody=3", "user:ann=3", "=3", "7"])
def test_a_limit_that_cannot_be_used_says_how_to_write_it(text: str) -> None:
    with pytest.raises(InputError, match="write session=N, user=N"):
        change_limits(DailyLimits(), [text])
