"""Options that several commands have."""

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option


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
