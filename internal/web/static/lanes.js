// The history of a machine in lanes over one axis: tool, wear, score with the threshold in
// force, verdicts, alarms, advisories. A range can be picked, dragged over, scrolled into and
// walked with the keyboard; the newest step grows as results come.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact-standalone.mjs";
import { api, useFetch } from "./store.js";
import { href } from "./route.js";
import { t } from "./text.js";
import { duration, full, hasClock, instant, moment } from "./time.js";
import { wordOf } from "./parts.js";
import { Plot, axis, cell, clip, colour, font, line, ticks, timeOf } from "./chart.js";

const verdicts = ["healthy", "faulty", "unknown", "learning", "not_cutting", "sensor_fault"];
const counts = ["windows", "cutting", ...verdicts], values = ["score_mean", "score_max", "threshold", "wear", "wear_low", "wear_high"];
export const ranges = { "1h": 3600, "8h": 28800, "24h": 86400, "7d": 604800, "30d": 2592000, "90d": 7776000 };
const shortest = 120; // seconds that a zoom spans at least

const seconds = (at) => instant(at) / 1000;
const empty = () => Object.fromEntries(["t", "end", "hole", ...counts, ...values].map((k) => [k, []]));

// grow returns the points of a history with the results that came after it was asked for.
// Late results are left out, as they are for the alarm. With step 0 points are holes, and tool
// is the one of the last hole.
export function grow(points, step, results, after, threshold, tool) {
  const fresh = results.filter((r) => !r.late && seconds(r.end) > after && (step || r.hole));
  if (!fresh.length) return points;
  const next = Object.fromEntries(Object.entries({ ...(step ? {} : { end: [], hole: [] }), ...points }).map(([k, v]) => [k, [...v]])), judged = new Map();
  for (const r of fresh) {
    const at = step ? Math.floor((seconds(r.end) - 1e-6) / step) * step : seconds(r.start ?? r.end);
    let i = next.t.length - 1;
    if (i < 0 || (step ? next.t[i] < at : next.hole[i] !== r.hole || r.tool !== tool)) {
      i = next.t.push(at) - 1;
      for (const k of counts) next[k][i] = 0;
      for (const k of values) next[k][i] = null;
    } else if (next.t[i] > at) continue; // it belongs to a step that is drawn already
    if (!step) [next.hole[i], next.end[i], tool] = [r.hole, seconds(r.end), r.tool];
    next.windows[i] += 1;
    if (r.verdict in next) next[r.verdict][i] += 1;
    if (!["not_cutting", "sensor_fault"].includes(r.verdict)) next.cutting[i] += 1;
    if (threshold) next.threshold[i] = Math.max(threshold, next.threshold[i] ?? 0);
    if (r.verdict === "healthy" || r.verdict === "faulty") {
      const n = judged.get(i) ?? Math.max(0, next.healthy[i] + next.faulty[i] - 1);
      next.score_mean[i] = ((next.score_mean[i] ?? 0) * n + r.score) / (n + 1);
      next.score_max[i] = Math.max(next.score_max[i] ?? 0, r.score);
      judged.set(i, n + 1);
    }
    if (r.wear_um !== undefined && r.verdict !== "learning") [next.wear[i], next.wear_low[i], next.wear_high[i]] = [r.wear_um, r.wear_low_um, r.wear_high_um];
  }
  return next;
}

// fill returns points without estimates of tools whose reference is not there, and with an
// empty step wherever lines must not go on: before a step that is not the next one, and on both
// sides of the step in which the tool changes. With step 0 points are holes, which have no gaps.
export function fill(points, step, tools) {
  const changes = tools.map((x) => seconds(x.from)), out = empty(), keys = Object.keys(out);
  points.t.forEach((at, i) => {
    const before = points.t[i - 1];
    if (i > 0 && ((step && at - before > 1.5 * step) || changes.some((c) => c > before && c < at + (step || 1)))) {
      for (const k of keys) out[k].push(null);
      out.t[out.t.length - 1] = at - Math.min(step || 1, at - before) / 2;
    }
    for (const k of keys) out[k].push(points[k]?.[i] ?? null);
    const n = out.t.length - 1;
    if (points.learning[i] > 0 && points.healthy[i] + points.faulty[i] + points.unknown[i] === 0) for (const k of ["wear", "wear_low", "wear_high", "score_mean", "score_max"]) out[k][n] = null;
  });
  return out;
}

