import { byId } from "./dom.js";
import { change, follow, settings } from "./settings.js";

const system = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  return settings().theme === "" ? system.matches : settings().theme === "dark";
}

/** Keeps the page in the theme of the settings, or of the system where they name none, and connects the toggle. */
export function startTheme() {
  const toggle = byId("theme-toggle");
  const apply = () => {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
    toggle.setAttribute("aria-label", isDark() ? "Use the light theme" : "Use the dark theme");
    toggle.title = toggle.getAttribute("aria-label");
  };
  follow(apply);
  system.addEventListener("change", apply);
  toggle.addEventListener("click", () => change({ theme: isDark() ? "light" : "dark" }));
}
