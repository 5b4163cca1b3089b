// The words and shapes that the page has for what the monitor says.

export const verdicts = {
  healthy: { word: "Healthy", says: "The tool cuts as a sound one does." },
  faulty: { word: "Faulty", says: "The tool cuts as a worn or broken one does." },
  unknown: { word: "Unknown", says: "The model has seen nothing like this: no judgement." },
  learning: { word: "Learning", says: "Learning how this tool sounds while it is new." },
  not_cutting: { word: "Not cutting", says: "Only cutting is judged." },
  sensor_fault: { word: "Sensor fault", says: "Too few sensors can be trusted to judge the tool." },
};

// Why the model does not know a window.
export const unknowns = {
  out_of_distribution: "The model has seen nothing like this: no judgement.",
  ambiguous: "It may as well be healthy as faulty: no judgement.",
  implausible: "It is neither as healthy nor as faulty tools are: no judgement.",
};

// How high each verdict stands in the strip, so that colour is not needed.
export const heights = { healthy: 0.35, faulty: 1, unknown: 0.7, learning: 0.5, not_cutting: 0.15, sensor_fault: 0.85 };

export const phases = {
  starting: { word: "Starting", shape: "waiting" },
  "learning history": { word: "Preparing", shape: "learning" },
  training: { word: "Training", shape: "learning" },
  monitoring: { word: "Waiting", shape: "waiting" },
  done: { word: "Finished", shape: "done" },
};

// The words of an alarm's state by how loud they are shown; others are loud.
export const loudness = { "": "calm", normal: "calm", clear: "calm", cleared: "calm", acknowledged: "known", returned: "known", shelved: "known", suppressed: "known", out_of_service: "known" };

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

// A recording that does not say when it began counts from 1970, so times before
// September 2001 are seconds from its start (signal.HasClock).
const hasClock = (iso) => Date.parse(iso) >= 1e12;
const seconds = (iso) => +(Date.parse(iso) / 1000).toFixed(3);

export const time = (iso) => (hasClock(iso) ? clock.format(new Date(iso)) : `${seconds(iso)} s`);

// The time, with the day before it unless that is today.
export function moment(iso) {
  if (!iso) return "";
  if (!hasClock(iso)) return `second ${seconds(iso)}`;
  const t = new Date(iso);
  return (t.toDateString() === new Date().toDateString() ? "" : day.format(t) + ", ") + clock.format(t);
}

export const plain = (word) => word.replaceAll("_", " ");

// Three significant digits in as few characters as a glance can take.
export function number(x) {
  if (x === null || x === undefined) return "–";
  const a = Math.abs(x);
  if (a === 0) return "0";
  if (a >= 1e5 || a < 1e-3) return x.toExponential(1).replace("e+", "e");
  if (a >= 100) return x.toFixed(0);
  return x.toPrecision(3);
}

// What is known of the tool's wear, and of what it has left: "" if nothing is.
const from = (low, high) => (high === undefined ? `${Math.floor(low)} or more` : `${Math.floor(low)} to ${Math.ceil(high)}`);
export const worn = (r) => `${Math.round(r.wear_um)} µm (${from(r.wear_low_um, r.wear_high_um)})`;
export function left(r) {
  for (const unit of ["holes", "windows"]) {
    const n = r[unit + "_left"];
    if (n === 0) return "none: it is at its limit";
    if (n !== undefined) return `about ${Math.round(n)} ${unit} (${from(r[unit + "_left_low"], r[unit + "_left_high"])})`;
  }
  return "";
}

export function wear(r) {
  const rest = left(r);
  return `Flank wear ${worn(r)}.` + (rest ? ` Left: ${rest}.` : "");
}

// A span of time in two units at most.
export function span(s) {
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

// With its sign, as mathematicians write it, and one decimal.
export const signed = (v) => (v > 0 ? "+" : v < 0 ? "−" : "") + +Math.abs(v).toFixed(1);

export const percent = (share) => `${Math.round(100 * share)} %`;

export function element(tag, name = "", text = "") {
  const e = document.createElement(tag);
  if (name) e.className = name;
  e.textContent = text;
  return e;
}

export function duration(s) {
  if (s < 1) return "now";
  if (s < 90) return `${Math.round(s)} s ago`;
  if (s < 5400) return `${Math.round(s / 60)} min ago`;
  if (s < 129600) return `${Math.round(s / 3600)} h ago`;
  return `${Math.round(s / 86400)} days ago`;
}

// The value of a CSS variable, which is where all colours live.
export const colour = (name) => getComputedStyle(document.body).getPropertyValue("--" + name).trim();
