import { render } from "preact";
import { readAddress } from "./address";
import { Api, type Session } from "./api";
import { App } from "./app";
import "./style.css";

history.replaceState(null, "", `/${location.hash}`); // the key has become a cookie
const { session: wanted } = readAddress();
const place = document.getElementById("app")!;
const show = (first: Session, problem = "") => render(<App first={first} problem={problem} />, place);
Api.open(wanted).then((first) => show(first), async (error: Error) => {
  history.replaceState(null, "", "/"); // nothing of that address is shown
  show(await Api.first(), error.message);
}).catch((error: Error) => { place.textContent = error.message; });
