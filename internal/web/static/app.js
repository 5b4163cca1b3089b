// The page: follows the events of one machine and shows the last state of everything.
// The hub sends a snapshot first and updates after; both carry the same fields, and
// the list of all machines. The page stays with its machine until a person chooses
// another.

import { Trace } from "./trace.js";
import { Channels } from "./channels.js";
import { Control } from "./control.js";
import { View } from "./alert.js";
import { Machines, address, looked, loud, unwatched } from "./machines.js";
import { fill, item } from "./lists.js";
import { verdicts, unknowns, phases, moment, duration, number, plain, wear } from "./words.js";

const $ = (id) => document.getElementById(id);
const set = (id, text) => { const e = $(id); if (e.textContent !== text) e.textContent = text; };

const nothing = () => ({
  known: false, // whether the program has said what it holds of the machine
  results: [], // in the order they came
  alerts: [], // oldest first
  advisories: [], // likewise
  evidence: new Map(), // what became of it, by alert
  window: null,
  shown: NaN, // performance.now() when the last window came
  judged: NaN, // and the last result
});
const state = {
  machine: looked().machine, // that is looked at, and all of nothing() is of; "" until there is one
  ...nothing(),
  machines: new Map(), // all of them, by name
  crowded: false, // there are more
  limit: 0, // of machines
  layouts: new Map(), // of the machines, by fingerprint
  insecure: false, // whether the program accepts models without a signature
  keep: 600, // results
  status: { phase: "starting", text: "", fraction: -1, windows_per_second: 0 },
  commands: false, // whether the program takes any
  live: false,
  since: performance.now(), // when live changed
};
let trace;
const channels = new Channels($("groups"));
const control = new Control(), view = new View(), machines = new Machines();
const seconds = (since) => (performance.now() - since) / 1000;
const when = (age) => (age < 0 ? NaN : performance.now() - 1000 * age);

function apply(u) {
  if (u.machine !== state.machine) return connect(); // the user has switched to another machine
  for (const l of u.layouts ?? []) state.layouts.set(l.fingerprint, l);
  for (const m of u.machines ?? []) state.machines.set(m.name, { ...m, shown: when(m.window_age), refusedAt: when(m.refused_age ?? -1) });
  state.crowded = u.crowded ?? false;
  state.status = u.status ?? state.status;
  state.window = u.window ?? state.window;
  state.shown = when(u.window_age);
  state.judged = when(u.result_age);
  state.results = [...state.results, ...(u.results ?? [])].slice(-state.keep);
  state.alerts = [...state.alerts, ...(u.alerts ?? [])].slice(-50);
  if (u.window) channels.apply(u.window);
  state.advisories = [...state.advisories, ...(u.advisories ?? [])].slice(-50);
  for (const e of u.evidence ?? []) state.evidence.set(e.alert, e);
  if (u.alerts || u.advisories) showAlerts();
  if (u.alerts) control.hear(u.alerts);
  if (u.results || u.alerts) trace.show(state.results, state.alerts);
  show();
}

function begin(s) {
  if (!state.machine && s.machine) { // from now on it is this one
    state.machine = s.machine;
    history.replaceState(null, "", address(s.machine, looked().alarm));
  }
  if (s.machine !== state.machine) return connect(); // the program was started again, and says another
  set("title", s.title);
  trace ??= new Trace($("chart"), $("readout"), $("strip-legend"));
  Object.assign(state, { keep: s.keep, limit: s.limit, commands: s.commands ?? false, insecure: s.insecure_models ?? false, machines: new Map(), layouts: new Map() });
  forget(s.layout, s.pairs);
  state.known = true;
  apply(s);
}

// forget empties all that is of one machine, and shows the channels of its layout.
function forget(layout, pairs) {
  Object.assign(state, nothing());
  channels.lay(layout, pairs);
  trace?.show([], []);
  showAlerts();
}

// A person chose a machine, or an alarm.
addEventListener("hashchange", () => {
  const { machine, alarm } = looked();
  if (!machine && !alarm) history.replaceState(null, "", address(state.machine));
  else if (machine !== state.machine) {
    control.close();
    state.machine = machine;
    forget(state.layouts.get(state.machines.get(machine)?.layout));
    connect();
  }
  show();
  if (alarm) view.focus();
});

