// A lane for each topic over the days; drag to zoom.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Mark } from "./api";
import { day, hue, usePage } from "./shared";

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
  const all = lanes.flatMap((topic) => Object.keys(topic.days)).concat(marks.map((m) => m.day)).map(Date.parse).filter(Number.isFinite);
  if (!all.length) return <div class="timeline" ref={box}><p class="quiet">{t("none")}</p></div>;
  const [from, to] = range ?? [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b)) + DAY];
  const step = Math.max(1, Math.ceil((to - from) / DAY / MOST)) * DAY;
  const place = (when: number) => LEFT + ((when - from) / (to - from)) * (width - LEFT - 12);
  const when = (x: number) => from + ((x - LEFT) / (width - LEFT - 12)) * (to - from);
  const within = (time: number) => time >= from && time < to;
  const at = new Map(lanes.map((topic, n) => [topic.id, TOP + n * LANE]));
  const tallest = Math.max(1, ...lanes.flatMap((topic) => Object.values(topic.days)));
  const broad = Math.max(2, place(from + step) - place(from) - 1);
  const labels = Array.from({ length: Math.max(2, Math.floor((width - LEFT) / 110)) }, (_, n, ) => from + (n * (to - from)) / Math.max(2, Math.floor((width - LEFT) / 110)));
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
        {labels.map((time) => <g key={time}><line class="grid" x1={place(time)} x2={place(time)} y1={TOP - 4} y2={height} />
          <text class="date" x={place(time)} y="13">{day(new Date(time).toISOString(), language).replace(/,? \d{4}/, "")}</text></g>)}
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
            {mark.split.length > 0 && <line class="split" x1={middle} x2={middle} y1={TOP} y2={height}><title>{mark.split.map((id) => topics.get(id)?.name).join(", ")}</title></line>}
            {mark.searched && <text class="asked" x={middle - 4} y={TOP - 1}>◆</text>}
            {[...new Set(mark.quoted)].map((id) => at.has(id) && <circle key={id} style={hue(id)} cx={middle} cy={at.get(id)! + 9} r="2.6"><title>{`${mark.message}: ${t("quoted")}`}</title></circle>)}
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
