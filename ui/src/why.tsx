// The receipt of a turn, as a person reads it: its picture, and what else happened.
import { useEffect, useState } from "preact/hooks";
import { Api, type Absence, type Receipt } from "./api";
import { isOfSplit, tellEvent, tellReason } from "./events";
import { QuoteLink, shortDay, TopicChip, useAnswers, usePage } from "./shared";
import { Picture, Spent } from "./turn";
import { fillIn, type Word } from "./words";

export function Why() {
  const { receipt, picked, t } = usePage();
  if (!picked) return <div class="scroll"><p class="quiet">{t("pick")}</p></div>;
  if (receipt === undefined) return <div class="scroll" aria-busy="true" />;
  if (receipt === null) return <div class="scroll"><p class="quiet">{t("noReceipt")}</p></div>;
  return <Account receipt={receipt} />;
}

function Account({ receipt }: { receipt: Receipt }) {
  const { t, language, miss, turn, picture, showPicture } = usePage();
  const split = receipt.events.filter(isOfSplit), others = receipt.events.filter((event) => !isOfSplit(event));
  const unasked = Object.entries(receipt.unasked ?? {});
  return (
    <div class="scroll account" onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => { const id = e.dataTransfer?.getData("text/plain"); if (id) { e.preventDefault(); miss(id); document.getElementById("missed")?.scrollIntoView({ block: "center" }); } }}>
      <p class="head"><QuoteLink id={receipt.user} /> {turn && shortDay(turn.asked.time, language)} <span class="dev">{fillIn(t("turn"), receipt.turn)} · {receipt.seconds.toFixed(1)} {t("seconds")}</span>
        <button class="widen" aria-pressed={picture} onClick={() => showPicture(!picture)}>{picture ? `← ${t("chat")}` : `⤢ ${t("picture")}`}</button></p>
      {receipt.searches.map((search, n) => (
        <p class="searched" key={n}>{search.query === turn?.asked.text ? t("searchedThen") : <>{t("searched")} <q>{search.query}</q></>} {search.when} {search.reason}</p>))}
      {turn ? <Picture receipt={receipt} turn={turn} /> : <p class="quiet" aria-busy="true">{t("findingGrounds")}</p>}
      {receipt.curated.length > 0 && <section class="part" aria-label={t("curated")}><h3>{t("curated")}</h3>
        <ul>{receipt.curated.map((item) => <li key={item.id}><b>{item.kind}</b> {item.title} <span class="id dev">{item.id}</span></li>)}</ul></section>}
      {(receipt.split.length > 0 || split.length > 0) && <section class="part" aria-label={t("movedInto")}><h3>{t("movedInto")}</h3>
        <p class="chips">{receipt.split.map((id) => <TopicChip id={id} key={id} />)}</p>
        <ul class="dev">{split.map((event, n) => <li key={n}>{tellEvent(event, language)}</li>)}</ul></section>}
      {unasked.length > 0 && <section class="part" aria-label={t("unasked")}><h3>{t("unasked")}</h3>
        <ul>{unasked.map(([role, why]) => <li key={role}><b>{role}</b> {tellReason(why, language)}</li>)}</ul></section>}
      {Object.keys(receipt.limits ?? {}).length > 0 && <section class="part" aria-label={t("limits")}><h3>{t("limits")}</h3>
        <ul>{Object.entries(receipt.limits).map(([scope, used]) => <li key={scope}>{t(`limit_${scope}` as Word)}: {Math.round(used * 100)} %</li>)}</ul></section>}
      {others.length > 0 && <section class="part"><h3>{t("events")}</h3><ul>{others.map((event, n) => <li key={n}>{tellEvent(event, language)}</li>)}</ul></section>}
      <WhyNot receipt={receipt} />
      <div class="dev"><Calls receipt={receipt} /><WholePrompt key={receipt.turn} turn={receipt.turn} /></div>
    </div>
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
        <p><b>{t(`lost_${absence.step}`)}</b>{absence.place > 0 && <span class="dev"> {t("place")} {absence.place}.</span>}</p>
        {!["later", "unanswered", "removed"].includes(absence.step) && <a class="button dev" download href={api.caseOf(absence.turn, absence.message)}>{t("makeCase")}</a>}
      </>}</div>
    </section>
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

/** Every call of a role that was not a topic's reader, which the picture shows, and what all of them cost. */
function Calls({ receipt }: { receipt: Receipt }) {
  const { t, language } = usePage();
  const paid = receipt.costs.filter((cost) => cost !== null);
  if (!receipt.calls.length) return null;
  return (
    <details class="fold">
      <summary>{t("calls")} <small>{receipt.calls.length}{paid.length > 0 && ` · ${t("cost")} ${paid.reduce((sum, cost) => sum + cost, 0).toLocaleString(language, { maximumSignificantDigits: 3 })}`}</small></summary>
      <ul class="calls">{receipt.calls.map((call, n) => !(call.role === "reader" && call.topic && call.model === "embedded") && (
        <li key={n} class={call.failure ? "failed" : ""}><b>{call.role}</b> {call.model === "embedded" ? t("embedded") : call.model} · <Spent call={call} cost={receipt.costs[n]} />
          {call.failure && ` · ${t("failed")}: ${call.failure}`} {call.remarks.join("; ")}</li>))}</ul>
    </details>
  );
}
