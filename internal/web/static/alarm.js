// The page of one alarm.

import { html } from "./vendor/htm-preact-standalone.mjs";
import { api, useFetch } from "./store.js";
import { t } from "./text.js";
import { Empty } from "./parts.js";

export function Alarm({ name }) {
  const { data, error } = useFetch(api.alarm(name));
  if (error) return html`<${Empty} title=${name}><p>${error.message}</p><//>`;
  if (!data) return html`<h1>${name}</h1><p>${t("loading")}</p>`;
  return html`<h1>${name}</h1><ol>${data.alerts.map((a) => html`<li>${a.text}</li>`)}</ol>`;
}
