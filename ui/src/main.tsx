import { render } from "preact";
import { Api } from "./api";
import { App } from "./app";
import "./style.css";

history.replaceState(null, "", "/"); // the key has become a cookie
Api.first().then(
  (first) => render(<App first={first} />, document.getElementById("app")!),
  (error: Error) => { document.getElementById("app")!.textContent = error.message; },
);
