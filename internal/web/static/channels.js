// The sensors of a machine: one small chart a channel with scale, unit, level and status of
// NAMUR NE 107, grouped by the device it comes from. Charts that cannot be seen are not drawn.

import { html, Component, useMemo, useState } from "./vendor/htm-preact-standalone.mjs";
import { api, useFetch } from "./store.js";
import { t } from "./text.js";
import { Icon, number, wordOf } from "./parts.js";
import { colour, onRedraw } from "./chart.js";

// "acc1-x" is an axis of the device acc1.
const device = (c) => (c.sensor ?? "").replace(/[-_. ][xyz]$/i, "") || c.kind;
const axisOf = (c) => (c.sensor ?? "").match(/[-_. ]([xyz])$/i)?.[1] ?? "";
export const hertz = (r) => (r >= 1000 ? `${+(r / 1000).toPrecision(3)} kHz` : `${+r.toPrecision(3)} Hz`);

// The states of NE 107 by their gravity.
const grave = ["no_data", "normal", "maintenance_required", "out_of_specification", "function_check", "failure"];
const word = (status) => (status ?? "no_data").replaceAll(" ", "_").replaceAll("-", "_");
const many = 40; // channels, from which on their charts are smaller
const shown = 60; // pairs of (min, max) of a chart

// keep adds the pairs of a window to those of the windows before it, by channel. A change of
// layout starts over.
export function keep(before, window, layout) {
  if (!window) return before;
  const same = before?.layout === layout?.fingerprint, pairs = (window.envelope ?? []).map((e, i) => [...(same ? before.pairs[i] ?? [] : []), ...e].slice(-2 * shown));
  return { layout: layout?.fingerprint, pairs };
}

// stateOf returns status and flags of a channel: of its last window, or of an open advisory
// if that is graver.
export function stateOf(channel, i, window, advisories = []) {
  const own = { status: window ? word(window.status?.[i] ?? "normal") : "no_data", flags: window?.flags?.[i] ?? [] };
  const a = advisories.find((x) => x.kind === "sensor" && (x.subject === channel.name || x.channels?.includes(channel.name)));
  const said = a ? word(a.status ?? "failure") : "no_data";
  return grave.indexOf(said) > grave.indexOf(own.status) ? { status: said, flags: a.flags ?? [] } : own;
}

// useUsual returns between which values the channels were in the windows that the reference of
// the tool is made of: {windows, of}, where of has [low, high] by channel.
export function useUsual(tile) {
  const learning = tile?.verdict === "learning";
  const { data } = useFetch(tile?.name ? `${api.machine(tile.name)}/usual?${new URLSearchParams({ tool: tile.tool ?? "" })}` : "", learning ? 5000 : 0);
  return useMemo(() => ({ windows: data?.windows ?? 0, of: new Map((data?.channels ?? []).map((c) => [c.channel, [c.low, c.high]])) }), [data]);
}

