// Spectra: of the last window over the tool's reference, and of the evidence of an alarm with
// its spectrogram. Levels are densities in dB.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact-standalone.mjs";
import { api, useFetch } from "./store.js";
import { t } from "./text.js";
import { full } from "./time.js";
import { Plot, axis, clip, colour, font, line, onPaper, onRedraw, paper } from "./chart.js";
import { hertz } from "./channels.js";

const kilo = (v) => (v >= 1000 ? `${+(v / 1000).toPrecision(3)} k` : `${+v.toPrecision(3)}`);
export const density = (unit) => t("machine.spectrum.unit", { unit: unit ? (/[·/]/.test(unit) ? `(${unit})²` : `${unit}²`) : "1" });

// Lines draws one or two spectra over frequency. bands are [{from, to, value, usual}] of
// levels in dB that are drawn as steps.
export function Lines({ x, now, usual, bands = [], unit, label, height = 240, log = false }) {
  const readout = useRef(), state = useRef({});
  Object.assign(state.current, { bands, x, now, usual });
  const data = useMemo(() => [x, usual ?? x.map(() => null), now], [x, now, usual]);
  const s = state.current;
  const read = (u) => {
    const i = u.cursor.idx;
    if (!readout.current) return;
    readout.current.textContent = i === null || i === undefined ? "" : [hertz(s.x[i]), s.now[i] === null ? "–" : `${s.now[i].toFixed(1)} dB`, s.usual?.[i] !== null && s.usual?.[i] !== undefined ? t("machine.spectrum.usual.at", { db: s.usual[i].toFixed(1) }) : ""].filter(Boolean).join(" · ");
  };
  const make = () => ({
    padding: [8, 14, 0, 0],
    cursor: { y: false, drag: { x: true, y: false }, points: { show: false } },
    scales: { x: { time: false, range: (u, lo, hi) => [lo, hi], ...(log && { distr: 3, log: 10 }) }, y: { range: (u, lo, hi) => levels(lo, hi, s.bands) } },
    axes: [axis({ size: 26, space: 60, values: (_, v) => v.map((f) => (f === null ? "" : kilo(f))), label: "Hz", labelSize: 14, labelFont: font, labelGap: 0 }), axis({ size: 48, space: 30, values: (_, v) => v.map((d) => String(d).replace("-", "−")) })],
    series: [{}, { stroke: () => colour("soft"), width: 1.5, points: { show: false } }, { stroke: () => colour("ink"), width: 1, points: { show: false } }],
    hooks: { setCursor: [read], draw: [(u) => drawBands(u, s)] },
  });
  return html`<figure class="spectrum"><figcaption>${density(unit)} <span class="legend"><span><i class="mean" />${t("machine.spectrum.now")}</span>${(usual || bands.some((b) => b.usual !== undefined)) && html`<span><i class="max" />${t("machine.spectrum.usual")}</span>`}</span><output ref=${readout} aria-live="off" /></figcaption>
    <${Plot} plotKey=${`${x.length} ${x[0]} ${x.at(-1)}`} make=${make} data=${data} height=${height} label=${label} /></figure>`;
}

// levels returns the levels that a plot begins and ends with: bands have a place in it, too.
function levels(lo, hi, bands) {
  const all = [lo, hi, ...bands.flatMap((b) => [b.usual, b.value])].filter((v) => v !== undefined && v !== null);
  return all.length ? [Math.min(...all) - 3, Math.max(...all) + 3] : [0, 1];
}

function drawBands(u, s) {
  clip(u, (c, px) => {
    for (const b of s.bands) {
      const [from, to] = [b.from, b.to].map((f) => u.valToPos(f, "x", true));
      for (const [level, tone, width] of [[b.usual, "muted", 2], [b.value, "faulty", 2.5]]) {
        if (level === undefined) continue;
        c.strokeStyle = colour(tone);
        c.lineWidth = width * px;
        c.setLineDash(tone === "muted" ? [5 * px, 4 * px] : []);
        line(c, from, u.valToPos(level, "y", true), to, u.valToPos(level, "y", true));
      }
    }
    c.setLineDash([]);
  });
}

// Spectrum is of the last window of a machine, on demand: the program reads the samples.
export function Spectrum({ tile, channel, setChannel }) {
  const [asked, ask] = useState(0);
  const open = asked > 0 || channel !== "";
  const { data, error, reload } = useFetch(open ? `${api.machine(tile.name)}/spectrum` : "");
  useEffect(() => { if (channel) document.getElementById("spectrum")?.scrollIntoView({ block: "nearest" }); }, [channel]);
  const of = data?.channels.find((c) => c.name === channel) ?? data?.channels[0];
  return html`<section class="card" id="spectrum" aria-labelledby="spectrum-title">
    <header><h2 id="spectrum-title">${t("machine.spectrum")}</h2><p class="says">${data ? t("machine.spectrum.of", { at: full(data.at) }) : t("machine.spectrum.says")}</p>
      ${data?.channels.length > 0 && html`<label class="by">${t("machine.spectrum.channel")}<select name="channel" onChange=${(e) => setChannel(e.target.value)}>${data.channels.map((c) => html`<option value=${c.name} selected=${c === of}>${c.name}</option>`)}</select></label>`}
      <button type="button" class="load" onClick=${() => (open ? reload() : ask(1))}>${t(open ? "machine.spectrum.again" : "machine.spectrum.show")}</button></header>
    ${error && html`<p class="error" role="status">${t("machine.spectrum.failed", { why: error.message })}</p>`}
    ${open && !data && !error && html`<p class="says">${t("loading")}</p>`}
    ${data && !of && html`<p class="says">${t("machine.spectrum.none")}</p>`}
    ${of && html`<${Lines} x=${of.frequencies_hz} now=${of.db} usual=${of.usual_db} unit=${of.unit} log=${true} label=${t("machine.spectrum.label", { channel: of.name })} />
      ${!of.usual_db && html`<p class="says">${t("machine.spectrum.no_usual")}</p>`}`}
  </section>`;
}

