// The topics: all of them, what a search found, and one that is open.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Entry, Fact, Message, Person, Policy, Replayed, State, Topic } from "./api";
import { tellChange } from "./problems";
import { carrying, clock, day, Dot, hue, placeCut, QuoteLink, shortDay, TopicChip, useAnswers, usePage, walk } from "./shared";
import { Unsplit } from "./tail";
import { fillIn, nameSpeaker } from "./words";

/** Groups of the list. A topic keeps its place, whether it is active or dormant. */
const GROUPS: State[][] = [["active", "dormant"], ["archived"], ["divided"]];

const PAGE = 60;

export function Topics({ found, wanted, unread }: { found: Message[] | null; wanted: string; unread: number | null }) {
  const { topics, open, t } = usePage();
  const [tab, setTab] = useState<"topics" | "facts" | "changes" | "whatIf">("topics");
  const [most, setMost] = useState(PAGE);
  const topic = topics.get(open);
  if (found) return <Found found={found} wanted={wanted} unread={unread} />;
  if (topic) return <OpenTopic key={topic.id} topic={topic} />;
  const tabs = ["topics", "facts", "changes", "whatIf"] as const;
  const all = [...topics.values()].sort((a, b) => Number(a.loose) - Number(b.loose) || a.first_at.localeCompare(b.first_at));
  const groups = GROUPS.map((states) => all.filter((topic) => states.includes(topic.state)));
  const listed = new Set(groups.flat().slice(0, most));
  return (
    <>
      <div class="tabs" role="tablist">
        {tabs.map((name) => <button role="tab" key={name} class={name === "whatIf" ? "dev" : ""} aria-selected={tab === name} onClick={() => setTab(name)}>{t(name)}</button>)}
      </div>
      <div class="scroll" onKeyDown={walk} onScroll={({ currentTarget: box }) => {
        if (listed.size < topics.size && box.scrollHeight - box.scrollTop < 3 * box.clientHeight) setMost(listed.size + PAGE);
      }}>
        {tab === "topics" && groups.map((group, n) => group.some((one) => listed.has(one)) && <section key={n}>
          <h3>{t((["topics", "archived", "divided"] as const)[n]!)} <small>{group.length}</small></h3>
          {group.filter((one) => listed.has(one)).map((one) => <TopicRow key={one.id} topic={one} />)}
        </section>)}
        {tab === "topics" && <Unsplit />}
        {tab === "facts" && <Facts />}
        {tab === "changes" && <Changes />}
        {tab === "whatIf" && <WhatIf />}
      </div>
    </>
  );
}

function TopicRow({ topic }: { topic: Topic }) {
  const { openTopic, change, session, t, language } = usePage();
  const [over, setOver] = useState(false);
  const days = Object.entries(topic.days).sort();
  const span = days.length ? `${shortDay(days[0]![0], language)} – ${shortDay(days.at(-1)![0], language)}` : "";
  return (
    <button
      class={`topic ${topic.state} ${over ? "over" : ""}`} style={hue(topic.id)} data-item data-topic={topic.id}
      onClick={() => openTopic(topic.id)}
      onDragOver={(e) => { if (session.editing) { e.preventDefault(); setOver(true); } }}
      onDragLeave={() => setOver(false)}
      onDrop={(e) => {
        e.preventDefault(); setOver(false);
        const id = e.dataTransfer?.getData("text/plain") ?? "";
        if (/^m\d+$/.test(id)) void change({ do: "move", topic: topic.id, messages: id });
      }}
    >
      <Dot topic={topic.id} />
      <span class="name">{topic.name}{topic.by_hand.includes("pinned") && <em title={t("pinned")}> ◆</em>}</span>
      <span class="relevance dev">{topic.relevance === null ? "" : topic.relevance.toFixed(2).replace(/^0/, "")}</span>
      <Spark topic={topic} />
      <small>{topic.count} {t("messages")}<span>{span}</span></small>
      {topic.relevance !== null && <i class="meter" style={{ width: `${topic.relevance * 100}%` }} />}
    </button>
  );
}

