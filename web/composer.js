import { Chat, describeSettings } from "./chat.js";
import { byId, element } from "./dom.js";
import { openSettings } from "./settings-form.js";
import { followServed } from "./served.js";
import { follow } from "./settings.js";

const examples = [
  "Write a Python function that returns the n-th Fibonacci number.",
  "List the planets of the solar system, one per line.",
  "Tell a short story about a lighthouse.",
];

/** Sets the field to the height of its text, up to what the style sheet allows. */
function fit(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}

/** Connects the message field and the buttons around it with a conversation. */
export function startComposer() {
  const field = byId("prompt");
  const action = byId("send");
  const chat = new Chat(update);

  function update() {
    document.body.toggleAttribute("data-busy", chat.busy);
    byId("welcome").hidden = !chat.empty;
    byId("clear").hidden = chat.empty;
    action.setAttribute("aria-label", chat.busy ? "Stop" : "Send");
    action.title = chat.busy ? "Stop (Escape)" : "Send (Enter)";
    action.disabled = !chat.busy && field.value.trim() === "";
  }

  function submit() {
    if (chat.busy || field.value.trim() === "") return;
    chat.send(field.value);
    field.value = "";
    fit(field);
    update();
  }

  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (chat.busy) chat.stop();
    else submit();
  });
  field.addEventListener("input", () => {
    fit(field);
    update();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    } else if (event.key === "ArrowUp" && field.value === "") {
      event.preventDefault();
      chat.edit();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !byId("settings").open) chat.stop();
  });
  byId("clear").addEventListener("click", () => {
    chat.clear();
    field.focus();
  });
  byId("using").addEventListener("click", () => openSettings());
  const describe = () => {
    byId("using-words").textContent = describeSettings();
  };
  follow(describe);
  followServed(describe);
  byId("examples").append(...examples.map((text) => element("li", {},
    element("button", { type: "button", text, onclick: () => {
      field.value = text;
      fit(field);
      update();
      field.focus();
    } }))));
  update();
}
