import { element } from "./dom.js";
import { bars } from "./figures.js";
import { icon } from "./icons.js";
import { count, counted, duration, times } from "./numbers.js";
import { promiseOf } from "./summary.js";

/** The first place at which two lists of bytes differ, or -1 if they are the same. */
export function firstDifference(one, other) {
  const common = Math.min(one.length, other.length);
  for (let at = 0; at < common; at += 1) if (one[at] !== other[at]) return at;
  return one.length === other.length ? -1 : common;
}

/** Some of a text around a place in its bytes, for a reader. */
function around(bytes, at) {
  const text = new TextDecoder().decode(bytes.subarray(Math.max(0, at - 24), at + 24));
  return `“${text.replaceAll("�", "").replaceAll("\n", "⏎")}”`;
}

function agreement(size) {
  return element("div", { class: "verdict same", role: "status" },
    element("strong", {}, icon("done"), "The same bytes"),
    element("p", { text: `Both replies are byte for byte the same: ${counted(size, "byte")}, compared one by one.` }));
}

function disagreement(plain, fast, one, other, at) {
  const promised = fast.summary?.lossless !== false;
  return element("div", { class: "verdict different", role: "alert" },
    element("strong", {}, icon("close"), "The bytes differ"),
    element("p", { text: `From byte ${count(at)} on. Plain: ${around(one, at)}. Speculative: ${around(other, at)}.` }),
    element("p", {
      text: promised
        ? "The recipe promises the same bytes: this is a fault. Please report it with the prompt, the seed and the model."
        : `The recipe does not promise the same bytes: ${promiseOf(fast.summary.guarantee)}.`,
    }));
}

function timesOf(plain, fast) {
  const parts = [bars([
    { name: plain.name, value: plain.decode, text: duration(plain.decode), kind: "plain-bar" },
    { name: fast.name, value: fast.decode, text: duration(fast.decode), kind: "now" },
  ])];
  if (fast.decode > 0) {
    parts.unshift(element("p", { class: "figure" }, element("strong", { text: times(plain.decode / fast.decode) }), " as fast"));
  }
  parts.push(element("p", {
    class: "note",
    text: `Time of decoding. From the request to the last byte: ${duration(plain.seconds)} plain, ${duration(fast.seconds)} speculative.`,
  }));
  return element("div", { class: "times" }, ...parts);
}

/** Makes what is said about two complete replies: whether their bytes agree, and how long each took. */
export function verdictOf(plain, fast) {
  const encoder = new TextEncoder();
  const one = encoder.encode(plain.text);
  const other = encoder.encode(fast.text);
  const at = firstDifference(one, other);
  return element("div", { class: "outcome" }, at < 0 ? agreement(one.length) : disagreement(plain, fast, one, other, at), timesOf(plain, fast));
}
