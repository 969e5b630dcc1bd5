import { byId, element } from "./dom.js";
import { askServed, followServed } from "./served.js";
import { apiKey, change, defaults, follow, setApiKey, settings } from "./settings.js";

/** Opens the settings, at the field of a name if one is given. */
export function openSettings(field) {
  byId("settings").showModal();
  if (field) byId(`setting-${field}`).focus();
  askServed();
}

/** Puts choices into a list; one that was chosen before stays, even if it is not offered now. */
function choose(select, first, names, chosen) {
  const all = chosen && !names.includes(chosen) ? [...names, chosen] : names;
  select.replaceChildren(element("option", { value: "", text: first }), ...all.map((name) => element("option", { value: name, text: name })));
  select.value = chosen;
}

/** Fills the lists of models and recipes with what the server offers. */
function fillChoices({ models, about }) {
  const { model, recipe } = settings();
  choose(byId("setting-model"), models[0] ? `The server's first: ${models[0]}` : "The server's first", models, model);
  const entry = about.find(({ name }) => name === model) ?? about[0];
  choose(byId("setting-recipe"), entry?.recipe ? `The server's: ${entry.recipe}` : "The server's", entry?.recipes ?? [], recipe);
}

function valueOf(control) {
  return control.type === "checkbox" ? control.checked : control.value;
}

function show(control, value) {
  if (control.type === "checkbox") control.checked = value;
  else if (control.value !== value) control.value = value;
}

/** Connects the form of the settings: a change holds at once. */
export function startSettingsForm() {
  const dialog = byId("settings");
  const controls = [...dialog.querySelectorAll("[data-setting]")];
  for (const control of controls) {
    control.addEventListener("input", () => {
      if (!control.validity.valid) return;
      change({ [control.dataset.setting]: valueOf(control) });
      if (control.dataset.setting === "model") askServed();
    });
  }
  follow((now) => {
    for (const control of controls) show(control, now[control.dataset.setting]);
  });
  const key = byId("setting-key");
  key.value = apiKey();
  key.addEventListener("input", () => setApiKey(key.value.trim()));
  byId("settings-open").addEventListener("click", () => openSettings());
  byId("settings-close").addEventListener("click", () => dialog.close());
  byId("settings-reset").addEventListener("click", () => {
    change({ ...defaults });
    askServed();
  });
  dialog.addEventListener("close", askServed);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  followServed(fillChoices);
  askServed();
}