const spans = new WeakMap<Map<string, Topic>, [number, number]>();
/** The times from the first message to the last. */
function span(topics: Map<string, Topic>): [number, number] {
  if (!spans.has(topics)) {
    const dated = [...topics.values()].filter((topic) => topic.first_at);
    const ends = (times: string[]) => times.map(Date.parse).sort((a, b) => a - b);
    spans.set(topics, [ends(dated.map((topic) => topic.first_at))[0] ?? 0, ends(dated.map((topic) => topic.last_at)).at(-1) ?? 0]);
  }
  return spans.get(topics)!;
}

function Spark({ topic }: { topic: Topic }) {
  const { topics } = usePage();
  const [from, to] = span(topics);
  const bins = new Array<number>(14).fill(0);
  for (const [when, count] of Object.entries(topic.days)) {
    const at = Math.floor(((Date.parse(when) - from) / (to - from + 1)) * bins.length);
    bins[Math.max(0, Math.min(bins.length - 1, at))]! += count;
  }
  const tallest = Math.max(...bins, 1);
  return (
    <svg class="spark" viewBox="0 0 56 14" aria-hidden="true">
      {bins.map((n, i) => n > 0 && <rect key={i} x={i * 4} width="3" y={14 - Math.max(2, (n / tallest) * 14)} height={Math.max(2, (n / tallest) * 14)} rx="1" />)}
    </svg>
  );
}

