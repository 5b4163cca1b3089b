// Addresses of the page. Everything that leads somewhere is a link to one of these.

const incident = /^A-[A-Z2-7]{8}$/;

// A machine's name keeps its slashes, so that a person can read the address.
const path = (name) => encodeURIComponent(name).replaceAll("%2F", "/");

export const href = {
  fleet: (query = "") => `#/${query}`,
  machine: (name) => `#/m/${path(name)}`,
  alarm: (id) => `#/a/${id}`,
  model: (id) => `#/model/${path(id)}`,
  system: () => "#/system",
};

const decode = (s) => { try { return decodeURIComponent(s); } catch { return s; } };

// current returns what an address asks for: {page, name, query}. The page is "fleet",
// "machine", "alarm", "model", "system" or "nowhere". Addresses of earlier releases,
// #machine=NAME&alarm=INCIDENT and #/INCIDENT, lead to the same things.
export function current(hash = location.hash) {
  const [, rest = "", search = ""] = hash.match(/^#\/([^?]*)\??(.*)$/) ?? [];
  const query = new URLSearchParams(search);
  if (!hash.startsWith("#/")) {
    const old = new URLSearchParams(hash.slice(1)), alarm = old.get("alarm") ?? "";
    if (incident.test(alarm)) return { page: "alarm", name: alarm, query };
    if (old.get("machine")) return { page: "machine", name: old.get("machine"), query };
    return { page: hash.length > 1 ? "nowhere" : "fleet", name: "", query };
  }
  if (rest === "") return { page: "fleet", name: "", query };
  if (incident.test(rest)) return { page: "alarm", name: rest, query };
  if (rest === "system") return { page: "system", name: "", query };
  const [, kind, name] = rest.match(/^(m|a|model)\/(.+)$/) ?? [];
  const page = { m: "machine", a: "alarm", model: "model" }[kind];
  return page ? { page, name: decode(name), query } : { page: "nowhere", name: "", query };
}

// address returns the address of what current returned: old addresses become new ones.
export function address({ page, name, query }) {
  const search = query?.toString() ? `?${query.toString().replaceAll("=&", "&").replace(/=$/, "")}` : "";
  return (page === "fleet" ? href.fleet() : page === "system" ? href.system() : href[page](name)) + search;
}
