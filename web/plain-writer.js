import { element } from "./dom.js";
import { InlineWriter } from "./inline.js";

/** The lines that one element takes: the browser lays an element out anew whenever it grows. */
const linesPerElement = 24;

/** Writes a text as it is, without looking for Markdown. It has the members of MarkdownWriter. */
export class PlainWriter {
  #root;
  #makeSpan;
  #writer = null;
  #lines = 0;

  constructor(root, makeSpan) {
    this.#root = root;
    this.#makeSpan = makeSpan;
  }

  /** Adds a piece of text that came with a token. */
  write(text, token) {
    for (const character of text) {
      this.#writer ??= new InlineWriter(this.#root.appendChild(element("p", { class: "as-is" })), this.#makeSpan, true);
      this.#writer.push(character, token);
      if (character === "\n") this.#lines += 1;
      if (this.#lines === linesPerElement) this.end();
    }
    this.#writer?.flush();
  }

  /** Ends the text. */
  end() {
    this.#writer?.end();
    this.#writer = null;
    this.#lines = 0;
  }
}
