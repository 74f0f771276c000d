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
    prompts: Annotated[int, number("How many prompts of each role.")] = 20,
    window: Window = 4_000,
    topic_window: TopicWindow = 6_000,
    conversations: First = 1,
    questions: Annotated[int, number("How many questions of each conversation.", 0)] = 20,
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Send real prompts of the roles to a model, and count how many of its answers can be parsed.

    The prompts are the ones that the roles get while conversations are replayed, reflected upon,
    asked about and reviewed. The embedded roles decide how that continues. The splitter has the
    main window, and all other roles have the window of a topic. Prompts and raw answers are kept.

    All roles are asked except two: nobody parses the replies of the responder, and `eval arbiter`
    asks the arbiter about cases with a known answer.
    """
    from topicloom import Settings
    from topicloom_lab.cli.roles import run_roles
    from topicloom_lab.opened import ModelOptions

    opened = ModelOptions(model, base_url)
    windows = Settings(window=window, topic_window=topic_window)
    run_roles(files, opened, windows, prompts, questions, conversations, out, as_json=json)


def arbiter(
    model: Annotated[
        str | None,
        Option(help="The arbiter: openai:NAME, or rerank:NAME for a cross-encoder. Default: none."),
    ] = None,
    base_url: BaseUrl = None,
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Ask an arbiter about 128 messages whether each continues a task.

    In 64 messages the words mislead: they continue a task in new words, or begin another one in
    similar words. In the other 64 they do not. The command prints the verdicts and their AUC,
    beside the AUC of the boundary model, of a cosine and of the opposite of that cosine. It also
    prints the splits that a session would make: the arbiter decides where the boundary model is in
    doubt, and is not asked elsewhere.
    """
    from topicloom_lab.cli.arbiter import run_arbiter
    from topicloom_lab.opened import ModelOptions

    opened = ModelOptions(model, base_url, max_tokens=16) if model else None
    run_arbiter(opened, out, as_json=json)


def answers(
    files: Recordings,
    model: Model,
    base_url: BaseUrl = None,
    questions: Annotated[int, number("How many questions of each conversation.")] = 20,
    conversations: First = 1,
    budget: Annotated[int, number("Size of a context, in tokens.")] = 1_000,
    skip: Annotated[
        list[str] | None, Option(help="Leave this category out. You can give it more than once.")
    ] = None,
    layout: Annotated[
        list[str] | None,
        Option(
            help="Also answer from a note in this form. You can give it more than"
            " once; `list` shows all."
        ),
    ] = None,
    longest: Annotated[
        int, number("Ask only questions whose expected answer has at most N words.")
    ] = 12,
    requests: Annotated[
        Path | None,
        Option(help="Write the requests to this file as a batch for OpenAI, and ask nobody."),
    ] = None,
    replies: Annotated[
        Path | None, Option(help="The file with the results of such a batch.")
    ] = None,
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Have a model answer questions from what topicloom, a search and a sliding window recall.

    All of them have the same budget and the same prompt. Exact match and F1 are those of SQuAD;
    Chinese is compared by characters. The embedded roles recall, and the model only answers.
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
