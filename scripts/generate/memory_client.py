"""The OpenAPI document of the memory over HTTP, and the types that its TypeScript client has of it.

The types begin with a digest of the document, by which a test without Node sees that they fit it.
"""

from __future__ import annotations

import json
import subprocess
from hashlib import sha256

from scripts.generate.files import ROOT

from topicloom_app.serve.memory_routes import describe_memory

DOCUMENT = "docs/reference/openapi.json"
CLIENT = ROOT / "clients" / "typescript"
TYPES = CLIENT / "src" / "schema.ts"


def write_document() -> str:
    """The document."""
    return json.dumps(describe_memory(), indent=2, ensure_ascii=False) + "\n"


def is_current() -> bool:
    """True if the types are made of the document as it is."""
    return TYPES.read_text("utf-8").startswith(_write_head())


def build() -> None:
    """Make the types. Needs Node 20 or newer."""
    for command in (["npm", "ci"], ["npm", "run", "generate"]):
        subprocess.run(command, cwd=CLIENT, check=True)
    TYPES.write_text(_write_head() + TYPES.read_text("utf-8"), "utf-8")


def _write_head() -> str:
    digest = sha256((ROOT / DOCUMENT).read_bytes()).hexdigest()
    return f"// Written by bin/generate of {DOCUMENT}, {digest}.\n"
