import { startCompare } from "./compare.js";
import { startComposer } from "./composer.js";
import { byId } from "./dom.js";
import { placeIcons } from "./icons.js";
import { inspectTokens } from "./inspector.js";
import { keepLegend } from "./legend.js";
import { startPanel } from "./panel.js";
import { startSettingsForm } from "./settings-form.js";
import { change, follow } from "./settings.js";
import { startTheme } from "./theme.js";
import { startViews } from "./views.js";

placeIcons();
startTheme();
startViews();
startSettingsForm();
startComposer();
startCompare();
startPanel();
inspectTokens();
keepLegend(byId("legend"));

byId("tint").addEventListener("change", (event) => change({ tint: event.target.checked }));
follow(({ tint }) => {
  byId("tint").checked = tint;
  document.body.toggleAttribute("data-tint", tint);
});
