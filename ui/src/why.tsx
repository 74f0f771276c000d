// The receipt of a turn, as a person reads it.
import { useEffect, useState } from "preact/hooks";
import { Fragment } from "preact";
import { Api, type Absence, type Ground, type Receipt } from "./api";
import { isOfSplit, tellEvent, tellReason } from "./events";
import { chooseLead, Dot, hue, QuoteLink, shortDay, TopicChip, useAnswers, usePage } from "./shared";
import { fillIn, nameSpeaker, type Word } from "./words";

export function Why() {
  const { receipt, picked, t } = usePage();
  if (!picked) return <div class="scroll"><p class="quiet">{t("pick")}</p></div>;
  if (receipt === undefined) return <div class="scroll" aria-busy="true" />;
  if (receipt === null) return <div class="scroll"><p class="quiet">{t("noReceipt")}</p></div>;
  return <Account receipt={receipt} />;
}

const SECTIONS: Record<string, Word> = { system: "section_system", notes: "section_notes", tail: "section_tail", skeleton: "section_skeleton", curated: "section_curated" };

function Account({ receipt }: { receipt: Receipt }) {
  const { t, language, miss } = usePage();
  const split = receipt.events.filter(isOfSplit), others = receipt.events.filter((event) => !isOfSplit(event));
  const unasked = Object.entries(receipt.unasked ?? {});
  return (
    <div class="scroll account" onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => { const id = e.dataTransfer?.getData("text/plain"); if (id) { e.preventDefault(); miss(id); document.getElementById("missed")?.scrollIntoView({ block: "center" }); } }}>
      <p class="head"><QuoteLink id={receipt.user} /> {fillIn(t("turn"), receipt.turn)} · {receipt.seconds.toFixed(1)} {t("seconds")}</p>
      {receipt.searches.map((search, n) => (
        <p class="searched" key={n}>{t("searched")} <q>{search.query}</q> {search.when} {search.reason}</p>))}
      <About receipt={receipt} />
      <Grounds receipt={receipt} />
      {receipt.curated.length > 0 && <section class="part" aria-label={t("curated")}><h3>{t("curated")}</h3>
        <ul>{receipt.curated.map((item) => <li key={item.id}><b>{item.kind}</b> {item.title} <span class="id">{item.id}</span></li>)}</ul></section>}
      <ReadingLine receipt={receipt} />
      <Scores receipt={receipt} />
      {(receipt.split.length > 0 || split.length > 0) && <section class="part" aria-label={t("movedInto")}><h3>{t("movedInto")}</h3>
        <p class="chips">{receipt.split.map((id) => <TopicChip id={id} key={id} />)}</p>
        <ul>{split.map((event, n) => <li key={n}>{tellEvent(event, language)}</li>)}</ul></section>}
      {unasked.length > 0 && <section class="part" aria-label={t("unasked")}><h3>{t("unasked")}</h3>
        <ul>{unasked.map(([role, why]) => <li key={role}><b>{role}</b> {tellReason(why, language)}</li>)}</ul></section>}
      {others.length > 0 && <section class="part"><h3>{t("events")}</h3><ul>{others.map((event, n) => <li key={n}>{tellEvent(event, language)}</li>)}</ul></section>}
      <WhyNot receipt={receipt} />
      <Prompt receipt={receipt} />
      <Calls receipt={receipt} />
    </div>
  );
}

/** The topics that the message is about: what was said in them comes first. */
function About({ receipt }: { receipt: Receipt }) {
  const { t } = usePage();
  const likely = Object.entries(receipt.about);
  if (!likely.length) return null;
  return (
    <p class="chips"><b>{t("about")}</b> {likely.map(([id, share]) => (
      <span class="share" key={id}><TopicChip id={id} /> <small>{Math.round(100 * share)} %</small></span>))}</p>
  );
}