// Of a silent machine nothing is known: its last window is not shown as if it were of now.
export function Channels({ layout, window: last, pairs: drawn, usual, advisories, silent, onSpectrum }) {
  const window = silent ? undefined : last, pairs = silent ? undefined : drawn;
  const [only, setOnly] = useState(false), [find, setFind] = useState("");
  const channels = layout?.channels ?? [];
  const states = channels.map((c, i) => stateOf(c, i, window, advisories));
  const groups = useMemo(() => {
    const map = new Map();
    channels.forEach((c, i) => map.set(device(c), [...(map.get(device(c)) ?? []), i]));
    return [...map];
  }, [layout]);
  const count = new Map();
  for (const s of states) count.set(s.status, (count.get(s.status) ?? 0) + 1);
  const wanted = find.trim().toLowerCase();
  const seen = (i) => (!only || states[i].status !== "normal") && (!wanted || [channels[i].name, channels[i].sensor, channels[i].kind, device(channels[i])].some((x) => x?.toLowerCase().includes(wanted)));
  const visible = groups.map(([name, list]) => [name, list.filter(seen)]).filter(([, list]) => list.length);
  const bare = window?.without_samples;
  return html`<section class="channels" aria-labelledby="channels-title">
    <header><h2 id="channels-title">${t("machine.channels")}</h2>
      <p class="says" id="channels-count">${[layout?.name, ...[...count].sort((a, b) => grave.indexOf(b[0]) - grave.indexOf(a[0])).map(([s, n]) => `${n} ${wordOf("ne107", s)}`)].filter(Boolean).join(" · ")}</p>
      ${channels.length > 0 && html`<input type="search" name="find" class="find" placeholder=${t("machine.channels.find")} aria-label=${t("machine.channels.find")} value=${find} onInput=${(e) => setFind(e.target.value)} />
      <button type="button" id="only-bad" aria-pressed=${only} onClick=${() => setOnly(!only)}>${t("machine.channels.bad")}</button>`}
    </header>
    ${!bare && channels.some((c) => usual.of.has(c.name)) && html`<p class="hint" id="channels-usual">${t("machine.channels.usual", { n: usual.windows })}</p>`}
    ${!channels.length && html`<p class="says">${t("machine.channels.unknown")}</p>`}
    ${silent && channels.length > 0 && html`<p class="says" id="channels-silent">${t("machine.channels.silent")}</p>`}
    ${bare && html`<p class="says">${t("machine.channels.bare")}</p>`}
    ${channels.length > 0 && !visible.length && html`<p class="says" role="status">${t("machine.channels.none")}</p>`}
    <div class=${`groups${channels.length > many ? " many" : ""}`}>${visible.map(([name, list]) => html`<${Group} key=${name} name=${name} list=${list} channels=${channels} states=${states} window=${window} pairs=${pairs} usual=${usual} bare=${bare} onSpectrum=${onSpectrum} />`)}</div>
  </section>`;
}

function Group({ name, list, channels, states, window, pairs, usual, bare, onSpectrum }) {
  const cs = list.map((i) => channels[i]), each = (f) => [...new Set(cs.map(f).filter(Boolean))].join(", ");
  const facts = [each((c) => wordOf("machine.kind", c.kind)), each((c) => hertz(c.rate)), each((c) => (c.range ? `±${+c.range.toPrecision(3)} ${c.unit ?? ""}` : ""))].filter((f) => f && f !== name);
  return html`<section class=${`card group${cs.length > 3 ? " wide" : ""}`}><h3>${name} <small>${facts.join(" · ")}</small></h3>
    <ul>${list.map((i) => html`<${Tile} key=${channels[i].name} channel=${channels[i]} state=${states[i]} rms=${bare ? undefined : window?.rms?.[i]} usual=${usual.of.get(channels[i].name)} pairs=${bare ? undefined : pairs?.pairs[i]} onSpectrum=${onSpectrum} />`)}</ul></section>`;
}

const watcher = globalThis.IntersectionObserver && new IntersectionObserver((entries) => {
  for (const e of entries) e.target.tile?.see(e.isIntersecting);
}, { rootMargin: "200px" });

// Tile is one channel. It draws its canvas itself, once a frame at most.
class Tile extends Component {
  canvas = { current: null };
  lo = null; // the scale; null while there is none
  hi = null;

  componentDidMount() {
    const c = this.canvas.current;
    c.tile = this;
    watcher?.observe(c);
    this.resized = new ResizeObserver(() => this.later());
    this.resized.observe(c);
    this.forget = onRedraw(() => this.later());
  }

  componentWillUnmount() {
    watcher?.unobserve(this.canvas.current);
    this.resized.disconnect();
    this.forget();
    cancelAnimationFrame(this.due);
  }

  shouldComponentUpdate(next) {
    const { state, rms, pairs, usual, channel } = this.props;
    return next.pairs !== pairs || next.rms !== rms || next.state.status !== state.status || next.usual !== usual || next.channel !== channel;
  }

  componentDidUpdate() { this.later(); }

  see(visible) {
    this.visible = visible;
    if (visible) this.later();
  }

  later() {
    if (!this.visible) return;
    cancelAnimationFrame(this.due);
    this.due = requestAnimationFrame(() => this.draw());
  }

