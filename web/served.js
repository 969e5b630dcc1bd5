import { listModels, readStats } from "./api.js";
import { requestFields, settings } from "./settings.js";

const listeners = new Set();
let served = { models: [], about: [] };

/** Calls a function with what the server offers, { models, about }, now and whenever that was asked for again. */
export function followServed(listener) {
  listeners.add(listener);
  listener(served);
}

/**
 * Asks the server for the names of its models and for what is known of each (its entry in the statistics). Without an
 * answer the lists are empty.
 */
export async function askServed() {
  const [models, about] = await Promise.all([listModels().catch(() => []), readStats().catch(() => [])]);
  served = { models, about };
  for (const listener of listeners) listener(served);
}

/** The name of the model and of the recipe that answer where the settings name none; undefined if not known. */
export function chosenFor({ model, recipe }) {
  const name = model || served.models[0];
  const about = served.about.find((entry) => entry.name === name);
  return { model: name, recipe: recipe || about?.recipe };
}

/** The fields of a request that the settings decide, with the name of a model where one is known. */
export function questionFields() {
  const { model } = chosenFor(settings());
  return model ? { ...requestFields(), model } : requestFields();
}
