// The page of one machine: what to do about it now, its history, the tools before this one,
// its channels.

import { html, useEffect, useMemo, useRef, useState } from "./vendor/htm-preact-standalone.mjs";
import { useFetch, useLive, useNow, useOffline } from "./store.js";
import { href } from "./route.js";
import { language, t } from "./text.js";
import { ago, clock, full, instant, moment } from "./time.js";
import { Buttons, hear } from "./commands.js";
import { announce } from "./alarms.js";
import { Chip, Details, Icon, WearBar, Words, advisoryShape, age, area, condition, estimate, hasAlarm, isLoud, isSilent, ledgerText, number, sentence, short, spaced, wordOf } from "./parts.js";
import { Lanes } from "./lanes.js";
import { Tools } from "./tools.js";
import { answersAside } from "./alarm.js";
import { Channels, keep, useUsual } from "./channels.js";
import { Spectrum } from "./spectrum.js";

const kept = 600; // results, and 50 alerts

// openOf returns the advisories that are open, of all that came, the oldest first.
export function openOf(all) {
  const last = new Map(all.map((a) => [`${a.kind} ${a.subject ?? ""}`, a]));
  return [...last.values()].filter((a) => a.state === undefined || a.state === "raised");
}

// reduce keeps what is known of the machine. A snapshot holds all of it, an update what is
// new; the tile of either is whole: what it leaves out is not there any more.
export function reduce(old, name, event, at) {
  const first = name === "snapshot" || !old;
  const { machine, tile, results, alerts, advisories, evidence, window, alarms, ...head } = event;
  const m = machine ?? (event.name ? event : undefined) ?? {}, now = tile ?? m;
  const known = new Set((first ? [] : old.alerts).map((a) => a.id));
  const more = (key) => m[key] ?? event[key] ?? [];
  const layout = m.layout?.channels ? m.layout : first ? undefined : old.channels;
  const advised = [...(first ? [] : old.advised), ...(tile && !first ? [] : more("advisories")), ...(first ? [] : advisories ?? [])].slice(-50);
  const next = {
    ...(first || tile ? {} : old), ...head, ...now, channels: layout, advised,
    results: [...(first ? [] : old.results), ...more("results")].slice(-kept),
    alerts: [...(first ? [] : old.alerts), ...more("alerts").filter((a) => !known.has(a.id))].slice(-50),
    window: m.window ?? window ?? (first ? undefined : old.window),
    ledger: m.ledger ?? event.ledger ?? (first ? undefined : old.ledger),
    pairs: keep(first ? undefined : old.pairs, m.window ?? window, layout),
    at: tile || machine || first ? at : old.at,
  };
  next.advisories = tile ? tile.advisories ?? [] : openOf(advised);
  next.layout = layout?.name;
  hear(more("alerts"));
  if (next.name) announce([next], !old);
  return next;
}

export function Machine({ name, query }) {
  const data = useLive({ page: "machine", machine: name }, reduce);
  const now = useNow(1000), offline = useOffline();
  const [channel, setChannel] = useState(""), usual = useUsual(data);
  useTitle(data, now, offline);
  if (!data?.name) return html`<${Head} name=${name} /><p class="says">${t(data ? "machine.none" : "loading")}</p>`;
  return html`<div class="machine" data-machine=${data.name}>
    <${Head} name=${name} tile=${data} now=${now} offline=${offline} />
    <${Now} tile=${data} now=${now} offline=${offline} />
    <${Magazine} tile=${data} />
    <${Lanes} key=${name} tile=${data} results=${data.results} now=${now} query=${query} />
    <${Tools} tile=${data} now=${now} />
    <${Channels} layout=${data.channels} window=${data.window} pairs=${data.pairs} usual=${usual} advisories=${data.advisories} silent=${isSilent(data, now)} onSpectrum=${setChannel} />
    <${Spectrum} tile=${data} channel=${channel} setChannel=${setChannel} />
    <${Alarms} tile=${data} />
  </div>`;
}

function useTitle(tile, now, offline) {
  const title = !tile?.name ? "Flank" : [isLoud(tile) && !offline ? t("machine.title.alarm") : "", offline ? t("connection.lost") : condition(tile, now).word, short(tile.name), "Flank"].filter(Boolean).join(" · ");
  useEffect(() => { document.title = title; }, [title]);
}

