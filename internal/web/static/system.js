import { html } from "./vendor/htm-preact-standalone.mjs";
import { t } from "./text.js";

export const System = () => html`<h1>${t("nav.system")}</h1>`;
