// Helpers: elements, formatted numbers, tables. Text from data is always set as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";

export const $ = id => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  const text = size >= 1e5 || size < 1e-3 ? value.toExponential(1).replace("e+", "e") : Number(value.toPrecision(digits)).toString();
  return text.replaceAll("-", "−");
}

// Typesetting of a sentence: minus signs, and no line break before per cent.
export function prose(text) {
  return text.replace(/(^|[\s(\[])-(?=[\d.])/g, "$1−").replace(/(\d) %/g, "$1\u00a0%");
}

// At most n characters of a text.
export function cut(text, n) {
  const letters = [...text];
  return letters.length <= n ? text : `${letters.slice(0, Math.max(n - 1, 1)).join("")}…`;
}

export function table(element, head, rows, numeric = []) {
  const cell = (tag, text, i, attributes = {}) => make(tag, numeric.includes(i) ? { class: "n", ...attributes } : attributes, text);
  element.replaceChildren(
    make("thead", {}, make("tr", {}, ...head.map((text, i) => cell("th", text, i, { scope: "col" })))),
    make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map((text, i) => (i === 0 ? cell("th", text, i, { scope: "row" }) : cell("td", text, i)))))),
  );
  return element;
}

export function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