// Head names the machine, and says what the last window was like in a chip: the page does not
// change its colours with every window.
function Head({ name, tile, now, offline }) {
  const where = area(name), last = tile?.results?.findLast((r) => !r.late);
  return html`<header class="machine-head">
    <p class="path"><a href=${href.fleet()}>${t("nav.fleet")}</a>${where && ` / ${spaced(where)}`}</p>
    <h1>${short(name)}</h1>
    ${tile && html`<dl class="facts">
      <div><dt>${t("tool")}</dt><dd>${tile.tool || "–"}</dd></div>
      <div><dt>${t("hole")}</dt><dd>${tile.hole || "–"}</dd></div>
      ${last?.programme && html`<div><dt>${t("machine.programme")}</dt><dd>${last.programme}</dd></div>`}
      ${last?.material && html`<div><dt>${t("machine.material")}</dt><dd>${last.material}</dd></div>`}
      ${last?.feed_rate && html`<div><dt>${t("machine.feed_rate")}</dt><dd>${number(last.feed_rate)} mm/min</dd></div>`}
      <div class="last"><dt>${t("machine.last")}</dt><dd><${Last} tile=${tile} now=${now} offline=${offline} /></dd></div>
      ${tile.models?.now && html`<div class="model"><dt>${t("machine.model")}</dt><dd><a href=${href.model(tile.models.now)}>${tile.models.now}</a>${tile.models.unsigned && html` <span class="unsigned">${t("machine.unsigned")}</span>`}${tile.borrowed && html`<small class="borrowed">${t("machine.borrowed")}</small>`}${tile.models.next && html`<small>${t("machine.model.next", { id: tile.models.next })}</small>`}${tile.models.shadows?.length > 0 && html`<small>${t("machine.model.shadow", { ids: tile.models.shadows.join(", ") })}</small>`}</dd></div>`}
    </dl>`}
  </header>`;
}

function Last({ tile, now, offline }) {
  const old = offline || isSilent(tile, now) || tile.refused_age >= 0, verdict = tile.verdict, word = wordOf("verdict", tile.level && verdict === "faulty" ? "different" : verdict);
  if (!verdict) return html`<${Chip} shape="waiting">${t("machine.last.none")}<//>`;
  const score = Number.isFinite(tile.score) && ["healthy", "faulty"].includes(verdict) ? t("machine.score", { score: tile.score.toFixed(2), threshold: Number.isFinite(tile.threshold) ? tile.threshold.toFixed(2) : "–" }) : "";
  return html`<span class="verdict" data-verdict=${old ? "old" : verdict}><${Chip} shape=${old ? "lost" : verdict}>${old ? t("tile.was", { word }) : word}<//>${score && !old && html`<small>${score}</small>`}<small class="age">${offline ? "" : ago(age(tile, now))}</small></span>`;
}

// Now is the state of the alarm, and what to do.
function Now({ tile, now, offline }) {
  const state = condition(tile, now), does = sentence(tile.instruction), open = hasAlarm(tile), { wear, left } = estimate(tile);
  const cause = useMemo(() => tile.alerts?.findLast((a) => a.incident === tile.incident && (a.state === "raised" || a.state === "reactivated")), [tile.alerts, tile.incident]);
  const last = useMemo(() => tile.alerts?.findLast((a) => a.incident === tile.incident && a.by), [tile.alerts, tile.incident]);
  return html`<div class="now-row">
    <section class=${`card now ${offline ? "calm" : state.tone}`} data-state=${state.key} data-incident=${tile.incident} aria-labelledby="state">
      <p class="word"><${Icon} shape=${offline ? "lost" : state.shape} big /><strong id="state">${offline ? t("tile.was", { word: state.word }) : state.word}</strong>${open && tile.since && html`<span class="since">${t("since", { at: moment(tile.since) })}</span>`}</p>
      <p class="does"><${Words} text=${does || t(state.key === "normal" ? "machine.nothing" : state.key === "learning" ? "machine.learning" : state.key === "at_limit" ? "machine.at_limit" : "machine.nothing")} /></p>
      ${open && html`<p class="facts-line">${[cause && tile.instruction?.args?.faulty === undefined && t("machine.k_of_n", { faulty: cause.faulty, of: cause.of, k: cause.k }), last && t("machine.by_whom", { state: wordOf("machine.did", last.state), by: last.by, at: clock(last.at) }), last?.note].filter(Boolean).join(" · ")}</p>`}
      ${open && tile.incident && html`<p class="why-link"><a href=${href.alarm(tile.incident)}>${t("machine.why", { incident: tile.incident })}</a></p>`}
      <${Buttons} tile=${tile} />
    </section>
    <section class="card life" aria-labelledby="life-title">
      <h2 id="life-title">${t("machine.life")}</h2>
      ${tile.level && html`<p class="says first-day">${t("level.says", tile.level)}</p>`}
      ${tile.level || tile.wear || tile.verdict === "learning" ? html`<${WearBar} tile=${tile} />` : html`<p class="says">${t("machine.life.none")}</p>`}
      ${wear && !left && html`<p class="says">${t("machine.left.unknown")}</p>`}
      <h2>${t("machine.advisories")}</h2>
      ${tile.advisories?.length ? html`<ul class="open-advisories">${tile.advisories.map((a) => html`<li data-kind=${a.kind}><${Icon} shape=${advisoryShape(a)} /><div><strong>${wordOf("advisory", a.kind)}${a.subject ? ` ${a.subject}` : ""}${a.kind === "sensor" && a.status ? ` · ${wordOf("ne107", a.status.replaceAll(" ", "_"))}` : ""}</strong> <span class="says">${t("since", { at: moment(a.since) })}</span>${a.text && html`<${Details} text=${a.text} open=${language() === "en"} />`}</div></li>`)}${tile.more_advisories > 0 && html`<li>${t("tile.more", { n: tile.more_advisories })}</li>`}</ul>` : html`<p class="says">${t("machine.advisories.none")}</p>`}
      ${tile.ledger && html`<h2>${t("machine.ledger")}</h2><p class="says ledger">${ledgerText(tile.ledger, now)}</p>`}
    </section>
  </div>`;
}

