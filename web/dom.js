const svgNamespace = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * Makes an element of HTML. `properties` are its attributes; those named "onclick", "oninput", ... are listeners,
 * and "text" is its text. Attributes that are undefined, null or false are left out. `children` are nodes or
 * strings, which become text and never markup.
 */
export function element(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** Makes an element of SVG, as element() makes one of HTML. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(svgNamespace, tag), properties, children);
}

/** The element of the page that has an id. */
export function byId(id) {
  return document.getElementById(id);
}
