"""Commands speak Chinese where the terminal does: help, errors and what they print."""

from __future__ import annotations

import ast
import re
from calendar import month_abbr
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
import typer
from babel.messages.catalog import Catalog
from command_line import Run
from rich.cells import cell_len
from rich.columns import Columns
from rich.table import Table
from scripts.generate.catalogues import find_catalogues, read_catalogue
from tables import each_row
from typer import rich_utils
from typer.main import get_command

import topicloom
import topicloom_lab
from topicloom import errors
from topicloom_app.cli import program
from topicloom_app.cli.app import app
from topicloom_app.cli.doctor import _CHECKS, _EXTRAS
from topicloom_app.cli.editor import COMMANDS
from topicloom_app.cli.words import (
    TYPER_TEXTS,
    speak_chinese,
    wants_chinese,
)

PACKAGES = ("topicloom_app.cli", "topicloom_lab.cli")
CATALOGUES = {file: read_catalogue(file) for file in find_catalogues()}


def list_rows(catalogue: Catalog) -> list[tuple[tuple[str, ...], str]]:
    """The texts of a catalogue with their Chinese; of what is counted, for one and for many."""
    rows: list[tuple[tuple[str, ...], str]] = []
    for message in catalogue:
        english: Any = message.id
        chinese: Any = message.string
        if isinstance(english, str):
            rows += [((english,), chinese)] if english else []
        else:
            rows.append((tuple(english), chinese[0]))
    return sorted(rows)


ROWS = dict(row for catalogue in CATALOGUES.values() for row in list_rows(catalogue))
KNOWN = {text: chinese for texts, chinese in ROWS.items() for text in texts}
"""The Chinese of each text, by the English one."""
PLURALS = {texts for texts in ROWS if len(texts) > 1}
"""What is counted, in English: one and many."""
SOURCES = [
    *Path(topicloom.__file__).parent.rglob("*.py"),
    *Path(program.__file__).parents[1].rglob("*.py"),
    *Path(topicloom_lab.__file__).parent.rglob("*.py"),
]


@cache
def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def has_chinese(text: str) -> bool:
    return not re.search(r"[a-z]{2}", re.sub(r"\{[^}]*\}", "", text)) or text in KNOWN


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
    assert words & KNOWN.keys() >= {
        *("Arguments", "Options", "Commands", "Error", "Aborted.", "[required]")
    }
    assert vars(rich_utils)["Table"] is Table
    assert vars(rich_utils)["Columns"] is Columns
    assert callable(rich_utils.highlighter)


SPOKEN = re.compile(
    r"say|say_plural|print_dim|print_line|render_heading|typer.confirm|FilledText|warnings.warn|\w+Error"
)


def list_spoken(file: Path) -> Iterator[tuple[ast.Call, str]]:
    """The calls of what speaks in a module, with the templates that they are given.

    A template that is filled before it is said comes as its code, which no catalogue has.
    """
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Call) and SPOKEN.fullmatch(ast.unparse(node.func)):
            for argument in node.args:
                for part in (
                    (argument.body, argument.orelse)
                    if isinstance(argument, ast.IfExp)
                    else (argument,)
                ):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield node, part.value
                    elif isinstance(part, ast.JoinedStr) and has_words(part):
                        yield node, ast.unparse(part)


def has_words(text: ast.JoinedStr) -> bool:
    """True if there is more in it than values and signs."""
    parts = (part.value for part in text.values if isinstance(part, ast.Constant))
    return any(re.search("[a-z]{2}", str(part)) for part in parts)


@each_row("file", sorted(Path(program.__file__).parent.rglob("*.py")))
def test_whatever_a_command_says_has_chinese(file: Path) -> None:
    assert not [text for _, text in list_spoken(file) if not has_chinese(text)]


ERRORS = {
    *(name for name, value in vars(errors).items() if isinstance(value, type)),
    *("UnpacksTooMuchError", "UnknownFormError", "FilledText", "warnings.warn"),
} - {
    "UnusableAnswerError",  # never leaves a turn: it stands in receipts, which are data
}
"""What people are told at a command, on the page or by the memory API."""

APART = {
    "domain": "an application sets a domain up in its own code; no command has one",
    "serve": "programs are answered in English, by a protocol of others",
}
"""Folders whose errors stay English, but for those about how something is started, and why."""


