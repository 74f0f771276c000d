"""Which of a user's message are the user's own words: people paste letters, mails and profiles.

They are told apart by their form, in any language. Where that says nothing, as behind a colon, the
words count as somebody else's: a fact that is missed is said again, and one that is taken wrongly
would be believed for months.
"""

from __future__ import annotations

import regex as re

from topicloom.prompts.loader import load_rows

MARK = "\ufffc"
"""Stands in a text where somebody else's words stood."""
_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*[>|].*$|\"[^\"\n]*\"|“[^”]*”|‘[^’]*’|„[^“”]*[“”]|«[^»]*»|"
    r"「[^」]*」|『[^』]*』|《[^》]*》|<[^<>]*>",
    re.DOTALL | re.MULTILINE,
)
_ABOUT_A_TEXT = re.compile("|".join(load_rows("cues/about_a_text")), re.IGNORECASE | re.MULTILINE)
_INTRODUCED = r"(?<!about (?:me|myself)|remember|note|btw|关于我|记住|记一下)"
"""Behind these a colon announces one's own words."""
_LINE = r"^[^\S\n]*+(?=\S)"
_BEGINS = re.compile(
    rf"{_INTRODUCED}[^\S\n]?[:：][*_]*[^\S\n]*\n|"  # My aunt writes:
    rf"{_LINE}(?:[^\n:：]{{1,40}}(?::[^\S\n]|：)[^\n]*(?:\n|\Z)){{2}}|"  # From: ..., Subject: ...
    rf"{_LINE}(?:\w[^\W\d_]*+ (?:[\w.'’-]+ ?){{1,4}}|[\u4e00-\u9fff]{{2,10}})[,，][^\S\n]*\n|"
    rf"{_LINE}(?:\S+ ){{3,}}[^\s.!?…]+[^\S\n]*\n[^\S\n]*\n|"  # This is her profile
    rf"{_LINE}[\u4e00-\u9fff，、]{{6,}}[^\S\n]*\n[^\S\n]*\n|"
    rf"{_LINE}[-–—_=*~]{{3,}}",  # ----- Forwarded message -----
    re.MULTILINE | re.IGNORECASE,
)
"""What begins or announces a text of another: `My aunt writes:`, a mail's head, `Dear Ann,`, a line
that ends without a mark before a blank one, or a line across."""
_BEHIND_COLON = re.compile(
    rf"{_INTRODUCED}(?<=[^\s:])[^\S\n]?(?:[：﹕︰]|:(?![\d/:()\\|-]|[DPO]\b))(?:(?!\n[^\S\n]*\n).)++",
    re.DOTALL | re.IGNORECASE,
)
"""To the end of its paragraph. Hours, addresses and smileys have colons that announce nothing."""
_PARAGRAPH = re.compile(r"\S[^\S\n]*\n[^\S\n]*\n")


def mask_others(text: str) -> str:
    """A user's message with a mark in place of what the user does not say.

    That is what is quoted, what a line announces or a letter's beginning begins, what stands
    behind a colon, and the text that the message asks to do something with: all behind this wish,
    and paragraphs before it.
    """
    if wish := _ABOUT_A_TEXT.search(text):
        before = text[: wish.start()]
        text = MARK if _PARAGRAPH.search(before) else before + MARK
    if begins := _BEGINS.search(text):
        text = text[: begins.start()] + MARK
    return _BEHIND_COLON.sub(MARK, _QUOTED.sub(MARK, text))
