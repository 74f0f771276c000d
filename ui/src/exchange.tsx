// What is imported and exported, and what is said of an export before it is imported.
import type { Found } from "./api";
import { Dialog, usePage } from "./shared";
import { nameReason, type Word } from "./words";

export function InOut({ take, close }: { take: (file: File) => void; close: () => void }) {
  const { api, session, t } = usePage();
  return (
    <Dialog title={t("inOut")} close={close}>
      <h3>{t("in")}</h3><p>{t("inHint")}</p>
      <input id="export" type="file" accept=".json,.jsonl,.zip,.xz,.gz,.txt,.html" aria-label={t("in")} disabled={!session.editing} onChange={(e) => { const file = e.currentTarget.files?.[0]; if (file) take(file); }} />
      {!session.editing && <p>{t("readOnlyHint")}</p>}
      <h3>{t("out")}</h3><p>{t("outHint")}</p>
      <p><a class="button" download href={api.page(false)}>{t("asItIs")}</a> <a class="button" download href={api.page(true)}>{t("hidden")}</a></p>
    </Dialog>
  );
}

export function Looked({ name, found, t, sure, cancel }: { name: string; found: Found; t: (word: Word) => string; sure: () => void; cancel: () => void }) {
  const { language } = usePage();
  const count = (n: number) => n.toLocaleString(language);
  return (
    <Dialog title={`${t("in")}: ${name}`} close={cancel}>
      <p>{Object.entries(found.formats).map(([format, n]) => `${format} (${count(n)})`).join(", ")}{found.first && ` · ${found.first.slice(0, 10)} – ${found.last.slice(0, 10)}`}</p>
      <p>{t("conversations")}: {count(found.conversations)} · {t("newMessages")}: {count(found.recorded)}{found.there_already > 0 && ` · ${t("thereAlready")}: ${count(found.there_already)}`}</p>
      <div class="preview" tabIndex={0}>
        {found.names.map((title) => <div class="line" key={title}>{title}</div>)}
        {found.conversations > found.names.length && found.names.length > 0 && <div class="line">…</div>}
        {Object.entries(found.left_out).map(([what, n]) => <div class="line" key={what}>{t("leftOut")}: {nameReason(what, language)} ({count(n)})</div>)}
        {found.dated_today > 0 && <div class="line">{t("datedToday")}: {count(found.dated_today)}</div>}
        {found.not_understood.map((row) => <div class="line" key={row.what}>{t("notUnderstood")}: {nameReason(row.what, language)} ({count(row.count)})<p>{row.example}</p></div>)}
      </div>
      <div class="tools"><button onClick={cancel}>{t("cancel")}</button><button onClick={sure}>{t("in")}</button></div>
    </Dialog>
  );
}