function OpenTopic({ topic }: { topic: Topic }) {
  const page = usePage();
  const { api, t, openTopic, change, forget, session, topics, marks, version, language, current } = page;
  const [messages, setMessages] = useState<Message[]>([]);
  const [selected, setSelected] = useState(new Set<string>());
  const [naming, setNaming] = useState<"" | "rename" | "split">("");
  const anchor = useRef("");
  const others = [...topics.values()].filter((o) => o.id !== topic.id && (o.state === "active" || o.state === "dormant"));
  const parts = [...topics.values()].filter((o) => o.parent === topic.id);

  const show = useAnswers(api, page.say);
  useEffect(() => {
    if (!current) return; // it may not be there at the moment that is shown now
    void show(api.ofTopic(topic.id, ""), setMessages);
    setSelected(new Set());
  }, [api, topic.id, version]);

  const activated = marks.filter((m) => m.activated.includes(topic.id)).map((m) => m.message);
  const [history, setHistory] = useState<Entry[]>([]);
  const showHistory = useAnswers(api, page.say);
  useEffect(() => {  // what it was merged from
    void showHistory(api.changes(), (entries) => setHistory(entries.filter((e) => new RegExp(`\\b${topic.id}\\b`).test(e.event))));
  }, [api, topic.id, version]);

  const more = () => current && void show(api.ofTopic(topic.id, messages.at(-1)!.id), (found) => setMessages([...messages, ...found]));
  const toggle = (id: string, range: boolean) => {
    const next = new Set(selected);
    const ids = messages.map((m) => m.id);
    const [a, b] = [ids.indexOf(anchor.current), ids.indexOf(id)].sort((x, y) => x - y) as [number, number];
    if (range && a >= 0) ids.slice(a, b + 1).forEach((i) => next.add(i));
    else if (!next.delete(id)) next.add(id);
    anchor.current = id;
    setSelected(next);
  };
  const chosen = [...selected].join(", ");
  const name = (text: string) => {
    const what = naming;
    setNaming("");
    if (!text.trim()) return;
    void change(what === "rename" ? { do: "rename", topic: topic.id, name: text }
      : { do: "split", topic: topic.id, messages: chosen, name: text });
  };
  return (
    <>
      <div class="opened" style={hue(topic.id)}>
        <button class="back" onClick={() => openTopic("")} aria-label={t("close")}>←</button>
        {naming === "rename" ? <NameField start={topic.name} done={name} />
          : <h2 title={session.editing ? t("rename") : ""} onDblClick={() => session.editing && setNaming("rename")}><Dot topic={topic.id} />{topic.name}</h2>}
        {naming !== "rename" && <span class="state">{t(topic.state)}{topic.relevance !== null && <span class="dev"> {topic.relevance.toFixed(2)}</span>}</span>}
      </div>
      <div class="scroll" onKeyDown={walk}>
        {session.editing && <div class="tools">
          <button onClick={() => setNaming("rename")}>{t("rename")}</button>
          {(topic.state === "active" || topic.state === "dormant") && <>
            <button onClick={() => void change({ do: "pin", topic: topic.id, pinned: !topic.by_hand.includes("pinned") })}>{t(topic.by_hand.includes("pinned") ? "unpin" : "pin")}</button>
            <button onClick={() => void change({ do: "archive", topic: topic.id })}>{t("archive")}</button>
            <Choice label={t("merge")} topics={others} choose={(into) => void change({ do: "merge", topic: topic.id, into }).then(() => openTopic(into))} />
          </>}
          {topic.state === "archived" && <button onClick={() => void change({ do: "restore", topic: topic.id })}>{t("restore")}</button>}
          <button class="danger" onClick={() => forget([topic.id])}>{t("forget")}</button>
        </div>}
        <dl>
          {topic.parent && <><dt>{t("partOf")}</dt><dd><TopicChip id={topic.parent} /></dd></>}
          {parts.length > 0 && <><dt>{t("parts")}</dt><dd>{parts.map((p) => <TopicChip key={p.id} id={p.id} />)}</dd></>}
          {activated.length > 0 && <><dt>{t("wokenBy")}</dt><dd>{activated.slice(-8).map((id) => <QuoteLink key={id} id={id} />)}</dd></>}
          {history.length > 0 && <><dt>{t("changes")}</dt>{history.map((entry) => <dd key={entry.id} class={entry.undone ? "undone" : ""}>{entry.time.slice(0, 10)} {tellChange(entry.event, page.language)}</dd>)}</>}
          {topic.summary && <><dt>{t("summary")}</dt><dd>{topic.summary}</dd></>}
          {topic.brief && <><dt>{t("brief")}</dt><dd class="brief" tabIndex={0}>{topic.brief}</dd></>}
        </dl>
        <h3>{topic.count} {t("messages")}</h3>
        {messages.map((m, n) => (
          <div class={`line ${selected.has(m.id) ? "selected" : ""}`} key={m.id} data-line={m.id} {...carrying(m.id)}>
            {session.editing && n > 0 && m.role === "user" &&
              <button class="cut" title={t("splitHere")} onClick={() => { setSelected(new Set(messages.slice(n).map((x) => x.id))); setNaming("split"); }}>✂ {t("splitHere")}</button>}
            <div>
              {session.editing && <input type="checkbox" aria-label={m.id} checked={selected.has(m.id)} onClick={(e) => toggle(m.id, e.shiftKey)} />}
              <QuoteLink id={m.id} /><b>{nameSpeaker(m.label, t)}</b> <small>{day(m.time, language)} {clock(m.time)}</small>
            </div>
            <p tabIndex={0}>{m.text}</p>
          </div>
        ))}
        {messages.length < topic.count && messages.length > 0 && <button onClick={more}>{t("more")}</button>}
      </div>
      {selected.size > 0 && <div class="tools selection" role="toolbar">
        <b>{selected.size} {t("selected")}</b>
        {naming === "split" ? <NameField start="" done={name} /> : <>
          <Choice id="move" label={t("move")} topics={others} choose={(to) => void change({ do: "move", topic: to, messages: chosen })} />
          <button onClick={() => setNaming("split")}>{t("split")}</button>
          <button class="danger" onClick={() => forget([...selected])}>{t("forget")}</button>
          <button onClick={() => setSelected(new Set())}>{t("cancel")}</button>
        </>}
      </div>}
    </>
  );
}

function Choice({ id, label, topics, choose }: { id?: string; label: string; topics: Topic[]; choose: (id: string) => void }) {
  return (
    <select id={id} aria-label={label} value="" onChange={(e) => e.currentTarget.value && choose(e.currentTarget.value)}>
      <option value="">{label}</option>
      {topics.map((topic) => <option value={topic.id} key={topic.id}>{topic.full_name}</option>)}
    </select>
  );
}

