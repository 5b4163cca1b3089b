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

// t returns the text of a key. {name} in it stands for args.name. If a text has two forms,
// "one|many", args.n says which.
export function t(key, args = {}) {
  const text = texts[language()][key] ?? texts.en[key];
  if (text === undefined) {
    console.error(`no text for ${key}`);
    return key;
  }
  const forms = text.split("|");
  return (forms.length > 1 && args.n !== 1 ? forms[1] : forms[0]).replace(/\{(\w+)\}/g, (all, name) => args[name] ?? "–");
}
