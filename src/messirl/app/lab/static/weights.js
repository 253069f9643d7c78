// Weights of the features: the largest as bars, all in a table.
import { $, cut, make, number, svg, table } from "./words.js";
import { plain, scale } from "./colours.js";

const MOST = 12, HIGH = 24;
let last = null;

export function listen() {
  $("weight-numbers").addEventListener("toggle", fillTable);
  new ResizeObserver(() => { if (last && Math.abs(wide() - last.wide) > 1) draw(last.scene, last.models); }).observe($("weights"));
}

export function draw(scene, models) {
  last = { scene, models, wide: wide() };
  const colours = plain(), first = models[0].theta, picture = $("weights"), WIDE = last.wide, LEFT = Math.min(150, 0.32 * WIDE);
  const order = [...first.keys()].sort((a, b) => Math.max(...models.map(m => Math.abs(m.theta[b]) / top(m))) - Math.max(...models.map(m => Math.abs(m.theta[a]) / top(m)))).slice(0, MOST / models.length);
  const head = models.length > 1 ? [`above: ${models[0].label}, below: ${models[1].label};`, "each in its own scale"] : [""];
  const tall = order.length * HIGH * models.length + (models.length > 1 ? order.length * 6 : 0) + head.length * 16 + 10, zero = LEFT + (WIDE - LEFT) / 2, half = (WIDE - LEFT) / 2 - 46;
  const parts = head.map((text, i) => svg("text", { x: 0, y: 12 + 16 * i, "font-size": 12, fill: colours.soft }, text));
  let y = 6 + 16 * head.length;
  for (const j of order) {
    parts.push(svg("text", { x: LEFT - 10, y: y + HIGH * models.length / 2 + 4, "text-anchor": "end", "font-size": 12.5, fill: colours.ink }, cut(scene.features[j], Math.floor(LEFT / 7.5))));
    for (const model of models) {
      const value = model.theta[j], long = half * Math.abs(value) / top(model), fill = scale([top(model)], true).colour(0.25 * Math.sign(value) * top(model) + 0.7 * value);
      parts.push(svg("rect", { x: value < 0 ? zero - long : zero, y: y + 2, width: Math.max(long, 0.8), height: HIGH - 6, rx: 2, fill, stroke: colours.line, "stroke-width": 0.5 }));
      parts.push(svg("text", { x: value < 0 ? zero - long - 5 : zero + long + 5, y: y + HIGH / 2 + 3, "font-size": 11.5, "text-anchor": value < 0 ? "end" : "start", fill: colours.soft }, number(value)));
      y += HIGH;
    }
    y += models.length > 1 ? 6 : 0;
  }
  parts.push(svg("line", { x1: zero, x2: zero, y1: 4 + 16 * head.length, y2: y, stroke: colours.soft, "stroke-width": 1 }));
  picture.setAttribute("viewBox", `0 0 ${WIDE} ${tall}`);
  picture.setAttribute("font-family", "system-ui, sans-serif");
  picture.setAttribute("aria-label", `Weights of features: ${order.slice(0, 5).map(j => `${scene.features[j]} ${number(first[j])}`).join(", ")}. The table below has all weights.`);
  picture.replaceChildren(...parts);
  fillTable();
}

const wide = () => Math.max($("weights").clientWidth, 280);
const top = model => Math.max(...model.theta.map(Math.abs), 1e-12);

function fillTable() {
  if (!$("weight-numbers").open || !last) return;
  const { scene, models } = last;
  const rows = scene.features.map((name, j) => [name, ...models.map(model => number(model.theta[j]))]);
  $("weight-numbers").querySelector(".scroll").replaceChildren(table(make("table"), ["Feature", ...models.map(m => m.label)], rows, models.map((_, i) => i + 1)));
}
