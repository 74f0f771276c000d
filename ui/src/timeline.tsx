// A lane for each topic over the days; drag to zoom.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Mark } from "./api";
import { day, hue, shortDay, usePage } from "./shared";

const LANE = 18, LEFT = 128, TOP = 22, DAY = 86_400_000, MOST = 180;

export function TimeLine() {
  const { api, topics, t, openTopic, jump, version, language, lit } = usePage();
  const [marks, setMarks] = useState<Mark[]>([]);
  const [range, setRange] = useState<[number, number] | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [width, setWidth] = useState(800);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => { void api.marks().then(setMarks, () => setMarks([])); }, [api, version]);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(320, entry!.contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  const lanes = useMemo(() => [...topics.values()].filter((topic) => topic.count && topic.first_at)
    .sort((a, b) => a.first_at.localeCompare(b.first_at)), [topics]);
  const spine = useMemo(() => new Spine([...lanes.flatMap((topic) => Object.keys(topic.days)), ...marks.map((m) => m.day)]), [lanes, marks]);
  if (!spine.end) return <div class="timeline" ref={box}><p class="quiet">{t("none")}</p></div>;
  const [from, to] = range ?? [0, spine.end];
  const step = Math.max(1, Math.ceil((to - from) / DAY / MOST)) * DAY;
  const along = (distance: number) => LEFT + ((distance - from) / (to - from)) * (width - LEFT - 12);
  const place = (time: number) => along(spine.measure(time));
  const when = (x: number) => from + ((x - LEFT) / (width - LEFT - 12)) * (to - from);
  const within = (time: number) => spine.measure(time) >= from && spine.measure(time) < to;
  const at = new Map(lanes.map((topic, n) => [topic.id, TOP + n * LANE]));
  const tallest = Math.max(1, ...lanes.flatMap((topic) => Object.values(topic.days)));
  const broad = Math.max(2, along(from + step) - LEFT - 1);
  const count = Math.max(2, Math.floor((width - LEFT) / 110));
  const labels = Array.from({ length: count }, (_, n) => from + (n * (to - from)) / count);
  const height = TOP + lanes.length * LANE + 6;
  const x = (event: PointerEvent) => event.clientX - box.current!.getBoundingClientRect().left;

  return (
    <div class="timeline" ref={box}>
      {range && <button class="zoom" onClick={() => setRange(null)}>{t("zoomOut")}</button>}
      <svg width={width} height={height} role="img" aria-label={t("time")}
        onPointerDown={(e) => { if (x(e) > LEFT) setDrag([x(e), x(e)]); }}
        onPointerMove={(e) => drag && setDrag([drag[0], x(e)])}
        onPointerUp={() => {
          if (drag && Math.abs(drag[1] - drag[0]) > 12) {
            const [a, b] = drag.map(when).sort((p, q) => p - q) as [number, number];
            setRange([Math.floor(a / DAY) * DAY, Math.max(Math.ceil(b / DAY), Math.floor(a / DAY) + 2) * DAY]);
          }
          setDrag(null);
        }}>
        {labels.map((distance) => <g key={distance}><line class="grid" x1={along(distance)} x2={along(distance)} y1={TOP - 4} y2={height} />
          <text class="date" x={along(distance)} y="13">{shortDay(new Date(spine.find(distance)).toISOString(), language)}</text></g>)}
        {lanes.map((topic) => (
          <g key={topic.id} style={hue(topic.id)} class={`lane ${lit.has(topic.id) ? "lit" : ""}`} onClick={() => openTopic(topic.id)}>
            <rect class="row" x="0" y={at.get(topic.id)!} width={width} height={LANE - 1} />
            <text x="8" y={at.get(topic.id)! + 13}>{topic.name.length > 17 ? `${topic.name.slice(0, 16)}…` : topic.name}</text>
            <line class="life" x1={Math.max(LEFT, place(Date.parse(topic.first_at)))} x2={Math.max(LEFT, Math.min(width - 12, place(Date.parse(topic.last_at))))} y1={at.get(topic.id)! + 9} y2={at.get(topic.id)! + 9} />
            {[...merge(topic.days, step)].filter(([time]) => within(time)).map(([time, count]) => {
              const tall = 4 + Math.sqrt(count / tallest) * (LANE - 7);
              return <rect class="said" key={time} x={place(time)} width={broad} y={at.get(topic.id)! + 9 - tall / 2} height={tall} rx="2"><title>{`${topic.name}, ${day(new Date(time).toISOString(), language)}: ${count}`}</title></rect>;
            })}
          </g>))}
        {marks.filter((mark) => within(Date.parse(mark.day))).map((mark) => {
          const middle = place(Date.parse(mark.day) + DAY / 2);
          return <g key={mark.message} class="mark" onClick={(e) => { e.stopPropagation(); jump(mark.message); }}>
            {mark.split.length > 0 && <line class="split" x1={middle} x2={middle} y1={TOP - 5} y2={TOP - 1}><title>{mark.split.map((id) => topics.get(id)?.name).join(", ")}</title></line>}
            {mark.searched && <text class="asked" x={middle - 4} y={TOP - 6}>◆</text>}
            {[...new Set(mark.quoted)].map((id) => at.has(id) && <circle key={id} style={hue(id)} cx={middle} cy={at.get(id)! + 15} r="1.7"><title>{`${mark.message}: ${t("quoted")}`}</title></circle>)}
          </g>;
        })}
        {drag && <rect class="drag" x={Math.min(...drag)} width={Math.abs(drag[1] - drag[0])} y="0" height={height} />}
      </svg>
    </div>
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
