// Small parts that several pages draw: icons with shape and word, chips, the wear bar, the
// strip of verdicts, and the one word for the state of a machine.

import { html } from "./vendor/htm-preact-standalone.mjs";
import { t, has } from "./text.js";
import { moment, ago, duration, instant } from "./time.js";

// Icon draws a shape of index.html. Words stand next to it, so it is hidden from readers.
export const Icon = ({ shape, big }) => html`<svg class=${big ? "icon big" : "icon"} aria-hidden="true"><use href=${"#" + shape} /></svg>`;

// Chip is a small word with a shape: tone is calm, info, warn or alarm.
export const Chip = ({ shape, tone = "calm", children }) => html`<span class=${`chip ${tone}`}><${Icon} shape=${shape} />${children}</span>`;

// wordOf returns the text of "group.word"; words that a newer program says are shown as
// they are.
export const wordOf = (group, word) => (has(`${group}.${word}`) ? t(`${group}.${word}`) : String(word ?? "–").replaceAll("_", " "));

// sentence words {key, args} in the page's language and time zone. Args that are times end
// in _at; those that are lengths of time, in seconds, end in _s.
export function sentence(part) {
  if (!part) return "";
  if (typeof part === "string") return part;
  const args = Object.fromEntries(Object.entries(part.args ?? {}).map(([k, v]) => [k, /(^|_)at$|^since$|^until$/.test(k) ? moment(v) : /_s$/.test(k) ? duration(v) : v]));
  return has(`say.${part.key}`) ? t(`say.${part.key}`, args) : part.text ?? String(part.key).replaceAll("_", " ");
}

// Words shows a text, and what is in ` ` in it as a command, of which no word is broken.
export const Words = ({ text }) => text.split("`").map((part, i) => (i % 2 ? html`<code>${part.split(" ").map((w, k) => html`${k > 0 && " "}<span>${w}</span>`)}</code>` : part));

// Details holds a text that the program words in English behind a word in the page's language.
export const Details = ({ text, open }) => html`<details class="details" open=${open}><summary>${t("details")}</summary><p lang="en"><${Words} text=${text} /></p></details>`;

// The last part of a machine's name, and the path before it.
export const short = (name) => name.slice(name.lastIndexOf("/") + 1);
export const area = (name) => name.slice(0, Math.max(0, name.lastIndexOf("/")));
export const spaced = (path) => path.replaceAll("/", " / ");

// verdicts by the letter that strips use.
export const letters = { h: "healthy", f: "faulty", u: "unknown", l: "learning", n: "not_cutting", s: "sensor_fault" };
// How high each verdict stands in a strip, so that colour is not needed.
export const heights = { healthy: 0.35, faulty: 1, unknown: 0.7, learning: 0.5, not_cutting: 0.15, sensor_fault: 0.85 };

// Alarm states that call a person, and those that a person has answered.
const loud = new Set(["raised", "reactivated"]);
const quiet = new Set(["", "normal", "clear", "cleared"]);
const shapes = { raised: "raised", reactivated: "raised", acknowledged: "acknowledged", returned: "returned", shelved: "shelved", suppressed: "suppressed", out_of_service: "suppressed" };

export const isLoud = (tile) => !quiet.has(tile?.alarm ?? "") && !(tile.alarm in shapes && !loud.has(tile.alarm));
export const hasAlarm = (tile) => !quiet.has(tile?.alarm ?? "");

// age returns the seconds since the last window of a tile, which came at tile.at.
export const age = (tile, now) => (!(tile.window_age >= 0) ? NaN : tile.window_age + Math.max(0, now - (tile.at ?? now)) / 1000);
export const isSilent = (tile, now) => age(tile, now) > Math.max(10, 5 * (tile.span ?? 1)) || Boolean(tile.advisories?.some((a) => a.kind === "silence"));

// estimate returns the wear and what is left of a tool, but only if the tool's reference is
// there: while it is being learnt, nothing is known of either.
export function estimate(tile) {
  const known = tile.verdict !== "learning" && tile.wear && !tile.wear.unknown && Number.isFinite(tile.wear.um);
  if (!known) return { wear: null, left: null };
  const unit = ["holes", "windows"].find((u) => tile.left?.[u]?.some((n) => n !== null));
  return { wear: tile.wear, left: unit ? { unit, n: tile.left[unit] } : null };
}

export function atLimit(tile) {
  const { wear, left } = estimate(tile);
  return Boolean((wear && wear.limit_um > 0 && wear.um >= wear.limit_um) || (left && left.n[0] !== null && left.n[0] <= 0));
}

