const storageName = "verbatim.settings";
const keyName = "verbatim.key";

/** The settings of a reader who has changed none. An empty text leaves the choice to the server. */
export const defaults = Object.freeze({
  model: "", recipe: "", speculation: true, temperature: "", top_p: "", seed: "", max_tokens: "", system: "",
  tint: true, markdown: true, theme: "", panel: true, order: "turns",
});

const listeners = new Set();
let current = read();
let keyOfPage = "";

function read() {
  const settings = { ...defaults };
  try {
    const stored = JSON.parse(localStorage.getItem(storageName)) ?? {};
    for (const name of Object.keys(defaults)) {
      if (typeof stored[name] === typeof defaults[name]) settings[name] = stored[name];
    }
  } catch {
    // A browser that keeps nothing, or a text that is no JSON: the defaults hold.
  }
  return settings;
}

/** The settings as they are now. */
export function settings() {
  return current;
}

/** Changes some settings, remembers them in this browser and tells everyone who asked to be told. */
export function change(some) {
  current = { ...current, ...some };
  try {
    localStorage.setItem(storageName, JSON.stringify(current));
  } catch {
    // A browser that keeps nothing forgets the settings with the page.
  }
  for (const listener of listeners) listener(current);
}

/** Calls a function with the settings now and after every change. */
export function follow(listener) {
  listeners.add(listener);
  listener(current);
}

/** The key that requests show to the server, empty if there is none. It lives as long as the browser's tab. */
export function apiKey() {
  try {
    return sessionStorage.getItem(keyName) ?? keyOfPage;
  } catch {
    return keyOfPage;  // a browser that keeps nothing
  }
}

/** Keeps the key for this tab. */
export function setApiKey(key) {
  keyOfPage = key;
  try {
    if (key) sessionStorage.setItem(keyName, key);
    else sessionStorage.removeItem(keyName);
  } catch {
    // A browser that keeps nothing forgets the key with the page.
  }
}

/** The fields of a request that come from the settings: those left empty are not sent. */
export function requestFields() {
  const fields = {};
  if (current.model) fields.model = current.model;
  for (const name of ["temperature", "top_p", "seed", "max_tokens"]) {
    if (current[name] !== "" && Number.isFinite(Number(current[name]))) fields[name] = Number(current[name]);
  }
  fields.verbatim = { origins: true };
  if (current.recipe) fields.verbatim.recipe = current.recipe;
  if (!current.speculation) fields.verbatim.speculation = false;
  return fields;
}

/** The messages of a request: the system text of the settings, if there is one, before a conversation. */
export function withSystem(messages) {
  return current.system.trim() ? [{ role: "system", content: current.system }, ...messages] : messages;
}
