// The lists of what happened: one item an alert or an advisory.

import { address } from "./machines.js";
import { moment, plain } from "./words.js";

// How an advisory looks that stands and is not of a sensor, which has a status.
const shapes = { silence: "lost", windows_refused: "lost", unknown: "unknown", drift: "maintenance-required" };

// The kinds that have another name for people.
const names = { windows_refused: "not watched" };

// item returns the line of an alert, or of an advisory, which may stand.
export function item(a, stands) {
  const li = document.getElementById("alert").content.cloneNode(true).firstChild;
  const put = (where, text) => { li.querySelector(where).textContent = text; };
  const loud = a.severity === "warning";
  let shape = loud ? "raised" : "cleared", title = a.state;
  if (a.kind) {
    li.className = stands === true ? "stands" : "over";
    const status = a.status ?? "failure";
    shape = stands !== true ? "cleared" : a.kind === "sensor" ? status.replaceAll("_", "-") : (shapes[a.kind] ?? "failure");
    title = [names[a.kind] ?? a.kind, a.subject, stands === true && a.kind === "sensor" ? `· ${status}` : stands === true ? "" : `· ${a.state === "raised" ? "was raised" : "over"}`].filter(Boolean).join(" ");
  }
  li.dataset.state = loud ? "raised" : "cleared"; // how it looks
  li.dataset.shape = shape;
  li.querySelector("use").setAttribute("href", "#" + shape);
  li.querySelector("time").dateTime = a.at;
  put("strong", plain(title));
  put("time", moment(a.at));
  put("span", a.tool ? `tool ${a.tool}` : "");
  put(".text", a.text);
  if (a.incident) li.querySelector("a").href = address(a.machine, a.incident);
  return li;
}

// fill shows items in a list. The one that has the focus keeps it.
export function fill(list, items) {
  const at = [...list.querySelectorAll("a")].indexOf(document.activeElement);
  const where = document.activeElement?.getAttribute?.("href"), when = at >= 0 && document.activeElement.closest("li").querySelector("time").dateTime;
  list.replaceChildren(...items);
  if (at >= 0) [...list.querySelectorAll("li")].find((li) => li.querySelector("time").dateTime === when && li.querySelector("a").getAttribute("href") === where)?.querySelector("a").focus();
}
