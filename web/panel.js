import { readStats } from "./api.js";
import { byId, element } from "./dom.js";
import { bars, lengthHistogram, share, sparkline } from "./figures.js";
import { lastSpeed } from "./measured.js";
import { bytes, count, counted, percent, speed, times } from "./numbers.js";
import { change, follow, settings } from "./settings.js";

const interval = 1000;
const intervalAfterFailure = 4000;
const mostSpeeds = 60;

/** The speeds of the last minute of each model, by its name. */
const speeds = new Map();

function remember({ name, tokens_per_second: now }) {
  const list = speeds.get(name) ?? [];
  list.push(now ?? 0);
  if (list.length > mostSpeeds) list.shift();
  speeds.set(name, list);
  return list;
}

function section(title, ...children) {
  return element("section", {}, element("h3", { text: title }), ...children);
}

function note(text) {
  return element("p", { class: "note", text });
}

function speedSection(model) {
  const { tokens_per_second: now, plain_tokens_per_second: plain } = model;
  const list = remember(model);
  const last = lastSpeed(model.name);
  const figure = now && model.running > 0
    ? element("p", { class: "figure" }, element("strong", { id: "speed-now", text: speed(now) }), " tokens/s")
    : element("p", { class: "figure" }, element("strong", { id: "speed-now", text: "Idle" }));
  const rows = [];
  if (last) rows.push({ name: "last reply", value: last, text: `${speed(last)} tokens/s`, kind: "now" });
  if (plain) rows.push({ name: "plain", value: plain, text: `${speed(plain)} tokens/s`, kind: "plain-bar" });
  const ratio = last && plain ? element("p", { class: "ratio" }, element("strong", { text: times(last / plain) }), " the plain speed") : null;
  const missing = note(`No ${plain ? "reply with drafts" : "plain reply"} was measured yet.`);
  return section("Speed", figure, sparkline(list, mostSpeeds), rows.length > 0 ? bars(rows) : null, ratio ?? missing);
}

function acceptanceSection({ drafted, accepted, lengths }) {
  if (!drafted) return section("Drafts", note("No draft was made yet."));
  return section("Drafts",
    element("p", { class: "figure" }, element("strong", { text: percent(accepted / drafted) }), " kept"),
    share(accepted, drafted, "Drafted tokens that were kept"),
    note(`${count(accepted)} of ${counted(drafted, "drafted token")}`),
    element("p", { class: "caption", text: "Steps by the drafts they kept, in percent" }),
    lengthHistogram(lengths ?? []));
}

function cacheSection({ cache_bytes: all, cache_bytes_taken: taken }) {
  if (!all) return section("Cache", note("The model has no cache yet."));
  return section("Cache", share(taken, all, "Cache in use"), note(`${bytes(taken)} of ${bytes(all)} in use`));
}

function queueSection({ running, waiting }) {
  return section("Queue", element("dl", { class: "facts" },
    element("div", {}, element("dt", { text: "Running" }), element("dd", { text: count(running) })),
    element("div", {}, element("dt", { text: "Waiting" }), element("dd", { text: count(waiting) }))));
}

function draw(models) {
  const body = byId("panel-body");
  const model = models.find((entry) => entry.name === settings().model) ?? models.find((entry) => entry.loaded) ?? models[0];
  if (!model) return body.replaceChildren(note("The server offers no model."));
  const head = element("p", { class: "model-name" }, element("strong", { text: model.name }), model.recipe ? ` · ${model.recipe}` : "");
  if (!model.loaded) return body.replaceChildren(head, note("Loaded when it is first asked for."));
  body.replaceChildren(head, speedSection(model), acceptanceSection(model), queueSection(model), cacheSection(model));
}

/** Shows what the server does, as long as the panel is open and the page is seen. */
export function startPanel() {
  const toggle = byId("panel-toggle");
  let timer = 0;
  let asking = false;

  const seen = () => !byId("panel").hidden && !document.hidden;
  async function update() {
    clearTimeout(timer);
    if (asking || !seen()) return;
    asking = true;
    let wait = interval;
    try {
      draw(await readStats());
    } catch (error) {
      wait = intervalAfterFailure;
      byId("panel-body").replaceChildren(note(error.message));
    }
    asking = false;
    timer = setTimeout(update, wait);
  }

  const narrow = matchMedia("(max-width: 62rem)");
  let open = settings().panel && !narrow.matches;
  const apply = () => {
    byId("panel").hidden = !open;
    toggle.setAttribute("aria-expanded", open);
    update();
  };
  toggle.addEventListener("click", () => {
    open = !open;
    if (!narrow.matches) change({ panel: open });
    apply();
  });
  byId("panel-close").addEventListener("click", () => {
    toggle.click();
    toggle.focus();
  });
  document.addEventListener("visibilitychange", update);
  follow(() => update());
  apply();
}
