"""What is recalled: evidence in the context, ranking, and what caches serve of the prompts."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from topicloom_lab.cli.commands.options import (
    AsJson,
    ConversationFile,
    Rows,
    Splitter,
    TopicWindow,
    Window,
    number,
)


def memory(
    file: ConversationFile,
    budget: Annotated[
        list[int] | None,
        number("Tokens of recalled context. You can give it more than once. Default: 4,000."),
    ] = None,
    out: Rows = None,
    recent: Annotated[
        int | None,
        number(
            "How many of the newest messages are always in view. Default: none, or for a question"
            " with `asked_at` those before it.",
            0,
        ),
    ] = None,
    window: Window = 8_000,
    topic_window: TopicWindow = 64_000,
    topics: Annotated[
        Literal["own", "gold", "none"],
        Option(
            help="Use the session's own topics, those of --threads, or one topic for everything."
        ),
    ] = "own",
    threads: Annotated[
        Path | None,
        Option(help="A file with the threads of the same messages, one JSON object a line."),
    ] = None,
    splitter: Splitter = "embedded",
    reviews: Annotated[
        Literal["none", "daily"],
        Option(help="Review the session at every midnight of the recording, or never."),
    ] = "none",
    readers: Annotated[
        str,
        Option(
            help="Who reads topics for a question: embedded, ideal, noisy:SHARE, silent or garbage."
        ),
    ] = "embedded",
    agent: Annotated[
        bool, Option(help="Measure an agent with TopicMiddleware instead of the session graph.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Replay conversations, ask their questions, and measure how much of the evidence is in the
    context.

    Each question starts from the state after the whole conversation and does not become part of it.
    A question with `asked_at` is asked at that turn: the session knows only what was said before.
    The clock is that of the recording. With several budgets, the same session is asked once for
    each. A token here is one CJK character or four other characters of `speaker: text`. At the end,
    the command checks that every message is in exactly one place, word for word.

    All readers except the embedded ones are simulated chat models that get the real prompts. The
    router is simulated with them. `ideal` readers know the evidence, `noisy:0.2` readers are wrong
    one time in five, `silent` readers say that no topic matters, and `garbage` readers answer
    rubbish. A `gold` splitter is also a simulated chat model, and knows --threads. `--topics gold`
    asks no model.
    """
    from topicloom_lab.cli.memory import run_memory
    from topicloom_lab.memory import MemoryEvaluation
    from topicloom_lab.readers import ReaderChoice
    from topicloom_lab.threads import load_labels

    evaluation = MemoryEvaluation(
        budgets=tuple(dict.fromkeys(budget or (4_000,))),
        recent=recent,
        window=window,
        topic_window=topic_window,
        topics=topics,
        labels=load_labels(threads) if threads else {},
        splitter=splitter,
        reviews=reviews,
        readers=ReaderChoice.parse(readers),
        agent=agent,
    )
    run_memory(file, out, evaluation, as_json=json)


def idle(
    files: Annotated[
        list[str] | None,
        Argument(
            metavar="FILE",
            help="RealMem's file, `sample` for the packaged one, or others. Default: `sample`.",
        ),
    ] = None,
    messages: Annotated[
        Path | None,
        Option(
            help="A file of messages to ask, one JSON object a line. Default: the packaged ones."
        ),
    ] = None,
    budget: Annotated[int, number("How many tokens may be recalled for a message.")] = 4_000,
    out: Rows = None,
    window: Window = 8_000,
    topic_window: TopicWindow = 64_000,
    readers: Annotated[
        str,
        Option(help="Who reads topics for a message: embedded, ideal, noisy:SHARE or garbage."),
    ] = "embedded",
    json: AsJson = False,
) -> None:
    """Measure what is recalled for messages that need no memory, and for short messages that do.

    The package has 240 such messages, written for the packaged sample and for two people of
    RealMem. Half of them need no memory: thanks, small talk, general knowledge and errands. The
    others, such as "And the cabinets?" or "Same as last time", come with the messages that they
    rest on. Each message is asked at its place in the conversation and does not become part of it.
    RealMem's own first messages that need nothing are asked too.
    """
    from topicloom_lab.cli.idle import run_idle
    from topicloom_lab.idle.measure import IdleEvaluation
    from topicloom_lab.readers import ReaderChoice

    evaluation = IdleEvaluation(budget, window, topic_window, ReaderChoice.parse(readers))
    run_idle(files or (), messages, out, evaluation, as_json=json)


def retrieval(
    files: Annotated[
        list[Path],
        Argument(metavar="FILE", help="Files of texts and queries, one JSON object each."),
    ],
    encoder: Annotated[
        str | None, Option(help="The encoder, as in TOPICLOOM_EMBEDDER. Default: the packaged one.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Measure how often the right text comes first: by words, by the encoder, by both, and as
    ranked in a session.

    A file is {"docs": [text, ...], "queries": [[text, [index of a right text, ...]], ...]} and may
    be packed as .xz. `words` is BM25, `encoder` is the cosine, and `both` is flat search. `ranking`
    is what a session does if the texts are the messages of a user: the length of a text and its
    neighbours count too.
    """
    from topicloom_lab.cli.retrieval import run_retrieval

    run_retrieval(files, encoder, as_json=json)


def caching(
    file: ConversationFile,
    turns: Annotated[int, number("How many answered turns to replay.")] = 200,
    window: Window = 128_000,
    topic_window: TopicWindow = 64_000,
    recall: Annotated[
        int | None,
        number("How many tokens a turn may recall. Default: a share of the window."),
    ] = None,
    layout: Annotated[
        Literal["ledger", "spec"] | None,
        Option(help="Measure only this layout. Default: both layouts, and `ledger` with a server."),
    ] = None,
    seconds: Annotated[
        float, number("How many seconds pass between two turns. Caches expire.", 0)
    ] = 60.0,
    conversation: Annotated[int, number("Which conversation of the file, counted from 1.")] = 1,
    server: Annotated[
        str | None,
        Option(
            help="Also send the prompts to the server at this base URL. Its cache must be empty."
        ),
    ] = None,
    model: Annotated[str, Option(help="The name of the model on the server.")] = "openai:any",
    out: Rows = None,
    json: AsJson = False,
) -> None:
    """Replay a conversation, and measure how much of its prompts a provider's cache would have
    served.

    The embedded roles decide, but the prompts are those of the chat-model roles. Topic windows and
    the main window are counted separately, as if two models played them.

    With a server, all prompts are sent to it in order, and each asks for one token. The command
    prints the server's own counts, for the main window and the topic windows. If you continue a run
    that was stopped, leave the server running, because its cache is part of the measurement.
    """
    from topicloom import Settings
    from topicloom_lab.cli.caching import run_caching
    from topicloom_lab.opened import ModelOptions

    # A cache that has seen one layout's topic windows knows those of the other.
    both: tuple[Literal["ledger", "spec"], ...] = ("ledger", "spec")
    layouts = (layout,) if layout else both[:1] if server else both
    real = ModelOptions(model, server, max_tokens=1) if server else None
    given = Settings(window=window, topic_window=topic_window, recall_tokens=recall)
    run_caching(file, conversation, turns, seconds, given, layouts, real, out, as_json=json)
