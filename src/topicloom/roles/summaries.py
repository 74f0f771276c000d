"""Who sums up a segment of the conversation: extracts of it, or a brief writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topicloom.context.segments import Summarize
from topicloom.index.embedder import Embedder
from topicloom.roles.base import BriefRequest, BriefWriter
from topicloom.roles.embedded.brief import central
from topicloom.state.records import Record
from topicloom.state.session import Language
from topicloom.state.topics import Topic


def extractive(embedder: Embedder, count: Callable[[str], int], limit: int) -> Summarize:
    """A summary of whole messages, the most central ones that fit.

    Args:
        embedder: Compares messages.
        count: Counts tokens.
        limit: Tokens of a summary. Where not one message fits, the most central is cut.
    """

    def summarize(records: Sequence[Record]) -> str:
        said = [r for r in records if r.text.strip()]
        if not said:
            return ""
        ranked = central(said, embedder, len(said))
        chosen: list[Record] = []
        room = limit
        for record in ranked:
            size = count(f"{record.line}\n")
            if size <= room:
                chosen.append(record)
                room -= size
        if not chosen:
            line = ranked[0].line
            return f"{line[: len(line) * limit // max(limit, count(line))]}..."
        return "\n".join(r.line for r in sorted(chosen, key=lambda r: r.seq))

    return summarize


def written(writer: BriefWriter, language: Language) -> Summarize:
    """Summaries by a brief writer: a brief is a summary of about 1,000 characters.

    Args:
        writer: Writes briefs; what it raises goes through.
        language: Of its instructions.
    """

    def summarize(records: Sequence[Record]) -> str:
        segment = Topic(id=f"segment-{records[0].seq}", name="")
        return writer.call(BriefRequest("segments", segment, records, language)).value.text

    return summarize
