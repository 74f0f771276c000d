// The address of what the page shows, so that a turn can be opened, sent and gone back to: `#/lake_house/m293/picture`.
export interface Address {
  session: string;
  /** The message that the turn answers; "" for the newest. */
  turn: string;
  /** True if the turn is shown as a picture instead of the chat. */
  picture: boolean;
}

export function readAddress(): Address {
  const [, session = "", turn = "", picture] = location.hash.split("/").map(decode);
  return { session, turn: /^m\d{1,9}$/.test(turn) ? turn : "", picture: picture === "picture" };
}

/** Enters an address into the history, or in the place of the last one. */
export function writeAddress({ session, turn, picture }: Address, replace: boolean): void {
  const hash = `#/${encodeURIComponent(session)}${turn && `/${turn}${picture ? "/picture" : ""}`}`;
  if (hash !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", hash);
}

function decode(text: string): string {
  try { return decodeURIComponent(text); } catch { return ""; }
}
