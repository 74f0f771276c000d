// The typed API of the server. Its types are made of the server's own (`wire.ts`).
import type {
  Absence, ActivationPolicy, Change, Fact, FoundExport, IndexState, MemoryChange, Moment, PageEvent, PromptMessage, Replays,
  ShownForgotten, ShownMessage, ShownPerson, ShownReceipt, ShownSession, ShownTail, ShownTopic, ShownTurn, TurnMark,
} from "./wire";

export type {
  Absence, ActivationPolicy as Policy, Call, Change, Fact, FoundExport as Found, MemoryChange as Entry, Moment, PageEvent as Event,
  ReplayedTurns as Replayed, ShownForgotten as Forgotten, ShownGround as Ground, ShownMessage as Message, ShownPerson as Person,
  ShownReceipt as Receipt, ShownSession as Session, ShownSpan as Span, ShownTail as Tail, ShownTurn as Turn, TurnMark as Mark,
} from "./wire";
/** A topic, with how much was said of it on which day. */
export type Topic = ShownTopic & { days: Record<string, number> };
export type State = Topic["state"];

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
  static first = () => ask<ShownSession>("/api/session");
  /** The session of a name, or the first one; throws if there is none of that name. */
  static open = async (name: string) => {
    const first = await Api.first();
    if (name && !first.sessions.includes(name)) throw new Error(`there is no session '${name}'`);
    return name ? new Api(name).session() : first;
  };
  static editing = (on: boolean) => ask<{ on: boolean }>("/api/editing", { on });
  private path(path: string, query: Record<string, string> = {}): string {
    return `${this.base}${path}?${new URLSearchParams({ ...query, ...(this.at && { at: this.at }) })}`;
  }
  session = () => ask<ShownSession>(this.path(""));
  topics = () => ask<ShownTopic[]>(this.path("/topics"));
  days = () => ask<Record<string, Record<string, number>>>(this.path("/days"));
  tail = () => ask<ShownTail>(this.path("/tail"));
  messages = (query: Record<string, string>) => ask<ShownMessage[]>(this.path("/messages", query));
  message = (id: string) => ask<ShownMessage>(this.path(`/messages/${id}`));
  ofTopic = (id: string, after: string) =>
    ask<ShownMessage[]>(this.path(`/topics/${id}`, { limit: "100", ...(after && { after }) }));
  search = (text: string) => ask<ShownMessage[]>(this.path("/search", { text }));
  receipt = (id: string) => ask<ShownReceipt | null>(this.path(`/receipts/${id}`));
  grounds = (id: string) => ask<ShownTurn>(this.path(`/grounds/${id}`));
  absence = (turn: number, id: string) => ask<Absence>(this.path(`/absences/${turn}/${id}`));
  caseOf = (turn: number, id: string) => this.path(`/cases/${turn}/${id}`);
  prompt = () => ask<PromptMessage[]>(this.path("/prompt"));
  index = () => ask<IndexState>(this.path("/index"));
  moments = () => ask<Moment[]>(this.path("/moments"));
  marks = () => ask<TurnMark[]>(this.path("/marks"));
  changes = () => ask<MemoryChange[]>(this.path("/changes"));
  facts = () => ask<Record<string, Fact>>(this.path("/facts"));
  person = () => ask<ShownPerson>(this.path("/person"));
  change = (change: Change) => ask<null>(this.path("/changes"), change);
  preview = (what: string[]) => ask<ShownForgotten>(this.path("/preview"), { what });
  forget = (what: string[]) => ask<ShownForgotten>(this.path("/forget"), { what });
  reflect = () => ask<null>(this.path("/reflections"), {});
  fork = () => ask<null>(this.path("/forks"), {});
  stop = () => ask<null>(this.path("/stop"), {});

  replay = (policy: Partial<ActivationPolicy>) => ask<Replays>(
    this.path("/replay", Object.fromEntries(Object.entries(policy).map(([k, v]) => [k, String(v)]))));
  page = (hide: boolean) => this.path("/page", hide ? { hide: "1" } : {});
  turn = (text: string, answer: boolean) => this.stream("/turns", "application/json", JSON.stringify({ text, answer }));
  /** What would be taken in of a file. */
  look = async (file: File): Promise<FoundExport> => {
    const reply = await fetch(this.path("/imports", { dry_run: "1" }), { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
    const told = await reply.json();
    if (!reply.ok) throw new Error(told.error);
    return told as FoundExport;
  };
  take = (file: File) => this.stream("/imports", "application/octet-stream", file);

  private async *stream(path: string, kind: string, body: BodyInit): AsyncGenerator<PageEvent> {
    const reply = await fetch(this.path(path), { method: "POST", headers: { "Content-Type": kind }, body });
    if (!reply.ok || !reply.body) throw new Error((await reply.json()).error);
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) yield JSON.parse(part.slice("data: ".length)) as PageEvent;
    }
  }
}