// scaleOf places points on an axis: by time, by cutting time, or by hole, of which a point has
// so many. at and time convert between Unix seconds and the axis; until is where a point ends.
// Without points the axis is as long as the span.
export function scaleOf(points, step, by, span, each = 1) {
  if (by === "time") return { x: points.t, at: (s) => s, time: (x) => x, until: (i) => points.t[i] + step, min: span.from, max: span.to };
  const x = [], width = (i) => (by === "hole" ? (points.windows[i] ? each : 0) : (step * (points.cutting[i] ?? 0)) / Math.max(1, points.windows[i] ?? 1));
  let sum = 0;
  points.t.forEach((_, i) => {
    x.push(sum);
    sum += width(i);
  });
  const last = points.t.length - 1, times = [...points.t, by === "hole" ? points.end[last] : points.t[last] + step], places = [...x, sum];
  const between = (from, to, v) => {
    if (last < 0 || v <= from[0]) return to[0] ?? 0;
    let lo = 0, hi = from.length - 1;
    if (v >= from[hi]) return to[hi];
    while (hi - lo > 1) { const mid = (lo + hi) >> 1; if (from[mid] <= v) lo = mid; else hi = mid; }
    return to[lo] + ((to[hi] - to[lo]) * (v - from[lo])) / (from[hi] - from[lo] || 1);
  };
  const max = Math.max(sum, 1e-9), time = (v) => (last < 0 ? span.from + ((span.to - span.from) * v) / max : between(places, times, v));
  return { x, at: (s) => between(times, places, s), time, until: (i) => x[i] + width(i), min: 0, max };
}

// machineNow returns the present on the machine's clock, in Unix seconds: a recording that is
// replayed has a clock of its own.
export function machineNow(tile, now) {
  const newest = seconds(tile.verdict_at), came = (tile.at ?? now) / 1000 - (tile.window_age ?? 0);
  const behind = came - newest;
  return Number.isFinite(behind) && Math.abs(behind) > 120 ? now / 1000 - behind : now / 1000;
}

// begunSpan shortens a span that no person chose to what there is: to the first point, if that is in its later half. It
// keeps at least five minutes.
export function begunSpan(span, first) {
  return first > (span.from + span.to) / 2 ? { from: Math.min(60 * Math.floor(first / 60), span.to - 300), to: span.to } : span;
}

const gutter = 44, left = { size: gutter, side: 3 };
const plain = (more) => ({ points: { show: false }, ...more });

