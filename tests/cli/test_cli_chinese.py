"""Commands speak Chinese where the terminal does: help, errors and what they print."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command_line import Run
from rich.cells import cell_len
from rich.columns import Columns
from rich.table import Table
from typer import rich_utils
from typer.main import get_command

from topicloom.cli import program
from topicloom.cli.app import app
from topicloom.cli.doctor import _CHECKS, _EXTRAS
from topicloom.cli.editor import COMMANDS
from topicloom.cli.words import TYPER_TEXTS, load_catalogue, speak_chinese, wants_chinese

PACKAGES = ("topicloom.cli", "topicloom_lab.cli")
KNOWN = {english: zh for package in PACKAGES for english, zh in load_catalogue(package).items()}
SAID = {english.replace("{#}", "{}") for english in KNOWN}


def has_chinese(text: str) -> bool:
    return not re.search(r"[a-z]{2}", text) or text in SAID


def list_helps(command: Any) -> Iterator[str]:
    for text in (command.help, command.epilog, *(p.help for p in command.params)):
        yield from (" ".join(part.split()) for part in (text or "").split("\n\n"))
    for below in getattr(command, "commands", {}).values():
        if not below.hidden:
            yield from list_helps(below)


def test_every_help_has_chinese() -> None:
    program._add_plugins()
    command = get_command(app)
    assert {"eval", "train", "tune"} <= set(command.commands)  # type: ignore[attr-defined]
    assert not [text for text in list_helps(command) if not has_chinese(text)]


def test_typer_has_the_places_where_its_own_words_are_put() -> None:
    """`speak_chinese` sets them while a command runs; one that is renamed would stay English."""
    words = {value for value in vars(rich_utils).values() if isinstance(value, str)}
    assert {"Arguments", "Options", "Commands", "Error", "Aborted.", "[required]"} <= words & SAID
    assert vars(rich_utils)["Table"] is Table
    assert vars(rich_utils)["Columns"] is Columns
    assert callable(rich_utils.highlighter)


def read_template(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in parts)
        case ast.IfExp(body=body, orelse=other):
            return "\0".join(filter(None, map(read_template, (body, other))))
    return None


SPOKEN = re.compile(r"(say|print_dim|print_line|render_heading|confirm|\w+Error)$")


def list_spoken(file: Path) -> Iterator[str]:
    """The texts that a module hands to what speaks, `{}` for what is filled in."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call) and SPOKEN.match(ast.unparse(node.func).split(".")[-1]):
            for text in filter(None, map(read_template, node.args)):
                yield from text.split("\0")


@pytest.mark.parametrize(
    "file", sorted(Path(program.__file__).parent.rglob("*.py")), ids=lambda path: path.stem
)
def test_whatever_a_command_says_has_chinese(file: Path) -> None:
    assert not [text for text in list_spoken(file) if not has_chinese(text)]


def test_so_have_the_words_of_tables() -> None:
    words = {*COMMANDS.values(), *_CHECKS, *(what for what, _ in _EXTRAS.values())} - {"PostgreSQL"}
    assert not [word for word in words if not has_chinese(word)]


def test_typer_has_what_is_replaced_and_has_it_back_afterwards() -> None:
    before = dict(vars(rich_utils))
    assert before["Table"] is Table
    assert before["Columns"] is Columns
    assert not [name for name in TYPER_TEXTS if before[name] not in KNOWN]
    with speak_chinese(PACKAGES):
        during = dict(vars(rich_utils))
    assert dict(vars(rich_utils)) == before
    assert all(during[name] == KNOWN[before[name]] for name in TYPER_TEXTS)
    others = {name for name in before if during[name] is not before[name]}
    assert others == {"Table", "Columns", "highlighter", *TYPER_TEXTS}


NAMES = re.compile(r"(?<![\w-])-{1,2}[a-z][\w-]+|TOPICLOOM_\w*|`[^`]+`|\{\w+\}")