@pytest.mark.slow
def test_errors_that_people_see_are_templates_with_chinese() -> None:
    """An error that is written as an f-string would be English in a Chinese session."""
    english = []
    for file in SOURCES:
        of_programs = file.parent.name in APART
        for call, text in list_spoken(file):
            name = ast.unparse(call.func)
            started = name == "ConfigurationError" and file.parent.name == "serve"
            if name in ERRORS and (started or not of_programs) and not has_chinese(text):
                english.append(f"{file.name}:{call.lineno}: {text}")
    assert not english


OPTIONS = {"stacklevel", "style", "reason", "status", "retry_after", "number"}
"""What else those that speak are told by name."""


@pytest.mark.slow
def test_templates_get_the_values_that_they_name() -> None:
    """A name that is missing would be a KeyError instead of the sentence."""
    wrong = []
    for file in SOURCES:
        for call, text in list_spoken(file):
            given = {str(keyword.arg) for keyword in call.keywords}
            if given - OPTIONS and (wrong_names := (given ^ find_names(text)) - OPTIONS):
                wrong.append((file.name, call.lineno, wrong_names))
    assert not wrong


def test_whatever_is_counted_has_chinese() -> None:
    counted = {
        str(call.args[1].value)
        for file in SOURCES
        for call in ast.walk(parse(file))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "count_of"
        if isinstance(call.args[1], ast.Constant)
    }
    assert "message" in counted
    assert not {(f"{{count:,}} {what}", f"{{count:,}} {what}s") for what in counted} - PLURALS


def find_names(template: str) -> set[str]:
    """The names of a template's values."""
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def test_catalogues_have_nothing_that_is_not_said() -> None:
    """A sentence that was changed in the code would stay English, and nobody would see it."""
    program._add_plugins()
    said = {*list_helps(get_command(app)), *month_abbr}
    for file in (*SOURCES, *Path(typer.__file__).parent.rglob("*.py")):
        for node in ast.walk(parse(file)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                said.add(node.value)
    said |= {text for both in PLURALS for text in both}
    assert not sorted(KNOWN.keys() - said)


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


NAMES = re.compile(r"(?<![\w-])-{1,2}[a-z][\w-]+|TOPICLOOM_\w*|`[^`]+`|\{\w[^{}]*\}")


def test_both_languages_name_the_same_options_and_values() -> None:
    singular = {one for one, _ in PLURALS}
    for english, chinese in KNOWN.items():
        if "month" not in english and english not in singular:
            named = [set(re.findall(NAMES, text)) for text in (english, chinese)]
            assert named[0] == named[1], english


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


@each_row(
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
    ("name", "value", "said"),
    [
        ("ROLE_MODELS", '{"nix": "openai:x"}', "TOPICLOOM_ROLE_MODELS 用不了：没有角色 'nix'"),
        ("PROMPTS", "/nix", "TOPICLOOM_PROMPTS 用不了：没有存放提示的文件夹 '/nix'"),
        ("ADSORBER__LOW", "0.99", "TOPICLOOM_ADSORBER 用不了：low 0.99 大于 high"),
        ("ACTIVATION__USUAL", "99", "TOPICLOOM_ACTIVATION 用不了：激活要求 floor"),
        ("WINDOW", "5", "，而不是 '5'"),
    ],
)
def test_settings_that_cannot_be_used_are_told_in_chinese(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv(f"TOPICLOOM_{name}", value)
    outcome = run("topics", "s")
    assert outcome.code == 2
    assert said in outcome.err


@pytest.mark.slow
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
        (["import", "没有.json", "--session", "s"], "没有.json 读不出来：没有这个文件或文件夹"),
        (["chat", "s", "--scope", "work"], "范围 'work' 需要一个用户"),
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


@pytest.mark.slow
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
    assert "没有 /nix（要当作消息发出，开头用 //）" in chat
    assert not re.search(r"messages|topics not|nothing|active|quoted", chat)
    today = f"{date.today().year}年"
    assert f"会话 talk：2 条消息，0 个话题，直到{today}" in run("chat", "talk").out
    assert "没有问题：talk" in run("check").out
    assert "最后一条消息" in run("sessions").out
    assert run("quote", "talk", "m1", "--json").out.startswith('{"id":')
    monkeypatch.setenv("TOPICLOOM_LANGUAGE", "en")
    assert "Usage" in run("--help").out
