// One model: its facts, where it judges, its shadows, and how often it met windows that it did
// not know.

import { html, useEffect, useRef } from "./vendor/htm-preact-standalone.mjs";
import { api, useFetch, useLive } from "./store.js";
import { href } from "./route.js";
import { t } from "./text.js";
import { zone, moment, date } from "./time.js";
import { Empty, number, short } from "./parts.js";

const Card = ({ id, title, children, wide }) => html`<section class=${wide ? "card wide" : "card"} aria-labelledby=${id}><h2 id=${id}>${title}</h2>${children}</section>`;

const colour = (name) => getComputedStyle(document.body).getPropertyValue(`--${name}`).trim();

// Rate draws the share of unknown windows by hour.
function Rate({ rate }) {
  const box = useRef();
  useEffect(() => {
    const line = (name) => () => colour(name), axis = { stroke: line("muted"), grid: { stroke: line("grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const plot = new uPlot({
      width: box.current.clientWidth, height: 220, legend: { show: false }, cursor: { drag: { x: false, y: false } },
      tzDate: (s) => (zone() ? uPlot.tzDate(new Date(1000 * s), zone()) : new Date(1000 * s)),
      scales: { y: { range: (u, lo, hi) => [0, Math.max(0.05, hi ?? 0)] } },
      axes: [{ ...axis, values: (u, at) => at.map((s) => date(s)) }, { ...axis, size: 52, values: (u, at) => at.map((v) => `${+(100 * v).toFixed(1)} %`) }],
      series: [{}, { stroke: line("spark"), width: 2, points: { show: rate.t.length < 3 } }],
    }, [rate.t, rate.share], box.current);
    const resize = new ResizeObserver(() => { if (box.current?.clientWidth) plot.setSize({ width: box.current.clientWidth, height: 220 }); });
    resize.observe(box.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)"), redraw = () => plot.redraw();
    scheme.addEventListener("change", redraw);
    return () => { scheme.removeEventListener("change", redraw); resize.disconnect(); plot.destroy(); };
  }, [rate]);
  const last = rate.share.at(-1);
  return html`<div ref=${box} class="plot" role="img" aria-label=${t("model.rate_label", { n: rate.t.length, last: `${number(100 * last)} %` })} />`;
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
      <${Card} id="rate" title=${t("model.rate")} wide=${true}>${data.unknown_rate?.t?.length ? html`<${Rate} rate=${data.unknown_rate} />` : html`<p class="says">${t("model.no_rate")}</p>`}<//>
      ${data.machines?.length > 0 && html`<${Card} id="machines" title=${t("model.machines_now")} wide=${true}><ul class="list">${data.machines.map((m) => html`<li><a href=${href.machine(m)} title=${m}>${short(m)}</a></li>`)}</ul><//>`}
    </div>`;
}
