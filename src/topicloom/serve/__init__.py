"""Internal: an endpoint that speaks OpenAI's protocol, over a session graph."""

from __future__ import annotations

from topicloom.errors import ConfigurationError

try:
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise ConfigurationError(
        f"serving needs a package that is missing ({error.name}): pip install topicloom[serve]"
    ) from error