function show() {
  const last = state.results.findLast((r) => !r.late), { machine } = state;
  const { tool, hole } = state.window ?? last ?? {};
  const cut = machine.lastIndexOf("/") + 1;
  set("path", machine.slice(0, cut).replaceAll("/", " / "));
  set("machine", machine.slice(cut) || "–");
  set("tool", tool || "–");
  set("hole", hole || "–");
  const word = showVerdict(last);
  const alarm = showAlarm();
  showProgress(last);
  showModels();
  machines.show(state.machines, machine, state.crowded, state.limit);
  view.show(looked().alarm, state, state.machines.get(machine), control);
  const others = machines.others(state.machines, machine);
  document.title = [alarm === "loud" ? "ALARM" : "", word, machine.slice(cut), others ? `${others} more with an alarm` : "", "Flank"].filter(Boolean).join(" · ");
}

// An old verdict must not look like a new one.
function showVerdict(last) {
  const { phase, text } = state.status;
  const cut = !state.live && seconds(state.since) > 4;
  const span = last ? (Date.parse(last.end) - Date.parse(last.start)) / 1000 : 1;
  const stale = cut || (phase === "monitoring" && seconds(state.judged) > Math.max(10, 5 * span));
  let { word, shape, says = text } = phases[phase] ?? phases.starting;
  const refused = !cut && unwatched(state.machines.get(state.machine));
  if (refused) {
    const why = state.advisories.findLast((a) => a.kind === "windows_refused")?.text.match(/NOT WATCHED, (.*[^.])/)?.[1];
    [word, shape, says] = ["Not watched", "lost", why ? `${why[0].toUpperCase()}${why.slice(1)}.` : "The monitor does not judge the windows of this machine: see the advisories."];
    if (last) says += ` Last verdict: ${plain(last.verdict)}, ${duration(seconds(state.judged))}.`;
  } else if (stale) {
    [word, shape] = [cut ? "Offline" : "No verdicts", "lost"];
    says = cut ? "The page cannot reach the program." : seconds(state.shown) < 10 ? "Windows arrive, but the monitor is silent." : "No windows arrive.";
    if (last) says += ` Last verdict: ${plain(last.verdict)}, ${duration(seconds(state.judged))}.`;
  } else if (last) {
    shape = last.verdict in verdicts ? last.verdict : "unknown";
    ({ word, says } = verdicts[last.verdict] ?? { word: plain(last.verdict), says: "" });
    if (last.verdict === "unknown") says = unknowns[last.unknown_reason] ?? says;
    if (loud(state.machines.get(state.machine)) === "loud" && last.verdict !== "faulty") says += " The alarm stands.";
    if (last.class) says += ` It is ${last.class}.`;
    if (last.verdict === "not_cutting" && last.cutting_state) says = `${last.cutting_state[0].toUpperCase()}${last.cutting_state.slice(1)}: only drilling is judged.`;
    if (last.reference_len) says += ` ${last.reference_len} ${last.reference_len === 1 ? "window" : "windows"} so far.`;
    if (last.wear_um !== undefined) says += ` ${wear(last)}`;
    else if (last.wear_unknown) says += " Its flank wear is unknown.";
  }
  document.body.dataset.verdict = stale || refused ? "stale" : last ? shape : "waiting";
  set("word", word);
  set("says", says);
  if ($("shape").getAttribute("href") !== "#" + shape) $("shape").setAttribute("href", "#" + shape);
  const judged = !stale && !refused && last?.posterior;
  set("score", judged ? last.score.toFixed(2) : "–");
  $("needle").hidden = !judged;
  if (judged) $("needle").style.setProperty("--at", last.score);
  return word;
}

function showAlarm() {
  const now = state.machines.get(state.machine), word = now?.alarm ?? "", how = loud(now);
  const cause = state.alerts.findLast((a) => a.state === "raised");
  const said = state.alerts.findLast((a) => a.state === word && a.by);
  let since = cause && (how === "calm" ? `last raised ${moment(cause.at)}` : `since ${moment(cause.since)} · ${cause.faulty} of ${cause.of} windows faulty`);
  if (said) since = [said.until && `until ${moment(said.until)}`, `by ${said.by}`, said.note].filter(Boolean).join(" · ");
  document.body.dataset.alarm = how;
  set("alarm", how === "calm" ? "None" : plain(word));
  set("since", since ?? "");
  control.show(state.commands, state.machine, word, now?.incident ?? "");
  return how;
}

