// The typed API of the server.
export interface Session {
  name: string; count: number; tail: number; turn: number; model: string;
  editing: boolean; sessions: string[];
}
export type State = "active" | "dormant" | "archived" | "divided" | "merged";
export interface Topic {
  id: string; name: string; full_name: string; state: State; brief: string; summary: string;
  count: number; first_at: string; last_at: string; parent: string | null;
  importance: number | null; by_hand: string[]; relevance: number | null;
  days: Record<string, number>;
}
export interface Message {
  id: string; seq: number; role: string; label: string; time: string; text: string;
  whole: boolean; media: number; topic: string; relevance: number | null;
}
export interface Call {
  role: string; model: string; topic: string | null; seconds: number; input_tokens: number;
  output_tokens: number; cached_tokens: number; failure: string | null; remarks: string[];
}
export interface Receipt {
  turn: number; user: string; started: string; seconds: number; scores: Record<string, number>;
  quoted: { topic: string; name: string; score: number; quotes: string[]; partial: string[]; summary: string }[];
  active: string[]; woken: string[]; slept: string[]; sections: Record<string, number>;
  window: number; split: string[]; calls: Call[]; events: string[];
  costs: (number | null)[];
  searches: { query: string; when: string | null; found: string[]; reason: string }[];
}
export interface Mark {
  message: string; day: string; quoted: string[]; woken: string[]; split: string[]; searched: boolean;
}
export const steps = ["later", "unanswered", "removed", "in_view", "quoted", "quoted_before", "archived",
  "no_budget", "reader_failed", "passed_over", "asleep", "not_found"] as const;
export interface Absence { message: string; turn: number; step: typeof steps[number]; topic: string; place: number }
export interface Entry {
  id: string; author: string; time: string; event: string; undone: boolean; undoes: string;
}
export interface Fact { text: string; messages: string[]; at: string }
/** A fact of a user for as long as it held; "" if it still holds. */
export interface Span {
  key: string; fact: string; since: string; until: string; at: string; thread: string; scope: string;
  messages: string[]; quote: string;
}
export interface Person { user: string; scope: string; threads: Record<string, string>; spans: Span[] }
export interface Forgotten {
  messages: Message[]; topics: string[]; facts: Record<string, Fact>; left: string[];
}
export type Change =
  | { do: "rename"; topic: string; name: string }
  | { do: "move"; topic: string; messages: string }
  | { do: "split"; topic: string; messages: string; name: string }
  | { do: "merge"; topic: string; into: string }
  | { do: "pin"; topic: string; pinned: boolean }
  | { do: "archive" | "restore"; topic: string }
  | { do: "correct_fact"; key: string; text: string }
  | { do: "forget_fact"; key: string }
  | { do: "undo"; change: string };
export type Policy = Record<"base" | "step" | "floor" | "usual" | "ceiling", number>;
export interface Replayed { turns: number; read: number; tokens: number; quoted: number; missed: number }
export interface Moment { id: string; parent: string; turn: number; count: number; time: string }
export interface Found {
  conversations: number; recorded: number; there_already: number; formats: Record<string, number>; first: string; last: string; names: string[];
  left_out: Record<string, number>; not_understood: { what: string; count: number; example: string }[]; dated_by_neighbours: number; dated_today: number;
}
export type Event =
  | { type: "text"; text: string }
  | { type: "reading" | "moved"; topics: string[] }
  | { type: "read"; topic: string; score: number }
  | { type: "imported"; session: string; done: number; all: number }
  | { type: "quoted"; quotes: string[] }
  | { type: "split"; rounds: number; first: number; last: number }
  | { type: "searching"; query: string; when: string | null }
  | { type: "remembering"; query: string }
  | { type: "reply_restarted" }
  | { type: "receipt"; receipt: Receipt }
  | { type: "end"; stopped: boolean }
  | { type: "error"; error: string };

async function ask<T>(path: string, body?: unknown): Promise<T> {
  const answer = await fetch(path, body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  if (!answer.ok) {
    const text = await answer.text();
    let said = text;
    try { said = JSON.parse(text).error; } catch { /* plain text */ }
    throw new Error(said);
  }
  return answer.json() as Promise<T>;
}

export class Api {
  private readonly base: string;
  /** A session, as it is, or at a moment. */
  constructor(readonly name: string, readonly at = "") { this.base = `/api/session/${encodeURIComponent(name)}`; }
  static first = () => ask<Session>("/api/session");
  static editing = (on: boolean) => ask<{ on: boolean }>("/api/editing", { on });
  private path(path: string, query: Record<string, string> = {}): string {
    return `${this.base}${path}?${new URLSearchParams({ ...query, ...(this.at && { at: this.at }) })}`;
  }
  session = () => ask<Session>(this.path(""));
  topics = () => ask<Omit<Topic, "days">[]>(this.path("/topics"));
  days = () => ask<Record<string, Record<string, number>>>(this.path("/days"));
  messages = (query: Record<string, string>) => ask<Message[]>(this.path("/messages", query));
  message = (id: string) => ask<Message>(this.path(`/messages/${id}`));
  ofTopic = (id: string, after: string) =>
    ask<Message[]>(this.path(`/topics/${id}`, { limit: "100", ...(after && { after }) }));
  search = (text: string) => ask<Message[]>(this.path("/search", { text }));
  receipt = (id: string) => ask<Receipt | null>(this.path(`/receipts/${id}`));
  absence = (turn: number, id: string) => ask<Absence>(this.path(`/absences/${turn}/${id}`));
  caseOf = (turn: number, id: string) => this.path(`/cases/${turn}/${id}`);
  prompt = () => ask<{ role: string; text: string }[]>(this.path("/prompt"));
  index = () => ask<{ left: number }>(this.path("/index"));
  moments = () => ask<Moment[]>(this.path("/moments"));
  marks = () => ask<Mark[]>(this.path("/marks"));
  changes = () => ask<Entry[]>(this.path("/changes"));
  facts = () => ask<Record<string, Fact>>(this.path("/facts"));
  person = () => ask<Person>(this.path("/person"));
  change = (change: Change) => ask<null>(this.path("/changes"), change);
  preview = (what: string[]) => ask<Forgotten>(this.path("/preview"), { what });
  forget = (what: string[]) => ask<Forgotten>(this.path("/forget"), { what });
  fork = () => ask<null>(this.path("/forks"), {});
  stop = () => ask<null>(this.path("/stop"), {});

  replay = (policy: Partial<Policy>) => ask<Record<"in_force" | "policy", [Policy, Replayed]>>(
    this.path("/replay", Object.fromEntries(Object.entries(policy).map(([k, v]) => [k, String(v)]))));
  page = (hide: boolean) => this.path("/page", hide ? { hide: "1" } : {});
  turn = (text: string, answer: boolean) => this.stream("/turns", "application/json", JSON.stringify({ text, answer }));
  /** What would be taken in of a file. */
  look = async (file: File): Promise<Found> => {
    const reply = await fetch(this.path("/imports", { dry_run: "1" }), { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
    const told = await reply.json();
    if (!reply.ok) throw new Error(told.error);
    return told as Found;
  };
  take = (file: File) => this.stream("/imports", "application/octet-stream", file);

  private async *stream(path: string, kind: string, body: BodyInit): AsyncGenerator<Event> {
    const reply = await fetch(this.path(path), { method: "POST", headers: { "Content-Type": kind }, body });
    if (!reply.ok || !reply.body) throw new Error((await reply.json()).error);
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) yield JSON.parse(part.slice("data: ".length)) as Event;
    }
  }
}
