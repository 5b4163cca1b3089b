// The program and what it depends on: each red line names the command that helps.

import { html } from "./vendor/htm-preact-standalone.mjs";
import { useLive, useFetch, useOffline } from "./store.js";
import { href } from "./route.js";
import { t } from "./text.js";
import { duration } from "./time.js";
import { Icon, Words, ledgerParts, number, sentence, short, wordOf } from "./parts.js";
import { progress } from "./first.js";

const reduce = (old, name, event) => event.system;

// From how many days on a certificate is shown as one that needs care.
const certificateDays = 30;

const bytes = (n) => {
  const [size, unit] = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"]].find(([s]) => n >= s) ?? [1e3, "kB"];
  return `${number(n / size)} ${unit}`;
};

const Card = ({ id, title, children, wide }) => html`<section class=${wide ? "card wide" : "card"} aria-labelledby=${id}><h2 id=${id}>${title}</h2>${children}</section>`;

// Table draws rows of cells; the first cell of a row names it.
const Table = ({ heads, rows }) => html`<div class="scroll"><table><thead><tr>${heads.map((h) => html`<th scope="col">${h}</th>`)}</tr></thead>
  <tbody>${rows.map(([first, ...rest]) => html`<tr><th scope="row">${first}</th>${rest.map((c) => html`<td>${c}</td>`)}</tr>`)}</tbody></table></div>`;

function Problems({ problems, offline }) {
  if (offline) return html`<p class="says">${t("system.unknown")}</p>`;
  if (!problems.length) return html`<p><${Icon} shape="healthy" /> ${t("system.fine")}</p>`;
  return html`<ul class="problems">${problems.map((p) => html`<li><p class="what"><${Icon} shape="sensor_fault" /> ${p.instruction ? html`<a href=${href.machine(p.machine)}>${p.machine}</a>: <${Words} text=${sentence(p.instruction)} />` : p.what}</p>${p.command && html`<pre tabindex="0">${p.command}</pre>`}</li>`)}</ul>`;
}

function Facts({ s }) {
  const share = progress(s);
  const facts = [
    [t("system.phase"), wordOf("phase", s.phase.replaceAll(" ", "_")) + (share === undefined ? "" : ` ${Math.floor(100 * share)} %`)],
    [t("system.rate"), s.windows_per_second >= 0 && t("system.per_second", { n: number(s.windows_per_second) })],
    [t("system.latency"), s.latency_ms && t("system.percentiles", { p50: number(Math.ceil(s.latency_ms.p50)), p99: number(Math.ceil(s.latency_ms.p99)) })],
    [t("system.missing"), s.missing !== undefined && number(s.missing)],
    [t("system.dead"), s.dead && number(s.dead.count)],
    [t("system.disk"), s.disk && t("system.disk_of", { free: bytes(s.disk.free_bytes), used: bytes(s.disk.used_bytes) })],
  ];
  return html`<dl class="facts">${facts.filter(([, v]) => v || v === 0).map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl><p class="says">${s.text}</p>`;
}

function Models() {
  const { data } = useFetch("/api/models", 60000);
  if (!data?.models?.length) return null;
  const used = (id) => (data.deployments ?? []).filter((d) => d.champion === id).map((d) => d.for).join(", ");
  const rows = data.models.map((m) => [html`<a href=${href.model(m.id)}>${m.title || m.id}</a>`, m.id, m.layout ?? "–", used(m.id) || "–"]);
  return html`<${Card} id="models" title=${t("system.models")} wide=${true}><${Table} heads=${[t("model.title"), t("model.id"), t("model.layout"), t("model.machines")]} rows=${rows} /><//>`;
}

export function System() {
  const s = useLive({ page: "system" }, reduce), offline = useOffline();
  if (!s) return html`<h1>${t("nav.system")}</h1><p class="says">${t("loading")}</p>`;
  const { problems = [], lag = [], routes = [], certificates = [], ledgers = [], dead } = s;
  return html`<h1>${t("nav.system")}</h1>
    <div class="cards">
      <${Card} id="problems" title=${t("system.problems")} wide=${true}><${Problems} problems=${problems} offline=${offline} /><//>
      <${Card} id="facts" title=${t("system.now")} wide=${true}><${Facts} s=${s} /><//>
      ${lag.length > 0 && html`<${Card} id="lag" title=${t("system.lag")}><${Table} heads=${[t("system.partition"), t("system.windows")]} rows=${lag.map((l) => [l.partition, number(l.windows)])} /><//>`}
      ${routes.length > 0 && html`<${Card} id="routes" title=${t("system.routes")}><${Table} heads=${[t("system.route"), t("system.waiting"), t("system.oldest")]} rows=${routes.map((r) => [r.name, number(r.lag), r.lag > 0 && r.seconds !== undefined ? duration(r.seconds) : "–"])} /><//>`}
      ${dead?.reasons?.length > 0 && html`<${Card} id="dead" title=${t("system.dead")}><${Table} heads=${[t("system.reason"), t("system.count")]} rows=${dead.reasons.map((r) => [r.reason.replaceAll("_", " "), number(r.count)])} /><//>`}
      ${ledgers.length > 0 && html`<${Card} id="ledger" title=${t("system.ledger")}><${Table} heads=${[t("machine"), t("system.ledger.windows"), t("system.ledger.rest")]} rows=${ledgers.map(ledgerRow)} /><//>`}
      ${certificates.length > 0 && html`<${Card} id="certificates" title=${t("system.certificates")}><${Table} heads=${[t("system.file"), t("system.ends")]}
        rows=${certificates.map((c) => [c.file, c.days < certificateDays ? html`<span class="bad"><${Icon} shape="sensor_fault" /> ${days(c.days)}</span>` : days(c.days)])} /><//>`}
      <${Models} />
    </div>`;
}

// ledgerRow says of a machine which share of its samples is in windows, and why the others are not.
function ledgerRow(l) {
  const [windows, ...rest] = ledgerParts(l) ?? [t("machine.ledger.none")];
  return [html`<a href=${href.machine(l.machine)} title=${l.machine}>${short(l.machine)}</a>`, windows, rest.join(", ") || "–"];
}

const days = (n) => (n < 0 ? t("system.expired") : t("system.in_days", { n: Math.floor(n) }));
