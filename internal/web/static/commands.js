// What a person says of an alarm or a tool. A button carries the machine and the incident
// that it was drawn with, and so does its dialog: what comes meanwhile changes neither.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact-standalone.mjs";
import { api, request, shared, useShared, head } from "./store.js";
import { ask, me, mayNot, login, lastName, keepName, roleName, Notice } from "./account.js";
import { hasAlarm, short, area, spaced } from "./parts.js";
import { t } from "./text.js";

// asked is the order whose dialog is open: {action, machine, incident, tool}.
const asked = shared(undefined);

// answers holds what the monitor made of commands, by command id. Pages that see alerts call
// hear with them: an alert may come before its command's receipt.
const answers = new Map();
const answered = shared(0);
const keptAnswers = 50, answerWait = 10000, answerPause = 500;

export function hear(alerts = []) {
  for (const a of alerts) if (a.command) answers.set(a.command, a);
  for (const id of [...answers.keys()].slice(0, -keptAnswers)) answers.delete(id);
  answered.set(answered.get() + 1);
}

// open asks for a command. order is {action, machine, incident, tool}.
export const open = (order) => asked.set(Object.freeze({ ...order }));

const mask = ["normal", "raised", "reactivated", "acknowledged", "returned"];

// reasoned are the actions that need a reason. All but shelve last until a person ends them.
const reasoned = ["shelve", "suppress", "out_of_service"];

// offered returns the actions that make sense for a machine in this state. Those of engineers are
// offered to engineers only.
export function offered(tile, role) {
  const word = tile.alarm ?? "", engineer = role === "engineer";
  return [
    ["raised", "reactivated", "returned"].includes(word) && tile.incident && "acknowledge",
    mask.includes(word) && "shelve",
    word === "shelved" && "unshelve",
    tile.incident && "mark_false",
    tile.tool && "add_label",
    tile.tool && "new_tool",
    engineer && [...mask, "shelved"].includes(word) && "suppress",
    engineer && word === "suppressed" && "unsuppress",
    engineer && [...mask, "shelved", "suppressed"].includes(word) && "out_of_service",
    engineer && word === "out_of_service" && "in_service",
  ].filter(Boolean);
}

// Button opens the dialog of one action. If the person or the program may not, it says why
// and does nothing.
export function Button({ action, machine, incident = "", tool = "", main, label }) {
  useShared(me);
  useShared(head);
  const why = mayNot(action);
  const press = () => { if (!why) open({ action, machine, incident, tool: ["new_tool", "add_label"].includes(action) ? tool : "", ...(action === "add_label" ? label : {}) }); };
  return html`<button type="button" class=${main ? "main act" : "act"} value=${action} data-machine=${machine} data-incident=${incident}
    aria-disabled=${why ? "true" : undefined} title=${why || undefined} aria-description=${why || undefined} onClick=${press}>${t(`action.${action}`)}</button>`;
}

// labelOf returns what a label has of a machine in this state: the tool's life, and since and until when its alarm was open.
const labelOf = (tile) => ({ life: tile.life, since: tile.incident ? tile.since : undefined, until: tile.until });

// Buttons draws what can be said of a machine, and once why nothing can.
export function Buttons({ tile, only }) {
  const who = useShared(me);
  useShared(head);
  const actions = offered(tile, who?.role).filter((a) => !only || only.includes(a));
  const why = actions.map((a) => mayNot(a)).find(Boolean);
  if (!actions.length) return null;
  return html`<div class="buttons">
    <p class="acts">${actions.map((action, i) => html`<${Button} key=${action} action=${action} machine=${tile.name} incident=${tile.incident} tool=${tile.tool} label=${labelOf(tile)} main=${i === 0 && hasAlarm(tile)} />`)}</p>
    ${why && html`<p class="why">${why}</p>`}
  </div>`;
}

// Commands draws the dialog of the order that is asked for. It is part of every page.
export function Commands() {
  const order = useShared(asked);
  return order ? html`<${Dialog} key=${JSON.stringify(order)} order=${order} />` : null;
}

const close = () => asked.set(undefined);

