// A lane for each topic over the days: when it was talked about, and where it is pointed at, what was quoted. Drag to zoom.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Api, type Message, type Moment, type Topic } from "./api";
import { day, Dialog, Dot, hue, placeCut, shortDay, usePage, walk } from "./shared";
import { fillIn, nameSpeaker, type Word } from "./words";

const LANE = 18, LEFT = 128, TOP = 22, DAY = 86_400_000, MOST = 180, BAND = 540;

export function TimeLine() {
  const { topics, marks, t, openTopic, jump, language, turn, receipt } = usePage();
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const [band, setBand] = useState(0); // lanes are drawn that are in view, or nearly
  const [range, setRange] = useState<[number, number] | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [width, setWidth] = useState(800);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(320, entry!.contentRect.width)));
    observer.observe(box.current!);
    const place = box.current!.parentElement!;
    const onScroll = () => setBand(Math.floor(place.scrollTop / BAND));
    place.addEventListener("scroll", onScroll);
    return () => { observer.disconnect(); place.removeEventListener("scroll", onScroll); };
  }, []);

  const lanes = useMemo(() => [...topics.values()].filter((topic) => topic.count && topic.first_at)
    .sort((a, b) => a.first_at.localeCompare(b.first_at)), [topics]);
  const spine = useMemo(() => new Spine([...lanes.flatMap((topic) => Object.keys(topic.days)), ...marks.map((m) => m.day)]), [lanes, marks]);
  const [from, to] = range ?? [0, spine.end];
  const step = Math.max(1, Math.ceil((to - from) / DAY / MOST)) * DAY;
  const along = (distance: number) => LEFT + ((distance - from) / (to - from)) * (width - LEFT - 12);
  const place = (time: number) => along(spine.measure(time));
  const when = (x: number) => from + ((x - LEFT) / (width - LEFT - 12)) * (to - from);
  const within = (time: number) => spine.measure(time) >= from && spine.measure(time) < to;
  const at = new Map(lanes.map((topic, n) => [topic.id, TOP + n * LANE]));
  const near = (id: string) => Math.abs((at.get(id) ?? NaN) / BAND - band - 1) < 2;
  const tallest = Math.max(1, ...lanes.flatMap((topic) => Object.values(topic.days)));
  const broad = Math.max(2, along(from + step) - LEFT - 1);
  const count = Math.max(2, Math.floor((width - LEFT) / 110));
  const labels = Array.from({ length: count + 1 }, (_, n) => Math.min(from + (n * (to - from)) / count, to - 1))
    .map((distance, n) => ({ distance, end: n === count, text: shortDay(new Date(spine.find(distance)).toISOString(), language) }))
    .filter(({ text }, n, all) => text !== all[n - 1]?.text);
  const height = TOP + lanes.length * LANE + 6;
  const x = (event: PointerEvent) => event.clientX - box.current!.getBoundingClientRect().left;

  /** + and - zoom, arrows go along. */
  const onKey = (event: KeyboardEvent) => {
    const wide = to - from, middle = (from + to) / 2;
    const half = { "+": wide / 4, "-": wide, ArrowLeft: wide / 2, ArrowRight: wide / 2 }[event.key];
    if (!half || (half < DAY && event.key === "+")) return;
    event.preventDefault();
    const centre = middle + ({ ArrowLeft: -wide / 4, ArrowRight: wide / 4 }[event.key] ?? 0);
    const begin = Math.max(0, Math.min(centre - half, spine.end - 2 * half));
    setRange(2 * half >= spine.end ? null : [begin, begin + 2 * half]);
  };
  const drawn = useMemo(() => spine.end > 0 && <>
    {labels.map(({ distance, end, text }) => <g key={distance}><line class="grid" x1={along(distance)} x2={along(distance)} y1={TOP - 4} y2={height} />
      <text class="date" x={along(distance)} y="13" text-anchor={end ? "end" : "start"}>{text}</text></g>)}
    {lanes.filter((topic) => near(topic.id)).map((topic) => (
      <g key={topic.id} style={hue(topic.id)} class="lane" onClick={() => openTopic(topic.id)}
        data-item tabindex={0} role="button" aria-label={shorten(topic.name) === topic.name ? topic.name : `${shorten(topic.name)} ${topic.name}`} onKeyDown={(e) => { if (e.key === "Enter") openTopic(topic.id); }}
        onFocus={(e) => setPointed({ topic: topic.id, day: null, y: at.get(topic.id)!, ...placeOf(e.currentTarget) })} onBlur={() => setPointed(null)}>
        <rect class="row" x="0" y={at.get(topic.id)!} width={width} height={LANE - 1} />
        <text x="8" y={at.get(topic.id)! + 13}>{shorten(topic.name)}</text>
        <line class="life" x1={Math.max(LEFT, place(Date.parse(topic.first_at)))} x2={Math.max(LEFT, Math.min(width - 12, place(Date.parse(topic.last_at))))} y1={at.get(topic.id)! + 9} y2={at.get(topic.id)! + 9} />
        {[...merge(topic.days, step)].filter(([time]) => within(time)).map(([time, count]) => {
          const tall = 4 + Math.sqrt(count / tallest) * (LANE - 7);
          return <rect class="said" key={time} x={place(time)} width={broad} y={at.get(topic.id)! + 9 - tall / 2} height={tall} rx="2" />;
        })}
      </g>))}
  </>, [lanes, from, to, width, language, band]);
  const point = (event: PointerEvent) => {
    const y = event.clientY - (event.currentTarget as Element).getBoundingClientRect().top;
    const topic = lanes[Math.floor((y - TOP) / LANE)]?.id ?? "";
    const time = spine.find(when(x(event)));
    setPointed({ topic, day: x(event) > LEFT ? Math.floor(time / step) * step : null, y, left: event.clientX, top: event.clientY });
  };
  const inBin = (day: string) => pointed?.day != null && Math.floor(Date.parse(day) / step) * step === pointed.day;
  const replied = marks.find((mark) => mark.message === receipt?.user);
  const column = (day: string) => place(Date.parse(day) + DAY / 2);
  if (!spine.end) return <div class="timeline" ref={box}><p class="quiet">{t("none")}</p></div>;
  return (
    <div class="timeline" ref={box} onKeyDown={walk}>
      <Moments />
      <p class="legend-line">{t("legend")}</p>
      {range && <button class="zoom" onClick={() => setRange(null)}>{t("zoomOut")}</button>}
      <svg width={width} height={height} role="group" aria-label={t("time")} onKeyDown={onKey}
        onPointerDown={(e) => { if (x(e) > LEFT) setDrag([x(e), x(e)]); }}
        onPointerMove={(e) => { if (drag) setDrag([drag[0], x(e)]); point(e); }}
        onPointerLeave={() => setPointed(null)}
        onClick={() => { const mark = marks.find((one) => inBin(one.day)); if (mark && pointed && pointed.y < TOP) jump(mark.message); }}
        onPointerUp={() => {
          if (drag && Math.abs(drag[1] - drag[0]) > 12) {
            const [a, b] = drag.map(when).sort((p, q) => p - q) as [number, number];
            setRange([Math.floor(a / DAY) * DAY, Math.max(Math.ceil(b / DAY), Math.floor(a / DAY) + 2) * DAY]);
          }
          setDrag(null);
        }}>
        {pointed?.day != null && within(pointed.day) && <rect class="pointed" x={place(pointed.day)} width={broad} y={TOP - 2} height={height} />}
        {drawn}
        <g class="marks">
          {pointed?.topic && marks.filter((mark) => mark.quoted[pointed.topic] && within(Date.parse(mark.day))).map((mark) =>
            <path key={mark.message} class="quoted-on" d={`M${column(mark.day)} ${at.get(pointed.topic)! + 1}v${LANE - 3}`} />)}
          {replied && within(Date.parse(replied.day)) && <line class="replied" x1={column(replied.day)} x2={column(replied.day)} y1={TOP - 4} y2={height} />}
          {turn?.grounds.filter((ground) => ground.says && at.has(ground.topic) && within(Date.parse(ground.time.slice(0, 10)))).map((ground) =>
            <circle key={ground.id} class="ground-mark" data-thread={ground.id} cx={column(ground.time.slice(0, 10))} cy={at.get(ground.topic)! + 9} r="6" />)}
        </g>
        {drag && <rect class="drag" x={Math.min(...drag)} width={Math.abs(drag[1] - drag[0])} y="0" height={height} />}
      </svg>
      {pointed && !drag && <Tip pointed={pointed} inBin={inBin} />}
    </div>
  );
}