// condition returns the one state of a machine: what is worst comes first, so a machine
// whose tool is at its limit is never called normal. It is {word, shape, tone}.
export function condition(tile, now) {
  if (hasAlarm(tile)) {
    return { key: tile.alarm, word: wordOf("alarm", tile.alarm), shape: shapes[tile.alarm] ?? "raised", tone: isLoud(tile) ? "alarm" : "warn" };
  }
  const as = (key, shape, tone) => ({ key, word: t(`condition.${key}`), shape, tone });
  const told = (kind) => tile.advisories?.some((a) => a.kind === kind);
  if (told("machine_stopped") || told("windows_refused") || tile.refused_age >= 0) return as("not_watched", "lost", "warn");
  if (isSilent(tile, now)) return as("silent", "lost", "warn");
  if (told("unknown")) return as("unknown", "unknown", "warn");
  if (tile.advisories?.some((a) => a.kind === "model_changed" && !a.subject)) return as("not_watched", "learning", "warn");
  if (atLimit(tile)) return as("at_limit", "limit", "warn");
  if (tile.verdict === "sensor_fault") return as("sensor_fault", "sensor_fault", "warn");
  if (tile.advisories?.length) return as("advisory", "info", "info");
  if (tile.verdict === "unknown") return as("unknown", "unknown", "info");
  if (!tile.verdict) return as("waiting", "waiting", "calm");
  if (tile.verdict === "learning") return as("learning", "learning", "calm");
  return as("normal", "normal", "calm");
}

// between words an interval; no upper end means that it is open.
const between = (low, high) => (high === undefined || high === null ? t("interval.open", { low }) : t("interval", { low, high }));

export const wearText = ({ um, low_um, high_um, limit_um }) => [
  t("wear.um", { um: Math.round(um) }),
  low_um !== undefined && `(${between(Math.floor(low_um), high_um === undefined ? undefined : Math.ceil(high_um))})`,
  limit_um > 0 && t("wear.limit", { um: Math.round(limit_um) }),
].filter(Boolean).join(" ");

// leftText says what is left with its interval, also if it is nothing.
export function leftText({ unit, n: [mid, low, high] }) {
  const from = Math.max(0, Math.floor(low ?? mid ?? 0));
  if (mid === null || mid === undefined) return t(`left.${unit}_open`, { low: from });
  return t(`left.${unit}`, { n: Math.max(0, Math.round(mid)), interval: between(from, high === undefined || high === null ? undefined : Math.ceil(high)) });
}

// WearBar draws wear with its interval against the limit.
export function WearBar({ tile }) {
  if (tile.level) return html`<${LevelBar} level=${tile.level} />`;
  const { wear, left } = estimate(tile);
  if (!wear) {
    const why = tile.verdict === "learning" ? "wear.learning" : tile.wear?.unknown ? "wear.unknown" : "";
    return why ? html`<p class="wear none">${t(why)}</p>` : null;
  }
  const { um, low_um = um, high_um = um, limit_um = 0 } = wear;
  const end = Math.max(1.25 * limit_um, 1.05 * high_um, 1), at = (v) => `${(100 * Math.min(v, end) / end).toFixed(2)}%`;
  const over = limit_um > 0 && um >= limit_um ? " over" : "";
  return html`<div class=${"wear" + over}>
    <div class="bar" role="img" aria-label=${t("wear.label", { text: wearText(wear) })}>
      <i class="fill" style=${{ width: at(um) }} />
      <i class="band" style=${{ left: at(low_um), width: `${(100 * (Math.min(high_um, end) - Math.min(low_um, end)) / end).toFixed(2)}%` }} />
      ${limit_um > 0 && html`<i class="limit" style=${{ left: at(limit_um) }} />`}
    </div>
    <p class="figures"><span>${wearText(wear)}</span>${left && html`<span>${leftText(left)}</span>`}</p>
  </div>`;
}

// LevelBar draws how many times its first windows a tool reads, against the limit of a model that has seen no worn tool.
function LevelBar({ level: { sensor, times, limit, windows_left: left } }) {
  if (!Number.isFinite(times)) return html`<p class="wear none">${t("level.unknown")}</p>`;
  const end = Math.max(1.25 * limit, 1.05 * times), at = (v) => `${(100 * v / end).toFixed(2)}%`, text = t("level.times", { sensor, times: times.toFixed(2), limit: limit.toFixed(2) });
  return html`<div class=${times >= limit ? "wear level over" : "wear level"}>
    <div class="bar" role="img" aria-label=${text}><i class="fill" style=${{ width: at(times) }} /><i class="limit" style=${{ left: at(limit) }} /></div>
    <p class="figures"><span>${text}</span>${left > 0 && html`<span>${t("level.left", { n: left })}</span>`}</p>
  </div>`;
}

