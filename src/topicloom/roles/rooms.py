"""How much of the conversation fits the prompts of readers and splitters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from topicloom.context.window import MainWindow
from topicloom.context.windows import PromptWindow
from topicloom.prompts.loader import LANGUAGES
from topicloom.roles.reader import READER
from topicloom.roles.registry import Roles
from topicloom.roles.splitter import SPLITTER, messages_room
from topicloom.state.rounds import Round


@dataclass(frozen=True, slots=True)
class Rooms:
    """Sizes that follow from the windows of roles, as far as their servers take them by now."""

    roles: Roles
    main: MainWindow
    """The main model's window, whose counter measures where no model reads or sorts."""
    topic_window: int
    """Tokens of the window that topics are read in by no model."""
    share: float
    """Share of the room of a reader that a topic may fill."""

    @property
    def reader(self) -> PromptWindow:
        """What topics are read in and measured by."""
        own: PromptWindow | None = getattr(self.roles.get(READER), "prompt_window", None)
        return own or PromptWindow.of(self.topic_window, self.main.counter, self.main.prompts)

    @property
    def splitter(self) -> tuple[Callable[[Round], int], int]:
        """Measures a round as the splitter is shown it; and the tokens that one call may have.

        A model is given as much as its window takes.
        """
        own: PromptWindow | None = getattr(self.roles.get(SPLITTER), "prompt_window", None)
        if own is None:
            return self.main.measure, self.main.size // 2
        return own.measure, min(messages_room(own, language) for language in LANGUAGES)

    @property
    def call(self) -> int:
        """Tokens of topics that one call of a reader holds."""
        return self.reader.topic_room()

    @property
    def topic(self) -> int:
        """Tokens that a topic's messages may come to; past it it is divided into sub-topics."""
        return round(self.share * self.call)
