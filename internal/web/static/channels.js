// The sensors of a machine: one tile a channel of its layout with its envelope, level and
// state, grouped by the device the channel comes from.

import { number, colour, element, moment, plain } from "./words.js";

// "acc1-x" is an axis of the device acc1.
const device = (c) => c.sensor.replace(/[-_. ][xyz]$/i, "") || c.kind;
const axis = (c) => c.sensor.match(/[-_. ]([xyz])$/i)?.[1] ?? "";
const hertz = (r) => (r >= 1000 ? `${+(r / 1000).toPrecision(3)} kHz` : `${+r.toPrecision(3)} Hz`);

// The states of NAMUR NE 107 by their gravity.
const states = ["no data", "normal", "maintenance required", "out of specification", "function check", "failure"];

const unknown = { name: "", fingerprint: "", channels: [] }; // the layout of a machine that is not known

export class Channels {
  #root;
  #layout = unknown;
  #pairs = 60;
  #names = new Map(); // channel → tile
  #tiles = [];
  #due = false;

  constructor(root) {
    this.#root = root;
    new ResizeObserver(() => this.redraw()).observe(root);
  }

  // lay shows the channels of a layout, without values yet.
  lay(layout = unknown, pairs = this.#pairs) {
    this.#pairs = pairs;
    if (layout.fingerprint !== this.#layout.fingerprint) this.#build(layout.channels);
    this.#layout = layout;
    for (const t of this.#tiles) t.clear();
    this.#root.classList.remove("bare");
    this.#count();
    this.#say(layout.channels.length ? "" : "The channels are here once the monitor has judged a window of the machine.");
  }

  #say(text, e = document.getElementById("channels-says")) { if (e.textContent !== text) e.textContent = text; }

  #build(all) {
    this.#root.replaceChildren();
    const groups = new Map(), tiles = new Map();
    const channels = all.map((c) => ({ unit: "", range: 0, sensor: "", ...c })); // what is not known is left out
    for (const c of channels) groups.set(device(c), [...(groups.get(device(c)) ?? []), c]);
    for (const [name, cs] of groups) {
      const group = this.#root.appendChild(element("section", "card group"));
      group.classList.toggle("wide", cs.length > 6);
      const each = (f) => [...new Set(cs.map(f))].join(", ");
      const facts = [each((c) => c.kind), each((c) => hertz(c.rate)), each((c) => (c.range ? `±${+c.range.toPrecision(3)} ${c.unit}` : "")), cs.length > 6 ? `${cs.length} channels` : ""];
      group.appendChild(element("h3", "", name)).append(element("small", "", facts.filter((f) => f && f !== name).join(" · ")));
      const list = group.appendChild(element("ul"));
      for (const c of cs) tiles.set(c.name, new Tile(list, c));
    }
    this.#names = tiles;
    this.#tiles = channels.map((c) => tiles.get(c.name));
  }

  apply(w) {
    const bare = w.without_samples ?? false;
    if (bare) for (const t of this.#tiles) t.clear();
    this.#root.classList.toggle("bare", bare);
    if (this.#tiles.length) this.#say(bare ? "Waveforms stay at the gateway: it sends features of each window, and the monitor judges those." : "");
    this.#tiles.forEach((t, i) => t.apply(w.envelope?.[i] ?? [], w.rms[i], w.status?.[i] ?? "normal", w.flags?.[i] ?? [], this.#pairs));
    this.#count();
    this.redraw();
  }

  // advise takes the open advisories of sensors by channel. They count even if the
  // sensor's last window is better.
  advise(standing) {
    for (const [name, t] of this.#names) t.advise(standing.get(name));
    this.#count();
  }

  #count() {
    const counts = new Map();
    for (const t of this.#tiles) counts.set(t.status, (counts.get(t.status) ?? 0) + 1);
    document.getElementById("summary").textContent = [this.#layout.name, ...[...counts].sort((a, b) => b[1] - a[1]).map(([s, n]) => `${n} ${s}`)].filter(Boolean).join(" · ");
  }

  // Draws once a frame at most, and not at all while the page is hidden.
  redraw() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      const look = { line: colour("spark"), bad: colour("faulty"), grid: colour("grid") };
      for (const t of this.#tiles) t.draw(look, this.#pairs);
    });
  }
}

class Tile {
  #channel;
  #pairs; // (min, max) of the last stretches, the newest last
  #lo; #hi; // the scale; null while there is none
  #said = ["no data", []]; // status and flags of the last window
  #advice; // the advisory of the channel that stands

  constructor(list, c) {
    this.#channel = c;
    this.li = list.appendChild(document.getElementById("tile").content.cloneNode(true).firstChild);
    [this.lamp, this.use, this.value, this.canvas, this.fault] = [".lamp", "use", ".value", "canvas", ".fault"].map((q) => this.li.querySelector(q));
    for (const [q, text] of [[".name", c.name], [".axis", axis(c)], [".unit", c.unit]]) this.li.querySelector(q).textContent = text;
    this.li.querySelector(".name").title = c.name;
    this.clear();
  }

  clear() {
    this.#pairs = [];
    this.#lo = this.#hi = null;
    this.#say("no data", []);
    this.value.textContent = "–";
  }

  apply(envelope, rms, status, flags, keep) {
    this.#pairs.push(...envelope);
    this.#pairs.splice(0, this.#pairs.length - 2 * keep);
    const single = envelope.length >= 2 && this.#channel.kind === "feature"; // its feature is its value
    this.value.textContent = number(single ? envelope.at(-1) : rms);
    this.value.title = single ? "value" : "RMS";
    this.#say(status, flags);
  }

  advise(advice) {
    if (advice?.id === this.#advice?.id) return;
    this.#advice = advice;
    this.#say(...this.#said);
  }

  #say(status, flags) {
    this.#said = [status, flags];
    const a = this.#advice, advised = a ? plain(a.status ?? "failure") : "no data";
    if (states.indexOf(advised) > states.indexOf(status)) [status, flags] = [advised, [...(a.flags ?? []), `since ${moment(a.since)}`]];
    this.status = this.li.dataset.status = status;
    this.use.setAttribute("href", "#" + status.replaceAll(" ", "-"));
    this.lamp.setAttribute("aria-label", status);
    this.fault.textContent = flags.length === 0 ? "" : `${status}: ${flags.join(", ").replaceAll("_", " ")}`;
  }

  // The scale widens at once and narrows slowly, so that the picture is calm.
  #scale() {
    let lo = Infinity, hi = -Infinity;
    for (const v of this.#pairs) if (v !== null) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
    if (lo > hi) return false;
    const pad = 0.05 * (hi - lo) || Math.abs(hi) * 0.05 || 1;
    [lo, hi] = [lo - pad, hi + pad];
    this.#lo = this.#lo === null ? lo : Math.min(lo, this.#lo + 0.1 * (lo - this.#lo));
    this.#hi = this.#hi === null ? hi : Math.max(hi, this.#hi + 0.1 * (hi - this.#hi));
    return true;
  }

  draw(look, keep) {
    const px = devicePixelRatio, w = Math.round(this.canvas.clientWidth * px), h = Math.round(this.canvas.clientHeight * px);
    if (w === 0) return;
    if (this.canvas.width !== w || this.canvas.height !== h) Object.assign(this.canvas, { width: w, height: h });
    const c = this.canvas.getContext("2d");
    c.clearRect(0, 0, w, h);
    const known = this.#scale();
    const y = (v) => h - ((v - this.#lo) / (this.#hi - this.#lo)) * h;
    c.fillStyle = look.grid;
    c.fillRect(0, Math.round(known && this.#lo < 0 && this.#hi > 0 ? y(0) : h - 1), w, 1);
    if (!known) return;
    c.strokeStyle = c.fillStyle = this.li.dataset.status === "failure" ? look.bad : look.line;
    c.lineWidth = px;
    c.lineJoin = c.lineCap = "round";
    const p = this.#pairs, x = (i) => w - (p.length / 2 - i / 2 - 0.5) * (w / keep);
    for (let from = 0, to; from < p.length; from = to + 2) { // each run between missing pairs: its maxima out, its minima back
      for (to = from; to < p.length && p[to] !== null; to += 2);
      c.beginPath();
      for (let i = from; i < to; i += 2) c.lineTo(x(i), y(p[i + 1]));
      for (let i = to - 2; i >= from; i -= 2) c.lineTo(x(i), y(p[i]));
      c.fill();
      c.stroke();
    }
  }
}
