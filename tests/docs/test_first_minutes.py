"""What README says to type works in an environment that is made as README says.

Packages come from PyPI. Where it cannot be reached, those that uv has in its cache are taken; where
that is not enough either, the tests are skipped, but never on CI.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from servers import free_port, running

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
KEY = "secret"
UV = Path(sys.executable).with_name("uv")


@dataclass(frozen=True)
class Newcomer:
    """A folder of somebody who has a checkout, and nothing else."""

    folder: Path
    online: bool
    """False if packages come from the cache of uv."""

    @property
    def checkout(self) -> Path:
        return self.folder / "topicloom"

    @property
    def environment(self) -> dict[str, str]:
        unwanted = (
            "TOPICLOOM_",
            "OPENAI_",
            "VIRTUAL_ENV",
            "PYTHONPATH",
            "UV_PROJECT",
            "LANG",
            "LC_",
        )
        kept = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
        kept |= {} if self.online else {"UV_OFFLINE": "1"}
        return kept | {"XDG_DATA_HOME": str(self.folder / "data"), "COLUMNS": "100"}

    def run(self, *command: str | Path, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in the checkout to its end, whether it fails or not."""
        return subprocess.run(
            command,
            cwd=self.checkout,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
        )

    def install(self, *command: str | Path) -> str:
        """What a command that installs packages prints; skips the test if they cannot be had."""
        done = self.run(*command)
        if done.returncode and not self.online and "CI" not in os.environ:
            pytest.skip(f"no PyPI, and not all in uv's cache: README IS NOT TESTED\n{done.stderr}")
        assert done.returncode == 0, done.stderr[-3_000:]
        return done.stdout

    @contextmanager
    def serving(self, *command: str | Path, at: str = "") -> Iterator[str]:
        """The address of a server that was begun with `--port`, once it answers."""
        url = f"http://127.0.0.1:{(port := free_port())}/"
        log = self.folder / "server.log"
        program, *options = map(str, command)
        begun = [str(self.checkout / program), *options, "--port", str(port)]
        environment = self.environment | {"TOPICLOOM_UI_KEY": KEY}
        with running(begun, url + at, log, environment):
            yield url


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    """A copy of what git has, with what is changed."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (copy := tmp_path / "topicloom" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy)
    reached = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "lazy-loader"]
    tried = subprocess.run([*reached, "--dest", tmp_path], capture_output=True, check=False)
    return Newcomer(tmp_path, online=tried.returncode == 0)


def find_block(page: str, language: str, containing: str) -> str:
    """The one block of a page that has a text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    (found,) = (block for block in blocks if containing in block)
    return str(found)


def list_commands(page: str) -> Sequence[str]:
    """The commands with which a page begins."""
    lines = find_block(page, "sh", "bin/demo").splitlines()
    lines += find_block(page, "sh", "bin/topicloom chat").splitlines()
    return list(dict.fromkeys(line.partition("#")[0].strip() for line in lines))


def check_page(url: str, session: str) -> None:
    """The inspector gives its page, and then the messages of a session."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    assert b'id="app"' in opener.open(f"{url}?key={KEY}").read()
    assert b'"m1"' in opener.open(f"{url}api/session/{session}/messages?before=m3").read()


def check_endpoint(url: str) -> None:
    """The endpoint names its models."""
    assert b'"topicloom"' in urllib.request.urlopen(f"{url}v1/models").read()


def test_the_commands_run_in_a_fresh_checkout(newcomer: Newcomer) -> None:
    demo, chat, ui = list_commands("README.md")
    assert list_commands("README.zh.md") == [demo, chat, ui]
    if not newcomer.online:
        lend_uv(newcomer)
    assert "370 messages" in newcomer.install(demo)
    said = newcomer.run(*chat.split(), typed="My mother arrives on 16 May.\nWhen does she come?\n")
    assert "“My mother arrives on 16 May.”" in said.stdout, said.stderr
    with newcomer.serving(*ui.split(), "--no-browser", at=f"?key={KEY}") as url:
        check_page(url, "lake_house")
    with newcomer.serving(".venv/bin/topicloom", "serve", at="v1/models") as url:
        check_endpoint(url)


def lend_uv(newcomer: Newcomer) -> None:
    """Do what `bin/setup` cannot do without PyPI: uv is put into its environment."""
    commands = newcomer.checkout / ".venv" / "bin"
    subprocess.run([sys.executable, "-m", "venv", commands.parent], check=True)
    (commands.parent / "made-in").write_text(f"{newcomer.checkout}\n", "utf-8")
    shutil.copy2(UV, commands)


@pytest.fixture
def made(newcomer: Newcomer) -> Path:
    """An environment in which nothing is installed."""
    subprocess.run([sys.executable, "-m", "venv", newcomer.folder / "environment"], check=True)
    return newcomer.folder / "environment"


def test_the_library_runs_where_it_is_installed(newcomer: Newcomer, made: Path) -> None:
    library, *_ = list_installs("README.md")
    assert list_installs("README.zh.md") == list_installs("README.md")
    install(newcomer, made, library)
    talk(newcomer, made)
    assert not (made / "bin" / "topicloom").exists()


@pytest.mark.long
def test_so_do_the_application_and_the_laboratory(newcomer: Newcomer, made: Path) -> None:
    topicloom = made / "bin" / "topicloom"
    _, application, laboratory = list_installs("README.md")
    install(newcomer, made, application)
    talk(newcomer, made)
    with newcomer.serving(topicloom, "ui", "yue", "--no-browser", at=f"?key={KEY}") as url:
        check_page(url, "yue")
    with newcomer.serving(topicloom, "serve", at="v1/models") as url:
        check_endpoint(url)
    assert "16 May" in newcomer.run(topicloom, "export", "yue").stdout
    assert "pip install ./lab" in newcomer.run(topicloom, "eval", "--help").stderr
    install(newcomer, made, laboratory)
    assert "fetch" in newcomer.run(topicloom, "eval", "--help").stdout


def talk(newcomer: Newcomer, made: Path) -> None:
    """Run the code of both pages."""
    for page, session in (("README.md", "yue"), ("README.zh.md", "yue-zh")):
        code = find_block(page, "python", "build_session_graph")
        done = newcomer.run(made / "bin" / "python", "-c", code.replace('"yue"', repr(session)))
        assert (done.returncode, done.stderr) == (0, "")
        assert without_days(done.stdout) == without_days(find_block(page, "text", "–"))


def list_installs(page: str) -> Sequence[Sequence[str]]:
    """What is installed for each distribution, as a page has it."""
    lines = find_block(page, "sh", "pip install ./topicloom ").splitlines()
    return [line.partition("#")[0].split()[2:] for line in lines]


def install(newcomer: Newcomer, environment: Path, packages: Sequence[str]) -> None:
    """Install packages of the checkout; without PyPI, those that they need as `uv.lock` has them,
    from uv's cache."""
    if newcomer.online:
        folders = [newcomer.folder / package for package in packages]
        python = environment / "bin" / "python"
        if folders[1:]:  # uv reads the same, in a tenth of the time
            newcomer.install(UV, "pip", "install", "--python", python, *folders)
        else:
            newcomer.install(python, "-m", "pip", "install", *folders)
        return
    chosen = {1: ["--package", "topicloom"], 2: ["--extra", "app"], 3: ["--all-packages"]}
    options = ["--frozen", "--no-dev", "--no-editable", "--python", sys.executable]
    target = f"UV_PROJECT_ENVIRONMENT={environment}"
    newcomer.install("env", target, UV, "sync", *options, *chosen[len(packages)])


def without_days(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d", "DAY", text)
