// Who is logged in, and what that role may do.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact-standalone.mjs";
import { request, shared, useShared, refused } from "./store.js";
import { setting, set, secret, setSecret } from "./settings.js";
import { t, has } from "./text.js";

// me is what /api/me says: {name, role, login, read, …}; undefined until it has answered.
export const me = shared(undefined);

// ask asks who this page is. A page that must log in first gets the login dialog.
export async function ask() {
  try {
    me.set(await request("/api/me", { headers: bearer() }));
  } catch (error) {
    if (error.status === 401) me.set({ role: "", must: true });
    else if (error.status === 404) me.set({ role: "" });
  }
}
refused.follow(ask);

// bearer returns the header that carries this tab's token, if a person typed one.
export const bearer = () => (secret("token") ? { Authorization: `Bearer ${secret("token")}` } : {});

const ranks = { viewer: 1, operator: 2, engineer: 3 };
const needs = { acknowledge: "operator", shelve: "operator", unshelve: "operator", mark_false: "operator", unmark_false: "operator", new_tool: "operator" };

// mayNot says why a person cannot give a command now; "" means that they can. commands is
// what the program says in /api/machines: whether it takes any.
export function mayNot(action, commands) {
  const who = me.get();
  if (commands === false) return t("why.no_token");
  if (who?.role && (ranks[who.role] ?? 0) < ranks[needs[action]]) return t("why.role", { role: t(`role.${who.role}`), needs: t(`role.${needs[action]}`) });
  return "";
}

export const roleName = (role) => (has(`role.${role}`) ? t(`role.${role}`) : role);

// Who shows who is logged in, and offers to log in or out.
export function Who({ onLogin }) {
  const who = useShared(me);
  const out = async () => {
    setSecret("token", "");
    try { await request("/api/logout", { method: "POST" }); } catch { /* the next answer of /api/me says who it is */ }
    ask();
  };
  if (who?.name) return html`<p class="who"><span>${who.name}${who.role ? ` · ${roleName(who.role)}` : ""}</span><button type="button" onClick=${out}>${t("login.out")}</button></p>`;
  return who?.login ? html`<p class="who"><button type="button" onClick=${onLogin}>${t("login.in")}</button></p>` : null;
}

// Login asks for a token. The token says who it is; it stays in the session of this browser.
export function Login({ onDone }) {
  const dialog = useRef(), [error, say] = useState(""), [busy, setBusy] = useState(false);
  useEffect(() => { if (!dialog.current.open) dialog.current.showModal(); }, []);
  const send = async (e) => {
    e.preventDefault();
    const token = new FormData(e.target).get("token").trim();
    setBusy(true);
    try {
      await request("/api/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
      await ask();
      onDone();
    } catch (x) {
      say(x.status ? x.message : t("offline.unreachable"));
    }
    setBusy(false);
  };
  return html`<dialog ref=${dialog} aria-labelledby="login-title" onClose=${onDone}>
    <form onSubmit=${send}>
      <h2 id="login-title">${t("login.title")}</h2>
      <p class="says">${t("login.says")}</p>
      <label>${t("login.token")}<input name="token" type="password" required autocomplete="current-password" /></label>
      <p class="error" role="alert">${error}</p>
      <p class="acts"><button type="button" onClick=${onDone}>${t("cancel")}</button><button type="submit" class="main" disabled=${busy}>${t("login.in")}</button></p>
    </form>
  </dialog>`;
}

export const lastName = () => me.get()?.name || setting("by");
export const keepName = (name) => set("by", name);
