import { element } from "./dom.js";
import { iconButton } from "./icons.js";
import { openSettings } from "./settings-form.js";

/** Makes the box that shows an error in the server's words, with what can be done about it. */
export function problemBox(error, again) {
  const box = element("div", { class: "problem", role: "alert" }, element("p", { text: error.message }));
  if (error.retryAfter) {
    box.append(element("p", { class: "note", text: `The server asks to wait ${error.retryAfter} s before the next try.` }));
  }
  const actions = element("p", { class: "actions" });
  if (error.status === 401 || error.status === 403) {
    actions.append(iconButton("settings", "Enter an API key", () => openSettings("key")));
  }
  if (again) actions.append(iconButton("again", "Try again", again));
  if (actions.childElementCount > 0) box.append(actions);
  return box;
}
