"""A real model in the roles: its answers, its rulings, its replies."""

from pathlib import Path
from typing import Annotated

from typer import Option

from topicloom_lab.cli.commands.options import (
    AsJson,
    BaseUrl,
    First,
    Model,
    Recordings,
    Rows,
    TopicWindow,
    Window,
    number,
)


def roles(
    files: Recordings,
    model: Model,
    base_url: BaseUrl = None,
    prompts: Annotated[int, number("Prompts of each role.")] = 20,
    window: Window = 4_000,
    topic_window: TopicWindow = 6_000,
    conversations: First = 1,
    questions: Annotated[int, number("Asked of each conversation.", 0)] = 20,
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Put real prompts of the roles to a model, and see how many of its answers can be parsed.

    The prompts are what the roles are asked while conversations are replayed, reflected upon,
    asked about and reviewed; the embedded roles decide how that goes on. The splitter has the main
    window, all others that of a topic. Prompts and raw answers are kept.

    All roles but the responder, whose replies nobody parses, and the arbiter: `eval arbiter` asks
    it about cases with a known answer.
    """
    from topicloom.settings import Settings
    from topicloom_lab.cli.roles import run_roles
    from topicloom_lab.opened import ModelOptions

    opened = ModelOptions(model, base_url)
    windows = Settings(window=window, topic_window=topic_window)
    run_roles(files, opened, windows, prompts, questions, conversations, out, as_json=json)


def arbiter(
    model: Annotated[
        str | None,
        Option(help="openai:NAME, or rerank:NAME for a cross-encoder; else nobody is asked."),
    ] = None,
    base_url: BaseUrl = None,
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Ask an arbiter about 128 messages that go on with a task or do not, whatever their words.

    In 64 the words point the wrong way: they go on in new words, or begin something new in similar
    ones. In the other 64 they point the right way. Prints its verdicts, their AUC beside those of
    the boundary model, of a cosine and of its opposite, and the splits that follow as a session
    would make them: where the boundary model is in doubt the ruling decides, elsewhere nobody is
    asked.
    """
    from topicloom_lab.cli.arbiter import run_arbiter
    from topicloom_lab.opened import ModelOptions

    opened = ModelOptions(model, base_url, max_tokens=16) if model else None
    run_arbiter(opened, out, as_json=json)


def answers(
    files: Recordings,
    model: Model,
    base_url: BaseUrl = None,
    questions: Annotated[int, number("Of each conversation.")] = 20,
    conversations: First = 1,
    budget: Annotated[int, number("Tokens of a context.")] = 1_000,
    skip: Annotated[
        list[str] | None, Option(help="Leave this category out; may be repeated.")
    ] = None,
    layout: Annotated[
        list[str] | None,
        Option(
            help="Also answer from a note in this form. You can give it more than"
            " once; `list` shows all."
        ),
    ] = None,
    longest: Annotated[int, number("Most words that an expected answer may have.")] = 12,
    requests: Annotated[
        Path | None,
        Option(help="Write the requests to this file as a batch for OpenAI, and ask nobody."),
    ] = None,
    replies: Annotated[Path | None, Option(help="File with the results of such a batch.")] = None,
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Have a model answer questions from what topicloom, a search and a sliding window recall.

    The budget is the same for all of them, and so is the prompt. Exact match and F1 are those of
    SQuAD, Chinese by characters. The embedded roles recall; the model only answers.
    """
    from topicloom_lab.cli.answers import print_layouts, run_answers
    from topicloom_lab.opened import ModelOptions

    if layout and "list" in layout:
        print_layouts(as_json=json)
        return
    opened = ModelOptions(model, base_url, 48, requests, replies)
    run_answers(
        files,
        opened,
        budget,
        skip or (),
        questions,
        conversations,
        out,
        layouts=layout or (),
        longest=longest,
        as_json=json,
    )
