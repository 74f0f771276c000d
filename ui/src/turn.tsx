// A turn as a picture: topic windows and who read them, the main window with its quotes, the reply with what its words rest on.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Call, Ground, Receipt, Turn } from "./api";
import { Cited, day, Dot, hue, QuoteLink, shortDay, TopicChip, usePage } from "./shared";
import { fillIn, nameSpeaker, type Word } from "./words";

export function Picture({ receipt, turn }: { receipt: Receipt; turn: Turn }) {
  const box = useRef<HTMLDivElement>(null);
  return (
    <div class="picture" ref={box}>
      <TopicWindows receipt={receipt} turn={turn} />
      <MainWindow receipt={receipt} turn={turn} />
      <Spoken receipt={receipt} turn={turn} />
      <Threads box={box} turn={turn} />
    </div>
  );
}

/** The topics that were read, by whom, how full each is, and which of its messages were quoted. */
function TopicWindows({ receipt, turn }: { receipt: Receipt; turn: Turn }) {
  const { t, nameOf } = usePage();
  /** What was quoted of each topic, in this turn or, if the reply rests on it, in an earlier one. */
  const quotes = new Map(receipt.quoted.map((note) => [note.topic, [...note.quotes]]));
  for (const { id, place, says, topic } of turn.grounds) if (says && place === "quoted_before" && topic) quotes.set(topic, [...quotes.get(topic) ?? [], id]);
  const leads = new Set(turn.grounds.flatMap(({ id, says }) => (says ? id : [])));
  const needed = (quoted: string[]) => Number(quoted.some((id) => leads.has(id)));
  const ids = Object.entries(receipt.scores).sort((a, b) => b[1] - a[1]).map(([id]) => id);
  const silent = ids.filter((id) => !quotes.has(id));
  const { reading } = receipt;
  if (!ids.length && !quotes.size) return null;
  return (
    <section class="windows" aria-label={t("windows")}>
      <h3>{t("windows")} <small>{ids.length}</small></h3>
      {[...quotes].sort((a, b) => needed(b[1]) - needed(a[1])).map(([id, quoted]) => <TopicWindow key={id} id={id} receipt={receipt} turn={turn} quotes={quoted} />)}
      {silent.length > 0 && <details class="fold"><summary>{fillIn(t("readInVain"), silent.length)}</summary>
        {silent.map((id) => <TopicWindow key={id} id={id} receipt={receipt} turn={turn} quotes={[]} />)}</details>}
      {reading && <p class="quiet reading">{fillIn(t("readingEffect"), reading.added.length, reading.kept_out.length, reading.summaries)}
        {reading.kept_out.map((id) => <QuoteLink key={id} id={id} />)}</p>}
      {receipt.crowded_out.length > 0 && <p class="quiet">{fillIn(t("crowdedOut"), receipt.crowded_out.length)} {receipt.crowded_out.map((id) => <QuoteLink key={id} id={id} />)}</p>}
      {(["activated", "deactivated"] as const).map((name) => receipt[name].length > 0 && <p class="chips" key={name}><b>{t(name)}</b> {receipt[name].map((id) => <span key={id} style={hue(id)}><Dot topic={id} />{nameOf(id)} </span>)}</p>)}
    </section>
  );
}

function TopicWindow({ id, receipt, turn, quotes }: { id: string; receipt: Receipt; turn: Turn; quotes: string[] }) {
  const { t } = usePage();
  const readers = receipt.calls.filter((call) => call.role === "reader");
  const reader = readers.find((call) => call.topic === id) ?? readers.find((call) => call.topic === null);
  const then = receipt.topics[id];
  const leads = turn.grounds.filter((ground) => ground.says).map((ground) => ground.id);
  const about = receipt.about[id];
  return (
    <article class="window" style={hue(id)} data-thread={quotes.join(" ")}>
      <TopicChip id={id} />{then && <small>{fillIn(t("full"), percent(then.fill))}</small>}
      {then && <i class="fill" aria-hidden="true"><b style={{ width: `${Math.min(100, then.fill * 100)}%` }} /></i>}
      <small>{reader?.failure ? `${t("failed")}: ${reader.failure}` : fillIn(t("readBy"), nameModel(reader, t("index"), t))}
        {quotes.length > 0 && `, ${fillIn(t("named"), quotes.length, then?.count ?? "?")}`}
        <span class="dev"> · {(receipt.scores[id] ?? receipt.quoted.find((note) => note.topic === id)?.score ?? 0).toFixed(2)}{about && ` · ${t("about")} ${percent(about)} %`} · <Spent call={reader} /></span></small>
      <span class="ids" aria-hidden="true">{quotes.map((quote) => (
        <i key={quote} data-from={quote} data-thread={quote} class={`${leads.includes(quote) ? "lead" : ""} ${receipt.reading?.added.includes(quote) ? "added" : ""}`}>{leads.includes(quote) ? leads.indexOf(quote) + 1 : ""}</i>))}</span>
    </article>
  );
}

