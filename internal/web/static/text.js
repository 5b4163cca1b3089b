// The words of the page, in the language that a person chose or the browser prefers. Each
// language is one file in text/, with the same keys.

import en from "./text/en.js";
import de from "./text/de.js";
import { setting } from "./settings.js";

export const languages = { en: "English", de: "Deutsch" };
const texts = { en, de };

export function language() {
  const chosen = setting("language");
  if (chosen in texts) return chosen;
  return navigator.languages?.map((l) => l.slice(0, 2)).find((l) => l in texts) ?? "en";
}

export const has = (key) => key in texts.en;

const known = (v) => v !== undefined && v !== null && v !== "";

// t returns the text of a key. {name} in it stands for args.name. If a text has two forms,
// "one|many", args.n says which. What is in [ ] is left out unless all of its arguments are
// known.
export function t(key, args = {}) {
  const text = texts[language()][key] ?? texts.en[key];
  if (text === undefined) {
    console.error(`no text for ${key}`);
    return key;
  }
  const forms = text.split("|");
  return (forms.length > 1 && args.n !== 1 ? forms[1] : forms[0])
    .replace(/\[([^\]]*)\]/g, (all, part) => ([...part.matchAll(/\{(\w+)\}/g)].every(([, name]) => known(args[name])) ? part : ""))
    .replace(/\{(\w+)\}/g, (all, name) => args[name] ?? "–");
}