// Lanes is the history of a machine. tile is what is known of the machine now.
export function Lanes({ tile, results, now, query }) {
  const [range, setRange] = useState(query?.get("range") in ranges ? query.get("range") : "8h");
  const [zoom, setZoom] = useState(); // {from, to} in Unix seconds, in place of the range
  const [first, setFirst] = useState(query?.get("range") in ranges ? 0 : undefined); // time of the first point; 0 where a person chose the range
  const [by, setBy] = useState("time"), [table, setTable] = useState(false), [at, setAt] = useState(null);
  const beat = Math.floor(now / 60000);
  const span = useMemo(() => {
    if (zoom) return zoom;
    const to = Math.ceil(machineNow(tile, now) / 60) * 60;
    return begunSpan({ from: to - ranges[range], to }, first);
  }, [zoom, range, beat, tile.name, first]);
  const asked = useSettled(span, zoom ? 200 : 0);
  const iso = (s) => new Date(1000 * s).toISOString();
  const answer = useFetch(`${api.machine(tile.name)}/history?${new URLSearchParams({ from: iso(asked.from), to: iso(asked.to), step: by === "hole" ? "hole" : "auto" })}`);
  const last = useRef();
  if (answer.data?.machine === tile.name) last.current = { data: answer.data, until: answer.data === last.current?.data ? last.current.until : results.reduce((s, r) => Math.max(s, seconds(r.end)), 0) };
  const kept = last.current?.data.machine === tile.name ? last.current : undefined;
  const data = kept?.data, live = !zoom && data;
  const points = useMemo(() => {
    if (!data) return undefined;
    const grown = live ? grow(data.points, data.step, results, kept.until, tile.threshold, data.tools.at(-1)?.tool) : data.points;
    return fill({ ...empty(), ...grown }, data.step, data.tools);
  }, [data, live && results]);
  useEffect(() => {
    if (first === undefined && data?.points.t?.length) setFirst(data.points.t[0]);
  }, [data, first]);
  const pick = (key) => {
    setZoom(undefined);
    setFirst(0);
    setRange(key);
    history.replaceState(null, "", `${href.machine(tile.name)}?range=${key}`);
  };
  const go = (from, to) => {
    const width = Math.min(ranges["90d"], Math.max(shortest, to - from)), middle = (from + to) / 2, end = Math.min(machineNow(tile, Date.now()) + 60, middle + width / 2);
    setZoom({ from: end - width, to: end });
  };
  const axis = data?.each ? "hole" : by === "hole" ? "time" : by; // the answer by hole may not be here yet
  return html`<section class="card lanes" aria-labelledby="lanes-title">
    <header>
      <h2 id="lanes-title">${t("machine.history")}</h2>
      <div class="seg" role="group" aria-label=${t("machine.range")}>${Object.keys(ranges).map((k) => html`<button type="button" key=${k} aria-pressed=${!zoom && k === range} onClick=${() => pick(k)}>${t(`machine.range.${k}`)}</button>`)}</div>
      <label class="by">${t("machine.by")}<select name="by" value=${by} onChange=${(e) => setBy(e.target.value)}>${["time", "cutting", (data?.holes > 0 || by === "hole") && "hole"].filter(Boolean).map((k) => html`<option value=${k} selected=${k === by}>${t(`machine.by.${k}`)}</option>`)}</select></label>
      ${zoom && html`<button type="button" class="reset" onClick=${() => setZoom(undefined)}>${t("machine.unzoom")}</button>`}
      <button type="button" class="as-table" aria-pressed=${table} onClick=${() => setTable(!table)}>${t("machine.table")}</button>
    </header>
    ${answer.error && html`<p class="error" role="status">${t("machine.history.failed", { why: answer.error.message })}</p>`}
    ${!points ? html`<p class="says" style=${{ minHeight: "24rem" }}>${t("loading")}</p>` : table
      ? html`<${Table} points=${points} data=${data} />`
      : html`<${Chart} tile=${tile} data=${data} points=${points} span=${span} by=${axis} at=${at} setAt=${setAt} go=${go} reset=${() => setZoom(undefined)} />`}
    ${points && !points.t.length && html`<p class="says none">${t(axis === "hole" ? "machine.history.no_hole" : "machine.history.none")}</p>`}
    ${data?.each > 1 && html`<p class="says">${t("machine.history.holes", { n: data.each })}</p>`}
    ${data?.memory && html`<p class="says">${t("machine.history.memory")}</p>`}
  </section>`;
}

// useSettled returns a value once it has not changed for so many milliseconds.
function useSettled(value, wait) {
  const [settled, set] = useState(value);
  useEffect(() => {
    if (!wait) { set(value); return undefined; }
    const timer = setTimeout(() => set(value), wait);
    return () => clearTimeout(timer);
  }, [value.from, value.to]);
  return wait ? settled : value;
}

// spansOf returns what a lane of spans draws: tools, alarms or advisories.
const spansOf = {
  tool: (data, tile) => data.tools.map((x, i) => ({ from: seconds(x.from), to: x.to && (i < data.tools.length - 1 || x.tool !== tile.tool) ? seconds(x.to) : Infinity, text: x.tool || t("machine.tool.unnamed") })),
  alarm: (data) => data.alarms.map((x) => ({ from: seconds(x.since), mark: seconds(x.raised), to: x.cleared ? seconds(x.cleared) : Infinity, text: x.incident, open: !x.cleared, incident: x.incident })),
  advisory: (data) => data.advisories.map((x) => ({ from: seconds(x.from), to: x.to ? seconds(x.to) : Infinity, text: [wordOf("advisory", x.kind), x.subject].filter(Boolean).join(" "), open: !x.to })),
};

