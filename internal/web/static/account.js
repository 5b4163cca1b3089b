// Who is logged in, and what that role may do.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact-standalone.mjs";
import { request, shared, useShared, refused, connection, head } from "./store.js";
import { setting, set } from "./settings.js";
import { t, has } from "./text.js";

// me is what /api/me says: {name, role, read, login, notice}; undefined until it has answered. A token
// that people share has a role and no name. login is whether anyone can log in; read is "token"
// if the page shows nothing before that.
export const me = shared(undefined);

// ask asks who this page is.
export async function ask() {
  try {
    me.set(await request("/api/me"));
  } catch { /* the page is offline, and says so */ }
}
refused.follow(ask);
connection.follow(() => { if (connection.get().state === "live") ask(); }); // after a restart no one is logged in

// login begins a session of this browser.
export async function login(token) {
  me.set(await request("/api/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) }));
}

async function logout() {
  try { await request("/api/logout", { method: "POST" }); } catch { /* /api/me says whether it was */ }
  ask();
}

const ranks = { viewer: 1, operator: 2, engineer: 3 };
const needs = { acknowledge: "operator", shelve: "operator", unshelve: "operator", mark_false: "operator", unmark_false: "operator", new_tool: "operator", add_label: "operator", suppress: "engineer", unsuppress: "engineer", out_of_service: "engineer", in_service: "engineer" };

// mayNot says why a person cannot give a command here; "" means that they can, or can once
// they have logged in.
export function mayNot(action) {
  const who = me.get();
  if (head.get().commands === false || who?.login === false) return t("why.no_token");
  if (who?.role && !(ranks[who.role] >= ranks[needs[action]])) return t("why.role", { role: roleName(who.role), needs: roleName(needs[action]) });
  return "";
}

export const roleName = (role) => (has(`role.${role}`) ? t(`role.${role}`) : role);

// Who shows who is logged in, and offers to log in or out.
export function Who({ onLogin }) {
  const who = useShared(me);
  if (who?.role) return html`<p class="who"><span>${[who.name, roleName(who.role)].filter(Boolean).join(" · ")}</span><button type="button" onClick=${logout}>${t("login.out")}</button></p>`;
  return who?.login ? html`<p class="who"><button type="button" onClick=${onLogin}>${t("login.in")}</button></p>` : null;
}

// Notice is what the plant wants people to read before they log in.
export function Notice() {
  const who = useShared(me);
  return who?.notice && !who.role ? html`<p class="notice">${who.notice}</p>` : null;
}

// Login asks for a token. The token says who it is; it stays in the session of this browser.
// A forced one stays open: without it the page shows nothing.
export function Login({ forced, onDone }) {
  const dialog = useRef(), [error, say] = useState(""), [busy, setBusy] = useState(false);
  useEffect(() => { if (!dialog.current.open) dialog.current.showModal(); }, []);
  const send = async (e) => {
    e.preventDefault();
    const token = new FormData(e.target).get("token").trim();
    setBusy(true);
    try {
      await login(token);
      onDone();
      return;
    } catch (x) {
      say(x.status ? x.message : t("offline.unreachable"));
    }
    setBusy(false);
  };
  return html`<dialog ref=${dialog} aria-labelledby="login-title" onCancel=${(e) => forced && e.preventDefault()} onClose=${() => (forced ? dialog.current?.showModal() : onDone())}>
    <form onSubmit=${send}>
      <h2 id="login-title">${t("login.title")}</h2>
      <${Notice} />
      <p class="says">${t("login.says")}</p>
      <label>${t("login.token")}<input name="token" type="password" required autocomplete="current-password" /></label>
      <p class="error" role="alert">${error}</p>
      <p class="acts">${!forced && html`<button type="button" onClick=${onDone}>${t("cancel")}</button>`}<button type="submit" class="main" disabled=${busy}>${t("login.in")}</button></p>
    </form>
  </dialog>`;
}

export const lastName = () => me.get()?.name || setting("by");
export const keepName = (name) => set("by", name);
