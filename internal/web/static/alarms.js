// Alarms that a person must hear of, no matter which page is open: a live region that speaks
// of alarms only, a sound, and a notification of the browser. The last two are off until a
// person turns them on.

import { head, shared } from "./store.js";
import { setting, set } from "./settings.js";
import { isLoud, short, sentence } from "./parts.js";
import { href } from "./route.js";
import { t } from "./text.js";

// spoken is the text of the live region.
export const spoken = shared("");

// silent is whether the sound is on and the browser keeps it back: a page that was loaded again may
// play only after a person has pressed something on it.
export const silent = shared(false);

const known = new Map(); // machine → incident that was announced
let audio;

// announce is told the machines that a page shows, and whether they are all there are. Of alarms
// that were raised before the page was opened, or that announceCount has called while another
// page was open, it only takes note.
export function announce(tiles, first, all) {
  const now = tiles.filter(isLoud);
  const fresh = now.filter((x) => known.get(x.name) !== (x.incident ?? ""));
  for (const x of tiles) if (!isLoud(x)) known.delete(x.name);
  for (const x of now) known.set(x.name, x.incident ?? "");
  const heard = all && fresh.length <= owed;
  if (all) owed = 0;
  if (first || heard || !fresh.length) return;
  const words = fresh.slice(0, 3).map((x) => t("alarms.spoken", { machine: short(x.name), text: sentence(x.instruction) }));
  if (fresh.length > 3) words.push(t("alarms.more", { n: fresh.length - 3 }));
  if (counted !== undefined) counted = Math.min(counted + fresh.length, head.get().alarms ?? 0); // they are not news for announceCount
  spoken.set(words.join(" "));
  if (setting("sound") === "on") beep();
  if (setting("notify") === "on" && globalThis.Notification?.permission === "granted") {
    for (const x of fresh.slice(0, 3)) notify(x);
  }
}

// announceCount is told how many machines have an alarm that calls. It announces a greater number
// unless the page shows all machines: that one names them.
let counted, owed = 0; // owed: how many it has called since the page of all machines was open
export function announceCount(n, all) {
  if (!all && counted !== undefined && n > counted) {
    owed += n - counted;
    spoken.set(t("alarms.count", { n }));
    if (setting("sound") === "on") beep();
  }
  counted = n;
}

function notify(tile) {
  let n;
  try {
    n = new Notification(t("alarms.title", { machine: short(tile.name) }), { body: sentence(tile.instruction), tag: tile.incident || tile.name, icon: "/static/favicon.svg" });
  } catch { return; } // a browser that lets only service workers notify
  n.onclick = () => { focus(); location.hash = href.machine(tile.name).slice(1); };
}

// player returns what plays tones.
function player() {
  if (!audio) {
    audio = new AudioContext();
    audio.onstatechange = look;
    for (const event of ["pointerup", "keyup"]) addEventListener(event, () => { if (audio.state !== "running") audio.resume(); });
  }
  return audio;
}

const look = () => silent.set(setting("sound") === "on" && audio !== undefined && audio.state !== "running");

// readySound finds out, when the page is loaded, whether the browser would play the sound.
export function readySound() {
  if (setting("sound") !== "on") return;
  try { player(); } catch { return; } // a browser without sound
  setTimeout(look, 500); // it starts a moment later, if it may
}

// beep plays three falling tones.
function beep() {
  try {
    player();
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
  if (audio) look();
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
