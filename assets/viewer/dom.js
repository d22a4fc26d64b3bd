// Elements, token labels and numbers. Every text goes through text nodes or setAttribute: a token can never be markup.

const SVG_NS = "http://www.w3.org/2000/svg";
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
const NARROW_ONLY = /^[\x20-\x7e\u2423\u21b5\u21e5]*$/;
const WHITESPACE_MARKS = /([\u2423\u21b5\u21e5\u240d]+)/;
const WHITESPACE_ONLY = /^[\u2423\u21b5\u21e5\u240d\u00d7\d]*$/;
const SEGMENTER = typeof Intl !== "undefined" && Intl.Segmenter ? new Intl.Segmenter() : null;

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}

function el(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return build(document.createElementNS(SVG_NS, tag), attributes, children);
}

function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
  return parent;
}

// A button or switch whose click never steals the keys: Space on it still presses it, the rest goes to the viewer.
function button(name, help, onPress, ...children) {
  return el("button", { type: "button", class: "dtx-button " + name, title: help, "aria-label": help, click: onPress }, ...children);
}

function icon(path) {
  return svg("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, svg("path", { d: path, fill: "currentColor" }));
}

function graphemes(text) {
  return SEGMENTER ? Array.from(SEGMENTER.segment(text), (part) => part.segment) : Array.from(text);
}

function cellsOf(grapheme) {
  return WIDE.test(grapheme) ? 2 : 1;
}

// The text cut in the middle to `cells` monospace cells; wide characters and emoji count two.
function shorten(text, cells) {
  if (text.length <= cells && NARROW_ONLY.test(text)) return text;
  const ends = text.length > 8 * cells ? text.slice(0, 4 * cells) + text.slice(-4 * cells) : text;
  const parts = graphemes(ends);
  const total = parts.reduce((sum, part) => sum + cellsOf(part), 0);
  if (ends === text && total <= cells) return text;
  let head = "", tail = "", first = 0, last = parts.length - 1, room = cells - 1;
  while (first <= last) {
    const fromHead = head.length <= tail.length;
    const part = parts[fromHead ? first : last];
    room -= cellsOf(part);
    if (room < 0) break;
    if (fromHead) { head += part; first += 1; } else { tail = part + tail; last -= 1; }
  }
  return head + "\u2026" + tail;
}

// A label as text nodes with its whitespace marks dimmed, unless it has nothing else.
function labelParts(text, make) {
  if (!WHITESPACE_MARKS.test(text) || WHITESPACE_ONLY.test(text)) return [text];
  return text.split(WHITESPACE_MARKS).filter(Boolean).map((part, i) =>
    WHITESPACE_MARKS.test(part) ? make({ class: "dtx-ws" }, part) : part);
}

function spanParts(text) {
  return labelParts(text, (attributes, part) => el("span", attributes, part));
}

function tspanParts(text) {
  return labelParts(text, (attributes, part) => svg("tspan", attributes, part));
}

// Calls back with the content size of an element, first when it is laid out and again when it changes: reading sizes
// while drawing would lay the page out several times a step.
function watchSize(element, callback) {
  new ResizeObserver(() => {
    const size = { width: element.clientWidth, height: element.clientHeight };
    if (size.width && size.height) callback(size);
  }).observe(element);
}

function percent(value) {
  if (value === null || value === undefined) return "\u2013";
  const number = 100 * value;
  if (number > 0 && number < 0.01) return "<0.01 %";
  return (number >= 10 ? number.toFixed(0) : String(Number(number.toPrecision(2)))) + " %";
}

// Measured time, as in "0.4 ms" and "261 ms".
function milliseconds(value) {
  return (value < 10 ? Number(value.toPrecision(2)) : value.toFixed(0)) + " ms";
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}