// shares of samples in percent: what is in windows is never rounded up, and the rest never down to nothing.
const inWindows = (x) => (Math.floor(1e4 * x) / 100).toFixed(2);
const notIn = (x) => (x < 1e-4 ? "< 0.01" : (100 * x).toFixed(2));

// ledgerParts words what became of the samples of a source: the share in windows, and each reason of the others.
// Nothing is known of samples that wait for more.
export function ledgerParts({ in_windows, unused = [] }) {
  const all = unused.reduce((sum, u) => sum + u.samples, in_windows);
  if (!all) return null;
  return [t("ledger.windows", { n: inWindows(in_windows / all) }), ...unused.map((u) => t("ledger.part", { n: notIn(u.samples / all), reason: wordOf("unused", u.reason) }))];
}

// ledgerText is that in a sentence, with the time that it is of.
export function ledgerText(ledger, now) {
  const parts = ledgerParts(ledger);
  const says = t("ledger.span", { span: duration(ledger.seconds), text: parts?.join(", ") ?? t("machine.ledger.none") });
  return now - instant(ledger.at) > 300000 ? `${says} ${t("ledger.old", { at: moment(ledger.at) })}` : says;
}

// Strip draws the last verdicts, the newest at the right end.
export function Strip({ strip = "", cells = 60 }) {
  const paths = {};
  const shown = strip.slice(-cells), from = cells - shown.length;
  [...shown].forEach((letter, i) => {
    const v = letters[letter] ?? "unknown", h = 20 * heights[v];
    paths[v] = `${paths[v] ?? ""}M${(from + i) * 4} 20v${-h}h3v${h}z`;
  });
  const count = Object.entries(letters).map(([l, v]) => [v, [...shown].filter((x) => x === l).length]).filter(([, n]) => n);
  const says = count.map(([v, n]) => `${wordOf("verdict", v)} ${n}`).join(", ");
  return html`<svg class="strip" viewBox=${`0 0 ${4 * cells} 20`} preserveAspectRatio="none" role="img" aria-label=${t("strip.label", { n: shown.length, text: says || "–" })}>
    ${Object.entries(paths).map(([v, d]) => html`<path class=${v} d=${d} />`)}</svg>`;
}

// Time shows a moment in the page's time zone.
export const Time = ({ at }) => html`<time datetime=${Number.isNaN(instant(at)) ? undefined : new Date(instant(at)).toISOString()}>${moment(at)}</time>`;

// Age shows how long something is past.
export const Age = ({ seconds }) => html`<span class="age">${ago(seconds)}</span>`;

// number rounds to three significant digits. Where decimals are points, a point or a comma
// between thousands would be misread: a narrow space stands there, whatever the browser's language.
export function number(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const a = Math.abs(x);
  if (a === 0) return "0";
  if (a >= 1e6 || a < 1e-3) return x.toExponential(1).replace("e+", "e");
  return a >= 100 ? String(Math.round(x)).replace(/\B(?=(\d{3})+$)/g, "\u202f") : String(+x.toPrecision(3));
}

// The look of an advisory: sensors have their NE 107 status.
const kinds = { silence: "lost", machine_stopped: "lost", windows_refused: "lost", unknown: "unknown", drift: "maintenance-required", two_ingesters: "sensor_fault", samples_lost: "sensor_fault", model_changed: "learning" };
export const advisoryShape = (a) => (a.kind === "sensor" ? (a.status ?? "failure").replaceAll(/[ _]/g, "-") : kinds[a.kind] ?? "info");

export const Advisory = ({ advisory: a }) => html`<li class="advisory"><${Icon} shape=${advisoryShape(a)} /><span>${wordOf("advisory", a.kind)}${a.subject ? ` ${a.subject}` : ""}${a.status && a.kind === "sensor" ? ` · ${wordOf("ne107", a.status.replaceAll(" ", "_"))}` : ""}</span></li>`;

// Empty says why there is nothing, and what helps.
export const Empty = ({ title, children }) => html`<div class="empty"><p class="title">${title}</p>${children}</div>`;
