function byteLength(point) {
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point < 0x10000 ? 3 : 4;
}

/**
 * Finds the token that each character of a reply came with. Tokens say how many bytes of UTF-8 they add; text may come
 * later than its tokens. A character belongs to the token that completes it.
 */
export class TokenAligner {
  #text = "";
  #textBytes = 0; // of the reply, up to where #text begins
  #tokens = []; // those that may still get text, with the byte at which each ends
  #first = 0; // the first of them
  #tokenBytes = 0;

  /** Takes in what a part of a stream brought. */
  push(text, tokens) {
    this.#text += text;
    for (const token of tokens ?? []) {
      this.#tokenBytes += token.bytes;
      this.#tokens.push({ token, end: this.#tokenBytes });
    }
  }

  /**
   * Takes out the text that came since the last call, as a list of { text, token }: `token` is null for text without
   * one. A token's text may come in several pieces.
   */
  take() {
    const runs = [];
    let begin = 0;
    let at = 0;
    const cut = (token) => {
      if (at > begin) runs.push({ text: this.#text.slice(begin, at), token });
      begin = at;
    };
    while (at < this.#text.length) {
      const point = this.#text.codePointAt(at);
      const end = this.#textBytes + byteLength(point);
      const current = this.#tokens[this.#first];
      if (current && end > current.end) {
        cut(current.token);
        this.#first += 1;
        continue;
      }
      this.#textBytes = end;
      at += point > 0xffff ? 2 : 1;
    }
    cut(this.#tokens[this.#first]?.token ?? null);
    this.#text = "";
    this.#tokens.splice(0, this.#first);
    this.#first = 0;
    return runs;
  }
}
