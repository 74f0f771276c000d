"""What is public, and where it is: `__init__.py` loads a name from there when it is first used."""

from .cli.memory import (
    MemoryFiles as MemoryFiles,
    MemoryReport as MemoryReport,
)
from .mcp_server import (
    make_mcp_server as make_mcp_server,
)
from .recordings.conversations import (
    Conversation as Conversation,
    RecordedMessage as RecordedMessage,
    load_conversations as load_conversations,
)
from .recordings.replay import (
    RecordedResponder as RecordedResponder,
    RecordedRound as RecordedRound,
    cut_rounds as cut_rounds,
    feed_round as feed_round,
    find_sample as find_sample,
    replay_conversation as replay_conversation,
)
from .serve.app import (
    make_endpoint as make_endpoint,
)

__all__: list[str]
