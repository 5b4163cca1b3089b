// What a person chose on this computer: language, time zone, sound, notifications. The
// browser keeps it, if it may.

const stored = (store, key) => { try { return store().getItem(key) ?? ""; } catch { return ""; } };
const store = (store, key, value) => { try { if (value) store().setItem(key, value); else store().removeItem(key); } catch { /* it lasts until the page is closed */ } };
const local = () => localStorage;

const followers = new Set();
const values = {};

export const setting = (key) => (values[key] ??= stored(local, `flank.${key}`));

// set keeps a choice, and tells the page to draw itself again.
export function set(key, value) {
  values[key] = value;
  store(local, `flank.${key}`, value);
  for (const f of followers) f();
}

export function follow(f) {
  followers.add(f);
  return () => followers.delete(f);
}
