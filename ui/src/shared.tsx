// What all columns share: words, colours of topics, small parts.
import { createContext, Fragment, type ComponentChildren } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import type { Api, Change, Ground, Mark as TurnMark, Message, Receipt, Session, Topic, Turn } from "./api";
import { languages, type Language, type Word } from "./words";

export interface Page {
  api: Api;
  session: Session;
  /** True once the topics are those of the moment that is shown. */
  current: boolean;
  topics: Map<string, Topic>;
  /** The name of a topic, also of one that is merged, or is not there yet. */
  nameOf: (id: string) => string;
  marks: TurnMark[];
  language: Language;
  picked: string;
  receipt: Receipt | null | undefined;
  /** What was said in the turn of the receipt, and what its reply rests on; null if not known yet. */
  turn: Turn | null;
  picture: boolean;
  showPicture: (on: boolean) => void;
  missed: string;
  miss: (id: string) => void;
  open: string;
  version: number;
  jump: (id: string) => void;
  pick: (message: Message | string) => void;
  openTopic: (id: string) => void;
  change: (change: Change) => Promise<void>;
  forget: (what: string[]) => void;
  settle: () => Promise<void>;
  setAt: (moment: string) => void;
  say: (problem: string) => void;
}
export const PageContext = createContext<Page | null>(null);

export function usePage(): Page & { t: (word: Word) => string } {
  const page = useContext(PageContext)!;
  return { ...page, t: (word) => languages[page.language][word] };
}

const characters = new Intl.Segmenter();
/** The last place, up to one given, at which a cut parts no character as people see it. */
export const placeCut = (text: string, place: number) => characters.segment(text).containing(place)?.index ?? text.length;

/** A topic's hue, by the golden angle: neighbours differ most. */
export const hue = (id: string) => ({ "--hue": String((Number(id.slice(1)) * 137.508) % 360) });

export function Dot({ topic }: { topic: string }) {
  return <i class={topic ? "dot" : "dot empty"} style={topic ? hue(topic) : {}} aria-hidden="true" />;
}

export function TopicChip({ id }: { id: string }) {
  const { topics, nameOf, openTopic, t } = usePage();
  if (!topics.has(id)) return <span class="chip" style={hue(id)} title={t("topicGone")}><Dot topic={id} />{nameOf(id)}</span>;
  return (
    <button class="chip" style={hue(id)} onClick={() => openTopic(id)}>
      <Dot topic={id} />{nameOf(id)}
    </button>
  );
}

/** Shows what the server answers, in one place: the answer to what was asked there last, unless it is of another key. */
export function useAnswers(key: unknown, say: (text: string) => void) {
  const asked = useRef(0);
  const current = useRef(key);
  current.current = key;
  return <T,>(answer: Promise<T>, show: (answer: T) => void): Promise<void> => {
    const mine = ++asked.current;
    const counts = () => mine === asked.current && key === current.current;
    return answer.then((found) => { if (counts()) show(found); }, (error: Error) => { if (counts()) say(error.message); });
  };
}

/** What makes an element one that carries a message away. */
export const carrying = (id: string) => ({
  draggable: true, onDragStart: (e: DragEvent) => e.dataTransfer?.setData("text/plain", id),
});

export function QuoteLink({ id }: { id: string }) {
  const { jump, t } = usePage();
  return (
    <button class="quote-link" title={t("jump")} aria-label={`${t("jump")} ${id}`} data-quote={id} data-thread={id} onClick={(e) => { e.stopPropagation(); jump(id); }}>
      <span class="dev">{id}</span><span class="arrow" aria-hidden="true">↗</span>
    </button>
  );
}

/** A text whose message ids in brackets, `[m12]`, lead to the messages. It is text alone. */
export function Said({ text }: { text: string }) {
  const parts = text.split(/(\[m\d{1,9}\]|\bm\d{1,9}(?=, \d{4}-\d\d-\d\d))/);
  return <>{parts.map((part, n) => (n % 2 ? <QuoteLink key={n} id={part.replace(/[[\]]/g, "")} /> : part))}</>;
}

/** A reply with the number of each message that words of it rest on, behind these words. */
export function Cited({ text, grounds }: { text: string; grounds: Ground[] }) {
  const leads = grounds.filter((ground) => ground.says);
  const parts = [...new Set(leads.map((ground) => ground.says))].map((says) => ({ says, from: text.indexOf(says) }))
    .filter(({ from }) => from >= 0).sort((a, b) => a.from - b.from);
  let at = 0;
  return <>{parts.map(({ says, from }) => {
    const own = leads.filter((ground) => ground.says === says);
    const before = text.slice(at, Math.max(at, from)), said = text.slice(Math.max(at, from), from + says.length);
    at = Math.max(at, from + says.length);
    return <Fragment key={from}><Said text={before} /><span class="cited" data-thread={own.map((ground) => ground.id).join(" ")}><Said text={said} /></span>{own.map((ground) => <Mark key={ground.id} ground={ground} number={leads.indexOf(ground) + 1} />)}</Fragment>;
  })}<Said text={text.slice(at)} /></>;
}

function Mark({ ground, number }: { ground: Ground; number: number }) {
  const { jump, t } = usePage();
  return <button class="mark" style={ground.topic ? hue(ground.topic) : {}} data-mark={ground.id} data-thread={ground.id} title={ground.text} aria-label={`${number}: ${t("jump")}`} onClick={(e) => { e.stopPropagation(); jump(ground.id); }}>{number}</button>;
}

/** Lights up all that belongs to the message, or the messages, that are pointed at or have the focus. */
export function light(event: Event) {
  const page = event.currentTarget as HTMLElement;
  const list = (item: Element) => item.getAttribute("data-thread")!.split(" ");
  const pointed = (event.target as Element).closest("[data-thread]");
  const ids = pointed ? list(pointed).filter(Boolean) : [];
  for (const item of page.querySelectorAll("[data-thread]")) item.toggleAttribute("data-lit", list(item).some((id) => ids.includes(id)));
  page.toggleAttribute("data-lighting", ids.length > 0);
}

/** A window above the page: it takes the focus, keeps it, and gives it back. */
export function Dialog({ title, close, wide, children }: { title: string; close: () => void; wide?: boolean; children: ComponentChildren }) {
  const { t } = usePage();
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => { box.current?.showModal(); }, []);
  return (
    <dialog ref={box} class={wide ? "wide-dialog" : ""} aria-label={title} onClose={close} onKeyDown={(e) => e.stopPropagation()}
      onClick={(e) => { if (e.target === e.currentTarget) e.currentTarget.close(); }}>
      <div><header><h2>{title}</h2><button class="plain" aria-label={t("close")} onClick={() => box.current?.close()}>×</button></header>{children}</div>
    </dialog>
  );
}

export const day = (time: string, language: Language, year: "numeric" | "" = "numeric") => {
  const date = new Date(time.length === 10 ? `${time}T12:00:00` : time);
  return Number.isNaN(date.getTime()) ? time.slice(0, 10)
    : date.toLocaleDateString(language, { day: "numeric", month: "short", year: year || undefined });
};
export const shortDay = (time: string, language: Language) => day(time, language, "");
export const clock = (time: string) => /T(\d\d:\d\d)/.exec(time)?.[1] ?? "";

/** Arrow keys go through the items of a list. */
export function walk(event: KeyboardEvent) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const target = event.target as HTMLElement;
  if (!step || target.tagName === "INPUT" || target.tagName === "SELECT") return;
  const items = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[data-item]")];
  const at = items.findIndex((item) => item.contains(target));
  const next = items[at + step];
  if (next) { event.preventDefault(); next.focus(); }
}
