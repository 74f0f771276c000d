"""`topicloom eval`, `train` and `tune`: the commands and their options.

What they do is imported when one of them runs. The package's command line finds them by the entry
points in the group `topicloom.commands`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Context, Option, Typer

SOURCES = """
The commands read conversations with questions, dialogues with segments, and conversations with
threads, one JSON object a line. Texts with queries are one JSON object. Files may be packed as .xz.

Generators make conversations, for `generate` and as sources of `run`. They are sniah (needle,
haystack, tokens, depths, form, message, together, seed), oolong (items, message, conversations,
seed) and hotpotqa (folder, message, seed). Write NAME:OPTION=VALUE,OPTION=VALUE, such as
sniah:needle=uuid,haystack=prose,tokens=1000000.
"""
"""The data to measure on, for `topicloom eval --help`."""


def number(help: str, least: int = 1) -> Any:
    """An option that takes a whole number, the least one or more."""
    return Option(metavar="N", min=least, help=help)


AsJson = Annotated[bool, Option("--json", help="Print one JSON object a line.")]
Out = Annotated[Path, Argument(metavar="OUT", help="A folder of results.")]

Recordings = Annotated[
    list[str],
    Argument(metavar="FILE", help="Files of conversations, or `sample` for the packaged one."),
]
ConversationFile = Annotated[
    str,
    Argument(
        metavar="FILE",
        help="A file of conversations with questions, or `sample` for the packaged one.",
    ),
]
First = Annotated[int, number("Take only the first N conversations of each file.")]
Model = Annotated[
    str, Option(help="The model, as openai:NAME, on any server that speaks OpenAI's protocol.")
]
BaseUrl = Annotated[
    str | None, Option(help="The base URL of the server, such as http://127.0.0.1:8080/v1.")
]
Rows = Annotated[
    Path | None,
    Option(
        help="The file for the results, one JSON object for each case. If it exists, the command"
        " continues where it stopped."
    ),
]
Threads = Annotated[
    Path | None,
    Option(
        help="Also write the topic of each message to this file, for `eval threads`. Only"
        " realmem has topics."
    ),
]
Window = Annotated[int, number("Main window during the replay, in tokens.", 1_000)]
TopicWindow = Annotated[int, number("Window of a topic, in tokens.", 1_000)]
Splitter = Annotated[
    Literal["embedded", "gold"],
    Option(
        help="Who moves messages into topics. With `gold`, it is a model that knows the threads."
    ),
]

eval_app = Typer(
    help="Measure on recorded conversations.",
    epilog=SOURCES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@eval_app.command()
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


@eval_app.command()
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


@eval_app.command()
def segmentation(
    file: Annotated[
        Path,
        Argument(metavar="FILE", help="A file of dialogues with segments, one JSON object a line."),
    ],
    mode: Annotated[
        Literal["online", "retrospective"],
        Option(help="Decide message by message, or with the whole dialogue known."),
    ] = "online",
    granularity: Annotated[
        Literal["auto", "fine", "coarse"], Option(help="How fine the topics are.")
    ] = "auto",
    weights: Annotated[
        Path | None,
        Option(help="Weights that `topicloom train boundary` wrote. Default: the packaged ones."),
    ] = None,
    out: Annotated[
        Path | None, Option(help="The file for the results, one JSON object for each dialogue.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Find where topics begin, and compare with dialogues whose segments are known."""
    from topicloom_lab.cli.boundaries import run_segmentation

    run_segmentation(file, mode, granularity, weights, out, as_json=json)


@eval_app.command()
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


