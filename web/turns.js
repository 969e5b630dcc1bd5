import { copyButton } from "./copy.js";
import { element } from "./dom.js";
import { iconButton } from "./icons.js";

/** Makes a message of the reader in the conversation. `edit` is called when the reader wants to change it. */
export function userTurn(text, edit) {
  return element("li", { class: "turn user" },
    element("h3", { class: "who", text: "You" }),
    element("div", { class: "said", text }),
    element("div", { class: "tools" }, copyButton("Copy the message", () => text),
      iconButton("edit", "Edit the message", edit, { quiet: true, "data-last": true })));
}

/** Makes a reply of a model in the conversation, which holds a ReplyText and what is said about it later. */
export function modelTurn(name, reply, again) {
  const after = element("div", { class: "after" });
  const tools = element("div", { class: "tools" }, copyButton("Copy the reply", () => reply.text),
    iconButton("again", "Regenerate the reply", again, { quiet: true, "data-last": true }));
  const turn = element("li", { class: "turn model", "aria-busy": "true" },
    element("h3", { class: "who", text: name }), reply.element, after, tools);
  return { turn, after };
}

/** Makes the form that changes a message: `save` gets the new text, `cancel` nothing. */
export function editForm(text, save, cancel) {
  const field = element("textarea", { "aria-label": "Your message", rows: Math.min(10, text.split("\n").length + 1) });
  field.value = text;
  const form = element("form", { class: "edit-form" }, field, element("p", { class: "actions" },
    element("button", { type: "submit", class: "primary", text: "Send" }),
    element("button", { type: "button", class: "plain", text: "Cancel", onclick: cancel })));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.value.trim()) save(field.value);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      cancel();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  return { form, field };
}
