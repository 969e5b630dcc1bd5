import { element } from "./dom.js";
import { lengthHistogram } from "./figures.js";
import { count, counted, duration, percent, speed } from "./numbers.js";

const reasons = {
  length: "The reply was cut off at the most tokens that the settings allow.",
  content_filter: "The server withheld the rest.",
};

const promises = {
  bytes: "the bytes of plain decoding",
  distribution: "the distribution of plain decoding, not its bytes",
  none: "the text may say other things than plain decoding",
};

/** What a recipe with this guarantee promises, in words. */
export function promiseOf(guarantee) {
  return promises[guarantee] ?? guarantee;
}

function fact(name, value, title) {
  return element("div", { title }, element("dt", { text: name }), element("dd", { text: value }));
}

function facts(summary, usage) {
  const { drafted, accepted } = summary;
  const list = [fact("Speed", `${speed(summary.tokens_per_second)} tokens/s`, "While decoding, without reading the prompt")];
  const tokens = usage?.completion_tokens;
  if (tokens !== undefined) list.push(fact("Tokens", count(tokens)));
  if (drafted > 0) {
    list.push(fact("Drafts kept", percent(accepted / drafted), `${count(accepted)} of ${counted(drafted, "drafted token")}`));
  }
  list.push(fact("Passes", count(summary.passes), "Evaluations of the whole model, each of which gave at least one token"));
  list.push(fact("Recipe", summary.recipe));
  return list;
}

function levelTable(levels) {
  const row = (cell, values) => element("tr", {}, ...values.map((value) => element(cell, { text: value })));
  return element("table", {},
    element("thead", {}, row("th", ["Level", "Drafted", "Kept", ""])),
    element("tbody", {}, ...levels.map((level) => row("td", [
      level.name, count(level.drafted), count(level.accepted), level.drafted > 0 ? percent(level.accepted / level.drafted) : "",
    ]))));
}

function details(summary, usage) {
  const prompt = usage ? ` of ${counted(usage.prompt_tokens, "token")}` : "";
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  const parts = [
    element("p", { text: `${summary.lossless ? "Lossless" : "Not lossless"}: ${promiseOf(summary.guarantee)}.` }),
    element("p", {
      text: `Seed ${summary.seed}. The prompt${prompt} took ${duration(summary.seconds_prefill)}` +
        `${cached > 0 ? ` (${count(cached)} were known already)` : ""}, decoding ${duration(summary.seconds_decode)}.`,
    }),
  ];
  if (summary.levels?.length > 0) parts.push(levelTable(summary.levels));
  if (summary.drafted > 0 && summary.lengths?.length > 0) {
    parts.push(element("p", { class: "caption", text: "Steps by the drafted tokens they kept, in percent" }), lengthHistogram(summary.lengths));
  }
  return element("details", {}, element("summary", { text: "How it was decoded" }), ...parts);
}

/** Makes the lines under a reply: what its speculation did. `reason` is why it ended. */
export function summaryOf(summary, usage, reason) {
  const box = element("div", { class: "summary" });
  if (reasons[reason]) box.append(element("p", { class: "note", text: reasons[reason] }));
  if (summary) box.append(element("dl", { class: "facts" }, ...facts(summary, usage)), details(summary, usage));
  return box;
}
