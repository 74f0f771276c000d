// The messages in no topic yet: the topics that they would open now, and when that will be.
import { useEffect, useState } from "preact/hooks";
import type { Tail } from "./api";
import { Dot, useAnswers, usePage } from "./shared";
import { fillIn } from "./words";

const percent = (share: number) => Math.round(100 * share);

export function Unsplit() {
  const { api, session, version, jump, say, t } = usePage();
  const [tail, setTail] = useState<Tail | null>(null);
  const show = useAnswers(api, say);
  useEffect(() => void show(api.tail(), setTail), [api, version, session.count]);
  if (!tail) return null;
  return (
    <section class="unsplit" aria-label={t("provisional")}>
      {tail.topics.length > 0 && <h3>{t("provisional")} <small>{tail.topics.length}</small></h3>}
      {tail.topics.map((topic) => (
        <button class="topic provisional" key={topic.first} data-item onClick={() => jump(topic.first)}>
          <Dot topic="" /><span class="name">{topic.name || t("noTopic")}</span><small>{topic.count} {t("messages")}</small>
        </button>))}
      <p class="quiet">{fillIn(t("windowFull"), percent(tail.full), percent(tail.splits_at))}</p>
    </section>
  );
}