@eval_app.command()
def threads(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE", help="A file of conversations with threads, one JSON object a line."
        ),
    ],
    window: Window = 8_000,
    splitter: Splitter = "embedded",
    out: Annotated[
        Path | None, Option(help="The file for the results, one JSON object for each conversation.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Feed interleaved talk to a session, and compare its topics with the known ones.

    The topics are compared twice: as the messages come, when the graph only knows where a topic
    begins, and after the splits moved the messages. Small windows split often. Messages that are
    still unsplit at the end are split then. Messages without a thread are not judged. A message
    that the session has in no topic counts as a topic of its own.
    """
    from topicloom_lab.cli.boundaries import run_threads

    run_threads(file, window, splitter, out, as_json=json)


@eval_app.command()
def run(
    config: Annotated[
        Path | None,
        Argument(
            metavar="CONFIG",
            help="A TOML file that says what to compare. Default: the packaged example.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(help="The folder for the results, instead of the one in the TOML file.")
    ] = None,
    again: Annotated[
        list[str] | None, Option(help="Run this strategy again, although it is finished.")
    ] = None,
    example: Annotated[bool, Option("--example", help="Print the packaged example.")] = False,
    json: AsJson = False,
) -> None:
    """Compare context strategies on recorded conversations, and write a report.

    A cell is one conversation with one strategy and one budget. Finished cells are not run again.
    """
    from topicloom_lab.cli.comparing import print_example, run_config

    if example:
        print_example()
        return
    run_config(config, out, again or (), as_json=json)


@eval_app.command()
def fetch(
    name: Annotated[
        str | None,
        Argument(
            metavar="NAME",
            help="The name of a public data set. Without it, the command lists all of them.",
        ),
    ] = None,
    out: Annotated[Path | None, Option(help="The file to write. Default: NAME.jsonl.")] = None,
    first: Annotated[int | None, number("Take only the first N conversations.")] = None,
    threads: Threads = None,
) -> None:
    """Download a public data set, and write it in the form that `eval run` and the others read.

    The command also prints where the data set comes from, and its licence.
    """
    from topicloom_lab.cli.data_files import list_data_sets, run_fetch

    if name is None:
        list_data_sets()
    else:
        run_fetch(name, out or Path(f"{name}.jsonl"), first, threads)


@eval_app.command()
def convert(
    name: Annotated[str, Argument(metavar="NAME", help="The data set that the files belong to.")],
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE",
            help="The files as they are published. For lifebench, give a folder for each person.",
        ),
    ],
    out: Annotated[Path, Option(help="The file to write.")],
    first: Annotated[int | None, number("Take only the first N conversations.")] = None,
    threads: Threads = None,
) -> None:
    """Rewrite files of a public data set in the form that `eval run` and the others read."""
    from topicloom_lab.cli.data_files import run_convert

    run_convert(name, files, out, first, threads)


@eval_app.command()
def report(out: Out, json: AsJson = False) -> None:
    """Write report.md and the figures of a folder of results again."""
    from topicloom_lab.cli.comparing import write_again

    write_again(out, as_json=json)


@eval_app.command()
def misses(
    out: Out,
    strategy: Annotated[str, Option(help="Show what this strategy missed.")] = "topicloom",
    against: Annotated[str | None, Option(help="Show only what this strategy found.")] = None,
    source: Annotated[
        str | None, Option(help="Show only this file. A part of its name is enough.")
    ] = None,
    budget: Annotated[int | None, Option(help="Show only this budget.")] = None,
    category: Annotated[str | None, Option(help="Show only this category.")] = None,
    limit: Annotated[int, number("Show at most N questions.")] = 20,
    json: AsJson = False,
) -> None:
    """Show questions whose evidence was missed, with the missed messages."""
    from topicloom_lab.cli.comparing import show_misses

    show_misses(out, strategy, against, source, budget, category, limit, as_json=json)


@eval_app.command()
def generate(
    spec: Annotated[
        str,
        Argument(
            metavar="SPEC",
            help="The generator with its options, such as sniah:needle=uuid,tokens=1000000,seed=1.",
        ),
    ],
    out: Annotated[Path, Option(help="The file for the conversations, one JSON object a line.")],
) -> None:
    """Generate conversations with questions and evidence. The same options give the same
    conversations."""
    from topicloom_lab.cli.data_files import run_generate

    run_generate(spec, out)


@eval_app.command()
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
    from topicloom.settings import Settings
    from topicloom_lab.cli.caching import run_caching
    from topicloom_lab.opened import ModelOptions

    # A cache that has seen one layout's topic windows knows those of the other.
    both: tuple[Literal["ledger", "spec"], ...] = ("ledger", "spec")
    layouts = (layout,) if layout else both[:1] if server else both
    real = ModelOptions(model, server, max_tokens=1) if server else None
    given = Settings(window=window, topic_window=topic_window, recall_tokens=recall)
    run_caching(file, conversation, turns, seconds, given, layouts, real, out, as_json=json)


@eval_app.command()
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
    from topicloom.settings import Settings
    from topicloom_lab.cli.roles import run_roles
    from topicloom_lab.opened import ModelOptions

    opened = ModelOptions(model, base_url)
    windows = Settings(window=window, topic_window=topic_window)
    run_roles(files, opened, windows, prompts, questions, conversations, out, as_json=json)


@eval_app.command()
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


@eval_app.command()
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


train_app = Typer(
    help="Train the packaged small model on dialogues with marked topics.",
    no_args_is_help=True,
    # Without it, the only command would be the whole of `train`.
    callback=lambda: None,
)


@train_app.command()
def boundary(
    data: Annotated[Path, Argument(metavar="FOLDER", help="The folder that `segmentation` is in.")],
    out: Annotated[Path, Option(help="The file to write the weights to.")] = Path("boundary.npz"),
    seed: Annotated[
        int,
        Option(
            help="The seed of all that is drawn at random. The same seed gives the same weights."
        ),
    ] = 0,
) -> None:
    """Learn where topics begin, from `segmentation/*.jsonl`.

    The command writes the weights, and a file beside them that describes them and has their figures
    out of sample.
    """
    from topicloom_lab.cli.boundaries import run_training

    run_training(data, out, seed)


def tune(
    context: Context,
    log: Annotated[
        str,
        Argument(
            metavar="LOG",
            help="A session, or a file with what `topicloom receipt NAME --json` printed.",
        ),
    ],
    out: Annotated[
        Path | None, Option(help="The folder for the pictures. Default: tune-NAME.")
    ] = None,
    plots: Annotated[bool, Option(help="Draw pictures, or only print.")] = True,
    svg: Annotated[bool, Option("--svg", help="Also draw the pictures as SVG.")] = False,
    json: AsJson = False,
) -> None:
    """Show what a turn log says about the thresholds, and what other thresholds would have done."""
    from topicloom.cli.console import CliOptions
    from topicloom_lab.cli.tuning import run_tune

    given = context.find_object(CliOptions) or CliOptions()
    kinds = ("png", "svg") if svg else ("png",)
    run_tune(given, log, out, kinds if plots else (), as_json=json)