// The colours of a spectrogram: cividis (Nuñez, Anderton, Renslow 2018), whose order people
// with any colour vision see.
const cividis = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]];
export function shade(share) {
  const at = Math.max(0, Math.min(1, share)) * (cividis.length - 1), i = Math.min(cividis.length - 2, Math.floor(at));
  return cividis[i].map((v, k) => Math.round(v + (cividis[i + 1][k] - v) * (at - i)));
}

// spread returns the levels that the colours begin and end with: all but the quietest and the
// loudest hundredth.
export function spread(columns) {
  const all = columns.flatMap((c) => c ?? []).filter((v) => v !== null).sort((a, b) => a - b);
  return all.length ? [all[Math.floor(0.02 * (all.length - 1))], all[Math.ceil(0.995 * (all.length - 1))]] : [0, 1];
}

// Spectrogram draws levels over time and frequency. since is when the first faulty window
// began, in seconds before the decision.
export function Spectrogram({ spectra, since, label, height = 190 }) {
  const box = useRef();
  const { columns, row_hz } = spectra, at = Date.parse(spectra.at), from = (Date.parse(spectra.from) - at) / 1000, to = (Date.parse(spectra.to) - at) / 1000;
  const usual = spectra.usual ?? [];
  const [lo, hi] = useMemo(() => spread(columns), [columns]);
  const image = useMemo(() => {
    const rows = columns.find((c) => c)?.length ?? 0, img = new ImageData(Math.max(1, columns.length), Math.max(1, rows));
    columns.forEach((column, x) => column?.forEach((v, r) => {
      if (v === null) return;
      const k = 4 * ((rows - 1 - r) * columns.length + x), [red, green, blue] = shade((v - lo) / Math.max(1, hi - lo));
      img.data.set([red, green, blue, 255], k);
    }));
    return img;
  }, [columns]);
  useEffect(() => {
    const off = document.createElement("canvas");
    [off.width, off.height] = [image.width, image.height];
    off.getContext("2d").putImageData(image, 0, 0);
    const draw = (printing) => {
      const canvas = box.current, px = devicePixelRatio, w = Math.round((printing === true ? paper : canvas.clientWidth) * px), h = Math.round((printing === true ? 100 : height) * px);
      if (!w) return;
      [canvas.width, canvas.height] = [w, h];
      const c = canvas.getContext("2d"), first = 48 * px, strip = usual.length ? 14 * px : 0, g = first + (strip && strip + 4 * px), b = 20 * px, pw = w - g - 14 * px, ph = h - b - 4 * px;
      c.imageSmoothingEnabled = false;
      c.fillStyle = colour("grid");
      c.fillRect(g, 4 * px, pw, ph);
      if (strip) c.fillRect(first, 4 * px, strip, ph);
      c.drawImage(off, g, 4 * px, pw, ph);
      const x = (s) => g + (pw * (s - from)) / (to - from), top = row_hz * image.height;
      for (const u of usual) {
        const at = (f) => 4 * px + ph * (1 - Math.min(f, top) / top);
        if (u.low_hz >= top) continue;
        c.fillStyle = `rgb(${shade((u.db - lo) / Math.max(1, hi - lo))})`;
        c.fillRect(first, at(u.high_hz), strip, at(u.low_hz) - at(u.high_hz));
      }
      c.font = font.replace("11px", `${11 * px}px`);
      c.fillStyle = colour("muted");
      c.textBaseline = "middle";
      c.textAlign = "right";
      const step = [1, 2, 5].flatMap((m) => [1, 10, 100, 1000, 10000].map((d) => m * d)).sort((p, q) => p - q).find((v) => top / v <= 5) ?? top;
      for (let f = 0; f <= top; f += step) c.fillText(kilo(f), first - 6 * px, Math.max(8 * px, 4 * px + ph * (1 - f / top)));
      c.textAlign = "center";
      c.textBaseline = "bottom";
      for (let s = Math.ceil(from); s <= to; s += Math.max(1, Math.round((to - from) / 10))) c.fillText(`${s > 0 ? "+" : s < 0 ? "−" : ""}${Math.abs(s)} s`, x(s), h);
      c.lineWidth = 1.5 * px;
      c.strokeStyle = "#fff";
      c.setLineDash([4 * px, 3 * px]);
      if (since > from) line(c, x(since), 4 * px, x(since), 4 * px + ph);
      c.setLineDash([]);
      c.lineWidth = 2 * px;
      line(c, x(0), 4 * px, x(0), 4 * px + ph);
    };
    draw();
    let printing = false;
    const again = () => draw(printing);
    const resize = new ResizeObserver(again), forget = onRedraw(again), unpaper = onPaper((on) => { printing = on; again(); });
    resize.observe(box.current);
    return () => { resize.disconnect(); forget(); unpaper(); };
  }, [image, since]);
  const stops = Array.from({ length: 24 }, (_, i) => shade(i / 23));
  return html`<figure class="spectrogram"><figcaption>${t("alarm.spectrogram")}${usual.length > 0 && ` · ${t("alarm.spectrogram.usual")}`} <span class="scale-key"><span>${lo} dB</span><svg viewBox="0 0 24 1" preserveAspectRatio="none" aria-hidden="true">${stops.map((c, i) => html`<rect x=${i} width="1.05" height="1" fill=${`rgb(${c})`} />`)}</svg><span>${hi} dB</span></span></figcaption>
    <canvas ref=${box} role="img" aria-label=${label} style=${{ height: `${height}px` }} /></figure>`;
}