/** The sentences that the reply rests on most, then a sentence of each other message that was quoted. */
function Grounds({ receipt }: { receipt: Receipt }) {
  const { t, grounds } = usePage();
  const partial = new Set(receipt.quoted.flatMap((note) => note.partial));
  const summaries = receipt.quoted.filter((note) => note.summary);
  if (!receipt.quoted.some((note) => note.quotes.length || note.summary)) return <p class="quiet">{t("notQuoted")}</p>;
  if (grounds === null) return <p class="quiet" aria-busy="true">{t("findingGrounds")}</p>;
  const best = chooseLead(grounds);
  const rest = grounds.slice(best.length);
  const needed = best.length > 0 || summaries.length > 0 || !grounds.length;
  return (
    <section class="grounds" aria-label={t("rests")}>
      {needed ? <h3>{t("rests")}</h3> : <p class="quiet">{t("nothingNear")}</p>}
      {best.map((ground) => <Sentence key={ground.id} ground={ground} partial={partial.has(ground.id)} />)}
      {summaries.map((note) => <div class="summary" style={hue(note.topic)} key={note.topic}><TopicChip id={note.topic} /> <small>{t("summary")}</small><p>{note.summary}</p></div>)}
      {rest.length > 0 && <details class="fold"><summary>{fillIn(t(needed ? "alsoQuoted" : "quotedAnyway"), rest.length)}</summary>
        {rest.map((ground) => <Sentence key={ground.id} ground={ground} partial={partial.has(ground.id)} />)}</details>}
    </section>
  );
}

function Sentence({ ground, partial }: { ground: Ground; partial: boolean }) {
  const { nameOf, jump, language, t } = usePage();
  return (
    <button class="ground" style={ground.topic ? hue(ground.topic) : {}} data-quote={ground.id} title={t("jump")} onClick={() => jump(ground.id)}>
      <q>{ground.text}</q>
      <small>{nameSpeaker(ground.label, t)} · {shortDay(ground.time, language)}{ground.topic && <> · <Dot topic={ground.topic} />{nameOf(ground.topic)}</>}{partial && ` · ✂ ${t("partly")}`} <span class="id">{ground.id}</span></small>
    </button>
  );
}

/** What it cost that models read topics, and what it changed. */
function ReadingLine({ receipt }: { receipt: Receipt }) {
  const { t, language } = usePage();
  const effect = receipt.reading;
  if (!effect) return null;
  const tokens = receipt.calls.reduce((sum, call) => sum + (call.role === "reader" ? call.input_tokens + call.output_tokens : 0), 0);
  return <p class="quiet reading">{fillIn(t("readingEffect"), tokens.toLocaleString(language), effect.added.length, effect.kept_out.length, effect.summaries)}</p>;
}

function Scores({ receipt }: { receipt: Receipt }) {
  const { t } = usePage();
  const scores = Object.entries(receipt.scores).sort((a, b) => b[1] - a[1]);
  const quoted = new Map(receipt.quoted.map((note) => [note.topic, note.quotes.length]));
  if (!scores.length && !receipt.activated.length && !receipt.deactivated.length) return null;
  return (
    <details class="fold"><summary>{t("scores")} <small>{scores.length}</small></summary>
      {scores.map(([id, score]) => (
        <div class="read" style={hue(id)} key={id}>
          <i style={{ width: `${score * 100}%` }} />
          <TopicChip id={id} /><b>{score.toFixed(2)}</b>
          <small>{quoted.get(id) ? `${t("quoted")} ${quoted.get(id)}` : ""}</small>
        </div>))}
      {receipt.activated.length > 0 && <p class="chips"><b>{t("woke")}</b> {receipt.activated.map((id) => <TopicChip id={id} key={id} />)}</p>}
      {receipt.deactivated.length > 0 && <p class="chips"><b>{t("slept")}</b> {receipt.deactivated.map((id) => <TopicChip id={id} key={id} />)}</p>}
    </details>
  );
}

/** Where the turn lost a message that is dropped here, or named. */
function WhyNot({ receipt }: { receipt: Receipt }) {
  const { session, t, say, missed, miss } = usePage();
  const api = new Api(session.name); // whatever moment is shown: it knows all turns
  const [absence, setAbsence] = useState<Absence | null>(null);
  const [over, setOver] = useState(false);
  const show = useAnswers(missed, say);
  useEffect(() => {
    setAbsence(null);
    if (/^m\d+$/.test(missed)) void show(api.absence(receipt.turn, missed), setAbsence);
  }, [session.name, receipt.turn, missed]);
  return (
    <section class={`why-not ${over ? "over" : ""}`} aria-label={t("whyNot")}
      onDragOver={() => setOver(true)} onDragLeave={() => setOver(false)} onDrop={() => setOver(false)}>
      <h3>{t("whyNot")}</h3>
      <label>{t("whyNotHint")} <input id="missed" size={6} maxLength={12} placeholder="m42" value={missed} onInput={(e) => miss(e.currentTarget.value.trim())} /></label>
      <div aria-live="polite">{absence && <>
        <p><QuoteLink id={absence.message} /> {absence.topic && <TopicChip id={absence.topic} />}</p>
        <p><b>{t(`lost_${absence.step}`)}</b>{absence.place > 0 && ` ${t("place")} ${absence.place}.`}</p>
        {!["later", "unanswered", "removed"].includes(absence.step) && <a class="button" download href={api.caseOf(absence.turn, absence.message)}>{t("makeCase")}</a>}
      </>}</div>
    </section>
  );
}

