"""The lines of a chat, edited as they are typed, or piped in."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from rich.console import Console
from rich.text import Text

from topicloom_app.cli.console import print_dim, to_one_line

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


@contextmanager
def drop_typed_on_failure() -> Iterator[None]:
    """Drop what was typed for a chat that cannot open: the shell would run it as a command."""
    try:
        yield
    except BaseException:
        if sys.platform != "win32" and sys.stdin.isatty():
            import termios

            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        raise


def read_piped(console: Console) -> Iterator[str]:
    """Yield the lines that are piped in, without empty ones, and show each."""
    for line in map(str.strip, sys.stdin):
        if line:
            console.print(Text(f"› {to_one_line(line)}", style="cyan"), soft_wrap=True)
            yield line


class LineEditor:
    """Reads edited lines, with a history; a pasted block is one message.

    Enter sends, Alt-Enter begins a new line. Ctrl-C clears the input; pressed twice on an empty
    input, it leaves. The history is not stored on disk, because what is purged must be gone.
    """

    def __init__(self, console: Console) -> None:
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

    def read_lines(self) -> Iterator[str]:
        """Yield what is typed, without empty lines, until the input ends."""
        warned = False
        while True:
            try:
                line = self._session.prompt(self._prompt).strip()
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
            warned = False
            if line:
                yield line


def _bind_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
