// The machines of the program: one link each, with what the tool is like, whether an
// alarm is open, and when the last window came. Which one is looked at is in the
// address, so that it survives a reload: #machine=acme/line1/usk25&alarm=A-K3ZQ7M2P.

import { verdicts, loudness, duration, plain } from "./words.js";

const incident = /^A-[A-Z2-7]{8}$/;

export const address = (machine, alarm = "") => `#machine=${encodeURIComponent(machine).replaceAll("%2F", "/")}${alarm && `&alarm=${alarm}`}`;

// looked returns what the address asks for. An alarm alone, #/A-K3ZQ7M2P, is of the
// machine that the program says.
export function looked() {
  const q = new URLSearchParams(location.hash.slice(1)), alarm = location.hash.match(/^#\/(.*)$/)?.[1] ?? q.get("alarm");
  return { machine: q.get("machine") ?? "", alarm: incident.test(alarm) ? alarm : "" };
}

// silent reports whether no verdict on a machine came for too long. unwatched reports
// whether the reason is that the monitor refuses its windows.
export const silent = (m) => !((performance.now() - m.shown) / 1000 <= Math.max(10, 5 * (m.span ?? 1)));
export const unwatched = (m) => m?.refused_age !== undefined && (silent(m) || m.shown < m.refusedAt);

// loud returns how loud the alarm of a machine is shown.
export const loud = (m) => loudness[m?.alarm ?? ""] ?? "loud";

export class Machines {
  #rows = new Map(); // name → row
  #chosen = "";
  #text = document.getElementById("machines-says");
  #list = document.querySelector("#machines ul");

  constructor() { // keys need not go through a hundred links
    document.getElementById("skip").addEventListener("click", () => document.querySelector("main").focus());
  }

  // show lists all machines, of which one is chosen and may not be among them. Rows
  // keep their places and are written over: what is clicked on must not move.
  show(all, chosen, crowded, limit) {
    const names = [...all.keys()].sort();
    document.getElementById("machines").hidden = names.length === 0 || (names.length === 1 && names[0] === chosen && !crowded);
    if (names.length !== this.#rows.size || names.some((n) => !this.#rows.has(n))) this.#build(names);
    for (const [name, row] of this.#rows) row.show(all.get(name), name === chosen);
    if (this.#chosen !== chosen && this.#rows.has(chosen)) this.#reveal((this.#chosen = chosen));
    const open = [...all.values()].filter((m) => loud(m) === "loud").length, refused = [...all.values()].filter(unwatched).length;
    this.#say([`${names.length} ${names.length === 1 ? "machine" : "machines"}`, open ? `${open} with an alarm` : "", refused ? `${refused} not watched` : "", crowded ? `there are more: a page shows ${limit} at most` : ""].filter(Boolean).join(", "));
  }

  // others returns how many machines but one have an alarm that calls.
  others(all, chosen) { return [...all].filter(([name, m]) => name !== chosen && loud(m) === "loud").length; }

  #build(names) {
    const focus = this.#list.contains(document.activeElement) ? document.activeElement.dataset.machine : undefined;
    const short = shortest(names);
    for (const name of this.#rows.keys()) if (!names.includes(name)) this.#rows.delete(name);
    for (const name of names) this.#rows.set(name, this.#rows.get(name) ?? new Row(name));
    for (const [name, row] of this.#rows) row.name.textContent = short.get(name).replaceAll("/", "/\u200b"); // lines may end there
    this.#list.replaceChildren(...names.map((n) => this.#rows.get(n).li));
    if (focus) this.#rows.get(focus)?.a.focus({ preventScroll: true });
  }

  // reveal scrolls the list, and not the page, to a row.
  #reveal(name) {
    const list = this.#list, { li } = this.#rows.get(name), top = li.offsetTop - list.offsetTop;
    if (top < list.scrollTop || top + li.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top;
  }

  #say(text) { if (this.#text.textContent !== text) this.#text.textContent = text; }
}

class Row {
  #shown = {};

  constructor(name) {
    this.li = document.getElementById("row").content.cloneNode(true).firstChild;
    [this.a, this.name, this.use, this.word, this.alarm, this.age] = ["a", ".name", ".shape use", ".state", ".mark", "time"].map((q) => this.li.querySelector(q));
    Object.assign(this.a, { href: address(name), title: name });
    this.a.dataset.machine = name;
  }

  show(m, chosen) {
    const age = m.shown === undefined ? NaN : (performance.now() - m.shown) / 1000;
    const known = verdicts[m.verdict], how = loud(m), refused = unwatched(m), lost = refused || silent(m);
    const now = {
      shape: lost ? "lost" : known ? m.verdict : "waiting",
      word: refused ? "Not watched" : lost ? "No windows" : known?.word ?? "Waiting",
      alarm: how === "calm" ? "" : plain(m.alarm), how, chosen,
      age: Number.isNaN(age) ? "" : duration(age),
    };
    if (Object.entries(now).every(([k, v]) => this.#shown[k] === v)) return;
    this.#shown = now;
    this.use.setAttribute("href", "#" + now.shape);
    Object.assign(this.a.dataset, { verdict: now.shape, alarm: how });
    for (const [e, text] of [[this.word, now.word], [this.alarm, now.alarm], [this.age, now.age]]) e.textContent = text;
    if (chosen) this.a.setAttribute("aria-current", "page"); else this.a.removeAttribute("aria-current");
  }
}

// shortest returns for each path the fewest of its last parts that no other has.
function shortest(names) {
  const short = new Map();
  for (const name of names) {
    const parts = name.split("/"), end = (n) => parts.slice(-n).join("/");
    let n = 1;
    while (n < parts.length && names.some((o) => o !== name && o.split("/").slice(-n).join("/") === end(n))) n++;
    short.set(name, end(n));
  }
  return short;
}
