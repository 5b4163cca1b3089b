// The page of one alarm: what it says and what to do, why it was raised, what the windows
// before it scored, its waveform and spectra, and who did what.

import { html, useEffect, useMemo, useRef } from "./vendor/htm-preact-standalone.mjs";
import { api, useFetch, useLive, useOffline } from "./store.js";
import { href } from "./route.js";
import { has, t } from "./text.js";
import { clock, full, moment, zoneName } from "./time.js";
import { Button, Buttons, hear } from "./commands.js";
import { Empty, Icon, area, isLoud, number, short, spaced, wordOf, wearText, leftText } from "./parts.js";
import { Plot, axis, clip, colour, line, ticks, timeOf } from "./chart.js";
import { compare, levelOf } from "./reasons.js";
import { Evidence } from "./evidence.js";
import { hours } from "./tools.js";

const answers = ["acknowledge", "shelve", "unshelve", "suppress", "unsuppress", "out_of_service", "in_service"]; // to an open alarm
export const answersAside = answers.slice(0, 3); // the same, in the magazine: the others are of the whole machine

const judged = (p) => p.verdict === "healthy" || p.verdict === "faulty";
const marks = new Set(["marked_false", "unmarked_false"]);

// add returns a list with what is new, by id, in the order in which it was sent. Times do not
// order alerts: what windows cause has the clock of the sensors, what people do another one.
const add = (list, more = []) => {
  const known = new Set(list.map((x) => x.id));
  const fresh = more.filter((x) => !known.has(x.id));
  return fresh.length ? [...list, ...fresh] : list;
};

// summaryOf returns what the alerts of an incident say together: the alert that raised it last,
// the state of the alarm now, and whether a person called it false. waits is the alarm in the
// tile of its machine if its tool is in the magazine.
export function summaryOf(alerts, incident, tile) {
  const all = alerts.filter((a) => !a.incident || a.incident === incident);
  const cause = all.findLast((a) => a.reasons || a.trace) ?? all.findLast((a) => a.state === "raised" || a.state === "reactivated") ?? all[0];
  const last = all.findLast((a) => !marks.has(a.state) && a.state !== "refused");
  const marked = all.findLast((a) => a.false_alarm || marks.has(a.state));
  const waits = tile?.magazine?.find((x) => x.incident === incident), open = waits ?? (tile?.incident === incident ? tile : undefined);
  const over = !open && (last?.state === "cleared" || (last?.magazine && last.alarm === "normal"));
  const falseAlarm = marked !== undefined && marked.state !== "unmarked_false";
  return { all, cause, over, waits, word: over ? "over" : open?.alarm || last?.alarm || last?.state || "", cleared: over ? last : undefined, falseAlarm };
}

// wordsOf says in the page's language and time zone what happened to an alarm. An alert of a
// kind that this page does not know is shown as its text is.
export function wordsOf(a) {
  let key = a.state === "cleared" && has(`alarm.did.cleared.${a.reason}`) ? `alarm.did.cleared.${a.reason}` : a.state === "raised" && a.reason === "tool_back" ? "alarm.did.back" : `alarm.did.${a.state}`;
  if (a.class === "different" && has(`${key}.different`)) key += ".different";
  else if (a.finding && has(`${key}.finding`)) key += ".finding";
  if (!has(key)) return a.text;
  const note = a.note ? ` ${t("alarm.note", { note: a.note })}` : "";
  return t(key, {
    since: clock(a.since), faulty: a.faulty, of: a.of, score: a.score?.toFixed(2), threshold: (a.threshold ?? 0.5).toFixed(2), by: a.by || t("alarm.someone"), until: moment(a.until), tool: a.tool, finding: a.finding,
  }) + note;
}

