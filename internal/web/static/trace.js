// The trace: score and probability of windows, one step a window, with the
// verdicts in a strip below and the alerts as marks above.

import { verdicts, heights, time, plain, colour } from "./words.js";

const strip = 14; // height of the strip in CSS pixels
const least = 60; // windows that the trace spans at least

export class Trace {
  #plot;
  #results = [];
  #marks = new Map(); // n → alert
  #looked = []; // n of the windows that an alarm looked at
  #threshold = 0.5;
  #box;
  #readout;

  constructor(box, readout, legend) {
    [this.#box, this.#readout] = [box, readout];
    const line = (name) => () => colour(name);
    const axis = { stroke: line("muted"), font: "12px system-ui, sans-serif", ticks: { show: false } };
    this.#plot = new uPlot({
      width: box.clientWidth, height: box.clientHeight,
      padding: [16, 12, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: false, range: (u, lo, hi) => [Math.min(lo, hi - least) - 0.5, hi + 0.5] }, y: { range: [0, 1] } },
      axes: [
        { ...axis, size: 26 + strip, gap: 10 + strip, space: 90, grid: { show: false }, incrs: [1, 2, 5, 10, 20, 30, 60, 120, 300], values: (u, at) => at.map((i) => (this.#results[i] ? time(this.#results[i].end) : "")) },
        { ...axis, size: 40, splits: () => [0, 0.25, 0.5, 0.75, 1], grid: { stroke: line("grid"), width: 1 } },
      ],
      series: [
        {},
        { stroke: line("muted"), width: 1, dash: [3, 3], points: { size: 3 } },
        { stroke: line("ink"), width: 2, points: { size: 4 } },
      ],
      hooks: { drawClear: [(u) => this.#under(u)], draw: [(u) => this.#over(u)], setCursor: [(u) => this.#read(u)] },
    }, [[], [], []], box);
    new ResizeObserver(() => { if (box.clientWidth) this.#plot.setSize({ width: box.clientWidth, height: box.clientHeight }); }).observe(box);
    for (const v in verdicts) {
      const li = document.createElement("li");
      li.dataset.verdict = v;
      li.append(document.createElement("i"), verdicts[v].word.toLowerCase());
      legend.append(li);
    }
  }

  // looked are the windows, by epoch/seq, that are shaded; from threshold on they count.
  show(results, alerts, looked = [], threshold = 0.5) {
    this.#results = results.filter((r) => !r.late); // a late one came out of its turn
    const judged = (f) => this.#results.map((r) => (r.posterior ? f(r) : null));
    const at = new Map(this.#results.map((r, i) => [`${r.epoch}/${r.seq}`, i]));
    this.#looked = looked.map((id) => at.get(id)).filter((i) => i !== undefined);
    this.#threshold = threshold;
    this.#marks = new Map();
    for (const a of alerts) if (at.has(`${a.epoch}/${a.seq}`)) this.#marks.set(at.get(`${a.epoch}/${a.seq}`), a);
    this.#plot.setData([this.#results.map((_, i) => i), judged((r) => 1 - r.posterior[0]), judged((r) => r.score)]);
    const raised = this.#results.filter((r) => r.verdict === "faulty").length;
    this.#box.setAttribute("aria-label", `Score of the last ${this.#results.length} windows, ${raised} of them faulty`);
  }

  redraw() { this.#plot.redraw(); }

  // Below the lines: the side of the decision that is faulty.
  #under(u) {
    const { left, width } = u.bbox, c = u.ctx, y = (v) => u.valToPos(v, "y", true);
    c.fillStyle = colour("faulty-tint");
    c.fillRect(left, y(1), width, y(this.#threshold) - y(1));
    const x = (i) => u.valToPos(i, "x", true);
    c.fillStyle = colour("look");
    for (const i of this.#looked) c.fillRect(x(i - 0.5), y(1), x(i + 0.5) - x(i - 0.5), y(0) - y(1));
  }

  // Above the lines: decision, strip, tool changes, alerts.
  #over(u) {
    const { left, top, width, height } = u.bbox, c = u.ctx, px = devicePixelRatio, rs = this.#results;
    const x = (i) => u.valToPos(i, "x", true), y = u.valToPos(this.#threshold, "y", true);
    c.save();
    c.beginPath();
    c.rect(left, 0, width + 10 * px, top + height + (10 + strip) * px);
    c.clip();
    c.strokeStyle = colour("faulty");
    c.lineWidth = px;
    c.setLineDash([6 * px, 4 * px]);
    line(c, left, y, left + width, y);
    c.setLineDash([]);
    const step = x(1) - x(0), floor = top + height + (6 + strip) * px;
    const paint = Object.fromEntries(Object.keys(verdicts).map((v) => [v, colour(v)]));
    rs.forEach((r, i) => {
      const h = (heights[r.verdict] ?? 1) * strip * px;
      c.fillStyle = paint[r.verdict] ?? paint.unknown;
      c.fillRect(x(i) - step / 2, floor - h, step - (step > 4 * px ? px : 0) + 0.5, h);
      if (i > 0 && r.tool !== rs[i - 1].tool) {
        c.strokeStyle = c.fillStyle = colour("muted");
        c.setLineDash([2 * px, 3 * px]);
        line(c, x(i) - step / 2, top, x(i) - step / 2, floor);
        c.setLineDash([]);
        c.font = `${11 * px}px system-ui, sans-serif`;
        c.textAlign = "left";
        c.fillText(`tool ${r.tool ?? "–"}`, x(i) - step / 2 + 5 * px, top + 6 * px);
      }
    });
    for (const i of this.#looked) {
      const v = this.#results[i].score;
      c.beginPath();
      c.arc(x(i), u.valToPos(v, "y", true), 4.5 * px, 0, 7);
      c.fillStyle = v >= this.#threshold ? colour("faulty") : colour("card");
      c.fill();
      c.strokeStyle = colour("ink");
      c.lineWidth = 1.5 * px;
      c.stroke();
    }
    for (const [i, a] of this.#marks) mark(c, x(i), top, height, px, a.severity === "warning");
    c.restore();
  }

  #read(u) {
    const r = this.#results[u.cursor.idx];
    const a = this.#marks.get(u.cursor.idx);
    this.#readout.textContent = !r ? "" : [
      time(r.end), plain(r.verdict), r.class ?? "", r.posterior ? `score ${r.score.toFixed(2)}` : "",
      r.tool ? `tool ${r.tool}` : "", r.hole ? `hole ${r.hole}` : "", a ? `alarm ${plain(a.state)}` : "",
    ].filter(Boolean).join(" · ");
  }
}

function line(c, x0, y0, x1, y1) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}

// A raised alarm is a full triangle, a cleared one an empty circle.
function mark(c, x, top, height, px, raised) {
  c.strokeStyle = c.fillStyle = colour(raised ? "faulty" : "healthy");
  c.lineWidth = 1.5 * px;
  line(c, x, top, x, top + height);
  c.beginPath();
  if (raised) {
    c.moveTo(x - 7 * px, top - 14 * px);
    c.lineTo(x + 7 * px, top - 14 * px);
    c.lineTo(x, top - 1 * px);
    c.fill();
  } else {
    c.arc(x, top - 7 * px, 5 * px, 0, 7);
    c.stroke();
  }
}
