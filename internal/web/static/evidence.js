// The evidence of an alarm: waveform, spectrum and spectrogram of its channels. It comes some
// seconds after the alarm.

import { html, useMemo, useState } from "./vendor/htm-preact-standalone.mjs";
import { useFetch } from "./store.js";
import { t } from "./text.js";
import { clock, full, hasClock, instant } from "./time.js";
import { wordOf } from "./parts.js";
import { Plot, axis, clip, colour, line } from "./chart.js";
import { hertz } from "./channels.js";
import { Lines, Spectrogram, density } from "./spectrum.js";

const nameOf = (alert) => alert?.evidence?.url.match(/([^/]+)\.arrow$/)?.[1] ?? "";
const atOnce = matchMedia("(max-width: 40rem)").matches ? 1 : 3; // channels that are shown without being asked for, on a phone and elsewhere
const leastSamples = 64; // a second, for a spectrum

// Evidence shows what was kept around an alert; kept is what became of it, if that is known.
export function Evidence({ alert, kept }) {
  const name = nameOf(alert);
  const { data, error } = useFetch(name && kept?.bytes ? `/api/evidence/${name}` : "");
  const [chosen, choose] = useState();
  const named = useMemo(() => [...new Set([...(alert.reasons?.channels ?? []), ...(alert.reasons?.features ?? [])].map((c) => c.channel))], [alert.id]);
  const first = useMemo(() => {
    const all = data?.channels.map((c) => c.name) ?? [], spoke = named.filter((n) => all.includes(n)).slice(0, atOnce);
    return spoke.length ? spoke : all.slice(0, atOnce);
  }, [data]);
  if (!alert.evidence) return null;
  const shown = chosen ?? first;
  const says = !kept ? t("alarm.evidence.recording") : kept.complete ? t("alarm.evidence.says", { n: kept.windows, from: full(kept.from), to: clock(kept.to) }) : kept.text;
  const toggle = (n) => choose(shown.includes(n) ? shown.filter((x) => x !== n) : [...shown, n]);
  const since = (instant(alert.since) - instant(alert.at)) / 1000;
  return html`<section class="card evidence" aria-labelledby="evidence-title">
    <header><h2 id="evidence-title">${t("alarm.evidence")}</h2><p class="says" id="evidence-says" role="status">${error ? t("alarm.evidence.failed", { why: error.message }) : says}</p>
      ${kept?.bytes > 0 && html`<a id="evidence-file" download href=${`/evidence/${name}.arrow`}>${t("alarm.evidence.file", { size: `${(kept.bytes / 1e6).toPrecision(2)} MB` })}</a>`}</header>
    ${data && html`<div class="pick" role="group" aria-label=${t("alarm.evidence.channels")}>${data.channels.map((c) => html`<button type="button" key=${c.name} aria-pressed=${shown.includes(c.name)} onClick=${() => toggle(c.name)}>${c.name}</button>`)}</div>
      ${data.channels.filter((c) => shown.includes(c.name)).map((c) => html`<${Channel} key=${c.name} name=${name} wave=${data} channel=${c} since=${since} alert=${alert} />`)}`}
  </section>`;
}

function Channel({ name, wave, channel: c, since, alert }) {
  const possible = c.kind !== "feature" && c.rate >= leastSamples;
  const { data, error } = useFetch(possible ? `/api/evidence/${name}/spectra?channel=${encodeURIComponent(c.name)}` : "");
  const from = wave.from, to = wave.to;
  return html`<div class=${`evidence-channel${possible ? "" : " alone"}`} data-channel=${c.name}>
    <h3>${c.name} <small>${[c.kind === "feature" ? "" : wordOf("machine.kind", c.kind), c.unit, hertz(c.rate)].filter(Boolean).join(" · ")}</small></h3>
    <figure><figcaption>${t("alarm.waveform")}${c.unit && ` · ${c.unit}`}</figcaption><${Wave} wave=${wave} channel=${c} since=${since} label=${t("alarm.waveform.label", { channel: c.name, from: full(from), to: hasClock(to) ? clock(to) : full(to) })} /></figure>
    ${possible && error && html`<p class="says">${t("alarm.spectra.failed", { why: error.message })}</p>`}
    ${data?.columns && html`<${Spectrogram} spectra=${data} since=${since} label=${t("alarm.spectrogram.label", { channel: c.name })} />`}
    ${data?.level?.length > 0 && html`<${Lines} x=${data.level.map((_, i) => (i + 1) * data.hz)} now=${data.level} bands=${bandsOf(alert.reasons, c, data.rate, data.usual)} unit=${c.unit} height=${190} label=${t("alarm.spectrum.label", { channel: c.name, unit: density(c.unit) })} />`}
  </div>`;
}

