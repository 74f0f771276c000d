// What all columns share: words, colours of topics, small parts.
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import type { Api, Change, Ground, Mark, Message, Receipt, Session, Topic } from "./api";
import { languages, type Language, type Word } from "./words";

export interface Page {
  api: Api;
  session: Session;
  /** True once the topics are those of the moment that is shown. */
  current: boolean;
  topics: Map<string, Topic>;
  /** The name of a topic, also of one that is merged, or is not there yet. */
  nameOf: (id: string) => string;
  grounds: Ground[] | null;
  marks: Mark[];
  language: Language;
  lit: Set<string>;
  picked: string;
  receipt: Receipt | null | undefined;
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

export function QuoteLink({ id, children }: { id: string; children?: ComponentChildren }) {
  const { jump, t } = usePage();
  return (
    <button class="quote-link" title={t("jump")} data-quote={id} onClick={(e) => { e.stopPropagation(); jump(id); }}>
      {id}{children}
    </button>
  );
}

const LEAD = 5, LEAST = 0.55, NEAR = 0.5;
/** The quoted sentences that a reply rests on: the best, and those that come near it. None where even the best says something else. */
export const chooseLead = (grounds: Ground[]) => grounds.slice(0, LEAD).filter((ground) => ground.score >= Math.max(NEAR, LEAST * grounds[0]!.score));

/** A text whose message ids in brackets, `[m12]`, lead to the messages. It is text alone. */
export function Said({ text }: { text: string }) {
  const parts = text.split(/(\[m\d{1,9}\]|\bm\d{1,9}(?=, \d{4}-\d\d-\d\d))/);
  return <>{parts.map((part, n) => (n % 2 ? <QuoteLink key={n} id={part.replace(/[[\]]/g, "")} /> : part))}</>;
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
