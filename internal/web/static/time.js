// One clock for the page: the time zone of the browser or UTC, as a person chose. It is
// named in the header of the page.

import { setting } from "./settings.js";
import { skew } from "./store.js";
import { language, t } from "./text.js";

const cache = new Map();
function format(options) {
  const key = JSON.stringify([language(), setting("zone"), options]);
  if (!cache.has(key)) cache.set(key, new Intl.DateTimeFormat(language(), { hourCycle: "h23", timeZone: zone(), ...options }));
  return cache.get(key);
}

// zone returns the IANA name of the page's time zone; undefined is the browser's.
export const zone = () => (setting("zone") === "utc" ? "UTC" : undefined);
export const zoneName = () => zone() ?? Intl.DateTimeFormat().resolvedOptions().timeZone;

// instant returns milliseconds of what the API sends: RFC 3339 text, or Unix seconds. It
// is NaN if that is not known; Go's zero time is not known either.
export function instant(at) {
  const ms = at instanceof Date ? at.getTime() : typeof at === "number" ? 1000 * at : Date.parse(at);
  return ms > -6e13 ? ms : NaN;
}

// A recording that does not say when it began counts from 1970, so times before
// September 2001 are seconds from its start.
export const hasClock = (at) => instant(at) >= 1e12;
const second = (at) => t("time.second", { n: +(instant(at) / 1000).toFixed(3) });

const day = { day: "numeric", month: "short", year: "numeric" };
const same = (a, b) => format(day).format(a) === format(day).format(b);

// clock returns hours, minutes and seconds.
export const clock = (at) => (Number.isNaN(instant(at)) ? "–" : hasClock(at) ? format({ hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(instant(at)) : second(at));

// moment returns the time, with the day before it unless that is today.
export function moment(at) {
  const ms = instant(at);
  if (Number.isNaN(ms)) return "–";
  if (!hasClock(at)) return second(at);
  const time = format({ hour: "2-digit", minute: "2-digit" }).format(ms);
  return same(ms, Date.now() + skew.get()) ? time : `${format(day).format(ms)}, ${time}`;
}

// date returns the day and the month.
export const date = (at) => (hasClock(at) ? format({ day: "numeric", month: "short" }).format(instant(at)) : second(at));

// full returns the day and the time to the second.
export const full = (at) => (hasClock(at) ? format({ ...day, hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" }).format(instant(at)) : moment(at));

// duration words a length of time, which is in seconds.
export function duration(s) {
  if (!Number.isFinite(s)) return "–";
  if (s < 90) return t("time.seconds", { n: Math.max(0, Math.round(s)) });
  if (s < 5400) return t("time.minutes", { n: Math.round(s / 60) });
  if (s < 129600) return t("time.hours", { n: Math.round(s / 3600) });
  return t("time.days", { n: Math.round(s / 86400) });
}

// ago words how long something is past. A moment ago is "now".
export const ago = (s) => (!Number.isFinite(s) ? "–" : s < 2 ? t("time.now") : t("time.ago", { span: duration(s) }));
