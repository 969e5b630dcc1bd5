import { element } from "./dom.js";

const isSpace = (character) => character === undefined || character.trim() === "";
const isWord = (character) => character !== undefined && /[\p{L}\p{N}]/u.test(character);

/**
 * Writes the text of one paragraph, heading, item or block of code: inline code, bold and emphasis become elements as
 * soon as they open, and become their marks again if they are never closed. Runs of characters of one token share an
 * element. `literal` text has no marks.
 */
export class InlineWriter {
  #makeSpan;
  #literal;
  #parents; // the element that text goes into, and those around it
  #marks = []; // the open marks: { mark, node, token }
  #stars = []; // tokens of stars that were not decided yet
  #before; // the last character that was written
  #run = ""; // characters of #runToken that are not in the page yet
  #runToken = null;
  #span = null; // the last piece of text, while more of its token may follow
  #spanToken = null;

  constructor(target, makeSpan, literal) {
    this.#parents = [target];
    this.#makeSpan = makeSpan;
    this.#literal = literal;
  }

  /** Adds a character that came with a token. */
  push(character, token) {
    if (this.#literal) return this.#text(character, token);
    if (character === "*" && !this.#inCode()) {
      if (this.#stars.length === 2) this.#decideStars("*");
      this.#stars.push(token);
      return;
    }
    if (this.#stars.length > 0) this.#decideStars(character);
    if (character === "`") this.#toggle("`", "code", token, true);
    else this.#text(character, token);
  }

  /** Puts what was pushed into the page, except stars that may be marks. */
  flush() {
    if (this.#run === "") return;
    if (this.#span && this.#spanToken === this.#runToken) {
      this.#span.firstChild.appendData(this.#run);
      delete this.#span.dataset.blank;
    } else {
      this.#span = this.#makeSpan(this.#run, this.#runToken);
      this.#spanToken = this.#runToken;
      this.#parents.at(-1).append(this.#span);
    }
    this.#run = "";
  }

  /** Ends the text. */
  end() {
    if (this.#stars.length > 0) this.#decideStars(undefined);
    this.flush();
    while (this.#marks.length > 0) this.#unmark();
  }

  #inCode() {
    return this.#marks.at(-1)?.mark === "`";
  }

  #text(character, token) {
    if (token !== this.#runToken) this.flush();
    this.#runToken = token;
    this.#run += character;
    this.#before = character;
  }

  #decideStars(next) {
    const mark = "*".repeat(this.#stars.length);
    const token = this.#stars.at(-1);
    const open = this.#marks.some((entry) => entry.mark === mark);
    const opens = !isSpace(next) && !(mark === "*" && isWord(this.#before));
    const stars = this.#stars;
    this.#stars = [];
    if (open ? !isSpace(this.#before) : opens) this.#toggle(mark, mark === "**" ? "strong" : "em", token, false);
    else for (const each of stars) this.#text("*", each);
  }

  #toggle(mark, tag, token, keepsBefore) {
    this.flush();
    this.#span = null;
    if (this.#marks.some((entry) => entry.mark === mark)) {
      while (this.#marks.at(-1).mark !== mark) this.#unmark();
      this.#marks.pop();
      this.#parents.pop();
      this.#before = "x";
    } else {
      const node = this.#parents.at(-1).appendChild(element(tag));
      this.#marks.push({ mark, node, token });
      this.#parents.push(node);
      if (!keepsBefore) this.#before = undefined;
    }
  }

  /** Turns the innermost mark that was never closed into the text that it was. */
  #unmark() {
    const { mark, node, token } = this.#marks.pop();
    this.#parents.pop();
    this.#span = null;
    node.before(this.#makeSpan(mark, token));
    while (node.firstChild) node.before(node.firstChild);
    node.remove();
  }
}
