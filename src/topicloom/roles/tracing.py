"""The runs that calls of models are traced as.

Tracers and counters of tokens see every call of a model itself. What streams the events of a run
sees the reply alone, once, as it is released to the user; calls of roles too if the configuration
asks for them by `"metadata": {"topicloom_roles": True}`.
"""

from __future__ import annotations

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager, Callbacks
from langchain_core.runnables import RunnableConfig, ensure_config
from langgraph.constants import TAG_NOSTREAM

from topicloom.roles.base import RoleName


def make_config(role: RoleName, session: str, window: str = "") -> RunnableConfig:
    """The configuration of an inner call: traced by role, topic and session, out of all streams."""
    asked = ensure_config().get("metadata", {}).get("topicloom_roles")
    hidden = role == "responder" or not asked
    return RunnableConfig(
        tags=[TAG_NOSTREAM],
        run_name=f"topicloom-{role}",
        metadata=_describe(role, session, window.partition(":")[2]),
        callbacks=_select_callbacks(streams=False) if hidden else ensure_config()["callbacks"],
    )


def make_relay_config(session: str) -> RunnableConfig:
    """The configuration of the reply as it is released: into streams, and to no tracer."""
    return RunnableConfig(
        run_name="topicloom-responder",
        metadata=_describe("responder", session),
        callbacks=_select_callbacks(streams=True),
    )


def _describe(role: RoleName, session: str, topic: str = "") -> dict[str, str]:
    said = {"role": role, "session": session, "topic": topic}
    return {f"topicloom_{key}": value for key, value in said.items() if value}


def _select_callbacks(*, streams: bool) -> Callbacks:
    """The handlers around that stream what happens, or all others."""
    around = ensure_config()["callbacks"]
    if not isinstance(around, BaseCallbackManager):
        return [h for h in around or () if _streams(h) == streams]
    chosen = around.copy()
    for handlers in (chosen.handlers, chosen.inheritable_handlers):
        handlers[:] = [h for h in handlers if _streams(h) == streams]
    return chosen


def _streams(handler: BaseCallbackHandler) -> bool:
    """True for those of `astream_events` and of the `messages` stream: they tap what is yielded.

    Their classes are private: `tests/graph/test_what_langgraph_is_like.py` fails if one taps no
    more.
    """
    return hasattr(handler, "tap_output_iter")