function Chart({ tile, data, points, span, by, at, setAt, go, reset }) {
  const box = useRef(), plots = useRef(new Map()), state = useRef({});
  const scale = useMemo(() => scaleOf(points, data.step, by, span, data.each), [points, by, span.from, span.to]);
  const end = span.to;
  Object.assign(state.current, { data, points, scale, tile, go, setAt, end });
  const s = state.current;
  const table = useMemo(() => ({
    flat: [scale.x, scale.x.map(() => null)],
    wear: [scale.x, points.wear_low, points.wear_high, points.wear],
    score: [scale.x, points.score_max, points.score_mean, points.threshold],
  }), [scale]);
  useEffect(() => { for (const u of plots.current.values()) u?.setScale("x", { min: scale.min, max: scale.max }); }, [scale]);
  const common = (own) => ({
    padding: [own.top ?? 4, 10, own.bottom ?? 0, 0],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, sync: { key: "lanes", setSeries: false } },
    select: { show: true },
    tzDate: timeOf,
    scales: { x: { time: by === "time", range: () => [s.scale.min, s.scale.max] }, ...own.scales },
    axes: [own.x ? xAxis(s, by) : { show: false }, own.y ?? { show: true, ...left, values: () => [], grid: { show: false }, ticks: { show: false } }],
    series: own.series ?? [{}, {}],
    hooks: {
      ...own.hooks,
      setCursor: [(u) => { if (u.cursor.event) s.setAt(u.cursor.idx); }],
      setSelect: [(u) => {
        if (u.select.width < 4) return;
        const [a, b] = [u.select.left, u.select.left + u.select.width].map((v) => s.scale.time(u.posToVal(v, "x")));
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        s.go(a, b);
      }],
    },
  });
  useEffect(() => wheelZoom(box.current, s), []);
  const lanes = laneTypes(s, common);
  const lane = (key, height) => html`<div class=${`lane ${key}`} key=${key}>${key === "axis" ? html`<span />` : html`<h3>${t(`machine.lane.${key}`)}${key === "wear" && html` <small>µm</small>`}<span class="now">${readout[key]?.(points, at, data) ?? ""}</span></h3>`}
    <${Plot} plotKey=${`${by} ${key}`} height=${height} make=${lanes[key]} data=${table[key] ?? table.flat} plot=${{ get current() { return plots.current.get(key); }, set current(u) { plots.current.set(key, u); } }} /></div>`;
  const key = (e) => keys(e, { s, at, points, setAt, go, reset, span, plots: plots.current });
  return html`<div class="chart" ref=${box} tabindex="0" role="group" aria-label=${t("machine.chart", { from: full(span.from), to: full(span.to) })} aria-describedby="lanes-keys lanes-at" onKeyDown=${key} onMouseLeave=${() => setAt(null)}>
    <p class="head"><output id="lanes-at" aria-live="off">${at !== null && points.t[at] !== undefined ? stepText(points, at, data) : t("machine.chart.hint")}</output><${Legend} /></p>
    ${lane("tool", 26)}${lane("wear", 150)}${lane("score", 150)}${lane("verdict", 30)}${lane("alarm", 28)}${lane("advisory", 28)}
    ${lane("axis", 34)}
    <p id="lanes-keys" class="unseen">${t("machine.chart.keys")}</p>
    <${Happened} data=${data} />
  </div>`;
}

// stepText words the step or the hole under the cursor.
function stepText(points, i, { step, each }) {
  const at = points.t[i], hole = each && points.hole[i] !== null ? t(each > 1 ? "machine.holes.from" : "machine.hole.name", { hole: points.hole[i], n: each }) : "";
  return [hole, step >= 3600 || !hasClock(at) ? moment(at) : full(at), points.windows[i] ? t("machine.windows", { n: points.windows[i] }) : t("machine.windows.none")].filter(Boolean).join(" · ");
}

