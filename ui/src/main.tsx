import { render } from "preact";
import { readAddress } from "./address";
import { Api } from "./api";
import { App } from "./app";
import "./style.css";

history.replaceState(null, "", `/${location.hash}`); // the key has become a cookie
const { session: wanted } = readAddress();
Api.first().then((first) => (first.sessions.includes(wanted) ? new Api(wanted).session() : first)).then(
  (first) => render(<App first={first} />, document.getElementById("app")!),
  (error: Error) => { document.getElementById("app")!.textContent = error.message; },
);
