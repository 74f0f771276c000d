"""Roles that chat models play."""

from topicloom.roles.llm.arbiter import LLMArbiter
from topicloom.roles.llm.brief import LLMBriefWriter
from topicloom.roles.llm.chat import Chat
from topicloom.roles.llm.merger import LLMMerger
from topicloom.roles.llm.planner import LLMPlanner
from topicloom.roles.llm.reader import LLMReader
from topicloom.roles.llm.reflector import LLMReflector
from topicloom.roles.llm.responder import LLMResponder
from topicloom.roles.llm.reviewer import LLMReviewer
from topicloom.roles.llm.rewriter import LLMRewriter
from topicloom.roles.llm.router import LLMRouter
from topicloom.roles.llm.selector import LLMSelector
from topicloom.roles.llm.splitter import LLMSplitter

__all__ = [
    "Chat",
    "LLMArbiter",
    "LLMBriefWriter",
    "LLMMerger",
    "LLMPlanner",
    "LLMReader",
    "LLMReflector",
    "LLMResponder",
    "LLMReviewer",
    "LLMRewriter",
    "LLMRouter",
    "LLMSelector",
    "LLMSplitter",
]