const SECTIONS: Record<string, Word> = { system: "section_system", notes: "section_notes", tail: "section_tail", skeleton: "section_skeleton", curated: "section_curated" };

/** What the prompt held: how full it was, the sentences that the reply rests on, then a sentence of each other message that was quoted. */
function MainWindow({ receipt, turn }: { receipt: Receipt; turn: Turn }) {
  const { t, language } = usePage();
  const sections = Object.entries(receipt.sections).filter(([, tokens]) => tokens > 0);
  const sum = sections.reduce((total, [, tokens]) => total + tokens, 0);
  const partial = new Set(receipt.quoted.flatMap((note) => note.partial));
  const summaries = receipt.quoted.filter((note) => note.summary);
  const best = turn.grounds.filter((ground) => ground.says), rest = turn.grounds.slice(best.length);
  const written = receipt.calls.filter((call) => call.role === "responder").at(-1)?.model;
  const one = (ground: Ground, n: number) => <Sentence key={ground.id} ground={ground} number={n} partial={partial.has(ground.id)} />;
  return (
    <section class="main-window" aria-label={t("mainWindow")}>
      <h3>{t("mainWindow")} {sum > 0 && <small>· {fillIn(t("full"), percent(sum / Math.max(receipt.window, 1)))} <span class="dev">· {sum.toLocaleString(language)} {t("of")} {receipt.window.toLocaleString(language)} {t("tokens")}</span></small>}</h3>
      {sum > 0 && <><div class="prompt" aria-hidden="true">
        {sections.map(([name, tokens], n) => <i key={name} class={`s${n % 5}`} style={{ width: `${(tokens / Math.max(receipt.window, sum)) * 100}%` }} />)}
      </div>
      <ul class="legend">{sections.map(([name, tokens], n) => (
        <li key={name}><i class={`s${n % 5}`} />{t(SECTIONS[name] ?? "section_other")} <b class="dev">{tokens.toLocaleString(language)}</b></li>))}</ul></>}
      <div class="grounds">
        {best.length || summaries.length ? <h4>{t("rests")}</h4> : <p class="quiet">{t(rest.length ? "nothingNear" : "notQuoted")}</p>}
        {best.map((ground, n) => one(ground, n + 1))}
        {best.length > 0 && written !== "embedded" && <p class="quiet hint">{t("compared")}</p>}
        {summaries.map((note) => <div class="summary" style={hue(note.topic)} key={note.topic}><TopicChip id={note.topic} /> <small>{t("summary")}</small><p>{note.summary}</p></div>)}
        {rest.length > 0 && <details class="fold"><summary>{fillIn(t(best.length ? "alsoQuoted" : "quotedAnyway"), rest.length)}</summary>
          {rest.map((ground) => one(ground, 0))}</details>}
      </div>
    </section>
  );
}

function Sentence({ ground, number, partial }: { ground: Ground; number: number; partial: boolean }) {
  const { nameOf, jump, language, t } = usePage();
  return (
    <button class="ground" style={ground.topic ? hue(ground.topic) : {}} data-quote={ground.id} data-card={number ? ground.id : undefined} data-thread={ground.id} title={t("jump")} onClick={() => jump(ground.id)}>
      {number > 0 && <b class="number">{number}</b>}<q>{ground.text}</q>
      <small>{nameSpeaker(ground.label, t)} · {shortDay(ground.time, language)}{ground.topic && <> · <Dot topic={ground.topic} />{nameOf(ground.topic)}</>}{ground.place !== "quoted" && ` · ${t(ground.place)}`}{partial && ` · ✂ ${t("partly")}`} <span class="id dev">{ground.id}</span></small>
    </button>
  );
}