// bandsOf returns the bands of a channel that spoke for the alarm, with their level now and in
// the tool's reference, and the other bands of the reference. A feature's name has the number of its band; its words have the
// frequencies, such as "2.5-4 kHz".
export function bandsOf(reasons, channel, rate, reference = []) {
  const all = [];
  for (const f of reasons?.features ?? []) {
    const [, low, high, unit] = f.words?.match(/^([\d.]+)-([\d.]+) (k?Hz)$/) ?? [];
    if (f.channel !== channel.name || !low || !f.unit?.startsWith("log10")) continue;
    const k = unit === "kHz" ? 1000 : 1, from = low * k, to = Math.min(high * k, rate / 2);
    const level = (v) => (v === undefined || v === null || !(to > from) ? undefined : 10 * v - 10 * Math.log10(to - from));
    all.push({ from, to, value: level(f.value), usual: level(f.usual) });
  }
  const close = (a, b) => Math.abs(a - b) < 0.1 * Math.max(a, b, 1); // words round frequencies
  const rest = reference.filter((b) => !all.some((a) => close(a.from, b.low_hz) && close(a.to, b.high_hz)));
  return [...rest.map((b) => ({ from: b.low_hz, to: b.high_hz, usual: b.db })), ...all];
}

function Wave({ wave, channel: c, since, label }) {
  const at = instant(wave.at), from = (instant(wave.from) - at) / 1000, to = (instant(wave.to) - at) / 1000;
  const data = useMemo(() => [
    c.pairs.map((_, i) => from + ((i + 0.5) * (to - from)) / c.pairs.length),
    c.pairs.map((p) => p?.[0] ?? null), c.pairs.map((p) => p?.[1] ?? null),
  ], [c]);
  const make = () => {
    const stroke = { stroke: () => colour("trace"), width: 1, points: { show: c.pairs.length < 60, size: 4, fill: () => colour("trace") } };
    return {
      padding: [8, 14, 0, 0],
      cursor: { y: false, drag: { x: true, y: false }, sync: { key: "evidence" }, points: { show: false } },
      scales: { x: { time: false, range: (u, lo, hi) => (lo === data[0][0] && hi === data[0].at(-1) ? [from, to] : [lo, hi]) } },
      axes: [axis({ size: 22, space: 60, values: (u, v) => v.map((x) => `${x > 0 ? "+" : x < 0 ? "−" : ""}${+Math.abs(x).toFixed(3)} s`) }), axis({ size: 48, space: 22 })],
      series: [{}, stroke, stroke],
      bands: [{ series: [2, 1], fill: () => colour("trace") }],
      hooks: { drawClear: [(u) => shadeFaulty(u, since)], draw: [drawDecision] },
    };
  };
  return html`<${Plot} plotKey=${c.name} make=${make} data=${data} height=${130} label=${label} />`;
}

// From the first faulty window to the decision.
function shadeFaulty(u, since) {
  clip(u, (c) => {
    c.fillStyle = colour("alarm-tint");
    const [a, b] = [since, 0].map((v) => u.valToPos(v, "x", true));
    c.fillRect(a, u.bbox.top, b - a, u.bbox.height);
  });
}

function drawDecision(u) {
  clip(u, (c, px) => {
    c.strokeStyle = colour("alarm");
    c.lineWidth = 2 * px;
    const x = u.valToPos(0, "x", true);
    line(c, x, u.bbox.top, x, u.bbox.top + u.bbox.height);
  });
}