const readout = {
  tool: (p, i, data) => { const at = i === null ? Infinity : p.t[i]; return data.tools.findLast((x) => seconds(x.from) <= at)?.tool ?? ""; },
  wear: (p, i) => { const k = i ?? lastKnown(p.wear); return p.wear[k] === null || p.wear[k] === undefined ? "–" : `${cell(p.wear[k], 0)} (${cell(p.wear_low[k], 0)}–${cell(p.wear_high[k], 0)})`; },
  score: (p, i) => { const k = i ?? lastKnown(p.score_mean); return p.score_mean[k] === null || p.score_mean[k] === undefined ? "–" : t("machine.score.now", { mean: cell(p.score_mean[k]), max: cell(p.score_max[k]), threshold: cell(p.threshold[k]) }); },
  verdict: (p, i) => { const k = i ?? p.t.length - 1, all = verdicts.filter((v) => p[v][k] > 0); return all.map((v) => `${wordOf("verdict", v)} ${p[v][k]}`).join(", "); },
};
const lastKnown = (list) => list.findLastIndex((v) => v !== null);

// Legend names what colours cannot say alone.
const Legend = () => html`<span class="legend" aria-hidden="true"><span><i class="mean" />${t("machine.key.mean")}</span><span><i class="max" />${t("machine.key.max")}</span><span><i class="threshold" />${t("machine.key.threshold")}</span><span><i class="band" />${t("machine.key.band")}</span></span>`;

// Happened lists the alarms and advisories of the range, with links.
function Happened({ data }) {
  const last = (list) => list.toReversed().slice(0, 8);
  if (!data.alarms.length && !data.advisories.length) return null;
  return html`<div class="happened">
    ${data.alarms.length > 0 && html`<p>${t("machine.alarms.in")} ${last(data.alarms).map((a) => html`<a key=${a.incident} href=${href.alarm(a.incident)}>${moment(a.raised)} · ${a.tool} · ${a.incident}${a.cleared ? "" : ` · ${t("machine.open")}`}</a>`)}</p>`}
    ${data.advisories.length > 0 && html`<p>${t("machine.advisories.in")} ${last(data.advisories).map((a) => html`<span>${moment(a.from)} · ${[wordOf("advisory", a.kind), a.subject].filter(Boolean).join(" ")}${a.to ? ` · ${duration(seconds(a.to) - seconds(a.from))}` : ` · ${t("machine.open")}`}</span>`)}</p>`}
  </div>`;
}

function xAxis(s, by) {
  const values = {
    time: ticks,
    cutting: (_, v) => v.map((x) => (x < 7200 ? t("time.minutes", { n: Math.round(x / 60) }) : t("time.hours", { n: +(x / 3600).toFixed(1) }))),
    hole: (_, v) => v.map((x) => { const i = s.scale.x.findLastIndex((k) => k <= x + 1e-9); return s.points.hole[i] ?? ""; }),
  };
  const incrs = { cutting: [60, 300, 600, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000], hole: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] };
  return axis({ size: 32, space: 80, values: values[by], grid: { show: false }, ...(incrs[by] && { incrs: incrs[by] }) });
}


// laneTypes returns what makes each lane.
function laneTypes(s, common) {
  const strokes = { under: (u) => changes(u, s) };
  const y = (more) => axis({ ...left, space: 36, ...more });
  const spans = (kind, draw) => () => common({ scales: { y: { range: [0, 1] } }, hooks: { draw: [(u) => { draw(u, s, spansOf[kind](s.data, s.tile)); }] } });
  return {
    tool: spans("tool", drawTools),
    alarm: spans("alarm", drawAlarms),
    advisory: spans("advisory", drawAdvisories),
    axis: () => common({ x: true, top: 0, scales: { y: { range: [0, 1] } } }),
    verdict: () => common({ scales: { y: { range: [0, 1] } }, hooks: { draw: [(u) => drawVerdicts(u, s)] } }),
    wear: () => common({
      y: y(), top: 10, bottom: 8,
      scales: { y: { range: (u, lo, hi) => [0, Math.max(1.15 * (s.tile.wear?.limit_um ?? 0), 1.1 * (hi ?? 0), 20)] } },
      series: [{}, plain({ width: 0 }), plain({ width: 0 }), { stroke: () => colour("ink"), width: 1.75, points: { show: alone, size: 4 } }],
      hooks: { drawClear: [strokes.under, drawBand], draw: [(u) => drawLimit(u, s)] },
    }),
    score: () => common({
      y: y({ splits: () => [0, 0.25, 0.5, 0.75, 1] }), top: 10, bottom: 8,
      scales: { y: { range: [0, 1] } },
      series: [{}, { stroke: () => colour("soft"), width: 1, points: { show: alone, size: 3 } }, { stroke: () => colour("ink"), width: 1.75, points: { show: alone, size: 4 } },
        plain({ stroke: () => colour("muted"), width: 1.5, dash: [5, 4], paths: uPlot.paths.stepped({ align: 1 }), spanGaps: true })],
      hooks: { drawClear: [strokes.under, (u) => drawAbove(u, s)] },
    }),
  };
}

