// The tools before this one, over their cutting time: how each wore, and how it scored.

import { html, useMemo, useRef, useState } from "./vendor/htm-preact-standalone.mjs";
import { api, useFetch } from "./store.js";
import { t } from "./text.js";
import { instant } from "./time.js";
import { Plot, axis, cell, clip, colour, dayTime, line } from "./chart.js";

// hours words a cutting time in two units.
export function hours(s) {
  if (!Number.isFinite(s)) return "–";
  if (s < 90) return t("time.seconds", { n: Math.round(s) });
  const min = Math.round(s / 60);
  return min < 60 ? t("time.minutes", { n: min }) : t("machine.hours", { h: Math.floor(min / 60), min: String(min % 60).padStart(2, "0") });
}

const left = { size: 44, side: 3 };
const keyOf = (x) => `${x.tool} ${x.from}`;

// Tools overlays the last tools of a machine. The one in the spindle, or the one that a
// person points at, is drawn strong.
export function Tools({ tile, now }) {
  const minute = Math.floor(now / 300000);
  const { data, error } = useFetch(`${api.machine(tile.name)}/tools?limit=20&at=${minute}`);
  const kept = useRef();
  if (data) kept.current = { name: tile.name, tools: data.tools };
  const tools = kept.current?.name === tile.name ? kept.current.tools : undefined;
  const [pinned, pin] = useState(""), [over, point] = useState("");
  const order = useMemo(() => (tools ?? []).toSorted((a, b) => instant(b.from) - instant(a.from)), [tools]);
  const present = order.find((x) => x.tool === tile.tool && (!x.to || x === order[0]));
  const strong = over || pinned || (present ? keyOf(present) : "");
  if (error && !tools) return html`<section class="card tools" aria-labelledby="tools-title"><h2 id="tools-title">${t("machine.tools")}</h2><p class="error" role="status">${t("machine.history.failed", { why: error.message })}</p></section>`;
  if (!tools) return null;
  return html`<section class="card tools" aria-labelledby="tools-title">
    <header><h2 id="tools-title">${t("machine.tools")}</h2><p class="says">${t("machine.tools.says")}</p></header>
    ${order.length === 0 ? html`<p class="says none">${t("machine.tools.none")}</p>` : html`<div class="two">
      <div>
        <${Curves} tools=${order} of="wear" strong=${strong} present=${present} limit=${tile.wear?.limit_um} />
        <${Curves} tools=${order} of="score" strong=${strong} present=${present} limit=${tile.threshold} axisLabel=${t("machine.tools.axis")} />
      </div>
      <div class="list" tabindex="0" role="region" aria-label=${t("machine.tools.list")}><table>
        <thead><tr>${["tool", "in", "out", "cut", "wear"].map((k) => html`<th scope="col">${t(`machine.tools.${k}`)}</th>`)}</tr></thead>
        <tbody>${order.map((x) => { const k = keyOf(x); return html`<tr key=${k} class=${`${k === strong ? "strong" : ""}${x === present ? " present" : ""}`} onMouseEnter=${() => point(k)} onMouseLeave=${() => point("")}>
          <th scope="row"><button type="button" aria-pressed=${k === pinned} onClick=${() => pin(pinned === k ? "" : k)} onFocus=${() => point(k)} onBlur=${() => point("")}>${x.tool || t("machine.tool.unnamed")}</button>${x === present && html` <small>${t("machine.tools.present")}</small>`}</th>
          <td>${dayTime(x.from)}</td><td>${x === present ? "" : x.to ? dayTime(x.to) : ""}</td><td>${hours(x.cutting_seconds)}</td><td>${x.wear_um === undefined ? "–" : `${cell(x.wear_um, 0)} µm`}</td></tr>`; })}</tbody>
      </table></div>
    </div>`}
  </section>`;
}

// Curves draws one value of all tools. uPlot needs one list of x for all of them.
function Curves({ tools, of, strong, present, limit, axisLabel }) {
  const state = useRef({}), plot = useRef();
  Object.assign(state.current, { tools, strong, limit, present });
  const data = useMemo(() => {
    const x = [...new Set(tools.flatMap((k) => k.curve.cutting))].sort((a, b) => a - b), at = new Map(x.map((v, i) => [v, i]));
    return [x, ...tools.map((k) => {
      const y = new Array(x.length).fill(undefined); // undefined: the line goes on; null: it does not
      k.curve.cutting.forEach((c, i) => { y[at.get(c)] = k.curve[of][i]; });
      return y;
    })];
  }, [tools, of]);
  const s = state.current;
  if (s.drawn !== strong) { s.drawn = strong; plot.current?.redraw(); }
  const make = () => ({
    padding: [8, 10, 0, 0],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false }, sync: { key: "tools" } },
    scales: { x: { time: false }, y: { range: (u, lo, hi) => (of === "score" ? [0, 1] : [0, Math.max(1.15 * (s.limit ?? 0), 1.05 * (hi ?? 0), 20)]) } },
    axes: [
      axis({ size: axisLabel ? 40 : 24, space: 70, incrs: [60, 300, 600, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000], values: (_, v) => v.map((x) => (x < 3600 ? hours(x) : t("time.hours", { n: +(x / 3600).toFixed(1) }))), ...(axisLabel && { label: axisLabel, labelSize: 16, labelFont: "11px system-ui, sans-serif", labelGap: 0 }) }),
      axis({ ...left, space: 36 }),
    ],
    series: [{}, ...tools.map(() => ({ stroke: "transparent", points: { show: false }, width: 0 }))],
    hooks: { draw: [(u) => drawCurves(u, s)] },
  });
  return html`<figure><figcaption>${t(of === "wear" ? "machine.tools.wear" : "machine.tools.score")}</figcaption>
    <${Plot} plotKey=${`${of} ${tools.map(keyOf).join()}`} make=${make} data=${data} height=${of === "wear" ? 170 : 160} plot=${plot} /></figure>`;
}

function drawCurves(u, s) {
  clip(u, (c, px) => {
    const draw = (k, tone, width) => {
      const y = u.data[k + 1], x = u.data[0];
      c.strokeStyle = tone;
      c.lineWidth = width * px;
      c.lineJoin = "round";
      c.beginPath();
      let on = false;
      y.forEach((v, i) => {
        if (v === undefined) return;
        if (v === null) { on = false; return; }
        const [a, b] = [u.valToPos(x[i], "x", true), u.valToPos(v, "y", true)];
        if (on) c.lineTo(a, b); else c.moveTo(a, b);
        on = true;
      });
      c.stroke();
    };
    const strong = s.tools.findIndex((k) => keyOf(k) === s.strong);
    s.tools.forEach((k, i) => { if (i !== strong) draw(i, colour(k === s.present ? "muted" : "soft"), 1); });
    if (strong >= 0) draw(strong, colour("ink"), 2.25);
    if (s.limit > 0) {
      c.strokeStyle = colour("muted");
      c.lineWidth = 1.5 * px;
      c.setLineDash([5 * px, 4 * px]);
      const y = u.valToPos(s.limit, "y", true);
      line(c, u.bbox.left, y, u.bbox.left + u.bbox.width, y);
      c.setLineDash([]);
    }
  });
}
