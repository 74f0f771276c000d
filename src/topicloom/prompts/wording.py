"""The fixed words that stand between messages in prompts.

The prompts in `en/` and `zh/` refer to lines that announce what follows by their exact text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topicloom.state.language import Language


@dataclass(frozen=True, slots=True)
class Wording:
    """Fixed words of one language."""

    now: str
    """Line before the current conversation, in a topic window."""
    this_topic: str
    """Line before the name and the brief of the topic in a topic window."""
    topics: str
    """Line before a list of topics."""
    looking_for: str
    """Line before a query."""
    former_brief: str
    """Line before a topic's name and brief."""
    message: str
    """Line before a message to rewrite."""
    task: str
    """Line before what an arbiter is told of the open topic."""
    reply: str
    """Line before the reply that the message after it may refer to."""
    request: str
    """Line before a message that may begin another topic."""
    dividing: str
    """Line before the topic that is to be divided."""
    data: str
    """Line before the application's data."""
    events: str
    """Line before its active events."""
    templates: str
    """Line before the templates."""
    candidates: str
    """Line before the candidates of a selection."""
    picks: str
    """Line that says how many may be picked; `{limit}`."""
    known_facts: str
    """Line before the facts that are known about the user."""
    one_topic: str
    """Line before the first of two topics."""
    other_topic: str
    """Line before the second one."""
    part: str
    """Line before a segment; `{number}`."""
    day: str
    """Line above the first message of a day; `{day}`, `{weekday}`."""
    weekdays: str
    """Monday to Sunday."""
    facts: str
    """Line above the facts about the user in the main prompt."""
    days: str
    """Line with the days that a query is about; `{days}`."""
    missing: str
    """Line in place of messages that did not fit; `{count}`."""
    active: str
    dormant: str
    nothing: str
    """In place of an empty list or brief."""
    complaint: str
    """Asks for an answer again; `{form}` is what it has to hold."""
    left_out: str
    """In place of the middle of a long text; `{count}`, `{id}`."""
    cut_off: str
    """In place of the result of a tool call that was never answered."""
    summaries: str
    """Line before summaries of segments, in the main window."""
    in_short: str
    """Before the summary of a recalled topic."""
    searched: str
    """Line of a search that found no more; `{query}`, and `{briefs}` and `{read}` topics."""
    not_looked_at: str
    """Line of a search that left `{unsearched}` archived topics out."""
    other_days: str
    """Line of a search for days on which nothing was found; `{missed}`."""
    nothing_more: str
    """Line of a search that found nothing, where it is not known what was looked at; `{query}`."""
    topics_found: str
    """Line before a list of topics."""
    ask_which: str
    """Line of a search that found several topics of which one is meant; `{names}`."""


_WORDINGS: Mapping[Language, Wording] = {
    "en": Wording(
        now="=== The conversation now ===",
        this_topic="=== The topic above ===",
        topics="=== Topics so far ===",
        looking_for="=== Looking for ===",
        former_brief="=== The brief so far ===",
        message="=== The message ===",
        task="=== The task so far ===",
        reply="=== The newest reply ===",
        request="=== The new request ===",
        dividing="=== One topic, to be divided ===",
        data="=== The data ===",
        events="=== Active events ===",
        templates="=== Templates ===",
        candidates="=== Candidates ===",
        picks="Pick at most {limit}.",
        known_facts="=== Known about the user ===",
        one_topic="=== One topic ===",
        other_topic="=== Another topic ===",
        part="-- part {number} --",
        day="-- {day} ({weekday}) --",
        weekdays="Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        facts="What the user has said of himself or herself earlier, each with its day. It asks "
        "for nothing; what the user says later holds against it.",
        days="Days: {days}",
        missing="-- {count:,} earlier messages are not shown --",
        active="active",
        dormant="dormant",
        nothing="(none)",
        complaint=(
            "This could not be used: {form} is missing, incomplete or not in the form asked for. "
            "Give the whole answer again in exactly that form, and nothing else."
        ),
        left_out="[... {count:,} characters of {id} left out here; all of it is kept ...]",
        cut_off="(cut off: there is no result)",
        summaries="Summaries of earlier parts of the conversation:",
        in_short="In short",
        searched=(
            "Looked for “{query}” in the briefs of {briefs} topics, and read {read} topics for "
            "it: nothing more than what stands here."
        ),
        not_looked_at=(
            "Not searched: {unsearched} archived topics. If the user wants something long put "
            "away, call activate_topic again with include_archived."
        ),
        other_days="Nothing was found on the days asked for ({missed}); searched other days.",
        nothing_more="Looked for “{query}”: nothing more than what stands here.",
        topics_found="The likeliest topics found:",
        ask_which="If it is not clear from this which one is meant, ask about it by name: {names}.",
    ),
    "zh": Wording(
        now="=== 当前对话 ===",
        this_topic="=== 以上话题 ===",
        topics="=== 已有话题 ===",
        looking_for="=== 要找什么 ===",
        former_brief="=== 原来的简介 ===",
        message="=== 这条消息 ===",
        task="=== 正在做的事 ===",
        reply="=== 最近的答复 ===",
        request="=== 新请求 ===",
        dividing="=== 一个话题，需要拆分 ===",
        data="=== 数据 ===",
        events="=== 进行中的事 ===",
        templates="=== 模板 ===",
        candidates="=== 候选条目 ===",
        picks="最多选 {limit} 条。",
        known_facts="=== 已知的用户情况 ===",
        one_topic="=== 一个话题 ===",
        other_topic="=== 另一个话题 ===",
        part="-- 第 {number} 段 --",
        day="-- {day}（{weekday}）--",
        weekdays="星期一 星期二 星期三 星期四 星期五 星期六 星期日",
        facts="用户早先说过的自己的情况，各带日期。只供你了解，不是要求；后来另有说法的，以后来的为准。",
        days="日子：{days}",
        missing="-- 更早的 {count:,} 条消息未列出 --",
        active="活跃",
        dormant="休眠",
        nothing="（无）",
        complaint=(
            "这个回答没法用：{form} 缺失、不完整，或者不合要求的格式。"
            "请严格按照那个格式重新写出完整的回答，此外什么都不要写。"
        ),
        left_out="[……此处省略 {id} 的 {count:,} 个字符，原文完整保存……]",
        cut_off="（已中断，没有结果）",
        summaries="此前对话各段的摘要：",
        in_short="概要",
        searched=(
            "为“{query}”查看了 {briefs} 个话题的简介，并通读了 {read} 个话题："
            "除眼前这些外没有更多内容。"
        ),
        not_looked_at=(
            "未查找 {unsearched} 个已归档的话题；如果用户要找早已收起的旧事，"
            "请再次调用 activate_topic 并设 include_archived。"
        ),
        other_days="所问的日子（{missed}）没有找到内容，已改查其他日子。",
        nothing_more="找过“{query}”：除眼前这些外没有更多内容。",
        topics_found="找到的话题中最可能的：",
        ask_which="如果由此还看不出指的是哪一个，可以点名问问用户：{names}。",
    ),
}


def get_wording(language: Language) -> Wording:
    """The fixed words of a language."""
    return _WORDINGS[language]