function Dialog({ order }) {
  const dialog = useRef(), tap = useRef(""), who = useShared(me);
  const [doubted, doubt] = useState(""), [text, say] = useState(""), [busy, setBusy] = useState(false), [sent, setSent] = useState("");
  useShared(answered);
  useLayoutEffect(() => {
    const opener = document.activeElement, d = dialog.current;
    d.showModal();
    const { by, note } = d.querySelector("form").elements;
    if (by) by.value = lastName();
    (by && !by.value ? by : d.querySelector(".taps button") ?? note).focus();
    return () => opener?.isConnected && opener.focus();
  }, []);
  const answer = answers.get(sent);
  useEffect(() => {
    if (!answer) return undefined;
    if (answer.state === "refused") { say(answer.text); setBusy(false); setSent(""); } else close();
    return undefined;
  }, [answer]);
  useEffect(() => {
    if (!sent) return undefined;
    const late = setTimeout(() => { say(t("command.late")); setBusy(false); }, answerWait);
    const look = setInterval(() => request(api.machine(order.machine)).then((m) => hear(m.alerts), () => {}), answerPause); // the page may not show the machine's alerts
    return () => { clearTimeout(late); clearInterval(look); };
  }, [sent]);

  const send = async (e) => {
    e.preventDefault();
    const tapped = tap.current; // before anything is awaited
    const form = new FormData(e.target), get = (k) => (form.get(k) ?? "").trim();
    if (get("by")) keepName(get("by"));
    say("");
    setBusy(true);
    try {
      if (!me.get()?.role) await login(get("token"));
      const body = { machine: order.machine, action: order.action, incident: order.incident, by: me.get()?.name || get("by"), note: get("note") };
      if (order.action === "shelve") body.minutes = Number(get("minutes"));
      if (order.tool) body.tool = order.tool;
      if (order.action === "add_label") {
        Object.assign(body, { tool_life: order.life || undefined, until: order.until, anyway: doubted === (tapped || get("wear")) && doubted !== "" });
        Object.assign(body, tapped ? { state: tapped, since: order.since } : { wear: get("wear") && `${get("wear")} mm` });
      }
      const { id } = await request("/api/commands", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
      if (order.action === "add_label") close();
      else setSent(id);
    } catch (x) {
      doubt(x.status === 409 ? tapped || get("wear") : "");
      say(x.status === 409 ? `${x.message}\n${t("label.again")}` : x.status ? x.message : t("offline.unreachable"));
      setBusy(false);
      if (x.status === 401) ask(); // the session may be over
    }
  };
  const { action, machine, incident, tool } = order;
  return html`<dialog id="ask" ref=${dialog} aria-labelledby="ask-title" onClose=${close}>
    <form id="order" onSubmit=${send}>
      <h2 id="ask-title">${t(`ask.${action}`)}</h2>
      <dl>
        <div><dt>${t("machine")}</dt><dd><span class="path">${spaced(area(machine))}${area(machine) && " / "}</span><strong>${short(machine)}</strong></dd></div>
        <div><dt>${t("alarm")}</dt><dd>${incident || t("ask.none_open")}</dd></div>
        ${tool && html`<div><dt>${t("tool")}</dt><dd>${tool}</dd></div>`}
        ${who?.role && html`<div><dt>${t("ask.by")}</dt><dd>${[who.name, roleName(who.role)].filter(Boolean).join(" · ")}</dd></div>`}
      </dl>
      <p class="says">${t(`ask.${action}.says`)}</p>
      ${action === "add_label" && html`<div class="taps">${["worn", "healthy", "broken"].map((s) => html`<button type="button" value=${s} disabled=${busy} onClick=${(e) => { tap.current = s; e.currentTarget.form.requestSubmit(); tap.current = ""; }}>${t(`label.${s}`)}</button>`)}</div>
        <label class="wear">${t("label.wear")}<span><input name="wear" inputmode="decimal" pattern="[0-9]+([.,][0-9]+)?" placeholder=${t("label.example")} autocomplete="off" /> mm</span></label>`}
      ${!who?.name && html`<label>${t(who?.role ? "ask.name" : "ask.name_shared")}<input name="by" required=${Boolean(who?.role)} maxlength="100" autocomplete="username" /></label>`}
      <label>${t(reasoned.includes(action) ? "ask.reason" : "ask.note")}<input name="note" maxlength="1000" autocomplete="off" required=${reasoned.includes(action)} /></label>
      ${action === "shelve" && html`<label>${t("ask.for")}<select name="minutes">${[30, 60, 120, 240, 480].map((m) => html`<option value=${m} selected=${m === 120}>${m < 60 ? t("time.minutes", { n: m }) : t("time.hours", { n: m / 60 })}</option>`)}</select></label>`}
      <${Notice} />
      ${!who?.role && html`<label>${t("ask.token")}<input name="token" type="password" required autocomplete="current-password" /></label>`}
      <p id="ask-says" class="error" role="alert">${text}</p>
      <p class="acts"><button type="button" onClick=${close}>${t("cancel")}</button><button type="submit" id="go" class="main" disabled=${busy}>${busy ? t("ask.sending") : t("ask.send")}</button></p>
    </form>
  </dialog>`;
}
