"""What whoever runs the endpoint asks it: is it there, can it serve, what did it do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import psycopg
import pytest
from endpoints import ask, listening, open_client, serve_command
from openai_server import OpenAIServer
from postgres import open_postgres
from prometheus_client.parser import text_string_to_metric_families
from sessions import open_graph

from topicloom import local_checkpointer
from topicloom.testing import ScriptedResponder, fake_roles
from topicloom_app import make_endpoint


@contextmanager
def endpoint(folder: Path, *script: Any, **options: Any) -> Iterator[str]:
    """The address of an endpoint over a folder, without a path."""
    saver = local_checkpointer(folder)
    responder = ScriptedResponder(*script)
    graph = open_graph(folder, fake_roles(responder), checkpointer=saver, reply_attempts=1)
    with listening(make_endpoint(graph, **options)) as url:
        yield url.removesuffix("/v1")


def read_metrics(base: str, **headers: str) -> dict[str, float]:
    """Values of the metrics by the names of samples, all labels together."""
    page = httpx.get(f"{base}/metrics", headers=headers).raise_for_status().text
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if "le" not in sample.labels:
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def test_it_is_healthy_and_ready(tmp_path: Path) -> None:
    with endpoint(tmp_path) as base:
        for path in ("healthz", "readyz"):
            answer = httpx.get(f"{base}/{path}")
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert httpx.get(f"{base}/health").status_code == 404


@pytest.mark.slow
def test_it_is_not_ready_while_checkpoints_are_locked(tmp_path: Path) -> None:
    saver = local_checkpointer(tmp_path)
    graph = open_graph(tmp_path, checkpointer=saver)
    with listening(make_endpoint(graph)) as url:
        base = url.removesuffix("/v1")
        with saver.lock:
            for _ in range(2):
                answer = httpx.get(f"{base}/readyz")
                assert answer.status_code == 503
                assert "no answer within" in answer.json()["reason"]
            assert httpx.get(f"{base}/healthz").status_code == 200
        assert wait_for(base, 200) == {"status": "ok"}


def test_it_is_not_ready_where_checkpoints_are_broken(tmp_path: Path) -> None:
    saver = local_checkpointer(tmp_path)
    with listening(make_endpoint(open_graph(tmp_path, checkpointer=saver))) as url:
        saver.close()
        answer = httpx.get(url.replace("/v1", "/readyz"))
        assert answer.status_code == 503
        assert answer.json()["reason"].startswith("the storage cannot be used: ")
        assert str(tmp_path) not in answer.text


def wait_for(base: str, status: int) -> Any:
    """What `/readyz` says once it has a status."""
    while (answer := httpx.get(f"{base}/readyz", timeout=30)).status_code != status:
        pass
    return answer.json()


@pytest.mark.slow
def test_it_is_not_ready_while_postgres_is_locked_or_gone(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    with ExitStack() as database:
        uri = database.enter_context(open_postgres(alone=True))
        with serve_command(tmp_path, openai_server, "--postgres", uri) as (url, _):
            base = url.removesuffix("/v1")
            assert wait_for(base, 200) == {"status": "ok"}
            with psycopg.connect(uri) as other:
                other.execute("LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE")
                assert httpx.get(f"{base}/readyz").status_code == 503
                assert httpx.get(f"{base}/healthz").status_code == 200
                other.rollback()
            wait_for(base, 200)
            database.close()
            assert wait_for(base, 503)["status"] == "unavailable"
            assert httpx.get(f"{base}/healthz").status_code == 200


@pytest.mark.slow
def test_metrics_count_what_turns_did(tmp_path: Path) -> None:
    with endpoint(tmp_path, "Noted.", RuntimeError("broken")) as base:
        with open_client(f"{base}/v1") as client:
            history = ask(client, [], "茶：一", user="a")
            with pytest.raises(openai.InternalServerError):
                ask(client, history, "茶：二", user="a")
        found = read_metrics(base)
        page = httpx.get(f"{base}/metrics").text
    assert found["topicloom_turn_duration_seconds_count"] == 2
    assert found["topicloom_turn_quotes_count"] == 1
    assert found["process_resident_memory_bytes"] > 0
    assert 'topicloom_turn_duration_seconds_count{error_type="ReplyError"} 1.0' in page
    assert "茶" not in page


@pytest.mark.slow
def test_metrics_are_for_whoever_runs_the_server(tmp_path: Path) -> None:
    with endpoint(tmp_path, keys={"": "secret"}) as base:
        assert httpx.get(f"{base}/metrics").status_code == 401
        assert read_metrics(base, Authorization="Bearer secret")
    keys = {"app": "one", "ann": "two"}
    with endpoint(tmp_path, keys=keys, trusted=["app"]) as base:
        assert read_metrics(base, Authorization="Bearer one")
        refused = httpx.get(f"{base}/metrics", headers={"Authorization": "Bearer two"})
        assert refused.status_code == 403
        assert "--trust" in refused.text
