import { byId, element } from "./dom.js";
import { percent } from "./numbers.js";
import { tokenOf } from "./tint.js";

/** What a token's origin means, in words. */
function story(token) {
  const { origin, level = "A level", confidence = 0 } = token;
  if (level === "structure" && origin === "drafted") return ["Drafted and kept", "The structure of the reply left only this text."];
  if (origin === "drafted") return ["Drafted and kept", `${level} drafted it, ${percent(confidence)} sure.`];
  if (origin === "corrected") return ["Corrected", `${level} drafted another token, ${percent(confidence)} sure; the model chose this one.`];
  return ["Plain", "No draft stood here: the model said it itself."];
}

function show(span) {
  const token = tokenOf(span);
  const tip = byId("tip");
  const [title, words] = story(token);
  const parts = [element("strong", { text: title }), element("span", { text: words })];
  if (token.origin !== "plain") {
    parts.push(element("meter", { min: 0, max: 1, value: token.confidence ?? 0, "aria-hidden": "true" }));
  }
  parts.push(element("small", { text: `token ${token.id}, ${token.bytes} ${token.bytes === 1 ? "byte" : "bytes"}` }));
  tip.replaceChildren(...parts);
  tip.dataset.origin = token.origin;
  tip.hidden = false;
  const place = span.getClientRects()[0] ?? span.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max(place.left + place.width / 2 - width / 2, 8), innerWidth - width - 8);
  const above = place.top - height - 8;
  tip.style.left = `${Math.round(left)}px`;
  tip.style.top = `${Math.round(above < 8 ? place.bottom + 8 : above)}px`;
}

function hide() {
  byId("tip").hidden = true;
}

/** The nearest piece of text of another token, forward or backward, within a reply. */
function neighbour(reply, from, forward) {
  const walker = document.createTreeWalker(reply, NodeFilter.SHOW_ELEMENT, (node) =>
    node.classList.contains("token") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP);
  if (from === reply) return forward ? walker.nextNode() : walker.lastChild();
  walker.currentNode = from;
  const token = tokenOf(from);
  let next;
  do next = forward ? walker.nextNode() : walker.previousNode(); while (next && tokenOf(next) === token);
  return next;
}

function walk(event) {
  const reply = event.target.closest?.(".reply-text");
  if (!reply || (event.target !== reply && !event.target.classList.contains("token"))) return;
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Escape" && event.target !== reply) {
    event.stopPropagation();
    return reply.focus();
  }
  if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
  event.preventDefault();
  const next = neighbour(reply, event.target, event.key === "ArrowRight");
  if (!next) return;
  next.tabIndex = -1;
  next.setAttribute("aria-describedby", "tip");
  next.focus();
}

/**
 * Shows where a token came from while the pointer is over it or the keyboard is on it: a reply is one stop of the
 * Tab key, and the arrows walk through its tokens.
 */
export function inspectTokens() {
  const tokenAt = (event) => (tokenOf(event.target) ? event.target : null);
  document.addEventListener("pointerover", (event) => (tokenAt(event) ? show(event.target) : keepFocused()));
  document.addEventListener("focusin", (event) => (tokenAt(event) ? show(event.target) : hide()));
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", walk, true);
  document.addEventListener("scroll", hide, true);
  function keepFocused() {
    if (document.activeElement && tokenOf(document.activeElement)) show(document.activeElement);
    else hide();
  }
}