/** Where it is pointed at: a lane, and the beginning of the days there; null for the lane's name. */
interface Pointed { topic: string; day: number | null; y: number; left: number; top: number }
const SHOWN = 6, TIP = 276;
const shorten = (name: string) => (name.length > 17 ? `${name.slice(0, placeCut(name, 16))}…` : name);
const placeOf = (lane: SVGElement) => {
  const { left, top } = lane.getBoundingClientRect();
  return { left: left + LEFT, top };
};

/** What was said and quoted on the days that are pointed at, or on which days the topic was quoted. */
function Tip({ pointed, inBin }: { pointed: Pointed; inBin: (day: string) => boolean }) {
  const { topics, marks, t, language, nameOf } = usePage();
  const own = topics.get(pointed.topic);
  const high = pointed.top > innerHeight / 2; // above what is pointed at, where there is more room
  const style = { left: `${Math.max(4, Math.min(pointed.left + 14, innerWidth - TIP))}px`, ...(high ? { bottom: `${innerHeight - pointed.top + 12}px` } : { top: `${pointed.top + 16}px` }) };
  if (pointed.day === null) {
    if (!own) return null;
    const days = [...new Set(marks.filter((mark) => mark.quoted[own.id]).map((mark) => mark.day))].sort();
    return (
      <div class="tip" role="tooltip" style={style}>
        <b><Dot topic={own.id} />{own.name}</b> <small>{own.count} {t("messages")}</small>
        <p>{days.length ? `${t("quotedOn")}: ${days.slice(-10).map((one) => shortDay(one, language)).join(", ")}` : t("notQuotedYet")}</p>
      </div>
    );
  }
  const said = new Map<string, number>(), quoted = new Map<string, number>();
  for (const topic of topics.values()) {
    const count = Object.entries(topic.days).reduce((sum, [one, n]) => sum + (inBin(one) ? n : 0), 0);
    if (count) said.set(topic.id, count);
  }
  const here = marks.filter((mark) => inBin(mark.day));
  for (const mark of here) for (const [id, n] of Object.entries(mark.quoted)) quoted.set(id, (quoted.get(id) ?? 0) + n);
  if (!said.size && !here.length) return null;
  const list = (counts: Map<string, number>) => {
    const sorted = [...counts].sort((a, b) => Number(b[0] === pointed.topic) - Number(a[0] === pointed.topic) || b[1] - a[1]);
    return <ul>{sorted.slice(0, SHOWN).map(([id, n]) => <li key={id}><Dot topic={id} />{nameOf(id)} <b>{n}</b></li>)}{sorted.length > SHOWN && <li>+{sorted.length - SHOWN}</li>}</ul>;
  };
  return (
    <div class="tip" role="tooltip" style={style}>
      <b>{day(new Date(pointed.day).toISOString(), language)}</b>
      {said.size > 0 && <><small>{t("said")}</small>{list(said)}</>}
      {quoted.size > 0 && <><small>{t("quotedThen")}</small>{list(quoted)}</>}
      {here.some((mark) => mark.searched) && <small>{t("searchedThen")}</small>}
    </div>
  );
}

