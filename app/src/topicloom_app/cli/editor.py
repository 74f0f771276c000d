"""The lines of a chat, edited as they are typed, or piped in: light, so that a prompt is there at
once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from threading import Event, Thread
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from topicloom_app.cli.console import CliOptions, open_console, print_dim, to_one_line

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

COMMANDS: Mapping[str, str] = {
    "/topics [t3]": "what has been talked about; or one topic, word for word",
    "/search words": "the messages that fit best",
    "/transcript [n]": "the newest n messages (10), word for word",
    "/receipt [n]": "what the newest n turns (1) read, quoted and cost",
    "/facts": "what is kept of you",
    "/forget m3 t2": "remove messages or topics for good; asks first",
    "/retry": "the last message once more, after a failure",
    "/help": "this list",
    "/quit": "leave (as Ctrl-D does); the session goes on where it stopped",
}
"""The commands of a chat, each with what it takes."""


def start_chat(
    cli: CliOptions, name: str, window: int | None, user: str = "", scope: str = ""
) -> None:
    """Chat until the input ends; a terminal has its prompt at once, and what is heavy behind it."""
    console, editor, typed = open_console(), None, ""
    if sys.stdin.isatty() and sys.stdout.isatty():
        print_dim(console, "topicloom, session {name}: it is being opened, you can type", name=name)
        editor = LineEditor(console)
        typed = editor.read_while(_load)
    run_chat = import_module("topicloom_app.cli.chat").run_chat
    run_chat(cli, name, window, console, editor, typed, user, scope)


def _load() -> None:
    """Import what a chat needs, and warm up its encoder."""
    import_module("topicloom_app.cli.chat")
    import_module("topicloom.search.encoders").default_embedder().embed(["."])


def read_piped(console: Console) -> Iterator[str]:
    """Yield the lines that are piped in, without empty ones, and show each."""
    for line in map(str.strip, sys.stdin):
        if line:
            console.print(Text(f"› {to_one_line(line)}", style="cyan"), soft_wrap=True)
            yield line


class LineEditor:
    """Reads what is typed: edited, over several lines where a block is pasted, with a history.

    Enter sends, Alt-Enter begins a line. Ctrl-C drops what is typed, and leaves where nothing is,
    the second time. No history is kept on disk: what is purged must be gone.
    """

    def __init__(self, console: Console) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter

        self._console = console
        sign = "› " if console.encoding.startswith("utf") else "> "
        self._prompt: StyleAndTextTuples = [("ansicyan bold", sign)]
        words = [usage.split()[0] for usage in COMMANDS]
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            key_bindings=_bind_keys(),
            completer=WordCompleter(words, sentence=True),
            complete_while_typing=False,
            prompt_continuation="  ",
        )

    def add_history(self, lines: Sequence[str]) -> None:
        """Lines of before, the oldest first, for the arrow keys."""
        for line in lines:
            self._session.history.append_string(line)

    def read_lines(self, begun: str = "") -> Iterator[str]:
        """Yield what is typed, without empty lines, until the input ends."""
        if begun.endswith("\n"):
            if said := begun.strip():
                self._console.print(Text(f"› {said}", style="cyan"), soft_wrap=True)
                yield said
            begun = ""
        warned = False
        while True:
            try:
                line = self._session.prompt(self._prompt, default=begun).strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                if self._session.default_buffer.text:
                    continue
                if warned:
                    return
                warned = True
                print_dim(self._console, "Ctrl-C once more leaves, and so does /quit")
                continue
            finally:
                begun = ""
            warned = False
            if line:
                yield line

    def read_while(self, work: Callable[[], object]) -> str:
        """What is typed while some work is done; what was sent meanwhile ends in a line break."""
        app, done = self._session.app, Event()

        def stop() -> None:
            if app.is_running and not app.is_done:
                done.set()
                app.exit(result=self._session.default_buffer.text)

        def run() -> None:
            try:
                work()
            finally:
                if app.loop is not None:
                    app.loop.call_soon_threadsafe(stop)

        doing = Thread(target=run, daemon=True)
        app.erase_when_done = True
        try:
            typed = self._session.prompt(self._prompt, pre_run=doing.start)
        finally:
            app.erase_when_done = False
        doing.join()
        return typed if done.is_set() else f"{typed}\n"


def _bind_keys() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
