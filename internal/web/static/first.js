// What a page shows before the monitor has judged a window: how far the program is, and what
// is missing. Its progress bar shows a share only while that share grows.

import { html } from "./vendor/htm-preact-standalone.mjs";
import { useFetch } from "./store.js";
import { t } from "./text.js";
import { wordOf } from "./parts.js";

const steps = ["learning history", "training", "monitoring"];

// progress returns the share of a phase to show; a phase that is complete but goes on, or
// says no share, has none and the bar moves.
export const progress = (status) => (status.fraction >= 0 && status.fraction < 1 ? status.fraction : undefined);

export function FirstRun() {
  const { data } = useFetch("/api/system", 1000);
  const at = steps.indexOf(data?.phase), share = data && progress(data);
  const waits = !data || data.phase === "starting" || data.phase === "monitoring" || data.phase === "done";
  return html`<section class="card first" aria-labelledby="first-title">
    <h2 id="first-title">${data ? t(waits ? "first.waiting" : "first.title") : t("loading")}</h2>
    <ol class="steps">${steps.map((s, i) => html`<li class=${i < at ? "past" : i === at ? "now" : ""} aria-current=${i === at ? "step" : undefined}>${wordOf("phase", s.replaceAll(" ", "_"))}</li>`)}</ol>
    ${data && !waits && html`${share === undefined ? html`<progress key="moving" aria-label=${t("first.progress")} max="1" />` : html`<progress key="share" aria-label=${t("first.progress")} max="1" value=${share} />`}<p class="number">${share === undefined ? "" : `${Math.floor(100 * share)} %`}</p>`}
    <p class="says" role="status">${data?.text}</p>
    ${data?.phase === "monitoring" && html`<p>${t("first.no_windows")}</p><pre>ingest run --config ingest.yaml</pre>`}
    ${data?.problems?.map((p) => html`<p class="problem">${p.what}</p>${p.command && html`<pre>${p.command}</pre>`}`)}
  </section>`;
}