export function Alarm({ name: incident }) {
  const asked = useFetch(api.alarm(incident)), offline = useOffline();
  const live = useLive({ page: "alarm", incident }, (old, kind, event) => {
    hear(event.alerts);
    const { alarm = {}, alarms, ...head } = event;
    return { ...old, ...head, ...alarm, alerts: add(add(old?.alerts ?? [], alarm.alerts), event.alerts), evidence: add(add(old?.evidence ?? [], alarm.evidence), event.evidence) };
  });
  const { data, error } = asked;
  useEffect(() => { if (live && (data || error)) asked.reload(); }, [live?.tile?.incident]); // there may be a next alarm
  const alerts = useMemo(() => add(add([], data?.alerts), live?.alerts).filter((a) => a.incident === incident), [data, live?.alerts, incident]);
  const evidence = useMemo(() => add(add([], data?.evidence), live?.evidence), [data, live?.evidence]);
  useEffect(() => { document.title = `${incident} · Flank`; }, [incident]);
  if (!alerts.length) {
    if (error) return html`<${Empty} title=${t("alarm.gone", { incident })}><p>${error.status === 404 ? t("alarm.gone.says") : error.message}</p>${error.status === 404 && html`<pre>monitor alerts show ${incident}</pre>`}<p><a href=${href.fleet()}>${t("nav.fleet")}</a></p><//>`;
    return html`<h1>${incident}</h1><p class="says">${t("loading")}</p>`;
  }
  const s = summaryOf(alerts, incident, live?.tile ?? data?.tile), { cause } = s;
  const name = data?.machine || live?.machine || cause.machine;
  const kept = evidence.find((e) => e.alert === cause.id);
  return html`<article class="alarm-page" data-incident=${incident} data-machine=${name}>
    <${Head} incident=${incident} name=${name} previous=${data?.previous ?? live?.previous} next=${data?.next ?? live?.next} />
    <${Summary} s=${s} incident=${incident} name=${name} offline=${offline} />
    <div class="two">
      <${Why} reasons=${cause.reasons} />
      <${Past} alert=${cause} />
    </div>
    <${Evidence} alert=${cause} kept=${kept} />
    <${Done} all=${s.all} />
    <p class="printed">${t("alarm.printed", { at: full(new Date()), zone: zoneName(), address: location.href })}</p>
  </article>`;
}

function Head({ incident, name, previous, next }) {
  const where = area(name);
  const step = (id, key, mark) => (id ? html`<a class="button" href=${href.alarm(id)} rel=${key === "alarm.previous" ? "prev" : "next"} title=${id}>${key === "alarm.previous" ? `${mark} ` : ""}${t(key)}${key === "alarm.next" ? ` ${mark}` : ""}</a>` : null);
  return html`<header class="alarm-head">
    <p class="path"><a href=${href.fleet()}>${t("nav.fleet")}</a>${where && ` / ${spaced(where)}`} / <a id="to-machine" href=${href.machine(name)}>${short(name)}</a></p>
    <nav aria-label=${t("alarm.others")}>${step(previous, "alarm.previous", "‹")}${step(next, "alarm.next", "›")}<button type="button" id="print" onClick=${() => print()}>${t("alarm.print")}</button></nav>
  </header>`;
}

const shapes = { raised: "raised", reactivated: "raised", acknowledged: "acknowledged", returned: "returned", shelved: "shelved", suppressed: "suppressed", out_of_service: "suppressed", over: "raised" };

