// Alarms that a person must hear of, no matter which page is open: a live region that speaks
// of alarms only, a sound, and a notification of the browser. The last two are off until a
// person turns them on.

import { shared } from "./store.js";
import { setting, set } from "./settings.js";
import { isLoud, short, sentence } from "./parts.js";
import { href } from "./route.js";
import { t } from "./text.js";

// spoken is the text of the live region.
export const spoken = shared("");

const known = new Map(); // machine → incident that was announced
let audio;

// announce is told all machines that a page shows. Of alarms that were raised before the page
// was opened it only takes note.
export function announce(tiles, first) {
  const now = tiles.filter(isLoud);
  const fresh = now.filter((x) => known.get(x.name) !== (x.incident ?? ""));
  for (const x of tiles) if (!isLoud(x)) known.delete(x.name);
  for (const x of now) known.set(x.name, x.incident ?? "");
  if (first || !fresh.length) return;
  const words = fresh.slice(0, 3).map((x) => t("alarms.spoken", { machine: short(x.name), text: sentence(x.instruction) }));
  if (fresh.length > 3) words.push(t("alarms.more", { n: fresh.length - 3 }));
  spokenAt = Date.now();
  spoken.set(words.join(" "));
  if (setting("sound") === "on") beep();
  if (setting("notify") === "on" && globalThis.Notification?.permission === "granted") {
    for (const x of fresh.slice(0, 3)) notify(x);
  }
}

// announceCount is told how many machines have an alarm that calls, by pages that do not show
// which.
let counted, spokenAt = 0;
const sameAlarm = 3000; // what was announced by its name is not counted as well
export function announceCount(n) {
  if (counted !== undefined && n > counted && Date.now() - spokenAt > sameAlarm) {
    spoken.set(t("alarms.count", { n }));
    if (setting("sound") === "on") beep();
  }
  counted = n;
}

function notify(tile) {
  const n = new Notification(t("alarms.title", { machine: short(tile.name) }), { body: sentence(tile.instruction), tag: tile.incident || tile.name, icon: "/static/favicon.svg" });
  n.onclick = () => { focus(); location.hash = href.machine(tile.name).slice(1); };
}

// beep plays three falling tones.
function beep() {
  try {
    audio ??= new AudioContext();
    [880, 740, 620].forEach((pitch, i) => {
      const tone = audio.createOscillator(), gain = audio.createGain(), at = audio.currentTime + 0.25 * i;
      tone.frequency.value = pitch;
      gain.gain.setValueAtTime(0.25, at);
      gain.gain.exponentialRampToValueAtTime(0.001, at + 0.24);
      tone.connect(gain).connect(audio.destination);
      tone.start(at);
      tone.stop(at + 0.25);
    });
  } catch { /* a browser without sound */ }
}

// toggleSound turns the sound on or off; a browser plays only after a person pressed something.
export function toggleSound() {
  const on = setting("sound") !== "on";
  set("sound", on ? "on" : "");
  if (on) beep();
}

// toggleNotify asks the browser for its permission first. It returns why it cannot notify.
export async function toggleNotify() {
  if (setting("notify") === "on") { set("notify", ""); return ""; }
  if (!globalThis.Notification) return t("alarms.no_notify");
  const may = await Notification.requestPermission();
  if (may !== "granted") return t("alarms.denied");
  set("notify", "on");
  return "";
}