// Magazine lists the open alarms of tools that are not in the spindle.
function Magazine({ tile }) {
  if (!tile.magazine?.length) return null;
  return html`<section class="card magazine" aria-labelledby="magazine-title"><h2 id="magazine-title">${t("machine.magazine")}</h2><p class="says">${t("machine.magazine.says")}</p>
    <div class="scroll"><table><thead><tr>${["tool", "alarm", "state"].map((k) => html`<th scope="col">${t(`machine.alarms.${k}`)}</th>`)}<th scope="col">${t("alarm.faulty_since")}</th><td /></tr></thead>
      <tbody>${tile.magazine.toReversed().map((a) => html`<tr key=${a.incident} data-incident=${a.incident}><th scope="row">${a.tool || t("machine.tool.unnamed")}</th><td><a href=${href.alarm(a.incident)}>${a.incident}</a></td><td>${inMagazine(a.alarm)}</td><td>${a.since ? moment(a.since) : "–"}</td><td><${Buttons} tile=${{ ...a, name: tile.name }} only=${answersAside} /></td></tr>`)}</tbody></table></div>
  </section>`;
}

const inMagazine = (word) => `${wordOf("alarm", word)}, ${t("alarm.in_magazine")}`;

// Alarms lists the machine's last alarms. It asks again when something happened to one.
function Alarms({ tile }) {
  const at = [tile.incident, tile.alarm, tile.alerts.at(-1)?.id, tile.magazine?.map((a) => a.incident)].join(" ");
  const { data, error } = useFetch(`/api/alarms?${new URLSearchParams({ machine: tile.name, limit: 20, at })}`);
  const before = useRef();
  if (data) before.current = data;
  const all = before.current?.alarms ?? [];
  return html`<section class="card past-alarms" aria-labelledby="alarms-title"><h2 id="alarms-title">${t("machine.alarms")}</h2>
    ${error && html`<p class="error">${t("machine.history.failed", { why: error.message })}</p>`}
    ${before.current && !all.length && html`<p class="says none">${t("machine.alarms.none")}</p>`}
    ${all.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label=${t("machine.alarms.list")}><table><thead><tr>${["raised", "alarm", "tool", "wear", "windows", "ended", "state"].map((k) => html`<th scope="col">${t(`machine.alarms.${k}`)}</th>`)}</tr></thead>
      <tbody>${all.map((a) => html`<tr key=${a.incident}><td>${full(a.raised ?? a.since)}</td><th scope="row"><a href=${href.alarm(a.incident)}>${a.incident}</a></th><td>${a.tool || "–"}</td><td>${a.wear_um === undefined ? "–" : `${Math.round(a.wear_um)} µm`}</td><td>${a.of ? t("machine.of", { n: a.faulty, of: a.of }) : "–"}</td>
        <td>${a.state !== "normal" || !a.cleared ? "–" : moment(a.cleared)}</td><td><${Icon} shape=${a.state === "normal" ? "cleared" : "raised"} /> ${a.state === "normal" ? t("machine.alarms.over") : a.magazine ? inMagazine(a.state) : wordOf("alarm", a.state)}${a.false_alarm ? ` · ${t("machine.alarms.false")}` : ""}</td></tr>`)}</tbody></table></div>`}
  </section>`;
}