// alone shows points only where a line would show nothing, or where there are few.
const alone = (u, _, from, to) => to - from < 40;

const clamp = (u, s, at) => {
  const x = u.valToPos(s.scale.at(Math.min(at, s.end)), "x", true);
  return Math.max(u.bbox.left - 20, Math.min(u.bbox.left + u.bbox.width + 20, x));
};

// changes draws a thin line wherever the tool changes.
function changes(u, s) {
  clip(u, (c, px) => {
    c.strokeStyle = colour("line");
    c.lineWidth = px;
    for (const x of s.data.tools) line(c, clamp(u, s, seconds(x.from)), u.bbox.top, clamp(u, s, seconds(x.from)), u.bbox.top + u.bbox.height);
  });
}

function label(c, px, text, x, width, y, tone) {
  if (width < 18 * px) return;
  c.fillStyle = tone;
  c.font = font.replace("11px", `${11 * px}px`);
  c.textAlign = "left";
  c.textBaseline = "middle";
  let shown = text;
  while (shown.length > 1 && c.measureText(shown).width > width - 8 * px) shown = shown.slice(0, -2) + "…";
  if (shown.length > 2 || shown === text) c.fillText(shown, x + 5 * px, y);
}

function drawTools(u, s, spans) {
  clip(u, (c, px) => {
    const { top, height } = u.bbox;
    spans.forEach((x, i) => {
      const a = clamp(u, s, x.from), b = clamp(u, s, spans[i + 1] ? Math.min(spans[i + 1].from, x.to) : x.to);
      c.fillStyle = colour(i % 2 ? "grid" : "line");
      c.fillRect(a, top + 2 * px, Math.max(px, b - a - px), height - 4 * px);
      label(c, px, x.text, Math.max(a, u.bbox.left), b - Math.max(a, u.bbox.left), top + height / 2, colour("ink"));
    });
  });
}

function drawAlarms(u, s, spans) {
  clip(u, (c, px) => {
    const { top, height } = u.bbox;
    for (const x of spans) {
      const a = clamp(u, s, x.from), b = Math.max(clamp(u, s, x.to), a + 2 * px), m = clamp(u, s, x.mark);
      c.fillStyle = colour(x.open ? "alarm" : "soft");
      c.fillRect(a, top + height / 2 - 2 * px, b - a, 4 * px);
      c.beginPath(); // the mark of a raised alarm, also when the alarm is over
      c.moveTo(m - 6 * px, top + 4 * px);
      c.lineTo(m + 6 * px, top + 4 * px);
      c.lineTo(m, top + 16 * px);
      c.closePath();
      c.fillStyle = colour(x.open ? "alarm" : "muted");
      c.fill();
    }
  });
}

function drawAdvisories(u, s, spans) {
  clip(u, (c, px) => {
    const { top, height } = u.bbox;
    for (const x of spans) {
      const a = clamp(u, s, x.from), b = Math.max(clamp(u, s, x.to), a + 3 * px);
      c.fillStyle = colour(x.open ? "sensor_fault" : "line");
      c.fillRect(a, top + 4 * px, b - a, height - 8 * px);
      label(c, px, x.text, Math.max(a, u.bbox.left), b - Math.max(a, u.bbox.left), top + height / 2, x.open ? colour("card") : colour("ink"));
    }
  });
}

const tones = { healthy: "soft", faulty: "faulty", unknown: "unknown", learning: "learning", not_cutting: "line", sensor_fault: "sensor_fault" };

