// What the page knows of the program: JSON that it asks for once, and a stream of events
// for what it shows now. One stream is open at a time. A page says whether it is live.

import { useEffect, useReducer, useState } from "./vendor/htm-preact-standalone.mjs";

// ApiError is an answer that is not 2xx; its message is what the program said, and what to do.
export class ApiError extends Error {
  constructor(status, text) {
    super(said(text));
    this.status = status;
  }
}

function said(text) {
  try {
    const { error, remedy } = JSON.parse(text);
    return remedy ? `${error}: ${remedy}` : error;
  } catch {
    return text.trim();
  }
}

// request returns the JSON of an answer. An error that has no status means that the program
// cannot be reached.
export async function request(address, options = {}) {
  const answer = await fetch(address, { credentials: "same-origin", ...options });
  const text = await answer.text();
  if (!answer.ok) throw new ApiError(answer.status, text);
  return text ? JSON.parse(text) : null;
}

export const api = {
  machine: (name) => `/api/machines/${encodeURIComponent(name)}`,
  alarm: (id) => `/api/alarms/${encodeURIComponent(id)}`,
  model: (id) => `/api/models/${encodeURIComponent(id)}`,
};

// shared is a value that several parts of the page follow.
export function shared(value) {
  const followers = new Set();
  return {
    get: () => value,
    set(next) {
      value = next;
      for (const f of followers) f();
    },
    follow(f) {
      followers.add(f);
      return () => followers.delete(f);
    },
  };
}

// useShared draws a part again when the value changes.
export function useShared(s) {
  const [, redraw] = useReducer((n) => n + 1, 0);
  useEffect(() => s.follow(redraw), [s]);
  return s.get();
}

// head is what every stream says of the program: {title, commands, insecure_models, alarms,
// status}. commands is whether it takes commands; alarms is how many machines have an alarm
// that calls.
export const head = shared({});
const headFields = ["title", "commands", "insecure_models", "alarms", "status"];

// skew is how far the program's clock is ahead of the browser's, in milliseconds. Every event says the program's time.
export const skew = shared(0);

function keepClock(now) {
  const ahead = Date.parse(now) - Date.now();
  if (Math.abs(ahead - skew.get()) > 1000) skew.set(ahead);
}

function keepHead(data) {
  const news = headFields.filter((k) => data[k] !== undefined && data[k] !== null);
  if (news.length) head.set({ ...head.get(), ...Object.fromEntries(news.map((k) => [k, data[k]])) });
}

// connection is the state of the stream: "connecting", "live" or "lost", and since when.
// A stream that breaks for less than a grace time stays live.
export const connection = shared({ state: "connecting", since: Date.now() });

const grace = 3000; // a stream that comes back sooner was not away
const patience = 40000; // beats come every 15 s: a line without one is dead

function connected(state, since = Date.now()) {
  if (connection.get().state !== state) connection.set({ state, since });
}

// stream follows the events of a page and calls on(name, data) for "snapshot" and "update".
// It returns what ends it. The browser connects again by itself when a stream breaks, but
// not after an HTTP error, and it does not notice a dead line.
export function stream(query, on) {
  let source, heard = Date.now(), broken = 0, closed = false;
  const open = () => {
    source?.close();
    heard = Date.now();
    const mine = source = new EventSource(`/api/events?${new URLSearchParams(query)}`);
    for (const name of ["snapshot", "update", "beat"]) {
      mine.addEventListener(name, (e) => {
        if (mine !== source || closed) return;
        heard = Date.now();
        broken = 0;
        const data = JSON.parse(e.data);
        keepHead(data);
        keepClock(data.now);
        if (name !== "beat") on(name, data);
        connected("live");
      });
    }
    mine.onerror = () => {
      if (mine !== source || closed) return;
      broken ||= Date.now();
      if (mine.readyState === EventSource.CLOSED) refused.set(Date.now());
    };
  };
  const timer = setInterval(() => {
    const silent = Date.now() - heard;
    if (broken && Date.now() - broken > grace) connected("lost", heard);
    if (silent > patience || (source.readyState === EventSource.CLOSED && silent > grace)) {
      if (silent > patience) connected("lost", heard);
      open();
      broken ||= Date.now();
    }
  }, 500);
  connected("connecting");
  open();
  return () => {
    closed = true;
    clearInterval(timer);
    source.close();
  };
}

// refused changes when the program refuses a stream: perhaps a person must log in.
export const refused = shared(0);

// useLive follows the events of a page. reduce(old, name, data, at) returns what the page
// knows next; old is undefined first, and a "snapshot" replaces all of it. at is when the
// event came, in milliseconds.
export function useLive(query, reduce) {
  const key = new URLSearchParams(query).toString();
  const [state, set] = useState({ key, data: undefined });
  useEffect(() => {
    let data;
    set({ key, data });
    return stream(query, (name, event) => {
      data = reduce(data, name, event, Date.now());
      set({ key, data });
    });
  }, [key]);
  return state.key === key ? state.data : undefined; // never what belongs to another machine
}

// useFetch returns {data, error, reload} of an address; address "" asks for nothing. It asks
// again after so many milliseconds, and when these change. While the next answer is awaited,
// data is undefined if the address changed.
export function useFetch(address, every = 0) {
  const [state, set] = useState({ address, data: undefined, error: undefined });
  const [turn, reload] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    if (!address) return undefined;
    const stop = new AbortController();
    request(address, { signal: stop.signal }).then(
      (data) => set({ address, data, error: undefined }),
      (error) => { if (!stop.signal.aborted) set((s) => ({ address, data: s.address === address ? s.data : undefined, error })); },
    );
    const timer = every ? setTimeout(reload, every) : 0;
    return () => { stop.abort(); clearTimeout(timer); };
  }, [address, turn, every, connection.get().state === "live"]);
  return { ...(state.address === address ? state : { data: undefined, error: undefined }), reload };
}

// useNow draws a part again every so many milliseconds, and returns the time.
export function useNow(every = 1000) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

// useOffline returns since when the page is cut off, or 0. What it shows then is old.
export function useOffline() {
  const { state, since } = useShared(connection);
  return state === "lost" ? since : 0;
}
