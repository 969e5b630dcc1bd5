import { byId } from "./dom.js";

const views = ["chat", "compare"];

/** Shows the view that the address names after its "#", the chat if it names none, and follows changes. */
export function startViews() {
  const show = () => {
    const wanted = location.hash.slice(1);
    const current = views.includes(wanted) ? wanted : null;
    if (!current && wanted !== "") return; // a link to a place within the view that is shown
    for (const view of views) {
      const shown = view === (current ?? "chat");
      byId(`${view}-view`).hidden = !shown;
      const link = document.querySelector(`nav a[href="#${view}"]`);
      if (shown) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    byId("skip").href = current === "compare" ? "#compare-prompt" : "#prompt";
  };
  addEventListener("hashchange", show);
  show();
}