// drawVerdicts draws the shares of verdicts of each step, the graver on top.
function drawVerdicts(u, s) {
  clip(u, (c, px) => {
    const { top, height } = u.bbox, p = s.points, x = s.scale.x;
    const order = ["not_cutting", "healthy", "learning", "unknown", "sensor_fault", "faulty"].map((v) => [v, colour(tones[v])]);
    for (let i = 0; i < x.length; i++) {
      const n = p.windows[i];
      if (!n) continue;
      const a = u.valToPos(x[i], "x", true), b = u.valToPos(Math.max(s.scale.until(i), x[i]), "x", true);
      if (b < u.bbox.left || a > u.bbox.left + u.bbox.width) continue;
      let y = top + height;
      for (const [v, tone] of order) {
        const h = (height * p[v][i]) / n;
        if (!(h > 0)) continue;
        c.fillStyle = tone;
        c.fillRect(a, y - h, Math.max(px, b - a - (b - a > 5 * px ? px : -0.5)), h);
        y -= h;
      }
    }
  });
}

function drawLimit(u, s) {
  const limit = s.tile.wear?.limit_um;
  if (!(limit > 0)) return;
  clip(u, (c, px) => {
    const y = u.valToPos(limit, "y", true), { left: x, width } = u.bbox;
    c.strokeStyle = c.fillStyle = colour("muted");
    c.lineWidth = 1.5 * px;
    c.setLineDash([5 * px, 4 * px]);
    line(c, x, y, x + width, y);
    c.setLineDash([]);
    c.font = font.replace("11px", `${11 * px}px`);
    c.textAlign = "right";
    c.textBaseline = "bottom";
    c.fillText(t("machine.limit", { um: limit }), x + width - 4 * px, y - 2 * px);
  });
}

// drawBand fills the interval of the wear, step by step: an interval that stands alone is seen
// too.
function drawBand(u) {
  clip(u, (c, px) => {
    const [x, low, high] = u.data;
    c.fillStyle = colour("band");
    for (let from = 0, to; from < x.length; from = to + 1) {
      for (to = from; to < x.length && low[to] !== null && high[to] !== null; to++);
      if (to === from) continue;
      const at = (i) => u.valToPos(x[i], "x", true), y = (v) => u.valToPos(v, "y", true);
      c.beginPath();
      for (let i = from; i < to; i++) c.lineTo(at(i), y(high[i]));
      for (let i = to - 1; i >= from; i--) c.lineTo(at(i), y(low[i]));
      c.closePath();
      if (to - from === 1) c.rect(at(from) - px, y(high[from]), 2 * px, y(low[from]) - y(high[from]));
      c.fill();
    }
  });
}

// drawAbove fills what lies between the score and the threshold in force, where the score is
// above it.
function drawAbove(u, s) {
  clip(u, (c) => {
    const p = s.points, x = s.scale.x;
    c.fillStyle = colour("alarm-tint");
    for (let i = 0; i < x.length; i++) {
      const v = p.score_max[i], limit = p.threshold[i];
      if (v === null || limit === null || v < limit) continue;
      const a = u.valToPos(x[i], "x", true), b = u.valToPos(x[i + 1] ?? s.scale.until(i), "x", true), y = u.valToPos(limit, "y", true);
      c.fillRect(a, u.bbox.top, Math.max(1, b - a), y - u.bbox.top);
    }
  });
}

// wheelZoom zooms about the pointer while Ctrl or Shift is held, so that a page can still be
// scrolled; a sideways wheel moves along.
function wheelZoom(box, s) {
  const wheel = (e) => {
    const over = e.target.closest(".u-over");
    if (!over || !(e.ctrlKey || e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))) return;
    e.preventDefault();
    const { left: x, width } = over.getBoundingClientRect(), share = (e.clientX - x) / width;
    const from = s.scale.time(s.scale.min), to = s.scale.time(s.scale.max), w = to - from;
    const turn = e.deltaY || e.deltaX;
    if (!e.ctrlKey && !e.shiftKey) return s.go(from + (w * e.deltaX) / width, to + (w * e.deltaX) / width);
    const k = Math.exp(Math.max(-0.5, Math.min(0.5, turn / 300)));
    s.go(from + w * share * (1 - k), to - w * (1 - share) * (1 - k));
  };
  box.addEventListener("wheel", wheel, { passive: false });
  return () => box.removeEventListener("wheel", wheel);
}

