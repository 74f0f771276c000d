// The page: its columns, its keys, and what they share.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Address, readAddress, writeAddress } from "./address";
import { Api, type Change, type Event, type Forgotten, type Found, type Mark, type Message, type Receipt, type Session, type Topic, type Turn } from "./api";
import { Chat } from "./chat";
import { Dialog, light, PageContext, QuoteLink, useAnswers } from "./shared";
import { tellProblem } from "./problems";
import { TimeLine } from "./timeline";
import { Topics } from "./topics";
import { Why } from "./why";
import { Guide } from "./guide";
import { InOut, Looked } from "./exchange";
import { fillIn, type Language, languages, nameSpeaker, type Word } from "./words";

const COLUMNS = ["topics", "chat", "why", "time"] as const;
type Column = (typeof COLUMNS)[number];

export function App({ first, problem }: { first: Session; problem: string }) {
  const [session, setSession] = useState(first);
  const [at, setAt] = useState("");
  /** All topics, of the session and the moment that they were asked of. */
  const [listed, setListed] = useState<{ of: Api | null; list: Omit<Topic, "days">[] }>({ of: null, list: [] });
  const list = listed.list;
  const [days, setDays] = useState<Record<string, Record<string, number>>>({});
  const [marks, setMarks] = useState<Mark[]>([]);
  const [shown, setShown] = useState(false);
  const [unread, setUnread] = useState<number | null>(null); // by the index; null: not known yet
  const [language, setLanguage] = useState<Language>(
    (localStorage.getItem("language") as Language | null) ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  const [developer, setDeveloper] = useState(localStorage.getItem("developer") === "1");
  const [address, setAddress] = useState<Address>({ ...readAddress(), session: first.name });
  const picked = address.turn;
  const [receipt, setReceipt] = useState<Receipt | null | undefined>(null);
  const [turn, setTurn] = useState<Turn | null>(null);
  const [missed, setMissed] = useState("");
  const [open, setOpen] = useState("");
  const [wanted, setWanted] = useState("");
  const [found, setFound] = useState<Message[] | null>(null);
  const [aim, setAim] = useState({ id: "", count: 0 });
  const [asked, setAsked] = useState({ text: "", count: 0 });
  const [column, setColumn] = useState<Column>("chat");
  const [notice, setNotice] = useState<{ text: string; undo: boolean } | null>(problem ? { text: problem, undo: false } : null);
  const [looked, setLooked] = useState<{ name: string; file: File; found: Found } | null>(null);
  const [forgotten, setForgotten] = useState<{ what: string[]; gone: Forgotten } | null>(null);
  const [keys, setKeys] = useState(false);
  const [inOut, setInOut] = useState(false);
  const [version, setVersion] = useState(0);
  const search = useRef<HTMLInputElement>(null);
  const api = useMemo(() => new Api(session.name, at), [session.name, at]);
  const topics = useMemo(() => new Map(list.map((topic) => [topic.id, {
    ...topic, days: days[topic.id] ?? {}, ...(topic.loose && !topic.by_hand.includes("named") && { name: languages[language].looseEnds }),
  }])), [list, days, language]);
  const t = (word: Word) => languages[language][word];
  /** Names of topics that were there at some time: what is merged or not there yet still has one. */
  const names = useRef(new Map<string, string>());

  useEffect(() => { if (address.picture) setColumn("why"); }, [address.picture]); // the only one on a phone that has it
  useEffect(() => { document.documentElement.dataset["theme"] = theme; localStorage.setItem("theme", theme); }, [theme]);
  useEffect(() => { localStorage.setItem("developer", developer ? "1" : ""); }, [developer]);
  useEffect(() => { document.documentElement.lang = language; localStorage.setItem("language", language); }, [language]);
  const say = useCallback((text: string) => setNotice({ text, undo: false }), []);
  useEffect(() => {
    if (!notice) return;
    const timer = setTimeout(() => setNotice(null), 9000);
    return () => clearTimeout(timer);
  }, [notice]);

  const show = useAnswers(api, say);
  const showPicked = useAnswers(api, say);
  const refresh = () => show(Promise.all([api.session(), api.topics()]), ([now, list]) => {
    setSession((shown) => (shown.name === api.name ? now : shown)); // another may be about to be drawn
    setListed({ of: api, list });
    for (const topic of list) names.current.set(topic.id, topic.name);
    setVersion((n) => n + 1);
  });
  const latest = useRef(refresh);
  latest.current = refresh;
  useEffect(() => { void refresh(); }, [api]);
  /** Shows what is at an address, and enters it into the history, or in the place of the last one. */
  const visit = (to: Partial<Address>, replace = false) => {
    setAddress((now) => {
      const next = { ...now, ...to };
      writeAddress(next, replace);
      return next;
    });
  };
  const showThere = useAnswers("", (text) => { say(text); visit({}, true); });
  useEffect(() => {
    const back = () => {
      const found = readAddress();
      void showThere(found.session === session.name ? Promise.resolve(session) : Api.open(found.session), (there) => {
        if (there.name !== session.name) { setAt(""); setSession(there); }
        setAddress({ ...found, session: there.name });
        if (found.turn) setAim((now) => ({ id: found.turn, count: now.count + 1 }));
      });
    };
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, [session.name]);
  useEffect(() => { if (picked && !at) setAim({ id: picked, count: 1 }); }, []); // the address that the page is opened with
  useEffect(() => { setOpen(""); setFound(null); setAt(""); names.current = new Map(); setDays({}); setMarks([]); setUnread(null); }, [session.name]);
  useEffect(() => { // at another moment all of it is of that moment: its newest reply, too
    let wanted = true;
    setReceipt(picked ? undefined : null);
    setMissed("");
    void (picked ? api.receipt(picked) : findNewest(api)).then((found) => {
      if (!wanted) return;
      if (picked) setReceipt(found);
      else if (found) visit({ turn: found.user }, true);
    }, (e: Error) => { if (wanted) { say(e.message); if (picked) visit({ turn: "" }, true); } });
    return () => { wanted = false; };
  }, [api, picked]);
  const known = listed.of === api && !!receipt && Number(receipt.user.slice(1)) <= session.count;
  const showTurn = useAnswers(receipt?.user, say);
  useEffect(() => { setTurn(null); }, [api, receipt?.user]);
  useEffect(() => { if (known && receipt) void showTurn(api.grounds(receipt.user), setTurn); }, [api, receipt?.user, known, version]);
  useEffect(() => { // of a long session each takes its time: one after another, once there is something to see
    if (!shown || !version) return;
    let current = true;
    void (async () => {
      const now = await api.days();
      if (current) setDays(now);
      const marks = await api.marks();
      if (current) setMarks(marks);
      for (let left = 1; current && left; left && await new Promise((done) => setTimeout(done, 1000))) {
        ({ left } = await api.index());
        if (current) setUnread(left);
      }
    })().catch(() => undefined);
    return () => { current = false; };
  }, [api, version, shown]);
  /** What was done at a moment began a branch, which is the newest from now on. */
  const settle = async () => { if (at) go(""); else await refresh(); };
  /** To another moment, and its newest reply. */
  const go = (moment: string) => { setAt(moment); visit({ turn: "" }, true); };
  useEffect(() => {
    if (!wanted.trim()) { setFound(null); return; }
    let current = true;
    const timer = setTimeout(() => void api.search(wanted).then((hits) => { if (current) { setFound(hits); setColumn((c) => (c === "chat" ? c : "topics")); } }, (e: Error) => say(e.message)), 250);
    return () => { current = false; clearTimeout(timer); };
  }, [wanted, api, unread === 0]);

  const change = async (what: Change) => {
    try {
      await api.change(what);
      await settle();
      setNotice({ text: tellDone(what, language, names.current), undo: !/undo|fact/.test(what.do) });
    } catch (error) { say((error as Error).message); }
  };
  const forget = (what: string[]) => void api.preview(what).then((gone) => setForgotten({ what, gone }), (e: Error) => say(e.message));
  const jump = (id: string) => {
    if (Number(id.slice(1)) > session.count) { say(t("saidLater")); return; }
    setAim((now) => ({ id, count: now.count + 1 }));
    setColumn("chat");
    if (address.picture) visit({ picture: false });
  };
  const openTopic = (id: string) => { setOpen(id); setWanted(""); setFound(null); if (id) setColumn("topics"); };
  const pick = (message: Message | string) => {
    if (typeof message === "string" || message.role === "user") { visit({ turn: typeof message === "string" ? message : message.id }); return; }
    void showPicked(api.messages({ before: message.id, limit: "12" }), (before) => visit({ turn: before.reverse().find((m) => m.role === "user")?.id ?? message.id }));
  };
  const onTurn = (event: Event) => { if (event.type === "moved") void refresh(); };
  /** What a file of another chat holds is shown first. */
  const look = (file: File) => {
    setInOut(false);
    const name = file.name.replace(/\.\w+$/, "") || "import";
    void new Api(name).look(file).then((found) => setLooked({ name, file, found }), (e: Error) => say(e.message));
  };
  /** Then it becomes a session, and its topics appear as it is read. */
  const take = async ({ name, file }: { name: string; file: File }) => {
    setLooked(null);
    let opened = false;
    try {
      for await (const event of new Api(name).take(file)) {
        if (event.type === "error") say(event.error);
        if (event.type !== "imported") continue;
        if (!opened) visit({ session: event.session, turn: "", picture: false });
        opened = true;
        setSession((now) => (now.name === event.session ? now : { ...now, name: event.session, sessions: [...now.sessions, event.session] }));
        void latest.current();
        say(`${t("imported")} ${event.done} / ${event.all}`);
      }
    } catch (error) { say((error as Error).message); }
  };
  const toggleEditing = () => Api.editing(!session.editing).then(refresh, (e: Error) => say(e.message));

  useLayoutEffect(() => { // before anybody sees the page and presses a key
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key === "Escape") {
        if (wanted) { setWanted(""); setFound(null); }
        else if (address.picture) visit({ picture: false });
        else if (open) setOpen("");
        target.blur();
        return;
      }
      if (/INPUT|TEXTAREA|SELECT/.test(target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
      const rows = [...document.querySelectorAll<HTMLElement>(".messages [data-item]")];
      const at = rows.indexOf(document.activeElement as HTMLElement);
      const move = (to: HTMLElement | undefined) => to?.focus();
      const run: Record<string, () => void> = {
        "/": () => { setColumn("topics"); search.current?.focus(); },
        c: () => { setColumn("chat"); document.getElementById("say")?.focus(); },
        e: () => void toggleEditing(),
        p: () => { if (receipt) visit({ picture: !address.picture }); },
        w: () => {
          const id = rows[at]?.dataset["id"];
          setColumn("why");
          if (id) setMissed(id);
          requestAnimationFrame(() => document.getElementById("missed")?.focus());
        },
        u: () => { if (session.editing) void change({ do: "undo", change: "" }); },
        j: () => move(rows[at < 0 ? rows.length - 1 : at + 1]),
        k: () => move(rows[at < 0 ? rows.length - 1 : at - 1]),
        "?": () => setKeys(true),
      };
      const enter = (name: Column) => {
        const place = document.getElementById(name)!;
        const item = place.querySelector<HTMLElement>("[data-item]") ?? place.querySelector<HTMLElement>("button");
        item?.focus();
        return !item || document.activeElement === item;
      };
      COLUMNS.forEach((name, n) => {
        run[String(n + 1)] = () => { setColumn(name); if (!enter(name)) requestAnimationFrame(() => enter(name)); };
      });
      const found = run[event.key];
      if (found) { event.preventDefault(); found(); }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });

  const page = { api, session, current: listed.of === api, turn, picture: address.picture, showPicture: (on: boolean) => visit({ picture: on }), nameOf: (id: string) => topics.get(id)?.name ?? receipt?.topics[id]?.name ?? names.current.get(id) ?? id, topics, marks, language, picked, receipt, missed, miss: setMissed, open, version, jump, pick, openTopic, change, forget, settle, setAt: go, say };
  return (
    <PageContext.Provider value={page}>
      <div class="page" data-column={column} data-developer={developer || undefined} data-picture={(address.picture && !!receipt) || undefined} onPointerOver={light} onFocusIn={light} onDragOver={(e) => { if (e.dataTransfer?.types.includes("Files")) e.preventDefault(); }}
        onDrop={(e) => { const file = e.dataTransfer?.files[0]; if (file) { e.preventDefault(); look(file); } }}>
        <header class="bar">
          <h1 title={t("lead")}><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M3 6h18M3 12h18M3 18h18M7 3v18M17 3v18" /></svg><span>{session.owner ? fillIn(t("memoryOf"), session.owner) : "topicloom"}</span></h1>
          <select class="session" aria-label={t("session")} value={session.name} onChange={(e) => { const name = e.currentTarget.value; setAt(""); setSession({ ...session, name }); visit({ session: name, turn: "", picture: false }); }}>
            {session.sessions.map((name) => <option key={name}>{name}</option>)}
          </select>
          <input ref={search} class="search" type="search" placeholder={`${t("search")}  /`} aria-label={t("search")} value={wanted} maxLength={500} onInput={(e) => { setWanted(e.currentTarget.value); setColumn("topics"); }} />
          <span class="count">{session.count.toLocaleString(language)} {t("messages")}</span>
          {session.editing && <button class="plain" onClick={() => void change({ do: "undo", change: "" })}>↶ <span>{t("undo")}</span></button>}
          <button class={`edit ${session.editing ? "on" : ""}`} aria-pressed={session.editing} title={t(session.editing ? "editOff" : "editOn")} onClick={() => void toggleEditing()}><i />{t(session.editing ? "editing" : "readOnly")}</button>
          <button class="plain exchange" aria-label={t("inOut")} title={t("inOut")} onClick={() => setInOut(true)}>⇅ <span aria-hidden="true">{t("inOut")}</span></button>
          <button class="plain" lang={language === "en" ? "zh" : "en"} onClick={() => setLanguage(language === "en" ? "zh" : "en")}>{t("language")}</button>
          <button class="plain" aria-label={t("theme")} onClick={() => setTheme(theme === "dark" ? "light" : "dark")}>{theme === "dark" ? "☀" : "☾"}</button>
          <button class="plain developer" aria-pressed={developer} aria-label={t("developer")} title={t("developer")} onClick={() => setDeveloper(!developer)}>&lt;/&gt;</button>
          <button class="plain keys" aria-label={t("keys")} onClick={() => setKeys(!keys)}>?</button>
        </header>
        <Guide ask={(text) => { setColumn("chat"); setAsked(({ count }) => ({ text, count: count + 1 })); }} />
        <main>
        <nav id="topics" aria-label={t("topics")}><h2 class="title">{t("topics")}</h2><Topics found={found} wanted={wanted} unread={unread} /></nav>
        <section id="chat" aria-label={t("chat")}><h2 class="title">{t("chat")}</h2><Chat target={aim.id} aimed={aim.count} asked={asked} why={() => setColumn("why")} onTurn={onTurn} onShown={() => setShown(true)} /></section>
        <section id="why" aria-label={t("why")}><h2 class="title">{t("why")}</h2><Why /></section>
        <section id="time" aria-label={t("time")}><TimeLine /></section>
        </main>
        <nav aria-label={t("columns")}><div class="switch" role="tablist">{COLUMNS.map((name) => <button role="tab" key={name} aria-selected={column === name} onClick={() => setColumn(name)}>{t(name === "why" ? "whyShort" : name)}</button>)}</div></nav>
        {notice && <div class="notice" role="status">{tellProblem(notice.text, language)}{notice.undo && <button onClick={() => void change({ do: "undo", change: "" })}>{t("undo")}</button>}<button aria-label={t("close")} onClick={() => setNotice(null)}>×</button></div>}
        {forgotten && <Forgetting gone={forgotten.gone} t={t} cancel={() => setForgotten(null)} sure={() => {
          const { what } = forgotten;
          setForgotten(null);
          void api.forget(what).then(async (gone) => { setOpen(""); visit({ turn: "" }, true); await refresh(); if (gone.left.length) say(gone.left.map((text) => tellProblem(text, language)).join(" ")); }, (e: Error) => say(e.message));
        }} />}
        {looked && <Looked name={looked.name} found={looked.found} t={t} cancel={() => setLooked(null)} sure={() => void take(looked)} />}
        {inOut && <InOut take={look} close={() => setInOut(false)} />}
        {keys && <Dialog title={t("keys")} close={() => setKeys(false)}>
          <p>{t("lead")}</p>
          <ul>{t("help").split(" · ").map((line) => line.split(": ")).map(([key, does]) => <li key={key}><kbd>{key}</kbd> {does}</li>)}</ul></Dialog>}
      </div>
    </PageContext.Provider>
  );
}

/** The newest turn that answered, of those that ended last. */
async function findNewest(api: Api): Promise<Receipt | null> {
  const newest = await api.messages({ limit: "12" });
  for (const message of newest.reverse()) {
    const receipt = message.role === "user" ? await api.receipt(message.id) : null;
    if (receipt) return receipt;
  }
  return null;
}

/** What was done, in words. */
function tellDone(what: Change, language: Language, names: Map<string, string>): string {
  const say = (word: Word, ...parts: string[]) => `✓ ${fillIn(languages[language][word], ...parts)}`;
  const name = (id: string) => names.get(id) ?? id;
  switch (what.do) {
    case "rename": return say("did_rename", what.name);
    case "move": return say("did_move", name(what.topic));
    case "split": return say("did_split", what.name);
    case "merge": return say("did_merge", name(what.into));
    case "pin": return say(what.pinned ? "did_pin" : "did_unpin", name(what.topic));
    case "archive": return say("did_archive", name(what.topic));
    case "restore": return say("did_restore", name(what.topic));
    case "correct_fact": return say(what.text ? "did_correct" : "did_confirm");
    case "forget_fact": return say("did_forget");
    case "undo": return say("undone");
  }
}

function Forgetting({ gone, t, sure, cancel }: { gone: Forgotten; t: (word: Word) => string; sure: () => void; cancel: () => void }) {
  return (
    <Dialog title={t("forgetTitle")} close={cancel}>
      <p>{t("forgetText")}</p>
      <div class="preview" tabIndex={0}>{gone.messages.map((m) => <div class="line" key={m.id}><div><QuoteLink id={m.id} /> <b>{nameSpeaker(m.label, t)}</b></div><p tabIndex={0}>{m.text}</p></div>)}
        {Object.entries(gone.facts).map(([key, fact]) => <div class="line" key={key}><p tabIndex={0}>{t("facts")}: {fact.text}</p></div>)}</div>
      <div class="tools"><button onClick={cancel}>{t("cancel")}</button><button class="danger" onClick={sure}>{t("forgetNow")} ({gone.messages.length})</button></div>
    </Dialog>
  );
}
