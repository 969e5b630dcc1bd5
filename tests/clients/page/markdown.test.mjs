import assert from "node:assert/strict";
import { pageTest } from "./setup.mjs";

/** What a text becomes, written in pieces of a length: the tags, with the text of runs that share an element joined. */
function render(page, text, pieces) {
  return page.evaluate(async ({ text, pieces }) => {
    const { MarkdownWriter } = await import("/markdown.js");
    const root = document.createElement("div");
    const writer = new MarkdownWriter(root, (words) => {
      const span = document.createElement("span");
      span.textContent = words;
      return span;
    });
    const characters = [...text];
    for (let at = 0; at < characters.length; at += pieces) writer.write(characters.slice(at, at + pieces).join(""), { at });
    writer.end();
    for (const button of root.querySelectorAll("figcaption")) button.remove();
    return root.innerHTML.replaceAll(/<\/?span>|<\/?figure[^>]*>/g, "");
  }, { text, pieces });
}

const cases = [
  ["plain words", "<p>plain words</p>"],
  ["one\ntwo\n\nthree\n", "<p>one\ntwo</p><p>three</p>"],
  ["a **bold** word and `code * x`", "<p>a <strong>bold</strong> word and <code>code * x</code></p>"],
  ["*soft* and 2 * 3 * 4, a*b*c", "<p><em>soft</em> and 2 * 3 * 4, a*b*c</p>"],
  ["never **closed", "<p>never **closed</p>"],
  ["never `closed\n\nnext", "<p>never `closed</p><p>next</p>"],
  ["**a `b` c**", "<p><strong>a <code>b</code> c</strong></p>"],
  ["# Title\ntext", "<h3>Title</h3><p>text</p>"],
  ["#hashtag", "<p>#hashtag</p>"],
  ["- a\n- b\n  - c\n- d", "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c</p></li></ul></li><li><p>d</p></li></ul>"],
  ["3. x\n4. y", '<ol start="3"><li><p>x</p></li><li><p>y</p></li></ol>'],
  ["- a\n\nafter", "<ul><li><p>a</p></li></ul><p>after</p>"],
  ["-5 degrees", "<p>-5 degrees</p>"],
  ["---\nx", "<hr><p>x</p>"],
  ["```py\na = 1\n\n  b **c**\n```\nend", "<pre><code>a = 1\n\n  b **c**</code></pre><p>end</p>"],
  ["```\nnever closed", "<pre><code>never closed</code></pre>"],
  ["````\n```\n````", "<pre><code>```</code></pre>"],
  ["**", "<p>**</p>"],
  ["-", "<p>-</p>"],
  ["``", "<p></p>"],
];

pageTest("Markdown is the same in whatever pieces it arrives", {}, async ({ page }) => {
  for (const [text, wanted] of cases) {
    for (const pieces of [1, 2, 3, 1000]) {
      const got = (await render(page, text, pieces)).replaceAll(/<code><\/code>/g, "");
      assert.equal(got.replaceAll("&lt;", "<").replaceAll("&gt;", ">"), wanted, `${JSON.stringify(text)} in pieces of ${pieces}`);
    }
  }
});