function showProgress(last) {
  const { phase, text, fraction, windows_per_second } = state.status;
  const order = Object.keys(phases);
  document.body.dataset.phase = last || phase === "monitoring" || phase === "done" ? phase : "preparing";
  set("percent", fraction >= 0 ? `${Math.floor(100 * fraction)} %` : "…");
  if (fraction >= 0) $("progress").value = fraction; else $("progress").removeAttribute("value");
  set("doing", text);
  for (const li of document.querySelectorAll("[data-step]")) {
    const d = order.indexOf(phase) - order.indexOf(li.dataset.step);
    li.className = d > 0 ? "past" : d === 0 ? "now" : "";
  }
  set("connection", !state.live ? "reconnecting…" : phase === "done" ? "finished" : "live");
  $("connection").dataset.state = state.live ? "live" : "lost";
  set("doing-now", text || phase);
  set("rate", `${number(windows_per_second)} windows/s`);
  set("model", last?.model ? `model ${last.model}` : "no model yet");
  set("age", state.shown > -Infinity ? `last window ${duration(seconds(state.shown))}` : "no window yet");
}

// Which models judge the machine, and which machines have models without a signature.
function showModels() {
  const { now, next, shadows = [], unsigned } = state.machines.get(state.machine)?.models ?? {};
  set("models", [now && `Model: ${now}`, next && `from the next tool on: ${next}`, shadows.length ? `in shadow: ${shadows.join(", ")}` : "", unsigned && "not signed"].filter(Boolean).join(" · "));
  $("model").hidden = Boolean(now); // it is with the verdict
  const of = [...state.machines.values()].filter((m) => m.models?.unsigned).map((m) => m.name.slice(m.name.lastIndexOf("/") + 1)).sort();
  $("unsigned").hidden = !state.insecure && of.length === 0;
  const named = of.length > 4 ? `${of.slice(0, 3).join(", ")} and ${of.length - 3} more` : of.join(", ");
  set("unsigned", `Models are accepted without a signature.${named && ` Not signed: the models of ${named}.`}`);
}

// What is the matter with sensors, model or machine stands apart from the alarms of
// the tool: first what stands, then what is over.
function showAlerts() {
  const newest = (a, b) => Date.parse(b.at) - Date.parse(a.at);
  fill($("alerts"), state.alerts.toReversed().sort(newest).map(item));
  const last = new Map(state.advisories.map((a) => [`${a.machine} ${a.kind} ${a.subject ?? ""}`, a]));
  const standing = [...last.values()].filter((a) => a.state === "raised").sort(newest);
  fill($("advisories"), [...standing, ...state.advisories.filter((a) => !standing.includes(a)).toReversed().sort(newest)].map((a) => item(a, standing.includes(a))));
  channels.advise(new Map(standing.filter((a) => a.kind === "sensor" && a.subject).flatMap((a) => (a.channels ?? [a.subject]).map((name) => [name, a]))));
}

function live(yes) {
  if (state.live !== yes) Object.assign(state, { live: yes, since: performance.now() });
  show();
}

// The browser connects again by itself when a stream breaks, but not after an
// HTTP error, and it does not notice a dead line: both are seen to here.
let events, heard;
function connect() {
  events?.close();
  heard = performance.now();
  const { machine } = state, { alarm } = looked();
  const which = new URLSearchParams(machine ? { machine } : alarm ? { alarm } : {}).toString();
  const source = events = new EventSource("/api/events" + (which && `?${which}`));
  const on = (name, f) => source.addEventListener(name, (e) => {
    if (source !== events) return; // of the machine before
    heard = performance.now();
    f(JSON.parse(e.data));
    live(true);
  });
  on("snapshot", begin);
  on("update", apply);
  on("beat", () => {});
  source.onerror = () => { if (source === events) live(false); };
}
setInterval(() => {
  const silent = performance.now() - heard;
  if (silent > 40000 || (events.readyState === EventSource.CLOSED && silent > 3000)) {
    live(false);
    connect();
  }
  show();
}, 1000);

$("filter").addEventListener("click", (e) => {
  const on = e.target.getAttribute("aria-pressed") !== "true";
  e.target.setAttribute("aria-pressed", on);
  $("groups").classList.toggle("only-bad", on);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { trace?.redraw(); channels.redraw(); });
connect();