function Prompt({ receipt }: { receipt: Receipt }) {
  const { t, language } = usePage();
  const sections = Object.entries(receipt.sections).filter(([, tokens]) => tokens > 0);
  const sum = sections.reduce((total, [, tokens]) => total + tokens, 0);
  if (!sum) return null;
  return (
    <>
      <h3>{t("prompt")} <small>{sum.toLocaleString(language)} {t("of")} {receipt.window.toLocaleString(language)} {t("tokens")}</small></h3>
      <div class="prompt" aria-hidden="true">
        {sections.map(([name, tokens], n) => <i key={name} class={`s${n % 5}`} style={{ width: `${(tokens / Math.max(receipt.window, sum)) * 100}%` }} />)}
      </div>
      <ul class="legend">{sections.map(([name, tokens], n) => (
        <li key={name}><i class={`s${n % 5}`} />{t(SECTIONS[name] ?? "section_other")} <b>{tokens.toLocaleString(language)}</b></li>))}</ul>
      <WholePrompt key={receipt.turn} turn={receipt.turn} />
    </>
  );
}

/** The prompt of a turn, message by message: of the moment at which it ended. */
function WholePrompt({ turn }: { turn: number }) {
  const { api, session, t, say } = usePage();
  const [messages, setMessages] = useState<{ role: string; text: string }[] | null>(null);
  const load = async () => {
    const there = session.turn === turn ? api.at : (await api.moments()).find((m) => m.turn === turn)?.id;
    if (there === undefined) say(t("noMoment"));
    else setMessages(await new Api(session.name, there).prompt());
  };
  return (
    <details class="whole" onToggle={(e) => { if (e.currentTarget.open && !messages) load().catch((error: Error) => say(error.message)); }}>
      <summary>{t("inFull")}</summary>
      {messages?.map((m, n) => <div key={n} tabIndex={0}><b>{m.role}</b><p>{m.text}</p></div>)}
    </details>
  );
}

function Calls({ receipt }: { receipt: Receipt }) {
  const { t, nameOf, language } = usePage();
  if (!receipt.calls.length) return null;
  const paid = receipt.costs.filter((cost) => cost !== null);
  const money = (cost: number) => cost.toLocaleString(language, { maximumSignificantDigits: 3 });
  return (
    <details class="fold">
      <summary>{t("calls")} <small>{receipt.calls.length}{paid.length > 0 && ` · ${t("cost")} ${money(paid.reduce((sum, cost) => sum + cost, 0))}`}</small></summary>
      <div class="wide" tabIndex={0} role="group" aria-label={t("calls")}><table>
        <thead><tr><th>{t("role")}</th><th>{t("model")}</th><th>{t("input")}</th><th>{t("cached")}</th><th>{t("output")}</th>{paid.length > 0 && <th>{t("cost")}</th>}<th>{t("seconds")}</th></tr></thead>
        <tbody>{receipt.calls.map((call, n) => (
          <Fragment key={n}>
            <tr class={call.failure ? "failed" : ""}>
              <td>{call.role}{call.topic && <small> {nameOf(call.topic)}</small>}</td>
              <td>{call.model === "embedded" ? t("embedded") : call.model}</td>
              <td>{call.input_tokens || "–"}</td><td>{call.cached_tokens || "–"}</td><td>{call.output_tokens || "–"}</td>{paid.length > 0 && <td>{receipt.costs[n] == null ? "–" : money(receipt.costs[n])}</td>}<td>{call.seconds.toFixed(1)}</td>
            </tr>
            {(call.failure || call.remarks.length > 0) && <tr class="failed" ><td colSpan={paid.length > 0 ? 7 : 6}>{call.failure && `${t("failed")}: ${call.failure}`} {call.remarks.join("; ")}</td></tr>}
          </Fragment>))}</tbody>
      </table></div>
    </details>
  );
}
