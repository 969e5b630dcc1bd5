import { element, svg } from "./dom.js";

/** The strokes of each icon, in a square of 24 by 24. */
const strokes = {
  send: ["M12 19V5", "M6 11l6-6 6 6"],
  stop: ["M7 7h10v10H7z"],
  copy: ["M9 9h11v11H9z", "M5 15H4V4h11v1"],
  done: ["M5 12.5l5 5L19 7"],
  again: ["M20 11a8 8 0 1 0-2.3 6.7", "M20 5v6h-6"],
  edit: ["M4 20l1-5L16 4l4 4L9 19z", "M13.5 6.5l4 4"],
  clear: ["M4 7h16", "M9 7V4h6v3", "M6.5 7l1 13h9l1-13"],
  settings: ["M4 7h9", "M17 7h3", "M4 17h3", "M11 17h9", "M15 5v4", "M9 15v4"],
  theme: ["M12 4a8 8 0 1 0 0 16z", "M12 4a8 8 0 0 1 0 16"],
  live: ["M3 13h4l3-8 4 14 3-8h4"],
  close: ["M6 6l12 12", "M18 6L6 18"],
};

/** Makes the icon of a name: a picture that says nothing to a screen reader. */
export function icon(name) {
  const paths = strokes[name].map((d) => svg("path", { d }));
  return svg("svg", { class: `icon icon-${name}`, viewBox: "0 0 24 24", "aria-hidden": "true" }, ...paths);
}

/** Makes a button that shows an icon and, unless `quiet`, its label beside it. */
export function iconButton(name, label, onclick, { quiet = false, ...attributes } = {}) {
  const words = element("span", { class: quiet ? "visually-hidden" : "label", text: label });
  return element("button", { type: "button", class: "tool", title: quiet ? label : null, onclick, ...attributes }, icon(name), words);
}

/** Puts the icons into the elements of the page that ask for one with `data-icon`. */
export function placeIcons(root = document) {
  for (const place of root.querySelectorAll("[data-icon]")) place.prepend(icon(place.dataset.icon));
}