// keys walks the steps, moves and zooms.
function keys(e, { s, at, points, setAt, go, reset, plots }) {
  if (e.target !== e.currentTarget || e.altKey || e.ctrlKey || e.metaKey) return;
  const n = points.t.length, from = s.scale.time(s.scale.min), to = s.scale.time(s.scale.max), w = to - from;
  const walk = (i) => {
    const k = Math.max(0, Math.min(n - 1, i));
    if (n === 0) return;
    setAt(k);
    for (const u of plots.values()) u?.setCursor({ left: u.valToPos(s.scale.x[k], "x"), top: 10 }, false);
  };
  const does = {
    ArrowLeft: () => (e.shiftKey ? go(from - w / 4, to - w / 4) : walk((at ?? n) - 1)),
    ArrowRight: () => (e.shiftKey ? go(from + w / 4, to + w / 4) : walk((at ?? -1) + 1)),
    Home: () => walk(0),
    End: () => walk(n - 1),
    PageUp: () => go(from - w, to - w),
    PageDown: () => go(from + w, to + w),
    "+": () => go(from + w / 4, to - w / 4),
    "=": () => go(from + w / 4, to - w / 4),
    "-": () => go(from - w / 2, to + w / 2),
    Escape: reset,
  }[e.key];
  if (!does) return;
  e.preventDefault();
  does();
}

const rowsOfPage = 60;

// Table shows the same numbers as text, the newest first.
function Table({ points, data }) {
  const rows = points.t.map((_, i) => i).filter((i) => points.windows[i] > 0).reverse(), pages = Math.max(1, Math.ceil(rows.length / rowsOfPage));
  const [page, setPage] = useState(0), shown = Math.min(page, pages - 1);
  const toolAt = (s) => data.tools.findLast((x) => seconds(x.from) <= s + (data.step / 2 || 1))?.tool ?? "–", holes = data.each > 0;
  return html`<div class="numbers" tabindex="0" role="region" aria-label=${t("machine.table.label")}><table>
    <caption>${holes ? t("machine.table.holes", { n: rows.length }) : t("machine.table.says", { step: duration(data.step), n: rows.length })}</caption>
    <thead><tr>${[...(holes ? ["hole"] : []), "time", "tool", "wear", "interval", "mean", "max", "threshold", "windows", "healthy", "faulty", "unknown", "rest"].map((k) => html`<th scope="col">${t(`machine.col.${k}`)}</th>`)}</tr></thead>
    <tbody>${rows.slice(shown * rowsOfPage, (shown + 1) * rowsOfPage).map((i) => html`<tr key=${`${points.t[i]} ${points.hole[i]}`}>
      ${holes ? html`<th scope="row">${points.hole[i]}</th><td>${moment(points.t[i])}</td>` : html`<th scope="row">${moment(points.t[i])}</th>`}<td>${toolAt(points.t[i])}</td><td>${cell(points.wear[i], 0)}</td><td>${points.wear_low[i] === null ? "–" : `${cell(points.wear_low[i], 0)}–${cell(points.wear_high[i], 0)}`}</td>
      <td>${cell(points.score_mean[i])}</td><td class=${points.score_max[i] !== null && points.score_max[i] >= points.threshold[i] ? "over" : ""}>${cell(points.score_max[i])}</td><td>${cell(points.threshold[i])}</td>
      <td>${points.windows[i]}</td><td>${points.healthy[i]}</td><td>${points.faulty[i]}</td><td>${points.unknown[i]}</td><td>${points.windows[i] - points.healthy[i] - points.faulty[i] - points.unknown[i]}</td></tr>`)}</tbody>
  </table>
  ${pages > 1 && html`<p class="pages"><button type="button" disabled=${shown === 0} onClick=${() => setPage(shown - 1)}>${t("machine.newer")}</button><span>${shown + 1} / ${pages}</span><button type="button" disabled=${shown === pages - 1} onClick=${() => setPage(shown + 1)}>${t("machine.older")}</button></p>`}</div>`;
}
