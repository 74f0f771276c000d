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
    list[str], Argument(help="Files of conversations, or `sample`, which ships.")
]
ConversationFile = Annotated[
    str, Argument(help="A file of conversations with questions, or `sample`, which ships.")
]
First = Annotated[int, number("Of each file, the first ones.")]
Model = Annotated[str, Option(help="As openai:NAME, for any server that speaks its protocol.")]
BaseUrl = Annotated[str | None, Option(help="The server, such as http://127.0.0.1:8080/v1.")]
Rows = Annotated[Path | None, Option(help="Results, one JSON a case; goes on where it stopped.")]
Threads = Annotated[
    Path | None,
    Option(help="Also write the topic of each message, for `eval threads`; of realmem alone."),
]
Window = Annotated[int, number("Main window in tokens during the replay.", 1_000)]
TopicWindow = Annotated[int, number("Window of a topic in tokens.", 1_000)]
Splitter = Annotated[
    Literal["embedded", "gold"],
    Option(help="Who moves messages into topics; `gold`: a model that knows the threads."),
]
