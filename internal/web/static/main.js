// The page: which part of it is shown, what is always there, and the connection.

import { html, render, Component, useEffect, useLayoutEffect, useReducer, useRef, useState } from "./vendor/htm-preact-standalone.mjs";
import { current, address, href } from "./route.js";
import { connection, head, skew, useShared, useNow, useOffline } from "./store.js";
import { follow, setting, set } from "./settings.js";
import { zoneName, clock, ago, duration, moment } from "./time.js";
import { language, languages, t } from "./text.js";
import { ask, me, Login, Who } from "./account.js";
import { Commands } from "./commands.js";
import { announceCount, readySound, silent, spoken } from "./alarms.js";
import { Empty } from "./parts.js";
import { Fleet } from "./fleet.js";
import { Machine } from "./machine.js";
import { Alarm } from "./alarm.js";
import { Model } from "./model.js";
import { System } from "./system.js";

const pages = { fleet: Fleet, machine: Machine, alarm: Alarm, model: Model, system: System };

function useRoute() {
  const [route, set] = useState(current());
  useLayoutEffect(() => {
    const changed = () => {
      const next = current();
      if (next.page !== "nowhere" && address(next) !== location.hash) history.replaceState(null, "", address(next)); // an old address
      set(next);
    };
    changed();
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

// Connection says whether what is shown is new.
function Connection() {
  const { state, since } = useShared(connection);
  const now = useNow(1000);
  const text = state === "lost" ? t("offline.for", { ago: ago((now - since) / 1000) }) : t(`connection.${state}`);
  return html`<p id="connection" class="pill" data-state=${state}>${text}</p>`;
}

const mostSkew = 60; // seconds that the browser's clock may differ from the program's without a word

// Clock shows the program's time, by which the page dates all that it shows, and the zone. It says so if the browser's
// clock shows another time.
function Clock() {
  const now = useNow(1000), ahead = useShared(skew) / 1000;
  return html`${Math.abs(ahead) > mostSkew && html`<p id="skew" class="pill" role="status">${t(ahead < 0 ? "clock.fast" : "clock.slow", { span: duration(Math.abs(ahead)) })}</p>`}
    <p class="clock"><time>${clock(new Date(now + 1000 * ahead))}</time> <span id="zone">${zoneName()}</span></p>`;
}

// Choices holds what a person may set for this browser.
function Choices() {
  const pick = (key) => (e) => set(key, e.target.value);
  return html`<details class="choices"><summary>${t("choices")}</summary><div>
    <label>${t("choices.language")}<select name="language" value=${language()} onChange=${pick("language")}>${Object.entries(languages).map(([k, v]) => html`<option value=${k} selected=${k === language()}>${v}</option>`)}</select></label>
    <label>${t("choices.zone")}<select name="zone" onChange=${pick("zone")}>
      <option value="" selected=${!setting("zone")}>${t("choices.browser", { zone: Intl.DateTimeFormat().resolvedOptions().timeZone })}</option>
      <option value="utc" selected=${setting("zone") === "utc"}>UTC</option></select></label>
  </div></details>`;
}

function Offline() {
  const since = useOffline();
  return since ? html`<p id="offline" class="banner" role="status">${t("offline.says", { at: moment(new Date(since + skew.get())) })}</p>` : null;
}

// Title is what the browser's tab says.
function Title({ route }) {
  const { title, alarms } = useShared(head), { state } = useShared(connection);
  useEffect(() => {
    const parts = [state === "lost" ? t("connection.lost") : alarms ? t("title.alarms", { n: alarms }) : "", route.name, title ?? "Flank"];
    if (route.page !== "machine" && route.page !== "alarm") document.title = parts.filter(Boolean).join(" · "); // those name theirs
    if (alarms !== undefined) announceCount(alarms, route.page === "fleet");
  }, [title, alarms, state, route]);
  return null;
}

// Silent says that a press is needed before the page can sound.
function Silent() {
  return useShared(silent) ? html`<p id="silent" class="pill" role="status">${t("alarms.silent")}</p>` : null;
}

function Spoken() {
  const text = useShared(spoken);
  return html`<p id="spoken" class="unseen" aria-live="assertive">${text}</p>`;
}

// Guard shows what went wrong in a page in place of the page.
class Guard extends Component {
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  render() {
    if (!this.state.error) return this.props.children;
    return html`<${Empty} title=${t("broken.title")}><p>${t("broken.says")}</p><p class="error">${String(this.state.error)}</p><p><button type="button" onClick=${() => location.reload()}>${t("broken.reload")}</button></p><//>`;
  }
}

const Nowhere = () => html`<${Empty} title=${t("nowhere.title")}><p>${t("nowhere.says")} <a href=${href.fleet()}>${t("nav.fleet")}</a></p><//>`;

function App() {
  const route = useRoute(), [login, setLogin] = useState(false);
  const since = useOffline(), who = useShared(me), main = useRef(), shown = useRef();
  const forced = who?.read === "token" && !who.role;
  const key = `${route.page} ${route.name}`;
  useLayoutEffect(() => {
    if (shown.current && shown.current !== key) { main.current.focus({ preventScroll: true }); scrollTo(0, 0); }
    shown.current = key;
  }, [key]);
  const tv = route.page === "fleet" && route.query.has("tv");
  const Page = pages[route.page] ?? Nowhere;
  const here = (page) => (route.page === page ? "page" : undefined);
  return html`<div class=${`shell${since ? " offline" : ""}${tv ? " tv" : ""}`}>
    <button type="button" class="skip" onClick=${() => main.current.focus()}>${t("skip")}</button>
    <header class="top">
      <a class="brand" href=${href.fleet()}><img src="/static/favicon.svg" alt="" width="26" height="26" /><span>Flank</span></a>
      ${!tv && html`<nav aria-label=${t("nav")}><a href=${href.fleet()} aria-current=${here("fleet")}>${t("nav.fleet")}</a><a href=${href.system()} aria-current=${here("system")}>${t("nav.system")}</a></nav>`}
      <div class="right">
        <${Silent} /><${Connection} /><${Clock} />
        ${!tv && html`<${Choices} /><${Who} onLogin=${() => setLogin(true)} />`}
      </div>
    </header>
    <main ref=${main} id="main" tabindex="-1"><${Guard} key=${key}><${Page} name=${route.name} query=${route.query} /><//></main>
    <${Offline} />
    <${Spoken} /><${Title} route=${route} />
    <${Commands} />
    ${(login || forced) && html`<${Login} forced=${forced} onDone=${() => setLogin(false)} />`}
  </div>`;
}

// Root draws everything again when a person changes the language or the time zone.
function Root() {
  const [turn, redraw] = useReducer((n) => n + 1, 0);
  useEffect(() => follow(redraw), []);
  document.documentElement.lang = language();
  return html`<${App} key=${`${language()} ${setting("zone")}`} turn=${turn} />`;
}

ask();
readySound();
render(html`<${Root} />`, document.getElementById("app"));
