import { element, svg } from "./dom.js";
import { count, counted, percent } from "./numbers.js";

/** The most bars of a histogram; what is longer shares the last one. */
const mostBars = 12;

/** `lengths[k]` with everything from the last bar on added up in it. */
function folded(lengths) {
  if (lengths.length <= mostBars) return lengths;
  const rest = lengths.slice(mostBars - 1).reduce((sum, value) => sum + value, 0);
  return [...lengths.slice(0, mostBars - 1), rest];
}

/** Draws how many steps kept 0, 1, 2, ... drafted tokens. */
export function lengthHistogram(lengths) {
  const values = folded(lengths);
  const highest = Math.max(...values, 1);
  const total = values.reduce((sum, value) => sum + value, 0);
  const width = 280;
  const height = 96;
  const base = 78;
  const step = width / Math.max(values.length, 4);
  const bars = values.flatMap((value, index) => {
    const tall = value === 0 ? 0 : Math.max(2, (value / highest) * 62);
    const name = index === mostBars - 1 && lengths.length > mostBars ? `${index}+` : `${index}`;
    const share = total > 0 && value / total >= 0.005 ? `${Math.round((100 * value) / total)}` : "";
    return [
      svg("rect", { class: index === 0 ? "bar none" : "bar", x: index * step + 2, y: base - tall, width: step - 4, height: tall, rx: 2 },
        svg("title", { text: `${counted(value, "step")} kept ${name}` })),
      svg("text", { class: "share", x: (index + 0.5) * step, y: base - tall - 4, text: share }),
      svg("text", { x: (index + 0.5) * step, y: height - 4, text: name }),
    ];
  });
  const spoken = values.map((value, index) => `${index}: ${count(value)}`).join(", ");
  return svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Steps by kept drafts. ${spoken}` },
    svg("line", { x1: 0, x2: width, y1: base + 0.5, y2: base + 0.5 }), ...bars);
}

/** Draws a speed over time as a line, the newest value at the right. */
export function sparkline(values, most) {
  const width = 280;
  const height = 44;
  const highest = Math.max(...values, 1e-9);
  const points = values.map((value, index) => {
    const x = width - ((values.length - 1 - index) * width) / (most - 1);
    return `${x.toFixed(1)},${(height - 3 - (value / highest) * (height - 8)).toFixed(1)}`;
  });
  return svg("svg", { class: "sparkline", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    svg("line", { x1: 0, x2: width, y1: height - 2.5, y2: height - 2.5 }),
    svg("polyline", { points: points.join(" ") }));
}

/** Draws numbers under each other as bars that begin at the same place. `rows` are { name, value, text, kind }. */
export function bars(rows) {
  const highest = Math.max(...rows.map((row) => row.value), 1e-9);
  return element("dl", { class: "bars" }, ...rows.map((row) =>
    element("div", { class: row.kind }, element("dt", { text: row.name }), element("dd", {},
      svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { width: Math.max(0.5, (100 * row.value) / highest), height: 6, rx: 0 })),
      element("span", { text: row.text })))));
}

/** Draws a share as a filled part of a bar; `label` names it for screen readers. */
export function share(part, whole, label) {
  const value = whole > 0 ? part / whole : 0;
  return svg("svg", { class: "share-bar", viewBox: "0 0 100 4", preserveAspectRatio: "none", role: "img", "aria-label": `${label}: ${percent(value)}` },
    svg("rect", { class: "whole", width: 100, height: 4 }), svg("rect", { class: "part", width: 100 * value, height: 4 }));
}