function Summary({ s, incident, name, offline }) {
  const { cause, word, over, waits } = s, loud = !over && !waits && isLoud({ alarm: word });
  const tile = { name, alarm: over ? "" : word, incident, tool: cause.tool, life: cause.tool_life ?? "", since: cause.since, until: over ? s.cleared.at : undefined };
  const wear = cause.wear && { um: cause.wear.wear_um, low_um: cause.wear.wear_low_um, high_um: cause.wear.wear_high_um };
  const left = cause.wear && leftOf(cause.wear);
  const facts = [
    [t("alarm.faulty_since"), full(cause.since)],
    [t("alarm.at"), full(cause.at)],
    over && [t("alarm.over_at"), full(s.cleared.at)],
    [t("alarm.windows"), t("alarm.k_of_n", { faulty: cause.faulty, of: cause.of, k: cause.k }) + (cause.unknown ? t("alarm.unknown", { n: cause.unknown }) : "")],
    [t("alarm.score"), t("alarm.score.says", { score: (cause.score ?? 0).toFixed(2), threshold: (cause.threshold ?? 0.5).toFixed(2) })],
    wear && [t("alarm.wear"), wearText(wear)],
    left && [t("alarm.left"), left],
    cause.cutting_seconds > 0 && [t("alarm.cut"), hours(cause.cutting_seconds)],
    cause.cutting_state && [t("alarm.phase"), cause.cutting_state.replaceAll("_", " ")],
    cause.model && [t("machine.model"), html`<a href=${href.model(cause.model)}>${cause.model}</a>`],
  ].filter(Boolean);
  return html`<section class=${`card summary-card ${offline || over ? "calm" : loud ? "alarm" : "warn"}`} data-state=${word}>
    <p class="word"><${Icon} shape=${shapes[word] ?? "raised"} big /><strong id="state">${over ? t("alarm.over") : wordOf("alarm", word)}</strong>${waits && html`<span class="chip warn" id="waits">${t("alarm.in_magazine")}</span>`}${s.falseAlarm && html`<span class="chip warn" id="marked">${t("alarm.marked")}</span>`}</p>
    <h1>${[short(name), cause.tool && `${t("tool")} ${cause.tool}`, cause.hole && `${t("hole")} ${cause.hole}`, incident].filter(Boolean).join(" · ")}</h1>
    <p class="does">${waits ? t("alarm.waits", { tool: waits.tool }) : over ? wordsOf(s.cleared) : wordsOf(cause)}</p>
    ${(over || waits) && html`<p class="was">${t("alarm.was", { since: clock(cause.since), faulty: cause.faulty, of: cause.of, score: (cause.score ?? 0).toFixed(2) })}</p>`}
    ${!over && html`<${Buttons} tile=${tile} only=${[...(waits ? answersAside : answers), "add_label", ...(s.falseAlarm ? [] : ["mark_false"])]} />`}
    ${over && cause.tool && html`<${Buttons} tile=${tile} only=${["add_label"]} />`}
    ${(over || s.falseAlarm) && html`<p class="acts"><${Button} action=${s.falseAlarm ? "unmark_false" : "mark_false"} machine=${name} incident=${incident} /></p>`}
    <dl class="facts">${facts.map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>
  </section>`;
}

// leftOf says what was left of the tool's life, with its interval, also if it was nothing.
function leftOf(w) {
  const unit = ["holes", "windows"].find((u) => w[`${u}_left`] !== undefined);
  return unit ? leftText({ unit, n: [w[`${unit}_left`], w[`${unit}_left_low`], w[`${unit}_left_high`]] }) : "";
}

const percent = (share) => t("alarm.percent", { n: Math.round(100 * share) });

// Why lists what spoke for the alarm: shares of channels, and features against their usual
// values.
function Why({ reasons }) {
  if (!reasons) return null;
  return html`<section class="card why-card" aria-labelledby="why-title">
    <h2 id="why-title">${t("alarm.why")}</h2>
    <ol class="shares" aria-label=${t("alarm.shares")}>${reasons.channels.map((c) => html`<li><strong>${c.channel}</strong><span>${c.words ?? ""}</span><b>${percent(c.share)}</b><i class="share"><i style=${{ width: `${100 * c.share}%` }} /></i></li>`)}</ol>
    <div class="scroll" tabindex="0" role="region" aria-label=${t("alarm.features")}><table id="features"><thead><tr>${["feature", "compared", "now", "usual", "share"].map((k) => html`<th scope="col">${t(`alarm.col.${k}`)}</th>`)}</tr></thead>
      <tbody>${reasons.features.map((f) => html`<tr key=${f.feature}><th scope="row" title=${f.feature}>${f.words ? `${f.channel} ${f.words}` : f.feature}</th><td class="compared">${compare(f).text || "–"}</td><td>${levelOf(f, f.value)}</td><td>${levelOf(f, f.usual)}</td><td>${percent(f.share)}</td></tr>`)}</tbody></table></div>
    <p class="says">${t("alarm.why.says", { method: wordOf("alarm.method", reasons.method), total: signed(reasons.total), base: signed(reasons.base) })}</p>
  </section>`;
}

const signed = (v) => `${v > 0 ? "+" : v < 0 ? "−" : ""}${number(Math.abs(v))}`;