/** A slider over the ends of turns: shows the session as it was, begins branches, compares them. */
function Moments() {
  const { api, session, version, t, setAt, settle, say } = usePage();
  const [moments, setMoments] = useState<Moment[]>([]);
  const [beside, setBeside] = useState(false);
  const [held, setHeld] = useState(api.at);
  useEffect(() => { void new Api(session.name).moments().then(setMoments, () => setMoments([])); }, [session.name, version]);
  useEffect(() => { setHeld(api.at); }, [api.at, session.name]);
  useEffect(() => {
    if (held === api.at) return;
    const timer = setTimeout(() => setAt(held), 250);
    return () => clearTimeout(timer);
  }, [held]);
  if (moments.length < 2) return null;
  const shown = moments.find((m) => m.id === held) ?? moments[0]!;
  const line = [...lineage(moments, shown.id, moments)].reverse();
  const tips = moments.filter((m) => !moments.some((other) => other.parent === m.id));
  const go = (id: string) => setHeld(id === moments[0]!.id ? "" : id);
  return (
    <div class={`moments ${api.at ? "past" : ""}`}>
      <label>{t("moment")} <input type="range" min="0" max={line.length - 1} value={line.indexOf(shown)}
        aria-valuetext={label(shown, t)} onInput={(e) => go(line[Number(e.currentTarget.value)]!.id)} /></label>
      <b>{label(shown, t)}</b>
      {tips.length > 1 && <select aria-label={t("branch")} value={tips.find((tip) => lineage(moments, tip.id).includes(shown))?.id} onChange={(e) => go(e.currentTarget.value)}>
        {tips.map((tip, n) => <option key={tip.id} value={tip.id}>{t("branch")} {tips.length - n}: {label(tip, t)}</option>)}</select>}
      {api.at && <button onClick={() => setAt("")}>{t("backToNow")}</button>}
      {api.at && session.editing && <button onClick={() => void api.fork().then(settle, (e: Error) => say(e.message))}>{t("fork")}</button>}
      <button onClick={() => setBeside(true)}>{t("beside")}</button>
      {api.at && <small>{t(session.editing ? "pastEditing" : "past")}</small>}
      {beside && <Beside moments={moments} left={shown} right={tips.find((tip) => tip !== shown) ?? line[line.indexOf(shown) - 1] ?? shown} close={() => setBeside(false)} />}
    </div>
  );
}

