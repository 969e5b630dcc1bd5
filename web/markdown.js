import { element } from "./dom.js";
import { InlineWriter } from "./inline.js";
import { copyButton } from "./copy.js";

/** The most lists within lists; deeper items stay at this depth. */
const deepest = 6;

/** What a line's beginning may still become, and what it has become once it is long enough to tell. */
const undecided = /^\s*(?:[-*+]|\d{1,4}[.)]?|#{1,6}|`{1,2}|`{3,}[^`]{0,60}|-{2,})?$/;
const item = /^(\s*)(?:[-*+]|(\d{1,4})[.)]) $/;
const heading = /^(#{1,6}) $/;
const fence = /^\s*(`{3,})([^`]*)$/;
const rule = /^\s*-{3,}\s*$/;

/**
 * Turns the Markdown of a reply into elements as it arrives: paragraphs, headings, lists, code and bold. All other
 * marks stay as they are, and nothing in a text ever becomes markup of the page. Each character is looked at once, so
 * the work for a piece of text does not grow with what stands before it. `makeSpan(text, token)` makes the element of a
 * piece of text.
 */
export class MarkdownWriter {
  #root;
  #makeSpan;
  #line = []; // the beginning of a line that is not decided yet: characters with their tokens
  #prefix = ""; // the same as a text
  #atLineStart = true;
  #breaks = []; // newlines that were not written yet, as their tokens
  #block = null; // { kind, writer }, what text goes into
  #lists = []; // the open lists: { list, indent, last }
  #fence = "";

  constructor(root, makeSpan) {
    this.#root = root;
    this.#makeSpan = makeSpan;
  }

  /** Adds a piece of text that came with a token. */
  write(text, token) {
    for (const character of text) this.#push(character, token);
    this.#block?.writer.flush();
  }

  /** Ends the text: what was held back is written as it is. */
  end() {
    if (this.#atLineStart && this.#line.length > 0) this.#decide(true);
    this.#closeBlock();
  }

  #push(character, token) {
    if (character === "\n") this.#newline(token);
    else if (!this.#atLineStart) this.#block.writer.push(character, token);
    else {
      this.#line.push([character, token]);
      this.#prefix += character;
      this.#decide(false);
    }
  }

  #newline(token) {
    if (this.#atLineStart) {
      if (this.#line.length > 0) this.#decide(true);
      else this.#line = [];
    }
    if (this.#block?.kind === "heading") this.#closeBlock();
    this.#breaks.push(token);
    this.#startLine();
  }

  #startLine() {
    this.#atLineStart = true;
    this.#line = [];
    this.#prefix = "";
  }

  /** Decides what the line is, if its beginning tells; `complete` says that no more of the line comes. */
  #decide(complete) {
    const prefix = this.#prefix;
    if (this.#block?.kind === "code") return this.#decideCode(complete);
    let match;
    if ((match = item.exec(prefix))) return this.#beginItem(match[1].length, match[2]);
    if ((match = heading.exec(prefix))) return this.#beginHeading(match[1].length);
    if (complete && (match = fence.exec(prefix))) return this.#beginCode(match[1], match[2].trim());
    if (complete && rule.test(prefix)) return this.#addRule();
    if (!complete && undecided.test(prefix)) return;
    if (prefix.trim() === "") return;
    this.#continueText();
  }

  #decideCode(complete) {
    const closes = this.#prefix.trim();
    if (complete && closes.length >= this.#fence.length && /^`+$/.test(closes)) {
      this.#closeBlock();
      return this.#startLine();
    }
    if (!complete && /^\s{0,3}`*$/.test(this.#prefix)) return;
    this.#writeBreaks();
    this.#writeLine();
  }

  #continueText() {
    const blank = this.#breaks.length > 1;
    const indent = this.#prefix.length - this.#prefix.trimStart().length;
    if (blank || !this.#block) {
      this.#closeBlock();
      if (this.#lists.length > 0 && indent < 2) this.#lists = [];
      const parent = this.#lists.length > 0 ? this.#lists.at(-1).last : this.#root;
      this.#openBlock("text", parent.appendChild(element("p")));
    }
    this.#writeBreaks();
    while (this.#line.length > 0 && this.#line[0][0].trim() === "") this.#line.shift();
    this.#writeLine();
  }

  /** Writes the newlines that separate lines of one block; the first one after the marks of a block of code is theirs. */
  #writeBreaks() {
    const { fresh, kind, writer } = this.#block;
    const breaks = !fresh ? this.#breaks : kind === "code" ? this.#breaks.slice(1) : [];
    for (const token of breaks) writer.push("\n", token);
    this.#block.fresh = false;
    this.#breaks = [];
  }

  #writeLine() {
    for (const [character, token] of this.#line) this.#block.writer.push(character, token);
    this.#line = [];
    this.#atLineStart = false;
  }

  #openBlock(kind, target, literal = false) {
    this.#block = { kind, fresh: true, writer: new InlineWriter(target, this.#makeSpan, literal) };
  }

  #closeBlock() {
    this.#block?.writer.end();
    this.#block = null;
  }

  #beginItem(indent, number) {
    this.#closeBlock();
    this.#breaks = [];
    const tag = number ? "ol" : "ul";
    while (this.#lists.length > 1 && indent < this.#lists.at(-1).indent) this.#lists.pop();
    const top = this.#lists.at(-1);
    if (!top || (indent >= top.indent + 2 && this.#lists.length < deepest)) this.#openList(tag, indent, number);
    else if (top.list.localName !== tag) {
      this.#lists.pop();
      this.#openList(tag, indent, number);
    }
    const last = this.#lists.at(-1);
    last.last = last.list.appendChild(element("li"));
    this.#openBlock("text", last.last.appendChild(element("p")));
    this.#block.fresh = false;
    this.#line = [];
    this.#atLineStart = false;
  }

  #openList(tag, indent, number) {
    const parent = this.#lists.at(-1)?.last ?? this.#root;
    const list = parent.appendChild(element(tag, { start: number && number !== "1" ? number : null }));
    this.#lists.push({ list, indent, last: null });
  }

  #beginHeading(depth) {
    this.#closeBlock();
    this.#breaks = [];
    this.#lists = [];
    this.#openBlock("heading", this.#root.appendChild(element(`h${Math.min(depth + 2, 6)}`)));
    this.#block.fresh = false;
    this.#line = [];
    this.#atLineStart = false;
  }

  #beginCode(marks, language) {
    this.#closeBlock();
    this.#breaks = [];
    this.#fence = marks;
    const code = element("code");
    const parent = this.#lists.length > 0 && /^\s/.test(this.#prefix) ? this.#lists.at(-1).last : this.#root;
    parent.append(element("figure", { class: "code" },
      element("figcaption", {}, element("span", { text: language || "code" }), copyButton("Copy the code", () => code.textContent)),
      element("pre", {}, code)));
    this.#openBlock("code", code, true);
    this.#line = [];
  }

  #addRule() {
    this.#closeBlock();
    this.#breaks = [];
    this.#lists = [];
    this.#root.append(element("hr"));
    this.#line = [];
  }
}
