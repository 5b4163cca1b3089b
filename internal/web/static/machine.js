// The page of one machine.

import { html } from "./vendor/htm-preact-standalone.mjs";
import { useLive, useNow } from "./store.js";
import { t } from "./text.js";
import { Buttons } from "./commands.js";
import { Icon, Strip, WearBar, condition, sentence, short } from "./parts.js";

export function Machine({ name }) {
  const data = useLive({ page: "machine", machine: name }, (old, kind, event, at) => ({ ...old, ...event, at }));
  const now = useNow();
  if (!data) return html`<h1>${short(name)}</h1><p>${t("loading")}</p>`;
  const state = condition(data, now);
  return html`<h1>${short(name)}</h1><p class=${`state ${state.tone}`}><${Icon} shape=${state.shape} /><strong>${state.word}</strong></p>
    <p>${sentence(data.instruction)}</p><${WearBar} tile=${data} /><${Strip} strip=${data.strip} /><${Buttons} tile=${data} commands=${data.commands} />`;
}