const label = (moment: Moment, t: (word: Word) => string) => `${fillIn(t("turn"), moment.turn)} · ${moment.count} ${t("messages")}`;

/** A moment and those before it, the newest first; behind it also those that came of it, if given. */
function lineage(moments: Moment[], id: string, after: Moment[] = []): Moment[] {
  const known = new Map(moments.map((m) => [m.id, m]));
  const found: Moment[] = [];
  for (let next = after.find((m) => m.parent === id); next; next = after.find((m) => m.parent === next!.id)) found.unshift(next);
  for (let one = known.get(id); one; one = known.get(one.parent)) found.push(one);
  return found;
}

/** Two moments, such as the ends of two branches: their topics, and what only one of them has. */
function Beside({ moments, left, right, close }: { moments: Moment[]; left: Moment; right: Moment; close: () => void }) {
  const { t } = usePage();
  const [pair, setPair] = useState([left.id, right.id]);
  const [one, other] = pair.map((id) => lineage(moments, id)) as [Moment[], Moment[]];
  const common = one.find((m) => other.includes(m))?.count ?? 0;
  return (
    <Dialog title={t("beside")} close={close} wide>
      <div class="beside">{pair.map((id, n) => <section key={n}>
        <select aria-label={`${t("moment")} ${n + 1}`} value={id} onChange={(e) => setPair(n ? [pair[0]!, e.currentTarget.value] : [e.currentTarget.value, pair[1]!])}>
          {moments.map((m) => <option key={m.id} value={m.id}>{label(m, t)}</option>)}</select>
        <Side at={id} common={common} />
      </section>)}</div>
    </Dialog>
  );
}

function Side({ at, common }: { at: string; common: number }) {
  const { session, t, say } = usePage();
  const [topics, setTopics] = useState<Topic[]>([]);
  const [messages, setMessages] = useState<Message[]>([]);
  useEffect(() => {
    const then = new Api(session.name, at);
    Promise.all([then.topics(), then.messages({ limit: "100" })])
      .then(([a, b]) => { setTopics(a.filter((topic) => topic.count).map((topic) => ({ ...topic, days: {} }))); setMessages(b); }, (e: Error) => say(e.message));
  }, [session.name, at]);
  const own = messages.filter((m) => m.seq > common);
  return (
    <>
      <ul>{topics.map((topic) => <li key={topic.id}><Dot topic={topic.id} />{topic.name} <small>{t(topic.state)} · {topic.count}</small></li>)}</ul>
      <h3>{own.length ? `${t("onlyHere")} ${own.length}` : t("nothingElse")}</h3>
      {own.map((m) => <div class="line" key={m.id}><b>{nameSpeaker(m.label, t)}</b> <small>{m.id}</small><p tabIndex={0}>{m.text}</p></div>)}
    </>
  );
}

function merge(days: Record<string, number>, step: number): Map<number, number> {
  const bins = new Map<number, number>();
  for (const [when, count] of Object.entries(days)) {
    const bin = Math.floor(Date.parse(when) / step) * step;
    if (Number.isFinite(bin)) bins.set(bin, (bins.get(bin) ?? 0) + count);
  }
  return bins;
}

/** The days on which anything was said, in a row; a time without any is a week long at most. */
class Spine {
  private readonly days: number[];
  private readonly distances: number[] = [];
  readonly end: number;
  constructor(days: string[]) {
    this.days = [...new Set(days.map(Date.parse).filter(Number.isFinite))].sort((a, b) => a - b);
    this.days.forEach((time, n) => this.distances.push(n ? this.distances[n - 1]! + Math.min(time - this.days[n - 1]!, 7 * DAY) : 0));
    this.end = this.days.length ? this.distances.at(-1)! + DAY : 0;
  }
  measure(time: number): number {
    const n = last(this.days, time);
    return n < 0 ? 0 : this.distances[n]! + Math.min(time - this.days[n]!, 7 * DAY);
  }
  find(distance: number): number {
    const n = last(this.distances, distance);
    return n < 0 ? 0 : this.days[n]! + distance - this.distances[n]!;
  }
}

/** The place of the last number that is not above another; -1 if there is none. */
function last(sorted: number[], most: number): number {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= most) low = middle + 1; else high = middle;
  }
  return low - 1;
}
