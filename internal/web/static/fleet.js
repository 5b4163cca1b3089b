// The fleet: one tile a machine, grouped by where it stands, worst first.

import { html, Component, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/htm-preact-standalone.mjs";
import { head, useLive, useNow, useOffline, useShared } from "./store.js";
import { setting } from "./settings.js";
import { href } from "./route.js";
import { t } from "./text.js";
import { ago, moment } from "./time.js";
import { Advisory, Details, Empty, Icon, Strip, WearBar, Words, age, area, condition, isLoud, sentence, short, spaced } from "./parts.js";
import { Buttons } from "./commands.js";
import { announce, toggleNotify, toggleSound } from "./alarms.js";
import { FirstRun } from "./first.js";

// reduce keeps the machines by name. A snapshot holds them whole; an update holds new ones
// whole and merge patches of others, which name them by a short id.
function reduce(old, name, event, at) {
  const first = name === "snapshot" || !old;
  const machines = new Map(first ? [] : old.machines), names = new Map(first ? [] : old.names);
  for (const m of event.machines ?? []) {
    const had = machines.get(m.name ?? names.get(m.id));
    if (!had && !m.name) continue;
    const tile = m.name ? { ...m, at } : patched(had, m, at);
    machines.set(tile.name, tile);
    names.set(tile.id, tile.name);
  }
  announce([...machines.values()], !old, true);
  return { ...old, ...event, machines, names };
}

const cells = 60; // of a strip

// patched applies what a frame says of a tile: null removes a member, "+" appends letters to
// the strip. With letters came windows, so the last one is as old as the frame.
export function patched(tile, patch, at) {
  const { "+": letters = "", wear, ...rest } = patch, next = { ...tile };
  for (const [k, v] of Object.entries(rest)) if (v === null) delete next[k]; else next[k] = v;
  if (wear === null) delete next.wear;
  else if (wear) {
    next.wear = { ...tile.wear, ...wear };
    for (const [k, v] of Object.entries(wear)) if (v === null) delete next.wear[k];
  }
  if (letters) {
    next.strip = (tile.strip + letters).slice(-cells);
    if (!("verdict_at" in rest) && tile.verdict_at) next.verdict_at = new Date(Date.parse(tile.verdict_at) + 1000 * letters.length * (next.span ?? 0)).toISOString();
    if (!("window_age" in rest)) next.window_age = 0;
  }
  if (letters || "window_age" in rest) next.at = at;
  return next;
}

const byRank = (a, b) => (a.rank ?? 9) - (b.rank ?? 9) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

// grouped returns [[area, names]] with the worst group first, and the worst machine of each
// group first.
function grouped(machines) {
  const groups = new Map();
  for (const m of [...machines.values()].sort(byRank)) {
    const where = area(m.name);
    if (!groups.has(where)) groups.set(where, []);
    groups.get(where).push(m.name);
  }
  return [...groups];
}

// useOrder returns the order that is shown. While a person points at the grid or has the
// focus in it, nothing moves: machines that come are shown after all others, machines that go
// keep their place.
function useOrder(machines, held) {
  const kept = useRef([]);
  return useMemo(() => {
    const next = grouped(machines);
    if (!held || !kept.current.length) return (kept.current = next);
    const had = new Set(kept.current.flatMap(([, names]) => names));
    const fresh = next.flatMap(([, names]) => names).filter((n) => !had.has(n));
    if (!fresh.length) return kept.current;
    const [where, names] = kept.current.at(-1);
    return (kept.current = where === newcomers ? [...kept.current.slice(0, -1), [where, [...names, ...fresh]]] : [...kept.current, [newcomers, fresh]]);
  }, [machines, held]);
}

const newcomers = "\u0000new"; // no area has this name

// usePinned keeps the rows of tiles as high as they are while the grid is held, so that a tile
// that has more to say does not push others away. See .held in style.css.
function usePinned(grid, held, ...changes) {
  useLayoutEffect(() => {
    if (!held) return undefined;
    const boxes = [...grid.current.querySelectorAll(".tiles")], release = () => { for (const x of boxes) x.style.gridTemplateRows = ""; };
    const rows = boxes.map((x) => getComputedStyle(x).gridTemplateRows);
    boxes.forEach((x, i) => { x.style.gridTemplateRows = rows[i]; });
    addEventListener("resize", release);
    return () => { removeEventListener("resize", release); release(); };
  }, [held, ...changes]);
}

const saysWhy = new Set(["machine_stopped", "windows_refused"]); // a machine is not watched: its instruction is all there is to say

// Tile is drawn again only if its machine changed or its age reads otherwise.
class Tile extends Component {
  shouldComponentUpdate(next) {
    return next.tile !== this.props.tile || next.tv !== this.props.tv || next.offline !== this.props.offline || next.chosen !== this.props.chosen
      || (!next.offline && (ago(age(next.tile, next.now)) !== this.said || condition(next.tile, next.now).key !== this.key));
  }

  render() {
    const { tile, now, offline, tv, chosen } = this.props;
    const state = condition(tile, now), old = age(tile, now);
    this.said = ago(old);
    this.key = state.key;
    const told = (tile.advisories ?? []).filter((a) => state.key !== "not_watched" || !saysWhy.has(a.kind));
    const more = Math.max(0, told.length - 3) + (tile.more_advisories ?? 0);
    const does = sentence(tile.instruction), bad = state.key !== "normal";
    return html`<article class=${`tile ${offline ? "calm" : state.tone}`} data-machine=${tile.name} data-state=${state.key}>
      <${tv ? "h2" : "h3"} class="name"><a href=${href.machine(tile.name)} tabindex=${chosen ? 0 : -1} data-machine=${tile.name}>${short(tile.name)}</a><//>
      <span class="age" title=${t("tile.age")}>${offline ? "" : this.said}</span>
      <p class="state"><${Icon} shape=${offline ? "lost" : state.shape} big=${tv} /><strong>${offline ? t("tile.was", { word: state.word }) : state.word}</strong>${isLoud(tile) && tile.since && html` <span class="since">${t("since", { at: moment(tile.since) })}</span>`}</p>
      ${bad && does && html`<p class="does"><${Words} text=${does} /></p>`}
      ${!tv && state.key === "not_watched" && tile.instruction?.args?.text && html`<${Details} text=${tile.instruction.args.text} />`}
      <p class="what">${tile.tool ? html`<span>${t("tool")} <b>${tile.tool}</b></span>` : html`<span>${t("tile.no_tool")}</span>`}${tile.hole && html`<span>${t("hole")} <b>${tile.hole}</b></span>`}</p>
      ${tile.magazine?.length > 0 && html`<p class="what magazine">${t("tile.magazine", { n: tile.magazine.length })}</p>`}
      <${WearBar} tile=${tile} />
      <${Strip} strip=${tile.strip} />
      ${told.length > 0 && html`<ul class="advisories">${told.slice(0, 3).map((a) => html`<${Advisory} advisory=${a} />`)}${more > 0 && html`<li>${t("tile.more", { n: more })}</li>`}</ul>`}
      ${!tv && isLoud(tile) && html`<${Buttons} tile=${tile} only=${["acknowledge", "shelve"]} />`}
    </article>`;
  }
}

const matches = (tile, words) => words.every((w) => `${tile.name} ${tile.tool ?? ""} ${tile.hole ?? ""} ${tile.incident ?? ""} ${(tile.magazine ?? []).map((a) => `${a.tool} ${a.incident}`).join(" ")} ${tile.layout ?? ""}`.toLowerCase().includes(w));

// Summary counts machines by what they need.
function Summary({ machines, now, offline }) {
  const counts = new Map();
  for (const m of machines.values()) {
    const { tone } = condition(m, now);
    counts.set(tone, (counts.get(tone) ?? 0) + 1);
  }
  // Counts of nothing are shown too, so that the grid does not move when the first one comes.
  const part = (tone, shape) => html`<li class=${offline || !counts.get(tone) ? "calm" : tone}><${Icon} shape=${offline ? "lost" : shape} />${t(`summary.${tone}`, { n: counts.get(tone) ?? 0 })}</li>`;
  return html`<ul class="summary" aria-label=${t("summary")}><li>${t("summary.machines", { n: machines.size })}</li>${part("alarm", "raised")}${part("warn", "sensor_fault")}${part("info", "info")}${part("calm", "normal")}</ul>`;
}

// Calls are the buttons for sound and notification.
function Calls() {
  const [why, say] = useState("");
  return html`<button type="button" aria-pressed=${setting("sound") === "on" ? "true" : "false"} onClick=${toggleSound}>${t("alarms.sound")}</button>
    <button type="button" aria-pressed=${setting("notify") === "on" ? "true" : "false"} onClick=${async () => say(await toggleNotify())}>${t("alarms.notify")}</button>
    <span role="status" class="why">${why}</span>`;
}

export function Fleet({ query }) {
  const data = useLive({ page: "fleet" }, reduce), now = useNow(1000), offline = useOffline();
  const machines = data?.machines ?? nothing;
  const tv = query.has("tv");
  if (!data) return html`<h1 class=${tv ? "unseen" : ""}>${t("nav.fleet")}</h1><p class="says">${t("loading")}</p>`;
  if (!machines.size) return html`<h1>${t("nav.fleet")}</h1><${FirstRun} />`;
  return tv ? html`<${Television} machines=${machines} now=${now} offline=${offline} />`
    : html`<${Grid} data=${data} machines=${machines} now=${now} offline=${offline} />`;
}

const nothing = new Map();

function Grid({ data, machines, now, offline }) {
  const [words, setWords] = useState(""), [only, setOnly] = useState("all"), [group, setGroup] = useState(""), [chosen, choose] = useState("");
  const [pointed, setPointed] = useState(false), [focused, setFocused] = useState(false);
  const search = useRef(), grid = useRef();
  useLayoutEffect(() => { if (!performance.getEntriesByName("tiles").length) performance.mark("tiles"); }, []); // how long the first paint takes
  const held = pointed || focused, order = useOrder(machines, held);
  usePinned(grid, held, words, only, group);
  const groups = useMemo(() => [...new Set([...machines.keys()].map(area))].sort(), [machines]);
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (m) => matches(m, wanted) && (only === "all" || condition(m, now).key !== "normal") && (!group || area(m.name) === group || area(m.name).startsWith(`${group}/`));
  const shown = order.map(([where, names]) => [where, names.map((n) => machines.get(n) ?? gone(n)).filter(fits)]).filter(([, tiles]) => tiles.length);
  const first = shown[0]?.[1][0]?.name, at = shown.some(([, tiles]) => tiles.some((x) => x.name === chosen)) ? chosen : first;

  useLayoutEffect(() => { // keys work from the moment that the tiles are there
    const key = (e) => {
      if (e.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName) && !document.querySelector("dialog[open]")) {
        e.preventDefault();
        search.current.focus();
      }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  useEffect(() => { // an element that goes away does not say that it loses the focus
    if (focused && !grid.current.contains(document.activeElement)) setFocused(false);
    if (pointed && !grid.current.matches(":hover")) setPointed(false);
  }, [now]);
  const move = (e) => {
    const links = [...grid.current.querySelectorAll(".name a")], i = links.indexOf(document.activeElement);
    if (e.key === "Escape") { search.current.focus(); return; }
    if (i < 0) return;
    const next = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: links.length - 1, ArrowDown: beside(links, i, 1), ArrowUp: beside(links, i, -1) }[e.key];
    if (next === undefined || !links[next]) return;
    e.preventDefault();
    choose(links[next].dataset.machine);
    links[next].focus();
  };
  const searchKey = (e) => {
    if (e.key === "Escape") setWords("");
    else if (e.key === "Enter" && first) location.hash = href.machine(first).slice(1);
    else if (e.key === "ArrowDown") { e.preventDefault(); grid.current.querySelector(".name a")?.focus(); }
  };
  const count = shown.reduce((n, [, tiles]) => n + tiles.length, 0);
  const { commands } = useShared(head);
  return html`<h1 class="unseen">${t("nav.fleet")}</h1>
    ${data.insecure_models && html`<p class="banner" role="status">${t("fleet.insecure")}</p>`}
    <${Summary} machines=${machines} now=${now} offline=${offline} />
    <form class="filter" role="search" onSubmit=${(e) => e.preventDefault()}>
      <label><span class="unseen">${t("fleet.search")}</span><input type="search" name="search" autocomplete="off" ref=${search} value=${words} placeholder=${t("fleet.search.hint")} onInput=${(e) => setWords(e.target.value)} onKeyDown=${searchKey} /></label>
      <label><span class="unseen">${t("fleet.show")}</span><select name="only" onChange=${(e) => setOnly(e.target.value)}><option value="all">${t("fleet.all")}</option><option value="bad">${t("fleet.bad")}</option></select></label>
      ${groups.length > 1 && html`<label><span class="unseen">${t("fleet.group")}</span><select name="group" onChange=${(e) => setGroup(e.target.value)}><option value="">${t("fleet.groups")}</option>${groups.map((g) => html`<option value=${g}>${spaced(g) || t("fleet.no_group")}</option>`)}</select></label>`}
      <span class="says" role="status">${[count < machines.size && t("fleet.count", { n: count, of: machines.size }), data.crowded && t("fleet.crowded", { n: data.limit })].filter(Boolean).join(" ")}</span>
      <span class="grow" /><${Calls} /><a class="button" href=${href.fleet("?tv")}>${t("fleet.tv")}</a>
    </form>
    ${commands === false && html`<p class="says hint">${t("why.no_token")}</p>`}
    <div class=${held ? "grid held" : "grid"} ref=${grid} onKeyDown=${move} onPointerEnter=${() => setPointed(true)} onPointerLeave=${() => setPointed(false)} onFocusIn=${() => setFocused(true)} onFocusOut=${(e) => setFocused(grid.current.contains(e.relatedTarget))}>
      ${shown.map(([where, tiles]) => html`<section key=${where} aria-label=${title(where)}>
        <h2>${title(where)}</h2>
        <div class="tiles">${tiles.map((tile) => html`<${Tile} key=${tile.name} tile=${tile} now=${now} offline=${offline} chosen=${tile.name === at} />`)}</div>
      </section>`)}
    </div>
    ${!count && html`<${Empty} title=${t("fleet.none")}><p><button type="button" onClick=${() => { setWords(""); setOnly("all"); setGroup(""); for (const s of document.querySelectorAll(".filter select")) s.selectedIndex = 0; }}>${t("fleet.reset")}</button></p><//>`}`;
}

const title = (where) => (where === newcomers ? t("fleet.new") : spaced(where) || t("fleet.no_group"));

// gone stands for a machine that the program does not show any more, until the list may move.
const gone = (name) => ({ name, window_age: -1, strip: "" });

// beside returns the link above or below link i: the nearest one in the next row of tiles.
function beside(links, i, way) {
  const from = links[i].getBoundingClientRect(), rows = links.map((l) => l.getBoundingClientRect());
  const ahead = rows.map((r, n) => ({ n, down: way * (r.top - from.top), across: Math.abs(r.left - from.left) })).filter((r) => r.down > 4);
  if (!ahead.length) return undefined;
  const near = Math.min(...ahead.map((r) => r.down));
  return ahead.filter((r) => r.down <= near + 4).sort((a, b) => a.across - b.across)[0].n;
}

// Television shows as many tiles as fit, large, and turns pages by itself. The first page
// holds the worst, and comes again after every other one while an alarm is open.
function Television({ machines, now, offline }) {
  const box = useRef(), [fit, setFit] = useState({ n: 6, row: "" }), [turn, setTurn] = useState(0);
  useEffect(() => {
    const measure = () => {
      const { clientWidth: w, clientHeight: h } = box.current, rows = Math.max(1, Math.floor(h / tvTile.height));
      setFit({ n: rows * Math.max(1, Math.floor(w / tvTile.width)), row: `${Math.max(tvTile.height / 2, (h - tvTile.gap * (rows - 1)) / rows)}px` });
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    const timer = setInterval(() => setTurn((n) => n + 1), tvTurn);
    return () => { watch.disconnect(); clearInterval(timer); };
  }, []);
  const sorted = [...machines.values()].sort(byRank), pages = Math.ceil(sorted.length / fit.n);
  const calls = sorted.some(isLoud) && pages > 1;
  const page = !calls ? turn % pages : turn % 2 === 0 ? 0 : 1 + Math.floor(turn / 2) % (pages - 1);
  return html`<h1 class="unseen">${t("nav.fleet")}</h1>
    <div class="wall"><${Summary} machines=${machines} now=${now} offline=${offline} />
      ${pages > 1 && html`<p class="says">${t("fleet.page", { n: page + 1, of: pages })}</p>`}<a class="button" href=${href.fleet()}>${t("fleet.leave_tv")}</a></div>
    <div class="grid" ref=${box}><div class="tiles" style=${{ "--row": fit.row }}>${sorted.slice(page * fit.n, (page + 1) * fit.n).map((tile) => html`<${Tile} key=${tile.name} tile=${tile} now=${now} offline=${offline} tv=${true} chosen=${true} />`)}</div></div>`;
}

const tvTile = { width: 590, height: 400, gap: 10 }, tvTurn = 10000;