// Past draws the score of the windows before the alarm, with the threshold, and rings those
// that were counted.
function Past({ alert }) {
  const points = alert.trace ?? [], state = useRef({}), readout = useRef();
  const threshold = alert.threshold ?? 0.5;
  const unknown = alert.unknown ?? 0; // the last ones that are, unless others are implausible or out of distribution
  const last = (n, is) => (n > 0 ? points.flatMap((p, i) => (is(p) ? [i] : [])).slice(-n) : []);
  const counted = new Set([...last(alert.of - unknown, judged), ...last(unknown, (p) => p.verdict === "unknown")]);
  const data = useMemo(() => [points.map((p) => Date.parse(p.end) / 1000), points.map((p, i) => (judged(p) || counted.has(i) ? p.score : null))], [alert.id]);
  if (!points.length) return null;
  Object.assign(state.current, { points, counted, threshold });
  const s = state.current;
  const read = (u) => {
    const p = s.points[u.cursor.idx];
    if (readout.current) readout.current.textContent = p ? [full(p.end), wordOf("verdict", p.verdict), judged(p) || s.counted.has(u.cursor.idx) ? t("alarm.score.at", { score: p.score.toFixed(2) }) : ""].filter(Boolean).join(" · ") : "";
  };
  const make = () => ({
    padding: [10, 12, 0, 0], tzDate: timeOf,
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { x: { range: (u, lo, hi) => [lo - 0.5, hi + 0.5] }, y: { range: [0, 1] } },
    axes: [axis({ size: 36, space: 80, values: ticks, grid: { show: false } }), axis({ size: 40, splits: () => [0, 0.25, 0.5, 0.75, 1] })],
    series: [{}, { stroke: () => colour("ink"), width: 1.5, spanGaps: false, points: { show: true, size: 4, fill: () => colour("ink") } }],
    hooks: { drawClear: [(u) => drawThreshold(u, s)], draw: [(u) => drawCounted(u, s)], setCursor: [read] },
  });
  return html`<section class="card past-card" aria-labelledby="past-title">
    <h2 id="past-title">${t("alarm.past")}</h2><output ref=${readout} aria-live="off" />
    <${Plot} plotKey=${alert.id} make=${make} data=${data} height=${230} label=${t("alarm.past.label", { n: points.length, faulty: points.filter((p) => p.verdict === "faulty").length })} />
    <p class="says">${t("alarm.past.says", { of: alert.of, faulty: alert.faulty, threshold: threshold.toFixed(2), k: alert.k })}</p>
  </section>`;
}

function drawThreshold(u, s) {
  clip(u, (c, px) => {
    const y = u.valToPos(s.threshold, "y", true), { left, top, width } = u.bbox;
    c.fillStyle = colour("alarm-tint");
    c.fillRect(left, top, width, y - top);
    c.strokeStyle = colour("alarm");
    c.lineWidth = 1.5 * px;
    c.setLineDash([5 * px, 4 * px]);
    line(c, left, y, left + width, y);
    c.setLineDash([]);
  });
}

function drawCounted(u, s) {
  clip(u, (c, px) => {
    for (const i of s.counted) {
      const p = s.points[i];
      c.beginPath();
      c.arc(u.valToPos(u.data[0][i], "x", true), u.valToPos(p.score, "y", true), 4.5 * px, 0, 7);
      c.fillStyle = colour(p.score >= s.threshold ? "alarm" : "card");
      c.fill();
      c.strokeStyle = colour("ink");
      c.lineWidth = 1.5 * px;
      c.stroke();
    }
  });
}

const happened = { raised: "raised", reactivated: "raised", cleared: "cleared", returned: "returned", acknowledged: "acknowledged", shelved: "shelved", unshelved: "raised" };

// Done lists who did what, the oldest first.
function Done({ all }) {
  return html`<section class="card done" aria-labelledby="done-title"><h2 id="done-title">${t("alarm.done")}</h2>
    <ol id="history">${all.map((a) => html`<li key=${a.id} data-state=${a.state}><${Icon} shape=${happened[a.state] ?? "info"} /><time datetime=${a.at}>${full(a.at)}</time><p><strong>${wordOf("machine.did", a.state === "cleared" && a.reason === "tool_change" ? a.reason : a.state)}</strong> ${wordsOf(a)}</p></li>`)}</ol>
  </section>`;
}
