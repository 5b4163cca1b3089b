// What every chart of the page shares: colours, axes in the page's time zone, and the life
// of a uPlot in a part of the page.

import { html, useEffect, useRef } from "./vendor/htm-preact-standalone.mjs";
import { connection } from "./store.js";
import { hasClock, instant, zone } from "./time.js";
import { language, t } from "./text.js";

// colour returns the value of a CSS variable, which is where all colours live.
const colours = new Map();
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.getElementById("main") ?? document.body).getPropertyValue("--" + name).trim() || "#808080");
  return colours.get(name);
}

// Colours change with the scheme, on paper, and while the page is cut off.
const plots = new Set();
function recolour() {
  colours.clear();
  for (const p of plots) p.redraw();
}
for (const media of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "print"]) matchMedia(media).addEventListener("change", recolour);
connection.follow(() => setTimeout(recolour));

// onRedraw calls f when colours change. It returns what ends that.
export function onRedraw(f) {
  const follower = { redraw: f };
  plots.add(follower);
  return () => plots.delete(follower);
}

// Charts are drawn again in the size that they have on paper, where a column is this wide.
export const paper = 340;
const papers = new Set();
for (const [event, on] of [["beforeprint", true], ["afterprint", false]]) addEventListener(event, () => { for (const f of papers) f(on); });

// onPaper calls f(true) before the page is printed, and f(false) after. It returns what ends
// that.
export function onPaper(f) {
  papers.add(f);
  return () => papers.delete(f);
}

const formats = new Map();
function format(options) {
  const key = JSON.stringify([language(), zone(), options]);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(language(), { hourCycle: "h23", timeZone: zone(), ...options }));
  return formats.get(key);
}
const day = { day: "numeric", month: "short" }, minute = { hour: "2-digit", minute: "2-digit" };

// ticks words the marks of a time axis: the day where it changes, else the time. Times of a
// recording without a clock are seconds.
export function ticks(_, splits, __, ___, step) {
  let before = "";
  return splits.map((s) => {
    if (!hasClock(s)) return t("time.seconds", { n: +s.toFixed(3) });
    const date = format(day).format(1000 * s), changed = date !== before;
    const first = before === "";
    before = date;
    if (step >= 86400) return date;
    const time = format(step < 60 ? { ...minute, second: "2-digit" } : minute).format(1000 * s);
    return changed && (!first || splits.length < 3) ? `${time}\n${date}` : first ? `${time}\n${date}` : time;
  });
}

// dayTime words a moment shortly: the day and the time to the minute.
export const dayTime = (at) => (Number.isNaN(instant(at)) ? "–" : hasClock(at) ? format({ ...day, ...minute }).format(instant(at)) : t("time.seconds", { n: +(instant(at) / 1000).toFixed(1) }));

// timeOf makes uPlot place the marks of a time axis at round times of the page's zone.
export const timeOf = (s) => (zone() ? uPlot.tzDate(new Date(1000 * s), "Etc/UTC") : new Date(1000 * s));

export const font = "11px system-ui, sans-serif";
export const axis = (more) => ({ stroke: () => colour("muted"), font, ticks: { show: false }, grid: { stroke: () => colour("grid"), width: 1 }, ...more });

// Plot holds a uPlot as long as the part is shown. make returns its options and is called
// again only when key changes; data may change at any time. ref gets the uPlot.
export function Plot({ make, data, height, label, plotKey = "", plot }) {
  const box = useRef(), own = useRef();
  useEffect(() => {
    const u = own.current = new uPlot({ width: Math.max(50, box.current.clientWidth), height, legend: { show: false }, ...make() }, data, box.current);
    if (plot) plot.current = u;
    let printing = false;
    const fit = () => { if (!printing && box.current?.clientWidth) u.setSize({ width: box.current.clientWidth, height }); };
    const resize = new ResizeObserver(fit);
    resize.observe(box.current);
    const forget = onRedraw(() => u.redraw());
    const unpaper = onPaper((on) => { if ((printing = on)) u.setSize({ width: paper, height: Math.min(height, 120) }); else fit(); });
    return () => {
      resize.disconnect();
      forget();
      unpaper();
      u.destroy();
      own.current = undefined;
      if (plot) plot.current = undefined;
    };
  }, [plotKey, height]);
  useEffect(() => { if (own.current && own.current.data !== data) own.current.setData(data); }, [data]);
  return html`<div class="draw" ref=${box} role=${label ? "img" : undefined} aria-label=${label} aria-hidden=${label ? undefined : "true"} />`;
}

// line draws a line on a canvas.
export function line(c, x0, y0, x1, y1) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}

// clip calls draw within the area of a plot.
export function clip(u, draw) {
  const { left, top, width, height } = u.bbox, c = u.ctx;
  c.save();
  c.beginPath();
  c.rect(left, top, width, height);
  c.clip();
  draw(c, devicePixelRatio);
  c.restore();
}

// cell words a number for a table or a readout.
export const cell = (x, digits = 2) => (x === null || x === undefined || !Number.isFinite(x) ? "–" : x.toFixed(digits));