  // The scale widens at once and narrows slowly, so that the picture is calm.
  scale(pairs, usual = []) {
    let lo = Infinity, hi = -Infinity;
    if (!pairs.some((v) => v !== null)) return false;
    for (const v of [...pairs, ...usual]) if (v !== null) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
    const pad = 0.05 * (hi - lo) || Math.abs(hi) * 0.05 || 1;
    [lo, hi] = [lo - pad, hi + pad];
    this.lo = this.lo === null ? lo : Math.min(lo, this.lo + 0.1 * (lo - this.lo));
    this.hi = this.hi === null ? hi : Math.max(hi, this.hi + 0.1 * (hi - this.hi));
    return true;
  }

  draw() {
    const canvas = this.canvas.current, { pairs = [], state, usual } = this.props, px = devicePixelRatio;
    const w = Math.round((canvas?.clientWidth ?? 0) * px), h = Math.round((canvas?.clientHeight ?? 0) * px);
    if (w === 0) return;
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    const c = canvas.getContext("2d");
    c.clearRect(0, 0, w, h);
    const known = this.scale(pairs, usual), y = (v) => h - ((v - this.lo) / (this.hi - this.lo)) * h;
    if (known && usual) {
      c.fillStyle = colour("band");
      c.fillRect(0, y(usual[1]), w, Math.max(px, y(usual[0]) - y(usual[1])));
    }
    c.fillStyle = colour("line");
    c.fillRect(0, Math.round(known && this.lo < 0 && this.hi > 0 ? y(0) : h - px), w, px);
    const ends = this.base?.querySelectorAll(".scale span") ?? [];
    if (ends.length === 2) [ends[0].textContent, ends[1].textContent] = known ? [number(this.hi), number(this.lo)] : ["", ""];
    if (!known) return;
    c.strokeStyle = c.fillStyle = colour(state.status === "failure" ? "faulty" : "trace");
    c.lineWidth = px;
    c.lineJoin = c.lineCap = "round";
    const x = (i) => w - (pairs.length / 2 - i / 2 - 0.5) * (w / shown);
    for (let from = 0, to; from < pairs.length; from = to + 2) { // each run between missing pairs: its maxima out, its minima back
      for (to = from; to < pairs.length && pairs[to] !== null; to += 2);
      c.beginPath();
      for (let i = from; i < to; i += 2) c.lineTo(x(i), y(pairs[i + 1]));
      for (let i = to - 2; i >= from; i -= 2) c.lineTo(x(i), y(pairs[i]));
      c.fill();
      c.stroke();
    }
    if (usual) { // on top, so that a waveform that leaves the band is seen to leave it
      c.strokeStyle = colour("ink");
      c.setLineDash([3 * px, 3 * px]);
      for (const v of usual) {
        c.beginPath();
        c.moveTo(0, y(v));
        c.lineTo(w, y(v));
        c.stroke();
      }
      c.setLineDash([]);
    }
  }

  render({ channel: c, state, rms, pairs, usual, onSpectrum }) {
    const value = c.kind === "feature" ? pairs?.at(-1) ?? rms : rms, status = wordOf("ne107", state.status), bad = state.status !== "normal";
    const name = c.kind === "feature" || !onSpectrum || !pairs ? html`<span class="name" title=${c.name}>${c.name}</span>` : html`<button type="button" class="name" title=${t("machine.channels.spectrum", { channel: c.name })} onClick=${() => onSpectrum(c.name)}>${c.name}</button>`;
    return html`<li class="channel" data-status=${state.status} data-channel=${c.name}>
      <p class="head"><span class="lamp"><${Icon} shape=${state.status.replaceAll("_", "-")} /><span class="unseen">${status}</span></span>${name}<span class="axis">${axisOf(c)}</span><span class="value">${number(value)}</span><span class="unit">${Number.isFinite(value) ? c.unit ?? "" : ""}</span></p>
      <div class="wave"><canvas ref=${this.canvas} aria-hidden="true" /><p class="scale" aria-hidden="true"><span></span><span></span></p>${usual && pairs && html`<span class="unseen">${t("machine.channels.range", { low: number(usual[0]), high: number(usual[1]), unit: c.unit ?? "" })}</span>`}</div>
      ${bad && html`<p class="fault">${[status, state.flags.map((f) => wordOf("machine.flag", f)).join(", ")].filter(Boolean).join(": ")}</p>`}
    </li>`;
  }
}
