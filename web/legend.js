import { element } from "./dom.js";
import { followLevels } from "./tint.js";

function entry(words, attributes, title, before = "") {
  return element("li", { title }, element("span", { class: "token sample", ...attributes, text: "abc", "aria-hidden": "true" }),
    element("span", {}, element("span", { class: "before", text: before }), words));
}

const kept = "The model kept the token that was drafted here. The stronger the tint, the surer the draft.";

/** Keeps a list that explains the tints: one entry per origin, and per level that has drafted. */
export function keepLegend(list) {
  followLevels((slots) => {
    const drafted = slots.size > 0
      ? [...slots].map(([level, slot]) =>
        entry(level, { "data-origin": "drafted", "data-slot": slot, "data-sure": 3 }, kept, "drafted by "))
      : [entry("drafted and kept", { "data-origin": "drafted", "data-slot": 0, "data-sure": 3 }, kept)];
    list.replaceChildren(
      ...drafted,
      entry("corrected", { "data-origin": "corrected" }, "The model chose this token over the one that was drafted here."),
      entry("plain", { "data-origin": "plain" }, "No draft stood here: the model said the token itself."));
  });
}
