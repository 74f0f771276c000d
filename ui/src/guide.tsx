// What the page is, in a sentence, and on the sample three steps to its best moment.
import { useState } from "preact/hooks";
import { usePage } from "./shared";

/** The sample, the message in which something was said once, and the one that asks for it later. */
const SAMPLE = "lake_house", SAID = "m53", FORGOTTEN = "m293";

export function Guide({ ask }: { ask: (question: string) => void }) {
  const { session, api, t, jump, pick } = usePage();
  const [shown, setShown] = useState(localStorage.getItem("guided") === null);
  const [step, setStep] = useState(0);
  const [before, setBefore] = useState(0);
  if (!shown) return null;
  const steps = [() => { setBefore(session.count); ask(t("guideQuestion")); }, () => jump(SAID), () => { jump(FORGOTTEN); pick(FORGOTTEN); }];
  const asking = step === 1 && session.count < before + 2;  // the reply is not there yet
  const told = asking ? "guideAsking" : (["lead", "guideAsked", "guideSaid", "guideRecalled"] as const)[step]!;
  return (
    <section class="guide" aria-label={t("guide")}>
      <p aria-live="polite">{t(told)}</p>
      {session.name === SAMPLE && session.editing && !api.at && <div>{(["guideAsk", "guideWhere", "guideRecall"] as const).map((word, n) => (
        <button key={word} class={n === step ? "main" : ""} disabled={asking} onClick={() => { setStep(n + 1); steps[n]!(); }}><b>{n + 1}</b> {t(word)}</button>))}</div>}
      <button class="plain" aria-label={t("close")} onClick={() => { localStorage.setItem("guided", "1"); setShown(false); }}>×</button>
    </section>
  );
}
