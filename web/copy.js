import { icon, iconButton } from "./icons.js";
import { announce } from "./announce.js";

/** Copies a text, also where the browser offers no clipboard because the page came without TLS. */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (!copied) throw new Error("not copied");
}

/** Makes a button that copies the text that a function returns. */
export function copyButton(label, text) {
  const button = iconButton("copy", label, async () => {
    const copied = await copy(text()).then(() => true, () => false);
    announce(copied ? "Copied." : "The browser did not allow copying.");
    if (!copied) return;
    button.firstChild.replaceWith(icon("done"));
    setTimeout(() => button.firstChild.replaceWith(icon("copy")), 1500);
  }, { quiet: true });
  return button;
}
