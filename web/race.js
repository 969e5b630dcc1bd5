import { element } from "./dom.js";
import { counted, duration } from "./numbers.js";
import { problemBox } from "./problem.js";
import { ReplyText } from "./reply.js";
import { summaryOf } from "./summary.js";

/** One of the two replies that are compared: its column in the page, and how long it took. */
export class Race {
  #reply = new ReplyText({ markdown: false });
  #clock = element("p", { class: "clock", text: "waiting" });
  #after = element("div", { class: "after" });
  #start = 0;
  #first = 0;
  #ticking = false;
  #end = {};

  constructor(name, subtitle) {
    this.name = name;
    this.element = element("section", { class: "race", "aria-label": name },
      element("header", {}, element("h3", { text: name }), element("p", { class: "note", text: subtitle }), this.#clock),
      this.#reply.element, this.#after);
  }

  /** Starts the clock: the request goes out. */
  begin() {
    this.#start = performance.now();
    this.#ticking = true;
    this.element.setAttribute("aria-busy", "true");
    const tick = () => {
      if (!this.#ticking) return;
      this.#clock.textContent = `${((performance.now() - this.#start) / 1000).toFixed(1)} s`;
      requestAnimationFrame(tick);
    };
    tick();
  }

  /** Takes in a part of the stream. */
  push(part) {
    if (part.text && !this.#first) this.#first = performance.now();
    this.#reply.push(part);
    for (const name of ["finish", "usage", "summary"]) this.#end[name] = part[name] ?? this.#end[name];
  }

  /** Stops the clock: the reply is complete. Returns what it was. */
  finish() {
    const seconds = (performance.now() - this.#start) / 1000;
    this.#stopClock();
    const { finish, usage, summary } = this.#end;
    this.#clock.textContent = `${duration(seconds)}${usage ? ` for ${counted(usage.completion_tokens, "token")}` : ""}`;
    this.#after.append(summaryOf(summary, usage, finish));
    const decode = summary?.seconds_decode ?? (performance.now() - this.#first) / 1000;
    return { name: this.name, text: this.#reply.text, seconds, decode, summary, finish };
  }

  /** Stops the clock: the reply will not be completed. */
  fail(error) {
    this.#stopClock();
    this.#clock.textContent = "incomplete";
    if (error.name !== "AbortError") this.#after.append(problemBox(error));
  }

  /** Says that the reply was not asked for, unless it was. */
  abandon() {
    if (!this.#start) this.#clock.textContent = "not run";
  }

  #stopClock() {
    this.#ticking = false;
    this.element.removeAttribute("aria-busy");
    this.#reply.finish();
  }
}
