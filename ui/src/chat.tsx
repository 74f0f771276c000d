// The conversation: a window of pages over all of it, and the turn that goes on.
import { Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Event, Message } from "./api";
import { carrying, Cited, clock, day, Dot, hue, Said, useAnswers, usePage } from "./shared";
import { fillIn, nameSpeaker } from "./words";

const PAGE = 60;
const MOST = 240;

/** What a turn does before it replies: one line for each kind of step. */
interface Progress { moved: string; looked: string; reading: number; read: number; quoted: number; restarted: string }
const NOTHING: Progress = { moved: "", looked: "", reading: 0, read: 0, quoted: 0, restarted: "" };

export function Chat({ target, aimed, asked, why, onTurn, onShown }: {
  target: string; aimed: number; asked: { text: string; count: number }; why: () => void; onTurn: (event: Event) => void; onShown: () => void;
}) {
  const page = usePage();
  const { api, session, t, version, picked, receipt, turn } = page;
  const [shown, setShown] = useState<Message[]>([]);
  /** The session and moment that the shown messages are of. */
  const from = useRef<typeof api | null>(null);
  const [live, setLive] = useState<{ text: string; reply: string; progress: Progress; answer: boolean; answered: string } | null>(null);
  const [waits, setWaits] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const anchor = useRef<{ id: string; top: number } | null>(null);
  /** The end is kept in view, until the user scrolls away from it. */
  const stick = useRef(true);
  /** Where the page itself scrolled to: what is elsewhere was scrolled by the user. */
  const placed = useRef(0);
  const loading = useRef(false);
  const shownName = useRef(session.name);
  shownName.current = session.name;
  const drawn = useRef(shown);
  drawn.current = shown;
  const first = shown[0]?.seq ?? 1;
  const last = shown.at(-1)?.seq ?? 0;
  const atEnd = last >= session.count;

  const keep = () => {
    const row = [...(box.current?.querySelectorAll<HTMLElement>("[data-id]") ?? [])]
      .find((r) => r.getBoundingClientRect().bottom > box.current!.getBoundingClientRect().top);
    anchor.current = row ? { id: row.dataset["id"]!, top: row.getBoundingClientRect().top } : null;
  };
  const toEnd = () => {
    const view = box.current!;
    view.scrollTop = view.scrollHeight;
    placed.current = view.scrollTop;
  };
  const load = (query: Record<string, string>) => api.messages({ limit: String(PAGE), ...query });
  const show = useAnswers(api, page.say);
  /** Another part of the conversation instead of what is shown. */
  const replace = (query: Record<string, string>) => show(load(query).catch((error: Error) => {
    if (from.current === api) throw error; // nothing of another session stays: the newest is shown instead
    page.say(error.message);
    stick.current = true;
    return load({});
  }), (found) => {
    if (!stick.current) keep();
    from.current = api;
    setShown(found);
  });
  const toNewest = () => { stick.current = true; return replace({}); };
  /** More of it at one end, unless something else is shown by then. */
  const extend = async (query: Record<string, string>, join: (found: Message[]) => Message[]) => {
    if (loading.current || !page.current) return; // how many there are is not known yet
    loading.current = true;
    try {
      const found = await load(query);
      if (drawn.current !== shown) return;
      keep();
      setShown(join(found));
    } catch (error) { page.say((error as Error).message); } finally { loading.current = false; }
  };
  const loadEarlier = () => extend({ before: `m${first}` }, (found) => [...found, ...shown].slice(0, MOST));
  const loadLater = () => {
    const end = last + PAGE + 1;
    return extend(end <= session.count ? { before: `m${end}` } : {}, (found) => [...shown, ...found.filter((m) => m.seq > last)].slice(-MOST));
  };

  useEffect(() => { void toNewest().then(onShown); }, [api]);
  useEffect(() => {  // something changed: the same place, anew
    if (!version || !shown.length || from.current !== api) return;
    if (stick.current) { void toNewest(); return; }
    keep();
    const around = anchor.current?.id ?? `m${Math.floor((first + last) / 2)}`;
    void replace({ around, limit: String(2 * PAGE) });
  }, [version]);
  useEffect(() => {
    if (!target) return;
    stick.current = false;
    void (async () => {
      if (from.current !== api || !shown.some((m) => m.id === target)) await replace({ around: target });
      requestAnimationFrame(() => {
        const row = box.current?.querySelector<HTMLElement>(`[data-id="${target}"]`);
        row?.scrollIntoView({ block: "center" });
        row?.focus({ preventScroll: true });
        row?.animate([{ background: "var(--glow)" }, {}], 2200);
      });
    })();
  }, [target, aimed]);
  useLayoutEffect(() => {
    const view = box.current;
    if (!view) return;
    if (stick.current) { toEnd(); return; }
    const kept = anchor.current;
    const row = kept && view.querySelector<HTMLElement>(`[data-id="${kept.id}"]`);
    if (row) view.scrollTop += row.getBoundingClientRect().top - kept.top;
    anchor.current = null;
  }, [shown, live, receipt]);

  useEffect(() => {  // a column that was hidden, a note below it, a window of another size
    const observer = new ResizeObserver(() => { if (stick.current) toEnd(); });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  const onScroll = () => {
    const view = box.current!;
    const below = view.scrollHeight - view.scrollTop - view.clientHeight;
    // The session may have grown by messages that are not shown yet: only the user leaves its end.
    if (below < 40) stick.current ||= atEnd;
    else if (view.scrollTop !== placed.current) stick.current = false;
    if (view.scrollTop < 300 && first > 1 && shown.length) void loadEarlier();
    else if (!atEnd && below < 300) void loadLater();
  };
  const send = async (text: string, answer: boolean) => {
    if (!atEnd) await toNewest();
    stick.current = true;
    let now = { text, reply: "", progress: NOTHING, answer, answered: "" };
    setLive(now);
    setWaits(false);
    try {
      for await (const event of api.turn(text, answer)) {
        if (event.type === "text") now = { ...now, reply: now.reply + event.text };
        if (event.type === "reply_restarted") now = { ...now, reply: "" };
        if (event.type === "receipt") now = { ...now, answered: event.user };
        now = { ...now, progress: follow(now.progress, event) };
        if (event.type === "error") page.say(event.error);
        if (event.type === "error" || (event.type === "end" && event.stopped)) setWaits(true);
        setLive(now);
        onTurn(event);
      }
    } catch (error) { page.say((error as Error).message); }
    await page.settle();
    if (now.answered && shownName.current === api.name) page.pick(now.answered);
    if (!api.at && stick.current) await toNewest();
    setLive(null);
  };
  const follow = (now: Progress, event: Event): Progress => {
    switch (event.type) {
      case "split": return { ...now, moved: event.rounds ? fillIn(t("splitting"), event.last - event.first + 1) : t("room") };
      case "reading": return { ...now, reading: event.topics.length, read: 0 };
      case "read": return { ...now, read: now.read + 1 };
      case "quoted": return { ...now, quoted: event.quotes.length };
      case "searching": return { ...now, looked: `${t("looked")} “${event.query}”` };
      case "remembering": return { ...now, looked: t("remembering") };
      case "reply_restarted": return { ...now, restarted: t("restarted") };
      default: return now;
    }
  };
  const tell = (now: Progress) => [
    now.moved, now.looked,
    now.reading ? fillIn(t("reading"), Math.min(now.read, now.reading), now.reading) : "",
    now.quoted ? fillIn(t("quotedMany"), now.quoted) : "", now.restarted,
  ].filter(Boolean);
  useEffect(() => { if (asked.count && !live && session.editing) void send(asked.text, true); }, [asked.count]);

  const rests = turn?.grounds.filter((ground) => ground.says).length;
  return (
    <>
      <div class="scroll messages" ref={box} onScroll={onScroll} tabIndex={-1} role="log" aria-label={t("chat")}>
        {shown.map((m, n) => (
          <Fragment key={m.id}>
            {day(m.time, page.language) !== day(shown[n - 1]?.time ?? "", page.language) &&
              <h3 class="day" key={`d${m.id}`}>{day(m.time, page.language)}</h3>}
            <Row key={m.id} message={m} />
            {m.role === "assistant" && receipt && m.seq > Number(receipt.user.slice(1)) && ask(shown, n) === picked &&
              <p class="rests" key={`q${m.id}`}><button class="link" onClick={why}>{rests === undefined ? t("why") : rests ? fillIn(t(rests === 1 ? "restsOnOne" : "restsOn"), rests) : t("nothingFound")} →</button></p>}
          </Fragment>
        ))}
        {live && <div class="live" aria-live="polite">
          {live.text && <article class="message user"><div class="body">{live.text}</div></article>}
          <ul class="notes">{tell(live.progress).map((note) => <li key={note}>{note}</li>)}</ul>
          {live.answer && <article class="message assistant"><div class="body">
            {live.reply ? <Said text={live.reply} /> : <span class="waiting">{t("thinking")}</span>}
          </div></article>}
        </div>}
      </div>
      {!atEnd && !stick.current && shown.length > 0 && <div class="to-newest"><button class="newest" onClick={() => void toNewest()}>{t("newest")} ↓</button></div>}
      {waits && session.editing && <p class="note">{t("stopped")} <button onClick={() => void send("", true)}>{t("again")}</button></p>}
      <Composer busy={live !== null && !live.answered} send={send} stop={() => void api.stop()} />
      <p class="model">{session.model ? fillIn(t("modelNamed"), session.model) : t("noModel")}</p>
    </>
  );
}

/** The id of the message that the one at a place replies to. */
export function ask(messages: Message[], at: number): string {
  for (let n = at; n >= 0; n--) if (messages[n]?.role === "user") return messages[n]!.id;
  return "";
}

function Row({ message: m }: { message: Message }) {
  const { api, picked, pick, topics, openTopic, t, turn } = usePage();
  const [text, setText] = useState<string | null>(null);
  const topic = topics.get(m.topic);
  useEffect(() => setText(null), [api, m.text]);
  return (
    <article
      class={`message ${m.role === "user" ? "user" : "assistant"} ${picked === m.id ? "picked" : ""}`}
      data-id={m.id} data-item tabIndex={0} aria-label={`${nameSpeaker(m.label, t)} ${m.id}`} style={m.topic ? hue(m.topic) : {}}
      {...carrying(m.id)}
      onClick={() => pick(m)}
      onKeyDown={(e) => { if (e.key === "Enter" && e.target === e.currentTarget) pick(m); }}
    >
      <header>
        <b>{nameSpeaker(m.label, t)}</b><span>{clock(m.time)}</span><span class="id dev">{m.id}</span>
        {topic ? <button class="in" onClick={(e) => { e.stopPropagation(); openTopic(m.topic); }}><Dot topic={m.topic} />{topic.name}</button>
          : <span class="in loose">{t("noTopic")}</span>}
      </header>
      <div class="body">{m.id === turn?.reply?.id ? <Cited text={text ?? m.text} grounds={turn.grounds} /> : m.role === "assistant" ? <Said text={text ?? m.text} /> : text ?? m.text}
        {m.media > 0 && <span class="media">{"▣".repeat(Math.min(m.media, 8))}</span>}
        {!m.whole && text === null && <button class="link" onClick={(e) => { e.stopPropagation(); void api.message(m.id).then((all) => setText(all.text)); }}>… {t("whole")}</button>}
      </div>
    </article>
  );
}

function Composer({ busy, send, stop }: { busy: boolean; send: (text: string, answer: boolean) => void; stop: () => void }) {
  const { session, t } = usePage();
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState("");
  const go = (answer: boolean) => {
    if (!text.trim() || busy || !session.editing) return;
    send(text.trim(), answer);
    setText("");
  };
  return (
    <form class="composer" onSubmit={(e) => { e.preventDefault(); go(true); }}>
      <textarea
        ref={field} id="say" rows={2} value={text} disabled={!session.editing} aria-label={t("say")}
        placeholder={session.editing ? t("say") : t("readOnlyHint")}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={(e) => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); go(true); } }}
      />
      <div class="buttons">
        {busy ? <button type="button" class="danger" onClick={stop}>■ {t("stop")}</button>
          : <button class="main" type="submit" disabled={!text.trim()}>{t("answer")}</button>}
        <button type="button" id="record" disabled={busy || !text.trim()} onClick={() => go(false)}>{t("record")}</button>
      </div>
    </form>
  );
}
