"""`topicloom eval generate`: writing made-up conversations to a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from topicloom.cli.console import open_console
from topicloom.context.tokens import count_budget_tokens
from topicloom_lab.cli.output import write_lines
from topicloom_lab.generators import generate


def run_generate(spec: str, out: Path) -> None:
    """Write the conversations of a specification, one at a time, and say what they are.

    Raises:
        InputError: If the specification cannot be followed.
        NotAConversationError: If a file that the generator reads holds something else.
        StorageUnavailableError: If the file cannot be written.
    """
    made = generate(spec)
    conversations = messages = questions = tokens = 0

    def count() -> Iterator[str]:
        nonlocal conversations, messages, questions, tokens
        for conversation in made:
            conversations += 1
            messages += len(conversation.messages)
            questions += len(conversation.questions)
            tokens += sum(count_budget_tokens(m.text) for m in conversation.messages)
            yield conversation.model_dump_json(exclude_none=True)

    write_lines(out, count())
    open_console().print(
        f"{out}: {conversations:,} conversations, {messages:,} messages, {tokens:,} tokens,"
        f" {questions:,} questions"
    )
