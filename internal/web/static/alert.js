// One alarm: what was said of it, why it was raised, what the windows before it
// scored, its waveform, and what people did.

import { Trace } from "./trace.js";
import { Evidence } from "./evidence.js";
import { address } from "./machines.js";
import { fill, item } from "./lists.js";
import { loudness, moment, plain, span, percent, worn, left, number, signed, element } from "./words.js";

const $ = (id) => document.getElementById(id);
const judged = (p) => p.verdict === "healthy" || p.verdict === "faulty";

// marked reports whether a person calls an alarm false, of which these are the alerts.
const marked = (all) => {
  const last = all.findLast((a) => a.false_alarm || a.state.endsWith("marked_false"));
  return last !== undefined && last.state !== "unmarked_false";
};

export class View {
  #trace;
  #evidence = new Evidence();
  #shown = ""; // what the view shows: it is built again when this changes

  focus() {
    scrollTo(0, 0);
    $("view").focus({ preventScroll: true });
  }

  // show makes this the page of an incident, or of the machine if the incident is "".
  show(incident, state, now, control) {
    document.body.dataset.view = incident ? "alert" : "machine";
    $("view").hidden = !incident;
    if (!incident) return;
    const standing = now?.incident === incident;
    const all = state.alerts.filter((a) => a.incident === incident);
    const word = standing ? plain(now.alarm) : "over";
    if ($("view-now").textContent !== word) $("view-now").textContent = word;
    $("view").dataset.alarm = standing ? (loudness[now.alarm] ?? "loud") : "calm";
    $("view-acts").hidden = !standing;

    const cause = all.findLast((a) => a.reasons || a.trace) ?? all.findLast((a) => a.state === "raised") ?? all[0];
    control.past(state.commands, cause?.machine, incident, marked(all));
    const kept = state.evidence.get(cause?.id);
    document.querySelector("#view .back").href = address(state.machine);
    const made = [state.machine, state.known, incident, all.length, cause?.id, kept?.id].join(" ");
    if (this.#shown === made) return;
    this.#shown = made;
    const name = cause ? [cause.machine.slice(cause.machine.lastIndexOf("/") + 1), cause.tool && `tool ${cause.tool}`, cause.hole && `hole ${cause.hole}`].filter(Boolean).join(" ") : "";
    $("view-title").textContent = name ? `${name} · ${incident}` : incident;
    $("view-text").textContent = cause?.text ?? (state.known ? `This page does not hold ${incident} any more. "monitor alerts show ${incident}" says what happened to it.` : "");
    for (const s of document.querySelectorAll("#view section:not(.summary)")) s.hidden = !cause;
    this.#facts(cause);
    if (!cause) return this.#evidence.clear();
    this.#why(cause);
    this.#past(cause);
    this.#evidence.show(cause, kept);
    fill($("history"), all.map((a) => item(a)));
    for (const a of $("history").querySelectorAll("a")) a.removeAttribute("href"); // they lead here
  }

  #facts(a) {
    const facts = !a ? [] : [
      ["Faulty since", moment(a.since)],
      ["Alarm at", moment(a.at)],
      ["Windows", `${a.faulty} of ${a.of} faulty, ${a.k} raise an alarm`],
      ["Score", a.score.toFixed(2)],
      a.wear && ["Flank wear, 80 % interval", worn(a.wear)],
      a.wear && left(a.wear) && ["Left", left(a.wear)],
      a.cutting_seconds > 0 && ["Tool has cut for", span(a.cutting_seconds)],
      a.cutting_state && ["Phase", plain(a.cutting_state)],
      ["Model", a.model],
    ];
    $("view-facts").replaceChildren(...facts.filter(Boolean).map(([k, v]) => {
      const div = element("div");
      div.append(element("dt", "", k), element("dd", "", v));
      return div;
    }));
  }

  #why({ reasons }) {
    document.querySelector("#view .why").hidden = !reasons;
    if (!reasons) return;
    const bar = (share) => {
      const b = element("i", "share");
      b.style.setProperty("--share", share);
      return b;
    };
    $("shares").replaceChildren(...reasons.channels.map((c) => {
      const li = element("li");
      li.append(element("strong", "", c.channel), element("span", "", c.words ?? ""), element("b", "", percent(c.share)), bar(c.share));
      return li;
    }));
    document.querySelector("#features tbody").replaceChildren(...reasons.features.map((f) => {
      const tr = element("tr"), value = (v) => element("td", "", v === undefined ? "–" : `${number(v)} ${f.unit ?? ""}`.trim());
      const name = element("th", "", f.words ? `${f.channel} ${f.words}` : f.feature);
      name.scope = "row";
      name.title = f.feature;
      tr.append(name, value(f.value), value(f.usual), element("td", "", percent(f.share)));
      return tr;
    }));
    $("why-says").textContent = `Shares of what spoke for faulty in the window that decided, by ${plain(reasons.method)}: log-odds ${signed(reasons.total)}, of what is usual ${signed(reasons.base)}.`;
  }

  // The windows that were counted are the last judged ones.
  #past(a) {
    const points = a.trace ?? [];
    document.querySelector("#view .past").hidden = points.length === 0;
    if (points.length === 0) return;
    this.#trace ??= new Trace($("past"), $("past-readout"), $("past-legend"));
    const results = points.map((p) => ({ ...p, epoch: a.epoch, tool: a.tool, posterior: judged(p) ? [1 - p.score, p.score] : undefined }));
    const looked = results.filter(judged).slice(-a.of).map((p) => `${p.epoch}/${p.seq}`);
    const threshold = a.threshold ?? 0.5;
    this.#trace.show(results, [a], looked, threshold);
    $("past-says").textContent = `Circled: the last ${a.of} judged windows; ${a.faulty} of them reach the threshold of ${threshold} (dashed), and ${a.k} raise an alarm.`;
  }
}