def test_both_languages_name_the_same_options() -> None:
    for english, chinese in KNOWN.items():
        given = len(re.findall(r"\{#?\}", english))
        if any(f"{{{n}}}" in chinese for n in range(1, given + 1)):
            assert {f"{{{n}}}" for n in range(1, given + 1)} == set(re.findall(r"\{\d\}", chinese))
        else:
            assert chinese.count("{}") == given, f"write {{}} in the Chinese line of {english!r}"
        if "month" not in english:
            named = [re.findall(NAMES, re.sub(r"\{\d\}", "", text)) for text in (english, chinese)]
            assert sorted(named[0]) == sorted(named[1]), english


WIDE: tuple[list[str], ...] = (
    [],
    ["import"],
    ["topic", "split"],
    ["eval", "memory"],
    ["eval", "caching"],
    ["tune"],
)


@pytest.mark.parametrize("path", WIDE, ids=" ".join)
def test_help_fits_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, path: list[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("--language", "zh", *path, "--help").out
    assert max(map(cell_len, shown.splitlines())) <= 80
    assert "…" not in shown
    assert "用法：" in shown
    assert not re.search(r"Options|Commands|Usage|default:|required", shown)


@pytest.mark.parametrize(
    ("arguments", "environment", "chinese"),
    [
        ([], {}, False),
        ([], {"LANG": "zh_CN.UTF-8"}, True),
        ([], {"LANG": "zh_CN.UTF-8", "LC_ALL": "en_US.UTF-8"}, False),
        (["chat", "--language", "zh"], {"LANG": "en_US"}, True),
        (["--language=en", "chat"], {"LANG": "zh_TW"}, False),
        ([], {"LANG": "zh_CN", "TOPICLOOM_LANGUAGE": "en"}, False),
        (["--language", "auto"], {"LANG": "zh_CN", "TOPICLOOM_LANGUAGE": "en"}, True),
    ],
)
def test_the_language_of_commands(
    arguments: list[str], environment: dict[str, str], chinese: bool
) -> None:
    assert wants_chinese(arguments, {"LANG": "C"} | environment) is chinese


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["quote"], "缺少参数 'NAME'"),
        (["serch"], "没有命令 'serch'。是不是要用 'search', 'serve'？"),
        (["chat", "--nix"], "没有选项 --nix"),
        (["replay", "--window", "5"], "'--window' 的值不对：至少要 1000"),
        (["topics", "无"], "里没有会话 '无'（现有：还没有）"),
        (["chat", "../x"], "错误：'../x' 不能作会话的名字"),
        (["replay", "没有.jsonl"], "没有.jsonl 读不出来"),
    ],
)
def test_errors_are_said_in_chinese(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    outcome = run(*arguments)
    assert outcome.code == 2
    assert said in outcome.err
    assert "Error" not in outcome.err


def test_a_chat_and_what_is_shown_of_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICLOOM_LANGUAGE", "zh")
    commands = "/topics\n/receipt\n/nix\n"
    chat = run("chat", "talk", stdin=f"我家的猫叫小黑，它喜欢吃鱼。\n{commands}").out
    for part in ("未设置模型", "会话 talk：新会话。/help 列出命令", "/topics [t3]     谈过什么"):
        assert part in chat
    assert re.search(r"还没归入话题 +2 +1 .*● 活跃 ○ 休眠 · 一列是一条消息", chat, re.DOTALL)
    assert re.search(
        r"第 1 轮，回答 m1，.*提示 .*系统 \d+, 笔记 \d+, 摘要 \d+, 尾部", chat, re.DOTALL
    )
    for shown in (run("transcript", "talk"), run("search", "talk", "猫"), run("export", "talk")):
        assert "用户" in shown.out
        assert not re.search("user|assistant", shown.out)
    assert "没有颜色" in run("doctor").out
    assert "没有 /nix；开头用 // 可以照原样发出" in chat
    assert not re.search(r"messages|topics not|nothing|active|quoted", chat)
    today = f"{date.today().year}年"
    assert f"会话 talk：2 条消息，0 个话题，直到{today}" in run("chat", "talk").out
    assert "没有问题：talk" in run("check").out
    assert "最后一条消息" in run("sessions").out
    assert run("quote", "talk", "m1", "--json").out.startswith('{"id":')
    monkeypatch.setenv("TOPICLOOM_LANGUAGE", "en")
    assert "Usage" in run("--help").out