function NameField({ start, done, most = 80 }: { start: string; done: (text: string) => void; most?: number }) {
  const { t } = usePage();
  const [text, setText] = useState(start);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => { field.current?.focus(); field.current?.select(); }, []);
  return (
    <form class="naming" onSubmit={(e) => { e.preventDefault(); done(text); }}>
      <input ref={field} aria-label={t("name")} placeholder={t("name")} maxLength={most} value={text} onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={(e) => { if (e.key === "Escape") { e.stopPropagation(); done(""); } }} />
      <button class="main">{t("save")}</button>
    </form>
  );
}

function Found({ found, wanted, unread }: { found: Message[]; wanted: string; unread: number | null }) {
  const { t, language, topics, openTopic } = usePage();
  return (
    <div class="scroll found" onKeyDown={walk}>
      <h3>{!found.length ? t("nothing") : found.every((m) => m.relevance === 0) ? t("closest") : `${found.length} ${t("found")}`}</h3>
      {unread !== 0 && <p class="quiet">{t("unread")}{unread && ` (${unread.toLocaleString(language)} ${t("messages")})`}</p>}
      {found.map((m) => (
        <div class="line" key={m.id} style={m.topic ? hue(m.topic) : {}} {...carrying(m.id)}>
          <div><QuoteLink id={m.id} /><b>{nameSpeaker(m.label, t)}</b> <small>{day(m.time, language)}</small>
            {topics.has(m.topic) && <button class="in" onClick={() => openTopic(m.topic)}><Dot topic={m.topic} />{topics.get(m.topic)!.name}</button>}</div>
          <p tabIndex={0}><Marked text={m.text} wanted={wanted} /></p>
        </div>
      ))}
    </div>
  );
}

/** The surroundings of the words that were looked for, with these marked. */
function Marked({ text, wanted }: { text: string; wanted: string }) {
  const at = text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0 || !wanted) return <>{text.slice(0, placeCut(text, 240))}</>;
  const from = placeCut(text, Math.max(0, at - 80));
  const to = at + wanted.length;
  return <>{from > 0 && "…"}{text.slice(from, at)}<mark>{text.slice(at, to)}</mark>{text.slice(to, placeCut(text, to + 160))}</>;
}

function Facts() {
  const { api, t, version, session, change, say, settle } = usePage();
  const [looking, setLooking] = useState(false);
  const [facts, setFacts] = useState<Record<string, Fact>>({});
  const [naming, setNaming] = useState("");
  const show = useAnswers(api, say);
  useEffect(() => { void show(api.facts(), setFacts); }, [api, version]);
  const [person, setPerson] = useState<Person | null>(null);
  const showPerson = useAnswers(api, say);
  useEffect(() => { void showPerson(api.person(), setPerson); }, [api, version]);
  const rows = Object.entries(facts);
  const spans = person?.spans ?? [];
  const ended = spans.filter((span) => !facts[span.key] || span.until);
  const from = (key: string) => spans.find((span) => span.key === key && !span.until);
  const look = session.editing && <p class="tools"><button disabled={looking} onClick={() => {
    setLooking(true);
    void api.reflect().then(settle, (e: Error) => say(e.message)).then(() => setLooking(false));
  }}>{t("lookNow")}</button></p>;
  if (!rows.length && !ended.length && !person?.user) return <><p class="quiet">{t("noFacts")}</p>{look}</>;
  return <>{look}{person?.user && <p class="quiet" data-person={person.user}>{t("person")} {person.user}{person.scope && ` · ${person.scope}`}: {Object.keys(person.threads).join(", ")}</p>}
    {rows.map(([key, fact]) => (
    <div class="line" key={key} data-fact={key}>
      {naming === key ? <NameField start={fact.text} most={2000} done={(text) => { setNaming(""); if (text) void change({ do: "correct_fact", key, text }); }} /> : <p tabIndex={0}>{fact.text}</p>}
      {from(key)?.quote && <p>“{from(key)?.quote}”</p>}
      <div>{from(key) && from(key)?.thread !== session.name ? <small>{from(key)?.thread}: {fact.messages.join(", ")} </small>
        : (fact.messages ?? []).map((id) => <QuoteLink key={id} id={id} />)} <small>{(from(key)?.since ?? fact.at).slice(0, 10)}{fact.origin && ` · ${fillIn(t("fromExport"), fact.origin)}`}{fact.held && ` · ${t("held")}`}</small></div>
      {session.editing && naming !== key && <div class="acts">
        <button onClick={() => void change({ do: "correct_fact", key, text: "" })}>{t("confirm")}</button>
        <button onClick={() => setNaming(key)}>{t("correct_fact")}</button>
        <button class="danger" onClick={() => void change({ do: "forget_fact", key })}>{t("forget_fact")}</button>
      </div>}
    </div>))}
    {ended.map((span) => (
      <div class="line quiet" key={`${span.key} ${span.since}`} data-span={span.key}>
        <p tabIndex={0}>{span.fact}</p>{span.quote && <p>“{span.quote}”</p>}
        <small>{span.since.slice(0, 10)} – {span.until.slice(0, 10)} · {span.thread}: {span.messages.join(", ")}</small>
      </div>))}</>;
}

