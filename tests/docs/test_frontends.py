"""Each front end of its page shows a long conversation and goes on with it, by its real package.

`python scripts/try_integrations.py FOLDER` runs them all; here, those that are not installed are
skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from servers import free_port, running

from topicloom import TurnOptions, build_session_graph, local_checkpointer

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "frontends.md").read_text("utf-8")
SAID = "What is my cat called?"
SESSION = "yue"


def block(heading: str, language: str = "python") -> str:
    """The block of a section of the page."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(heading))
    found = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def need(package: str) -> None:
    """Skip, so that it is seen, where a front end is not installed."""
    if find_spec(package) is None:  # to import Chainlit is to have files of it where one is
        pytest.skip(f"{package} is NOT TESTED here: python scripts/try_integrations.py FOLDER")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session of 30 messages, the 2nd of which is about a cat."""
    monkeypatch.setenv("TOPICLOOM_FOLDER", str(tmp_path))
    monkeypatch.setenv("TOPICLOOM_FSYNC", "false")
    graph: Any = build_session_graph().compile(checkpointer=local_checkpointer())
    said: list[AnyMessage] = [HumanMessage("Good morning 0."), AIMessage("Good morning.")]
    said += [HumanMessage("My cat is called Tom and he likes fish."), AIMessage("Noted.")]
    for n in range(13):
        said += [HumanMessage(f"Day {n} was dry."), AIMessage("Noted.")]
    config = {"configurable": {"thread_id": SESSION}}
    graph.invoke({"messages": said}, config, context=TurnOptions(answer=False))
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    """What a server needs that runs a block over that session."""
    return {"TOPICLOOM_FOLDER": str(folder), "TOPICLOOM_FSYNC": "false"}


def ask(url: str, data: object = None) -> str:
    """What is answered there."""
    request = urllib.request.Request(url, headers={"Content-Type": "application/json"})
    if data is not None:
        request.data = json.dumps(data).encode()
    with urllib.request.urlopen(request) as answer:
        text: str = answer.read().decode()
        return text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_streamlit_example_answers(folder: Path) -> None:
    need("streamlit")
    from streamlit.testing.v1 import AppTest  # type: ignore[import-not-found,unused-ignore]

    def texts(app: Any) -> list[str]:
        return [message.markdown[0].value for message in app.chat_message]

    app = AppTest.from_string(block("Streamlit"), default_timeout=60).run()
    assert texts(app)[-2:] == ["Day 12 was dry.", "Noted."]
    assert len(texts(app)) == 20
    app.chat_input[0].set_value(SAID).run()
    assert not app.exception
    *_, asked, answer = texts(app)
    assert (asked, "Tom" in answer) == (SAID, True)
    app.button[0].click().run()
    assert texts(app)[0] == "Good morning 0."
    assert texts(app)[-2:] == [asked, answer]


def test_the_gradio_example_answers(folder: Path) -> None:
    need("gradio")
    (folder / "app.py").write_text(block("Gradio"), "utf-8")
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    given = {"GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    command = [sys.executable, "app.py"]
    with running(command, url, folder / "log", environment(folder) | given):

        def call(name: str, *given: object) -> Any:
            begun = json.loads(ask(f"{url}gradio_api/call/{name}", {"data": given}))
            events = ask(f"{url}gradio_api/call/{name}/{begun['event_id']}").strip().splitlines()
            return json.loads(events[-1].removeprefix("data: "))[0]

        assert "Tom" in call("reply", SAID)
        shown = call("show")
        assert [m["content"][0]["text"] for m in shown][-2] == SAID
        assert (len(shown), len(call("show_more", shown))) == (20, 32)


async def test_the_chainlit_example_answers(folder: Path) -> None:
    need("chainlit")
    import socketio  # type: ignore[import-not-found,unused-ignore]

    (folder / "app.py").write_text(block("Chainlit"), "utf-8")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "chainlit", "run", "app.py", "--headless", "--port", str(port)]
    with running(command, url, folder / "log", environment(folder)):
        async with socketio.AsyncSimpleClient() as client:
            named = {"sessionId": "one", "clientType": "webapp", "userEnv": "{}"}
            await client.connect(url, auth=named, socketio_path="/ws/socket.io")
            await client.emit("connection_successful")

            async def wait_for(text: str) -> list[str]:
                shown: list[str] = []
                while not any(text in one for one in shown):
                    kind, *data = await client.receive(timeout=60)
                    if kind == "new_message" and data[0]["type"].endswith("_message"):
                        shown.append(data[0]["output"])
                    elif kind == "stream_token":
                        shown.append(data[0]["token"])
                return shown

            shown = await wait_for("Earlier messages")
            assert len(shown) == 21
            message = {"id": str(uuid4()), "type": "user_message", "output": SAID, "name": "User"}
            message["createdAt"] = "2026-03-02T09:14:40Z"
            await client.emit("client_message", {"message": message, "fileReferences": []})
            assert any("Tom" in one for one in await wait_for("Tom"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_ag_ui_example_streams_a_turn(folder: Path) -> None:
    from starlette.testclient import TestClient

    names: dict[str, Any] = {}
    exec(compile(block("AG-UI and CopilotKit"), "frontends.md", "exec"), names)
    client = TestClient(names["app"])
    asked = {"id": "u1", "role": "user", "content": SAID}
    given: Any = {"threadId": SESSION, "runId": "r1", "state": {}, "messages": [asked]}
    given |= {"tools": [], "context": [], "forwardedProps": {}}
    lines = client.post("/agent", json=given).text.splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    said = [e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT"]
    assert "Tom" in "".join(said)
    page = client.get(f"/history/{SESSION}").json()
    assert [m["content"] for m in page][-2:] == [SAID, "".join(said)]
    earlier = client.get(f"/history/{SESSION}", params={"before": page[0]["number"]}).json()
    assert [len(page), len(earlier)] == [20, 12]


def skip_node() -> NoReturn:
    pytest.skip("useStream is NOT TESTED here: python scripts/try_integrations.py FOLDER")


PLAY = """
import { JSDOM } from "jsdom";
const { window } = new JSDOM("<main id=root></main>", { url: "http://localhost" });
for (const name of ["window", "document", "navigator"]) globalThis[name] = window[name];
const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { Chat } = await import("./chat.jsx");
const [apiUrl, threadId, said] = JSON.parse(process.env.GIVEN);
createRoot(document.getElementById("root")).render(createElement(Chat, { apiUrl, threadId }));
const texts = () => [...document.querySelectorAll("p")].map((p) => p.textContent);
async function until(what) {
  for (let n = 0; n < 600; n++) {
    if (what()) return texts();
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error("waited in vain: " + JSON.stringify(texts()));
}
const begun = await until(() => texts().length >= 20);
document.querySelector("input").value = said;
document.querySelector("form").dispatchEvent(new window.Event("submit", { bubbles: true }));
const answered = await until(() => texts().at(-1).includes("Tom"));
document.querySelector("button").click();
const whole = await until(() => texts()[0].includes("morning 0"));
console.log(JSON.stringify([begun, answered, whole]));
process.exit(0);
"""


def test_the_use_stream_example_shows_the_conversation(folder: Path) -> None:
    modules = os.environ.get("NODE_MODULES") or skip_node()
    (folder / "history.py").write_text(block("React"), "utf-8")
    (folder / "chat.jsx").write_text(block("React", "jsx"), "utf-8")
    (folder / "play.mjs").write_text(PLAY, "utf-8")
    (folder / "node_modules").symlink_to(modules)
    served = json.loads((Path(__file__).parents[2] / "langgraph.json").read_text("utf-8"))
    served["dependencies"] = [str(folder)]
    served["http"] = {"app": "./history.py:app"}
    (folder / "langgraph.json").write_text(json.dumps(served), "utf-8")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    program = Path(sys.executable).with_name("langgraph")
    command = [str(program), "dev", "--no-browser", "--no-reload", "--port", str(port)]
    with running(command, f"{url}/ok", folder / "log", environment(folder)):
        thread = json.loads(ask(f"{url}/threads", {}))["thread_id"]
        said = [["user", "Good morning 0."], ["user", "My cat is called Tom, he likes fish."]]
        said += [["user", f"Day {n} was dry."] for n in range(28)]
        told = {"assistant_id": "topicloom", "input": {"messages": said}}
        ask(f"{url}/threads/{thread}/runs/wait", told | {"context": {"answer": False}})
        esbuild = [str(folder / "node_modules/.bin/esbuild"), "play.mjs", "--bundle"]
        esbuild += ["--platform=node", "--format=esm", "--external:jsdom", "--jsx=automatic"]
        esbuild += ["--outfile=played.mjs", "--log-level=error"]
        subprocess.run(esbuild, cwd=folder, check=True)
        played = subprocess.run(
            [shutil.which("node") or skip_node(), "played.mjs"],
            cwd=folder,
            env={**os.environ, "GIVEN": json.dumps([url, thread, SAID])},
            capture_output=True,
            text=True,
            check=False,
        )
    assert played.returncode == 0, played.stderr[-2_000:]
    begun, answered, whole = json.loads(played.stdout)
    assert (len(begun), len(answered), len(whole)) == (20, 22, 32)
    assert answered[-2] == SAID
    assert len(set(whole)) == 32