/** The message and its reply, with the number of each sentence that words of it rest on. */
function Spoken({ receipt, turn }: { receipt: Receipt; turn: Turn }) {
  const { t, language } = usePage();
  const writer = receipt.calls.filter((call) => call.role === "responder").at(-1);
  return (
    <section class="spoken" aria-label={t("spoken")}>
      <h3>{t("spoken")} <small>· {nameModel(writer, t("embedded"), t)} <span class="dev">· <Spent call={writer} /></span></small></h3>
      {[turn.asked, turn.reply].map((said) => said && (
        <article key={said.id} class={`message ${said.role === "user" ? "user" : "assistant"}`} tabIndex={0}>
          <header><b>{nameSpeaker(said.label, t)}</b><span>{day(said.time, language)}</span><span class="id dev">{said.id}</span></header>
          <div class="body">{said === turn.reply ? <Cited text={said.text} grounds={turn.grounds} /> : said.text}</div>
        </article>))}
    </section>
  );
}

/** A line from each message that was named to its quote, and from there to the words that rest on it. */
function Threads({ box, turn }: { box: { current: HTMLDivElement | null }; turn: Turn }) {
  const [lines, setLines] = useState<{ id: string; topic: string; path: string }[]>([]);
  useLayoutEffect(() => {
    const place = box.current!;
    const draw = () => {
      const origin = place.getBoundingClientRect();
      const find = (name: string, id: string) => place.querySelector(`[data-${name}="${id}"]`);
      /** From the right edge of the part that has one end to the left edge of the one that has the other, beside which they are. */
      const join = (from: Element | null, to: Element | null) => {
        if (!from?.getClientRects().length || !to?.getClientRects().length) return "";
        const [one, other] = [from, to].map((end) => end.getBoundingClientRect()) as [DOMRect, DOMRect];
        const x = from.closest("article, button")!.getBoundingClientRect().right - origin.left, u = to.closest("article, button.ground")!.getBoundingClientRect().left - origin.left;
        const y = one.top + one.height / 2 - origin.top, v = other.top + other.height / 2 - origin.top;
        return u < x ? "" : `M${x} ${y}C${(x + u) / 2} ${y} ${(x + u) / 2} ${v} ${u} ${v}`;
      };
      setLines(turn.grounds.filter((ground) => ground.says).map(({ id, topic }) => {
        const card = find("card", id);
        return { id, topic, path: join(find("from", id), card) + join(card, find("mark", id)) };
      }));
    };
    const observer = new ResizeObserver(draw);
    for (const part of [place, ...place.children]) observer.observe(part);
    return () => observer.disconnect();
  }, [turn]);
  return <svg class="threads" aria-hidden="true">{lines.map(({ id, topic, path }) => <path key={id} d={path} data-thread={id} style={topic ? hue(topic) : {}} />)}</svg>;
}

/** What a call took: seconds, tokens, and of these what a provider's cache had. */
export function Spent({ call, cost }: { call: Call | undefined; cost?: number | null }) {
  const { t, language } = usePage();
  if (!call) return null;
  const tokens = call.input_tokens + call.output_tokens;
  return <>{call.seconds.toFixed(1)} {t("seconds")}{tokens > 0 && ` · ${call.input_tokens.toLocaleString(language)} + ${call.output_tokens.toLocaleString(language)} ${t("tokens")}`}{call.cached_tokens > 0 && ` (${t("cached")} ${call.cached_tokens.toLocaleString(language)})`}{cost != null && ` · ${t("cost")} ${cost.toLocaleString(language, { maximumSignificantDigits: 3 })}`}</>;
}

const percent = (share: number) => Math.max(1, Math.round(100 * share));
const nameModel = (call: Call | undefined, none: string, t: (word: Word) => string) =>
  (!call || call.model === "embedded" ? none : call.model === "recorded" ? t("recorded") : call.model);
