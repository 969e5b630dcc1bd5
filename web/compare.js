import { announce } from "./announce.js";
import { streamReply } from "./api.js";
import { byId, element } from "./dom.js";
import { measured } from "./measured.js";
import { Race } from "./race.js";
import { chosenFor, questionFields } from "./served.js";
import { change, settings, withSystem } from "./settings.js";
import { verdictOf } from "./verdict.js";

/** The fields of both requests: the same in everything but the speculation. */
function questionOf(prompt, seed, speculation) {
  const fields = questionFields();
  fields.verbatim.speculation = speculation;
  return { ...fields, seed, messages: withSystem([{ role: "user", content: prompt }]) };
}

/** Runs one of the two replies into its column. Returns what came, or throws what went wrong. */
async function run(race, question, signal) {
  race.begin();
  try {
    for await (const part of streamReply(question, signal)) race.push(part);
  } catch (error) {
    race.fail(error);
    throw error;
  }
  const result = race.finish();
  if (result.summary?.drafted > 0) measured(question.model, result.summary.tokens_per_second);
  return result;
}

function randomSeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0] >>> 1;
}

/** Connects the view that runs a prompt plain and speculative and compares the two. */
export function startCompare() {
  const form = byId("compare-form");
  const prompt = byId("compare-prompt");
  const seedField = byId("compare-seed");
  const verdict = byId("verdict");
  let control = null;

  function update() {
    byId("compare-run").hidden = control !== null;
    byId("compare-stop").hidden = control === null;
  }

  async function compare() {
    control = new AbortController();
    update();
    const seed = seedField.value === "" ? randomSeed() : Number(seedField.value);
    seedField.value = seed;
    const plain = new Race("Plain", "every token by the whole model");
    const fast = new Race("Speculative", `recipe ${chosenFor(settings()).recipe ?? "of the server"}`);
    byId("races").replaceChildren(plain.element, fast.element);
    verdict.replaceChildren();
    announce("Both replies are being written.");
    const start = (race, speculation) => run(race, questionOf(prompt.value, seed, speculation), control.signal);
    try {
      let results;
      if (form.elements.order.value === "together") {
        results = await Promise.all([start(plain, false), start(fast, true)]);
      } else {
        results = [await start(plain, false), await start(fast, true)];
      }
      verdict.replaceChildren(verdictOf(...results));
      announce(verdict.innerText);
    } catch (error) {
      control.abort();
      fast.abandon();
      const words = error.name === "AbortError" ? "Stopped, so there is nothing to compare." : "One reply is incomplete, so there is nothing to compare.";
      verdict.replaceChildren(element("p", { class: "note", text: words }));
      announce(words);
    }
    control = null;
    update();
  }

  form.elements.order.value = settings().order;
  form.addEventListener("change", () => change({ order: form.elements.order.value }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!control && prompt.value.trim() !== "") compare();
  });
  prompt.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  byId("compare-stop").addEventListener("click", () => control?.abort());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") control?.abort();
  });
  update();
}
