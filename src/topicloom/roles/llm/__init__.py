"""Roles that chat models play."""

from topicloom.roles.llm.brief import LLMBriefWriter
from topicloom.roles.llm.chat import Chat
from topicloom.roles.llm.reader import LLMReader
from topicloom.roles.llm.responder import LLMResponder
from topicloom.roles.llm.rewriter import LLMRewriter
from topicloom.roles.llm.router import LLMRouter
from topicloom.roles.llm.splitter import LLMSplitter

__all__ = [
    "Chat",
    "LLMBriefWriter",
    "LLMReader",
    "LLMResponder",
    "LLMRewriter",
    "LLMRouter",
    "LLMSplitter",
]
