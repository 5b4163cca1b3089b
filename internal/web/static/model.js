// One model: its card, where it judges, what it and its shadows disagree on, how often it met
// windows that it did not know, and the alarm's settings on the curve of trainer tune.

import { html, useEffect, useMemo, useRef } from "./vendor/htm-preact-standalone.mjs";
import { api, useFetch, useLive } from "./store.js";
import { href } from "./route.js";
import { t } from "./text.js";
import { moment, full } from "./time.js";
import { ticks, timeOf } from "./chart.js";
import { Empty, Words, number, short } from "./parts.js";

const Card = ({ id, title, children, wide }) => html`<section class=${wide ? "card wide" : "card"} aria-labelledby=${id}><h2 id=${id}>${title}</h2>${children}</section>`;

const colour = (name) => getComputedStyle(document.body).getPropertyValue(`--${name}`).trim();

// around returns the range of times of an axis: six hours at least, so that a few points lie in the middle.
export function around(lo, hi) {
  const pad = Math.max(0, 6 * 3600 - (hi - lo)) / 2;
  return [lo - pad, hi + pad];
}

// Shares draws shares by hour: lines are [colour, values].
function Shares({ t: hours, lines, label, least = 0.05 }) {
  const box = useRef();
  useEffect(() => {
    const line = (name) => () => colour(name), axis = { stroke: line("muted"), grid: { stroke: line("grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const plot = new uPlot({
      width: box.current.clientWidth, height: 220, legend: { show: false }, cursor: { drag: { x: false, y: false } },
      tzDate: timeOf,
      scales: { x: { range: (u) => around(u.data[0][0], u.data[0].at(-1)) }, y: { range: (u, lo, hi) => [0, Math.max(least, 1.1 * (hi ?? 0))] } },
      axes: [{ ...axis, size: 34, space: 70, values: ticks }, { ...axis, size: 52, values: (u, at) => at.map((v) => `${+(100 * v).toFixed(1)} %`) }],
      series: [{}, ...lines.map(([tone, , dash]) => ({ stroke: line(tone), width: 2, dash, points: { show: hours.length < 3 } }))],
    }, [hours, ...lines.map(([, values]) => values)], box.current);
    const resize = new ResizeObserver(() => { if (box.current?.clientWidth) plot.setSize({ width: box.current.clientWidth, height: 220 }); });
    resize.observe(box.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)"), redraw = () => plot.redraw();
    scheme.addEventListener("change", redraw);
    return () => { scheme.removeEventListener("change", redraw); resize.disconnect(); plot.destroy(); };
  }, [hours, lines]);
  return html`<div ref=${box} class="plot" role="img" aria-label=${label} />`;
}

const percent = (share) => `${number(100 * share)} %`;
const Table = ({ heads, rows }) => html`<div class="scroll"><table><thead><tr>${heads.map((h) => html`<th scope="col">${h}</th>`)}</tr></thead>
  <tbody>${rows.map(([first, ...rest]) => html`<tr><th scope="row">${first}</th>${rest.map((c) => html`<td>${c}</td>`)}</tr>`)}</tbody></table></div>`;

// Rate shows the share of unknown windows by hour, and when features drifted.
function Rate({ rate, drift }) {
  const lines = useMemo(() => [["spark", rate.share]], [rate]);
  if (!rate.t.length) return html`<p class="says">${t("model.no_rate")}</p>`;
  return html`<${Shares} t=${rate.t} lines=${lines} label=${t("model.rate_label", { n: rate.t.length, last: percent(rate.share.at(-1)) })} />
    ${drift.length > 0 ? html`<h3>${t("model.drift")}</h3><ul class="list">${drift.slice(-20).map((d) => html`<li><a href=${href.machine(d.machine)} title=${d.machine}>${short(d.machine)}</a> ${d.to ? t("model.drift_span", { from: moment(d.from), to: moment(d.to) }) : t("model.drift_since", { from: moment(d.from) })}</li>`)}</ul>` : html`<p class="says">${t("model.no_drift")}</p>`}`;
}

const within = (i) => (i.low === undefined || i.high === undefined ? i.value.toFixed(3) : t("model.interval", { value: i.value.toFixed(3), low: i.low.toFixed(2), high: i.high.toFixed(2) }));

// Sum shows the beginning of a SHA-256, and all of it to a mouse.
const Sum = ({ text }) => (text ? html`<code title=${text}>${text.slice(0, 16)}…</code>` : "–");

// Lineage lists the recordings that a model was trained on.
function Lineage({ card }) {
  const tools = (d) => [...d.machines.map((m) => html`<div><span title=${m.machine}>${short(m.machine)}</span> ${m.tools.join(", ")}</div>`), d.more_tools > 0 && t("tile.more", { n: d.more_tools })];
  const offsets = (d) => d.offsets.map((o) => html`<div>${o.topic && o.topic !== d.name ? o.topic + ": " : ""}${t("model.data_offsets", { partition: o.partition, from: o.from, to: o.to - 1 })}</div>`);
  const rows = card.data.map((d) => [d.name, number(d.windows), d.machines.length || d.more_tools ? tools(d) : "–", d.from ? t("model.data_span", { from: full(d.from), to: full(d.to) }) : "–", d.offsets.length ? offsets(d) : "–", html`<${Sum} text=${d.sha256} />`]);
  return html`<details><summary>${t("model.data", { n: card.data_count, windows: number(card.data_windows) })}</summary>
    <${Table} heads=${["data_name", "data_windows", "data_tools", "data_when", "data_where", "data_sum"].map((k) => t(`model.${k}`))} rows=${rows} />${card.data_count > card.data.length && html`<p class="says">…</p>`}</details>`;
}

// Card shows what the model's file says of its training.
function Trained({ card }) {
  const facts = [
    [t("model.verdict"), card.verdict && t(`model.verdict.${card.verdict}`)],
    [t("model.gmean"), card.gmean && within(card.gmean)], [t("model.recall"), card.recall && within(card.recall)], [t("model.specificity"), card.specificity && within(card.specificity)],
    [t("model.scored"), card.windows > 0 && (card.held_out ? t("model.scored_held_out", { tools: card.tools || "–", n: number(card.windows), faulty: number(card.faulty) }) : t("model.scored_out_of_fold", { n: number(card.windows) }))],
    [t("model.first_day"), card.first_day], [t("model.split"), card.held_out && card.split], [t("model.label"), !card.first_day && card.label], [t("model.classes"), card.classes.join(", ")],
    [t("model.threshold"), card.threshold !== undefined && card.threshold.toFixed(3)], [t("model.window"), `${number(card.window_s)} s`], [t("model.feature_version"), String(card.feature_version)],
    [t("model.reference"), card.reference], [t("model.program"), card.program], [t("model.labels_sum"), card.labels_sha256 && html`<${Sum} text=${card.labels_sha256} />`],
  ];
  return html`<dl class="facts">${facts.filter(([, v]) => v).map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>
    ${!card.held_out && !card.first_day && html`<p class="error">${t("model.not_held_out")}</p>`}
    ${card.reasons.length > 0 && html`<h3>${t("model.reasons")}</h3><${Table} heads=${[t("model.about"), t("model.allows"), t("model.because"), t("model.do")]} rows=${card.reasons.map((r) => [r.about, t(`model.verdict.${r.level}`), html`<${Words} text=${r.because} />`, html`<${Words} text=${r.do ?? "–"} />`])} />`}
    ${card.not_known.length > 0 && html`<h3>${t("model.not_known")}</h3><ul class="list">${card.not_known.map((w) => html`<li>${w}</li>`)}</ul>`}
    ${card.data_count > 0 && html`<${Lineage} card=${card} />`}`;
}

// Trial shows on which windows a shadow and a champion disagree.
function Trial({ trial }) {
  const { sum } = trial, share = (n) => `${number(n)} (${percent(n / Math.max(1, sum.windows))})`;
  const lines = useMemo(() => {
    const of = (f) => trial.hours.map((h) => f(h) / Math.max(1, h.windows));
    return [["spark", of((h) => h.differ)], ["faulty", of((h) => h.only_shadow), [6, 4]], ["muted", of((h) => h.only_champion), [2, 3]]];
  }, [trial]);
  const facts = [
    [t("model.trial.windows"), number(sum.windows)], [t("model.trial.differ"), share(sum.differ)], [t("model.trial.only_shadow"), share(sum.only_shadow)], [t("model.trial.only_champion"), share(sum.only_champion)],
    [t("model.trial.both_alarm"), share(sum.both_alarm)], [t("model.trial.shadow_unknown"), share(sum.shadow_unknown)], [t("model.trial.champion_unknown"), share(sum.champion_unknown)],
  ];
  const differ = trial.machines.filter((m) => m.differ || m.only_shadow || m.only_champion);
  return html`<h3>${t("model.trial", { shadow: trial.shadow, champion: trial.champion })}</h3>
    <dl class="facts">${facts.map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>
    <p class="keys"><span><i class="key spark" />${t("model.trial.differ")}</span><span><i class="key faulty" />${t("model.trial.only_shadow")}</span><span><i class="key muted" />${t("model.trial.only_champion")}</span></p>
    <${Shares} t=${trial.t} lines=${lines} label=${t("model.trial.label", { n: trial.t.length })} />
    ${differ.length > 0 ? html`<${Table} heads=${[t("model.machines"), t("model.trial.windows"), t("model.trial.differ"), t("model.trial.only_shadow"), t("model.trial.only_champion")]}
      rows=${differ.map((m) => [html`<a href=${href.machine(m.machine)} title=${m.machine}>${short(m.machine)}</a>`, number(m.windows), number(m.differ), number(m.only_shadow), number(m.only_champion)])} />` : html`<p class="says">${t("model.trial.agree")}</p>`}`;
}

const same = (a, b) => a.k === b.k && a.n === b.n && Math.abs(a.threshold - b.threshold) < 1e-9;
const ruleOf = (p) => t("model.alarm_rule", { k: p.k, of: p.n, threshold: number(p.threshold) });

// Curve draws false alarms against delay, with the settings in force.
function Curve({ curve, rules }) {
  const box = useRef();
  const x = (p) => (curve.hours ? p.per_hour : p.false_alarms);
  const points = curve.points.filter((p) => p.delay !== undefined);
  const others = [["muted", t("model.curve.now"), curve.now], ["faulty", t("model.curve.chosen"), curve.chosen]].filter(([, , p]) => p.delay !== undefined);
  const inForce = (p) => rules.some((r) => same(r, p));
  useEffect(() => {
    if (!box.current) return undefined;
    const line = (name) => () => colour(name), axis = { stroke: line("muted"), grid: { stroke: line("grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const all = [...points, ...others.map(([, , p]) => p)], top = (f) => 1.1 * Math.max(1, ...all.map(f));
    const plot = new uPlot({
      width: box.current.clientWidth, height: 260, legend: { show: false }, cursor: { show: false }, padding: [12, 12, 0, 0],
      scales: { x: { time: false, range: () => [0, top(x)] }, y: { range: () => [0, top((p) => p.delay)] } },
      axes: [{ ...axis, label: t(curve.hours ? "model.curve.per_hour" : "model.curve.false"), labelSize: 16, labelFont: axis.font }, { ...axis, size: 56, label: t(curve.hours ? "model.curve.delay_s" : "model.curve.delay_w"), labelSize: 16, labelFont: axis.font }],
      series: [{}, { stroke: line("spark"), width: 2, points: { show: true, size: 7 } }],
      hooks: { draw: [(u) => {
        const c = u.ctx, px = devicePixelRatio;
        c.save();
        c.font = `${12 * px}px system-ui, sans-serif`;
        for (const [tone, name, p] of others) {
          const left = u.valToPos(x(p), "x", true), up = u.valToPos(p.delay, "y", true);
          c.strokeStyle = c.fillStyle = colour(tone);
          c.lineWidth = 2 * px;
          c.beginPath();
          c.arc(left, up, 7 * px, 0, 2 * Math.PI);
          c.stroke();
          c.textAlign = left > u.bbox.left + 0.6 * u.bbox.width ? "right" : "left";
          c.fillText(inForce(p) ? `${name}, ${t("model.curve.in_force")}` : name, left + (c.textAlign === "left" ? 11 : -11) * px, up - 9 * px);
        }
        c.restore();
      }] },
    }, [points.map(x), points.map((p) => p.delay)], box.current);
    const resize = new ResizeObserver(() => { if (box.current?.clientWidth) plot.setSize({ width: box.current.clientWidth, height: 260 }); });
    resize.observe(box.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)"), redraw = () => plot.redraw();
    scheme.addEventListener("change", redraw);
    return () => { scheme.removeEventListener("change", redraw); resize.disconnect(); plot.destroy(); };
  }, [curve, rules]);
  const names = (p) => [same(p, curve.now) && t("model.curve.now"), same(p, curve.chosen) && t("model.curve.chosen"), inForce(p) && t("model.curve.in_force")].filter(Boolean).join(", ") || "–";
  const rows = [...curve.points, ...[curve.now, curve.chosen].filter((p) => !curve.points.some((q) => same(p, q)))];
  const unseen = rules.filter((r) => !rows.some((p) => same(p, r)));
  return html`<p class="says">${t("model.curve.says", { tools: curve.tools, turned: curve.turned, settings: number(curve.settings), budget: curve.budget })}</p>
    ${points.length + others.length > 0 && html`<div ref=${box} class="plot" role="img" aria-label=${t("model.curve.label", { n: points.length })} />`}
    <${Table} heads=${[t("model.rule"), t("model.curve.false"), ...(curve.hours ? [t("model.curve.per_hour")] : []), t("model.curve.found"), t(curve.hours ? "model.curve.delay_s" : "model.curve.delay_w"), t("model.curve.which")]}
      rows=${rows.map((p) => [ruleOf(p), p.false_alarms, ...(curve.hours ? [number(p.per_hour)] : []), t("model.curve.found_of", { found: p.found, turned: p.found + p.missed }), p.delay === undefined ? "–" : number(p.delay), names(p)])} />
    ${unseen.length > 0 && html`<p class="says">${t("model.curve.unseen", { rules: unseen.map(ruleOf).join("; ") })}</p>`}`;
}

// rulesOf returns the alarm settings of the deployments in which the model judges.
function rulesOf(data) {
  const rules = [];
  for (const d of data.deployments) {
    const rule = d.champion === data.id && (d.alarm ?? data.default_alarm);
    if (rule && !rules.some((r) => same(r, rule))) rules.push(rule);
  }
  return rules;
}

function Deployments({ id, all }) {
  if (!all?.length) return html`<p class="says">${t("model.not_deployed")}</p>`;
  return html`<div class="scroll"><table><thead><tr><th scope="col">${t("model.machines")}</th><th scope="col">${t("model.role")}</th><th scope="col">${t("model.shadows")}</th><th scope="col">${t("model.rule")}</th><th scope="col">${t("model.by")}</th></tr></thead><tbody>
    ${all.map((d) => html`<tr><th scope="row">${d.for}</th>
      <td>${d.champion === id ? t("model.judges") : t("model.shadow")}${d.unsigned ? ` · ${t("model.unsigned")}` : ""}</td>
      <td>${d.shadows?.length ? d.shadows.map((s, i) => html`${i > 0 && ", "}<a href=${href.model(s.model)}>${s.model}</a>${s.until && ` ${t("model.until", { at: moment(s.until) })}`}`) : "–"}</td>
      <td>${d.alarm ? t("model.alarm_rule", { k: d.alarm.k, of: d.alarm.n, threshold: number(d.alarm.threshold) }) : t("model.own_rule")}</td>
      <td>${[d.by, d.at && moment(d.at), d.note].filter(Boolean).join(" · ") || "–"}</td></tr>`)}</tbody></table></div>`;
}

export function Model({ name }) {
  const { data, error } = useFetch(api.model(name), 60000);
  useLive({ page: "system" }, (old, kind, event) => event.now); // says whether the program is there
  const rules = useMemo(() => (data ? rulesOf(data) : []), [data]); // the same value as long as data is, so that the chart stays
  if (error && !data) return html`<h1>${name}</h1><${Empty} title=${t("model.missing")}><p>${error.status ? error.message : t("offline.unreachable")}</p><p><a href=${href.system()}>${t("system.models")}</a></p><//>`;
  if (!data) return html`<h1>${name}</h1><p class="says">${t("loading")}</p>`;
  const facts = [
    [t("model.id"), data.id], [t("model.layout"), data.layout], [t("model.limit"), data.limit_um && `${number(data.limit_um)} µm`],
    [t("model.features"), data.features], [t("model.channels"), data.channels?.length],
    [t("model.published"), data.at && moment(data.at)], [t("model.by"), data.by], [t("model.note"), data.note],
    [t("model.signed"), data.file ? t("model.file") : data.key ?? t("model.unsigned")],
  ];
  return html`<h1>${data.title || data.id}</h1>
    <div class="cards">
      <${Card} id="card" title=${t("model.card")} wide=${true}><dl class="facts">${facts.filter(([, v]) => v).map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl><//>
      <${Card} id="deployed" title=${t("model.deployments")} wide=${true}><${Deployments} id=${data.id} all=${data.deployments} /><//>
      <${Card} id="trained" title=${t("model.trained")} wide=${true}>${data.card ? html`<${Trained} card=${data.card} />` : html`<p class="says">${t("model.no_card", { id: data.id })}</p>`}<//>
      <${Card} id="rate" title=${t("model.rate")} wide=${true}><${Rate} rate=${data.unknown_rate} drift=${data.drift} /><//>
      <${Card} id="trials" title=${t("model.trials")} wide=${true}>${data.trials.length ? data.trials.map((x) => html`<${Trial} key=${`${x.shadow} ${x.champion}`} trial=${x} />`) : html`<p class="says">${t("model.no_trials")}</p>`}<//>
      <${Card} id="curve" title=${t("model.curve")} wide=${true}>${data.curve ? html`<${Curve} curve=${data.curve} rules=${rules} />` : html`<p class="says">${t("model.no_curve")}</p>${data.curve_command && html`<pre tabindex="0">${data.curve_command}</pre>`}`}<//>
      ${data.machines?.length > 0 && html`<${Card} id="machines" title=${t("model.machines_now")} wide=${true}><ul class="list">${data.machines.map((m) => html`<li><a href=${href.machine(m)} title=${m}>${short(m)}</a></li>`)}</ul><//>`}
    </div>`;
}
