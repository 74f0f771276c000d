// The receipt of a turn, as a person reads it.
import { useEffect, useState } from "preact/hooks";
import { Api, type Absence, type Receipt } from "./api";
import { hue, QuoteLink, TopicChip, useAnswers, usePage } from "./shared";

export function Why() {
  const { receipt, picked, t } = usePage();
  if (!picked) return <div class="scroll"><p class="quiet">{t("pick")}</p></div>;
  if (receipt === undefined) return <div class="scroll" aria-busy="true" />;
  if (receipt === null) return <div class="scroll"><p class="quiet">{t("noReceipt")}</p></div>;
  return <Account receipt={receipt} />;
}

function Account({ receipt }: { receipt: Receipt }) {
  const { t, topics } = usePage();
  const scores = Object.entries(receipt.scores).sort((a, b) => b[1] - a[1]);
  const quoted = new Map(receipt.quoted.map((note) => [note.topic, note]));
  return (
    <div class="scroll account">
      <p class="head"><QuoteLink id={receipt.user} /> {t("turn")} {receipt.turn} · {receipt.seconds.toFixed(1)} {t("seconds")}</p>
      {receipt.searches.map((search, n) => (
        <p class="searched" key={n}><b>{t("searched")}</b> “{search.query}” {search.when} {search.reason}</p>))}
      <h3>{t("read")} <small>{scores.length}</small></h3>
      {scores.map(([id, score]) => (
        <div class="read" style={hue(id)} key={id}>
          <i style={{ width: `${score * 100}%` }} />
          <TopicChip id={id} /><b>{score.toFixed(2)}</b>
          <small>{quoted.get(id)?.quotes.length ? `${t("quoted")} ${quoted.get(id)!.quotes.length}` : ""}</small>
        </div>))}
      {receipt.woken.length > 0 && <p class="chips"><b>{t("woke")}</b> {receipt.woken.map((id) => <TopicChip id={id} key={id} />)}</p>}
      {receipt.slept.length > 0 && <p class="chips"><b>{t("slept")}</b> {receipt.slept.map((id) => <TopicChip id={id} key={id} />)}</p>}
      <h3>{t("quoted")}</h3>
      {receipt.quoted.filter((note) => note.quotes.length || note.summary).map((note) => (
        <div class="quoted colored" style={hue(note.topic)} key={note.topic}>
          <b>{topics.get(note.topic)?.name ?? note.name}</b> <small>{note.score.toFixed(2)}</small>
          <div>{note.quotes.map((id) => <QuoteLink id={id} key={id}>{note.partial.includes(id) && <em> ✂ {t("partly")}</em>}</QuoteLink>)}</div>
          {note.summary && <p>{note.summary}</p>}
        </div>))}
      {!receipt.quoted.length && <p class="quiet">{t("notQuoted")}</p>}
      <WhyNot receipt={receipt} />
      <Prompt receipt={receipt} />
      <Calls receipt={receipt} />
      {receipt.events.length > 0 && <><h3>{t("events")}</h3><ul>{receipt.events.map((event, n) => <li key={n}>{event}</li>)}</ul></>}
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
      onDragOver={(e) => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
      onDrop={(e) => { e.preventDefault(); setOver(false); miss(e.dataTransfer?.getData("text/plain") ?? ""); }}>
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
        <li key={name}><i class={`s${n % 5}`} />{name} <b>{tokens.toLocaleString(language)}</b></li>))}</ul>
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
  const { t, topics, language } = usePage();
  if (!receipt.calls.length) return null;
  const paid = receipt.costs.filter((cost) => cost !== null);
  const money = (cost: number) => cost.toLocaleString(language, { maximumSignificantDigits: 3 });
  return (
    <>
      <h3>{t("calls")} <small>{receipt.calls.length}{paid.length > 0 && ` · ${t("cost")} ${money(paid.reduce((sum, cost) => sum + cost, 0))}`}</small></h3>
      <div class="wide" tabIndex={0} role="group" aria-label={t("calls")}><table>
        <thead><tr><th>{t("role")}</th><th>{t("model")}</th><th>{t("input")}</th><th>{t("cached")}</th><th>{t("output")}</th>{paid.length > 0 && <th>{t("cost")}</th>}<th>{t("seconds")}</th></tr></thead>
        <tbody>{receipt.calls.map((call, n) => (
          <>
            <tr key={n} class={call.failure ? "failed" : ""}>
              <td>{call.role}{call.topic && <small> {topics.get(call.topic)?.name ?? call.topic}</small>}</td>
              <td>{call.model === "embedded" ? t("embedded") : call.model}</td>
              <td>{call.input_tokens || "–"}</td><td>{call.cached_tokens || "–"}</td><td>{call.output_tokens || "–"}</td>{paid.length > 0 && <td>{receipt.costs[n] == null ? "–" : money(receipt.costs[n])}</td>}<td>{call.seconds.toFixed(1)}</td>
            </tr>
            {(call.failure || call.remarks.length > 0) && <tr class="failed" key={`f${n}`}><td colSpan={paid.length > 0 ? 7 : 6}>{call.failure && `${t("failed")}: ${call.failure}`} {call.remarks.join("; ")}</td></tr>}
          </>))}</tbody>
      </table></div>
    </>
  );
}