const SLIDERS = { base: [0, 1, 0.05], step: [0, 0.1, 0.01], floor: [0, 20, 1], usual: [1, 40, 1], ceiling: [1, 60, 1] } as const;

/** Other thresholds of activation, tried on the turns that there were. */
function WhatIf() {
  const { api, t, version, language, say } = usePage();
  const [tried, setTried] = useState<Partial<Policy>>({});
  const [found, setFound] = useState<Record<"in_force" | "policy", [Policy, Replayed]> | null>(null);
  const show = useAnswers(api, say);
  useEffect(() => {
    const timer = setTimeout(() => void show(api.replay(tried), setFound), 150);
    return () => clearTimeout(timer);
  }, [api, version, tried]);
  if (!found) return null;
  const [policy, then] = found.policy;
  const now = found.in_force[1];
  const move = (name: keyof typeof SLIDERS, value: number) => {  // floor <= usual <= ceiling
    const next = { ...policy, ...tried, [name]: value };
    if (name === "floor" || name === "usual") next.ceiling = Math.max(next.ceiling, value);
    if (name !== "usual") next.usual = Math.min(next.ceiling, Math.max(next.usual, next.floor));
    setTried({ ...next, floor: Math.min(next.floor, next.usual) });
  };
  return (
    <div class="what-if">
      <p class="quiet">{t("whatIfLead")}</p>
      {(Object.keys(SLIDERS) as (keyof typeof SLIDERS)[]).map((name) => {
        const [min, max, step] = SLIDERS[name];
        const value = tried[name] ?? policy[name];
        return <label key={name}><span>{t(name)}</span><input type="range" min={min} max={max} step={step} value={value} onInput={(e) => move(name, Number(e.currentTarget.value))} /><b>{value}</b></label>;
      })}
      <table>
        <thead><tr><th>{fillIn(t("turns"), now.turns.toLocaleString(language))}</th><th>{t("now")}</th><th>{t("then")}</th></tr></thead>
        <tbody>{(["read", "tokens", "quoted", "missed"] as const).map((name) => now[name] + then[name] > 0 && (
          <tr key={name}><td>{t(`replayed_${name}`)}</td><td>{now[name].toLocaleString(language)}</td><td>{then[name].toLocaleString(language)}</td></tr>))}</tbody>
      </table>
      <p class="quiet">{t("whatIfHint")}</p>
    </div>
  );
}

function Changes() {
  const { api, t, version, change, session, language, say } = usePage();
  const [entries, setEntries] = useState<Entry[]>([]);
  const show = useAnswers(api, say);
  useEffect(() => { void show(api.changes(), setEntries); }, [api, version]);
  if (!entries.length) return <p class="quiet">{t("noChanges")}</p>;
  return <>{entries.map((entry) => (
    <div class={`line ${entry.undone ? "undone" : ""}`} key={entry.id}>
      <p tabIndex={0}>{tellChange(entry.event, language)}</p>
      <div><small>{entry.time.slice(0, 16).replace("T", " ")}</small>
        {session.editing && !entry.undone && !entry.undoes && <button onClick={() => void change({ do: "undo", change: entry.id })}>{t("undo")}</button>}
        {entry.undone && <small>{t("undone")}</small>}</div>
    </div>))}</>;
}
