import { TokenAligner } from "./aligner.js";
import { element } from "./dom.js";
import { MarkdownWriter } from "./markdown.js";
import { PlainWriter } from "./plain-writer.js";
import { settings } from "./settings.js";
import { tokenSpan } from "./tint.js";

/** Calls a function before the next picture is drawn, or soon, if the page is not seen. */
function soon(work) {
  if (document.hidden) setTimeout(work, 100);
  else requestAnimationFrame(work);
}

/** The text of one reply in the page, which grows as its stream brings it, once per picture at most. */
export class ReplyText {
  #aligner = new TokenAligner();
  #writer;
  #waiting = false;
  #grown;

  /** `grown` is called after the text in the page has grown. */
  constructor({ markdown = settings().markdown, grown = () => {} } = {}) {
    this.element = element("div", {
      class: "reply-text", role: "group", tabindex: 0, "aria-label": "Reply. Left and right arrow keys show where each token came from.",
    });
    this.text = "";
    this.tokens = 0;
    this.#grown = grown;
    this.#writer = markdown ? new MarkdownWriter(this.element, tokenSpan) : new PlainWriter(this.element, tokenSpan);
  }

  /** Takes in a part of the stream. */
  push({ text, tokens }) {
    this.text += text;
    this.tokens += tokens?.length ?? 0;
    this.#aligner.push(text, tokens);
    if (this.#waiting || text === "") return;
    this.#waiting = true;
    soon(() => {
      this.#waiting = false;
      this.#write();
    });
  }

  /** Puts what is left into the page: the text is complete. */
  finish() {
    this.#write();
    this.#writer.end();
    this.#grown();
  }

  #write() {
    const runs = this.#aligner.take();
    for (const { text, token } of runs) this.#writer.write(text, token);
    if (runs.length > 0) this.#grown();
  }
}
