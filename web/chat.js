import { announce } from "./announce.js";
import { streamReply } from "./api.js";
import { byId, element } from "./dom.js";
import { measured } from "./measured.js";
import { problemBox } from "./problem.js";
import { ReplyText } from "./reply.js";
import { keepEndInSight } from "./scroller.js";
import { chosenFor, questionFields } from "./served.js";
import { settings, withSystem } from "./settings.js";
import { summaryOf } from "./summary.js";
import { editForm, modelTurn, userTurn } from "./turns.js";

/** The most characters of a reply that a screen reader is given at once. */
const mostSpoken = 4000;

/** A conversation: its messages, their places in the page, and the reply that is being written. */
export class Chat {
  #messages = [];
  #list = byId("turns");
  #keepEnd = keepEndInSight(byId("conversation"), byId("conversation-end"));
  #running = null;
  #changed;

  /** `changed` is called whenever a reply begins or ends and when the conversation becomes empty. */
  constructor(changed) {
    this.#changed = changed;
  }

  get busy() {
    return this.#running !== null;
  }

  get empty() {
    return this.#messages.length === 0 && this.#list.childElementCount === 0;
  }

  /** Sends a message and writes the reply. */
  send(text) {
    if (this.busy) return;
    if (this.#messages.at(-1)?.role === "user") this.#messages.pop(); // a message that was never answered
    this.#messages.push({ role: "user", content: text });
    this.#list.append(userTurn(text, () => this.edit()));
    this.#answer();
  }

  /** Stops the reply that is being written; what is there stays. */
  stop() {
    this.#running?.abort();
  }

  /** Writes the last reply anew. */
  regenerate() {
    if (this.busy || !this.#list.lastElementChild?.classList.contains("model")) return;
    this.#list.lastElementChild.remove();
    if (this.#messages.at(-1).role === "assistant") this.#messages.pop();
    this.#answer();
  }

  /** Opens the reader's last message for changes; sending it takes the place of what followed. */
  edit() {
    const turn = [...this.#list.querySelectorAll(".turn.user")].at(-1);
    if (this.busy || !turn || turn.querySelector(".edit-form")) return;
    const said = turn.querySelector(".said");
    const close = () => {
      form.replaceWith(said);
      turn.classList.remove("editing");
      turn.querySelector("[data-last]").focus();
    };
    const { form, field } = editForm(said.textContent, (text) => {
      while (turn.nextSibling) turn.nextSibling.remove();
      turn.remove();
      this.#messages.length = this.#messages.findLastIndex((message) => message.role === "user");
      this.send(text);
      byId("prompt").focus();
    }, close);
    said.replaceWith(form);
    turn.classList.add("editing");
    field.focus();
  }

  /** Forgets the conversation. */
  clear() {
    this.stop();
    this.#running = null;
    this.#messages = [];
    this.#list.replaceChildren();
    announce("The conversation is empty.");
    this.#changed();
  }

  async #answer() {
    const control = new AbortController();
    this.#running = control;
    const reply = new ReplyText({ grown: () => this.#keepEnd() });
    const fields = questionFields();
    const { turn, after } = modelTurn(fields.model ?? "Model", reply, () => this.regenerate());
    after.append(element("p", { class: "waiting", text: "Reading the prompt" }));
    this.#list.append(turn);
    this.#keepEnd(true);
    this.#changed();
    announce("The model is answering.");
    let end = {};
    let notice;
    try {
      const question = { ...fields, messages: withSystem(this.#messages) };
      for await (const part of streamReply(question, control.signal)) {
        if (part.text && after.firstChild) after.replaceChildren();
        reply.push(part);
        end = { finish: part.finish ?? end.finish, usage: part.usage ?? end.usage, summary: part.summary ?? end.summary };
      }
    } catch (error) {
      notice = error.name === "AbortError"
        ? element("p", { class: "note", text: "Stopped." })
        : problemBox(error, () => this.regenerate());
    }
    if (end.summary?.drafted > 0) measured(fields.model, end.summary.tokens_per_second);
    if (this.#running === control) this.#running = null;
    reply.finish();
    turn.removeAttribute("aria-busy");
    turn.classList.toggle("empty", reply.text === "");
    after.replaceChildren(...(notice ? [notice] : []), summaryOf(end.summary, end.usage, end.finish));
    if (!turn.isConnected) return;
    if (reply.text) this.#messages.push({ role: "assistant", content: reply.text });
    if (!notice) announce(`The reply: ${reply.text.slice(0, mostSpoken)}`);
    else if (notice.className === "note") announce("Stopped.");
    this.#keepEnd();
    this.#changed();
  }
}

/** What the line under the message field says about how the next reply will be made. */
export function describeSettings() {
  const { speculation, temperature, seed } = settings();
  const { model, recipe } = chosenFor(settings());
  const parts = [model ?? "The server's model", speculation ? `recipe ${recipe ?? "of the server"}` : "no speculation"];
  if (temperature !== "") parts.push(`temperature ${temperature}`);
  if (seed !== "") parts.push(`seed ${seed}`);
  return parts.join(" · ");
}
