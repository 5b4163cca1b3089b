// The waveform around an alert: one plot a channel, of the least and the greatest
// sample in each stretch. It comes some seconds after the alert.

import { colour, element, moment, plain, signed, time } from "./words.js";

const $ = (id) => document.getElementById(id);
const hertz = (r) => (r >= 1000 ? `${+(r / 1000).toPrecision(3)} kHz` : `${+r.toPrecision(3)} Hz`);

export class Evidence {
  #name = ""; // of what is shown or asked for
  #plots = new Map(); // channel → plot
  #wave; // as the program tells it
  #since = 0; // seconds from the moment of decision to the first faulty window

  constructor() {
    new ResizeObserver(() => { for (const p of this.#plots.values()) this.#fit(p); }).observe($("waves"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const p of this.#plots.values()) p.redraw(); });
  }

  clear() {
    this.#name = "";
    for (const p of this.#plots.values()) p.destroy();
    this.#plots.clear();
    this.#wave = undefined;
    for (const id of ["waves", "waves-pick"]) $(id).replaceChildren();
    $("waves-file").hidden = true;
  }

  // show shows the evidence of an alert; kept is what became of it, if that is known.
  show(alert, kept) {
    document.querySelector("#view .waves").hidden = !alert.evidence;
    const name = alert.evidence?.url.match(/([^/]+)\.arrow$/)?.[1] ?? "";
    if (!kept?.bytes) this.clear();
    $("waves-says").textContent = kept?.complete ? `${kept.windows} windows from ${moment(kept.from)} to ${time(kept.to)}. Shaded: from the first faulty window to the decision.` : kept ? kept.text : "being recorded… It is here some seconds after the alert.";
    if (!name || !kept?.bytes || name === this.#name) return;
    this.clear();
    this.#name = name;
    this.#since = (Date.parse(alert.since) - Date.parse(alert.at)) / 1000;
    $("waves-file").href = `/evidence/${name}.arrow`; // on this page's host, not on the address that alerts carry
    $("waves-file").textContent = `Arrow file, ${(kept.bytes / 1e6).toPrecision(2)} MB`;
    $("waves-file").hidden = false;
    this.#load(name, (alert.reasons?.channels ?? []).map((c) => c.channel));
  }

  async #load(name, reasons) {
    let wave;
    try {
      const answer = await fetch(`/api/evidence/${name}`);
      if (!answer.ok) throw new Error(await answer.text());
      wave = await answer.json();
    } catch (e) {
      if (this.#name === name) {
        $("waves-says").textContent = `It cannot be shown: ${e.message}`;
        this.#name = ""; // ask again when there is news
      }
      return;
    }
    if (this.#name !== name) return; // another alarm is looked at meanwhile
    this.#wave = wave;
    const first = wave.channels.filter((c) => reasons.includes(c.name));
    for (const c of wave.channels) {
      const b = element("button", "", c.name);
      b.type = "button";
      b.setAttribute("aria-pressed", "false");
      b.addEventListener("click", () => this.#toggle(c, b));
      $("waves-pick").append(b);
      if ((first.length ? first : wave.channels.slice(0, 3)).includes(c)) this.#toggle(c, b);
    }
  }

  #toggle(c, button) {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", on);
    if (!on) {
      this.#plots.get(c.name).destroy();
      this.#plots.delete(c.name);
      $(`wave-${c.name}`).remove();
      return;
    }
    const figure = element("figure"), box = element("div");
    figure.id = `wave-${c.name}`;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `Waveform of ${c.name}, from ${this.#wave.from} to ${this.#wave.to}`);
    figure.append(element("figcaption", "", [c.name, c.kind === "feature" ? "" : plain(c.kind), c.unit, hertz(c.rate)].filter(Boolean).join(" · ")), box);
    const order = this.#wave.channels.map((x) => x.name); // plots stand in the order of the layout
    const after = [...this.#plots.keys()].find((n) => order.indexOf(n) > order.indexOf(c.name));
    $("waves").insertBefore(figure, after === undefined ? null : $(`wave-${after}`));
    const before = [...this.#plots], plot = this.#plot(c, box);
    this.#plots = new Map([...before, [c.name, plot]].sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0])));
  }

  #plot(c, box) {
    const at = Date.parse(this.#wave.at), from = (Date.parse(this.#wave.from) - at) / 1000, to = (Date.parse(this.#wave.to) - at) / 1000;
    const x = c.pairs.map((_, i) => from + ((i + 0.5) * (to - from)) / c.pairs.length);
    const axis = { stroke: () => colour("muted"), font: "11px system-ui, sans-serif", ticks: { show: false }, grid: { stroke: () => colour("grid"), width: 1 } };
    const line = { stroke: () => colour("spark"), width: 1, points: { show: c.pairs.length < 60, size: 4, fill: () => colour("spark") } };
    return new uPlot({
      width: box.clientWidth, height: 110, padding: [8, 22, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false }, sync: { key: "evidence" }, points: { show: false } },
      scales: { x: { time: false, range: (u, lo, hi) => (lo === x[0] && hi === x.at(-1) ? [from, to] : [lo, hi]) } },
      axes: [{ ...axis, size: 22, space: 60, values: (u, ticks) => ticks.map((v) => `${signed(v)} s`) }, { ...axis, size: 52, space: 18 }],
      series: [{}, line, line],
      bands: [{ series: [2, 1], fill: () => colour("spark") }],
      hooks: { drawClear: [(u) => this.#under(u)], draw: [(u) => this.#over(u)] },
    }, [x, c.pairs.map((p) => p?.[0] ?? null), c.pairs.map((p) => p?.[1] ?? null)], box);
  }

  #fit(plot) {
    const width = plot.root.parentElement?.clientWidth;
    if (width) plot.setSize({ width, height: 110 });
  }

  // Below the lines: from the first faulty window to the decision.
  #under(u) {
    const x = (v) => Math.max(u.bbox.left, Math.min(u.bbox.left + u.bbox.width, u.valToPos(v, "x", true)));
    u.ctx.fillStyle = colour("faulty-tint");
    u.ctx.fillRect(x(this.#since), u.bbox.top, x(0) - x(this.#since), u.bbox.height);
  }

  // Above them: the moment of decision.
  #over(u) {
    const { left, top, width, height } = u.bbox, c = u.ctx, at = u.valToPos(0, "x", true);
    if (at < left || at > left + width) return;
    c.strokeStyle = colour("faulty");
    c.lineWidth = 2 * devicePixelRatio;
    c.beginPath();
    c.moveTo(at, top);
    c.lineTo(at, top + height);
    c.stroke();
  }
}
