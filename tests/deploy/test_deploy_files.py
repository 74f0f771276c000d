"""The files of `deploy/` can be used: read by the programs they are for, if they are there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from servers import free_port, running

from topicloom import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PLACES = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
COMPOSE: dict[str, Any] = import_module("yaml").safe_load(
    (DEPLOY / "compose.yaml").read_text("utf-8")
)
CADDYFILE = (DEPLOY / "Caddyfile").read_text("utf-8")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
UNIT = (DEPLOY / "topicloom@.service").read_text("utf-8")


def run(program: str, *options: str | Path, **environment: str) -> str:
    """What a program says; the test is skipped if it is not there."""
    given = [find(program), *map(str, options)]
    env = {**os.environ, **environment}
    done = subprocess.run(given, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def find(program: str) -> str:
    """The path of a program, those of this environment first."""
    return shutil.which(program, path=PLACES) or pytest.skip(f"NOT TESTED: {program} is not there")


def copied() -> list[tuple[str, str]]:
    """What the Dockerfile copies from the repository into the image: path and place."""
    lines = re.findall(r"^COPY (?!--from)(.+) (\S+)$", DOCKERFILE, re.MULTILINE)
    return [(path, place) for paths, place in lines for path in paths.split()]


def test_the_image_gets_what_the_lock_names() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    for path, _ in copied():
        assert (ROOT / path).exists()
        assert f"!{path}" in ignored


@pytest.mark.long
def test_the_steps_of_the_image_make_a_command_that_runs(tmp_path: Path) -> None:
    """Its `RUN` line, in a folder with nothing but what it copies."""
    for path, place in copied():
        made = tmp_path / place / (Path(path).name if place.endswith("/") else "")
        made.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / path).is_dir() else shutil.copy
        copy(ROOT / path, made)
    (sync,) = re.findall(r"\buv sync .*", DOCKERFILE)
    made = tmp_path / "made"
    uv = [ROOT / ".venv/bin/uv", *sync.split()[1:]]
    env = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(made), "UV_PYTHON_DOWNLOADS": "never"}
    env.pop("VIRTUAL_ENV", None)
    done = subprocess.run(uv, cwd=tmp_path, env=env, capture_output=True, text=True)
    if "error sending request" in done.stderr or "Failed to fetch" in done.stderr:
        pytest.skip("NOT TESTED: no package index")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "src")  # what is installed needs no source
    assert "serve" in run(str(made / "bin" / "topicloom"), "serve", "--help")
    assert run(str(made / "bin" / "python"), "-c", "import topicloom.graph.postgres") == ""


def test_hadolint_finds_nothing() -> None:
    assert run("hadolint", DEPLOY / "Dockerfile") == ""


@pytest.mark.slow
def test_the_services_fit_the_schema_of_compose() -> None:
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_the_services_have_what_they_name() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists()
    build = services["serve"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    assert services["proxy"]["environment"]["WORKERS"] == "${WORKERS:-serve:8321}"
    assert "EXPOSE 8321" in DOCKERFILE


def test_all_settings_that_they_name_are_settings() -> None:
    named = re.findall(r"\bTOPICLOOM_(\w+)", UNIT + DOCKERFILE + str(COMPOSE))
    assert {name.lower() for name in named} <= set(Settings.model_fields)


@pytest.mark.parametrize("workers", ["", "127.0.0.1:8321 127.0.0.1:8322"])
def test_caddy_takes_the_file(workers: str) -> None:
    given = {"WORKERS": workers} if workers else {}
    options = ("--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile")
    assert "Valid configuration" in run("caddy", "validate", *options, **given)


@contextmanager
def answering() -> Iterator[str]:
    """A worker that answers every request with its own address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(address.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = f"127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield address
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
def test_the_proxy_keeps_a_chat_at_one_worker_until_that_ends(tmp_path: Path) -> None:
    command = [
        find("caddy"),
        "run",
        "--adapter",
        "caddyfile",
        "--config",
        str(DEPLOY / "Caddyfile"),
    ]
    url = f"http://127.0.0.1:{free_port()}"

    def ask() -> list[str]:
        chats = [{"X-Topicloom-Session": f"chat {n}"} for n in range(8)]
        return [httpx.get(url, headers=chat).raise_for_status().text for chat in chats]

    with answering() as one, ExitStack() as other:
        workers = {one, other.enter_context(answering())}
        given = {"DOMAIN": url, "WORKERS": " ".join(workers), "XDG_DATA_HOME": str(tmp_path)}
        given |= {"CADDY_ADMIN": f"127.0.0.1:{free_port()}", "XDG_CONFIG_HOME": str(tmp_path)}
        with running(command, url, tmp_path / "log", given):
            first = ask()
            assert set(first) == workers
            assert ask() == first
            other.close()
            assert set(ask()) == {one}


def test_the_proxy_and_the_image_ask_for_health_where_it_is_told() -> None:
    app = (ROOT / "app/src/topicloom_app/serve/app.py").read_text("utf-8")
    (ready,) = re.findall(r"health_uri (\S+)", CADDYFILE)
    (alive,) = re.findall(r"127\.0\.0\.1:8321(/\w+)", DOCKERFILE)
    for path in (ready, alive):
        assert f'Route("{path}"' in app


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = ROOT / ".venv/bin/topicloom"
    unit = tmp_path / "topicloom@.service"
    unit.write_text(UNIT.replace("/opt/topicloom/bin/topicloom", str(program)), "utf-8")
    assert run("systemd-analyze", "verify", unit) == ""
