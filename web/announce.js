import { byId } from "./dom.js";

/** Has a screen reader say something when it has nothing else to say. */
export function announce(text) {
  byId("announcer").textContent = text;
}
