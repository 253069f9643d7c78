// Similarities of all trajectories: a matrix, and a graph of nearest neighbours.
import { $, make, number, svg, table } from "./words.js";
import { kind, KIND_NAMES, plain, scale } from "./colours.js";

let data = null, kinds = [], values = null, point = () => {};

export function listen(pointed) {
  point = pointed;
  const canvas = $("matrix");
  canvas.addEventListener("pointermove", event => {
    if (!data) return;
    const box = canvas.getBoundingClientRect(), n = data.n;
    const at = (v, long) => Math.min(Math.max(Math.floor(v / long * n), 0), n - 1);
    tell([at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)]);
  });
  canvas.addEventListener("pointerleave", () => tell([]));
  $("graph").addEventListener("pointermove", event => tell(event.target.dataset?.track === undefined ? [] : [Number(event.target.dataset.track)]));
  $("graph").addEventListener("pointerleave", () => tell([]));
  $("similar-numbers").addEventListener("toggle", fillTable);
}

const called = i => `${KIND_NAMES[kinds[i]]} ${i + 1}`;
const alike = (i, j) => values[i * data.n + j] / 255 * data.most;

function tell(some) {
  const text = some.length === 2 ? `${called(some[0])} and ${called(some[1])}: similarity ${number(alike(...some), 2)}`
    : some.length === 1 ? `${called(some[0])}` : "Point at a square or a dot to show its trajectories on the map.";
  if ($("pair").textContent === text) return;
  $("pair").textContent = text;
  point(some);
}

export function draw(found) {
  data = found.similarity;
  kinds = found.kinds;
  values = Uint8Array.from(atob(data.bytes), c => c.charCodeAt(0));
  drawMatrix();
  drawGraph();
  const present = [...new Set(kinds)].sort();
  $("kinds").replaceChildren(...present.map(k => make("span", {}, dot(k), KIND_NAMES[k])));
  fillTable();
}

function dot(k) {
  return svg("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, svg("circle", { cx: 6, cy: 6, r: 5, fill: kind(k) }));
}

function drawMatrix() {
  const canvas = $("matrix"), n = data.n, paint = scale([0, 1], false), context = canvas.getContext("2d");
  canvas.width = canvas.height = n;
  const image = context.createImageData(n, n), table = Array.from({ length: 256 }, (_, v) => {
    const hex = paint.colour(v / 255);
    return [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16));
  });
  for (let i = 0; i < n * n; i++) {
    const [r, g, b] = table[values[i]];
    image.data.set([r, g, b, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  const experts = kinds.findIndex(k => k > 1), m = experts < 0 ? n : experts;
  const mean = (from, to) => { let sum = 0, c = 0; for (let i = 0; i < m; i++) for (let j = from; j < to; j++) { sum += alike(i, j); c++; } return c ? sum / c : 0; };
  canvas.setAttribute("aria-label", `Matrix of similarities of ${n} trajectories, ${m} of experts first; from 0, pale, to ${number(data.most)}, dark. Mean similarity of experts to unlabelled ones: ${number(mean(m, n), 2)}.`);
}

function drawGraph() {
  const graph = $("graph"), colours = plain(), place = ([x, y]) => [160 + 145 * x, 160 - 145 * y];
  const lines = data.edges.map(([i, j, s]) => {
    const [[x1, y1], [x2, y2]] = [place(data.at[i]), place(data.at[j])];
    return svg("line", { x1, y1, x2, y2, stroke: colours.soft, "stroke-width": (0.4 + 2.2 * s / data.most).toFixed(2), "stroke-opacity": (0.12 + 0.5 * s / data.most).toFixed(2) });
  });
  const order = [...data.at.keys()].sort((a, b) => kinds[b] - kinds[a]);
  const dots = order.map(i => {
    const [cx, cy] = place(data.at[i]);
    const made = svg("circle", { cx, cy, r: kinds[i] < 2 ? 7.5 : 5, fill: kind(kinds[i]), stroke: colours.card, "stroke-width": 1.5 });
    made.dataset.track = i;
    return made;
  });
  graph.replaceChildren(...lines, ...dots);
  graph.setAttribute("aria-label", `Graph of similarities: ${data.n} trajectories placed by kernel principal components, each joined to its nearest neighbours.`);
}

function fillTable() {
  if (!$("similar-numbers").open || !data) return;
  const experts = kinds.flatMap((k, i) => (k < 2 ? [i] : []));
  const rows = kinds.map((k, i) => {
    const others = experts.filter(j => j !== i), best = others.length ? Math.max(...others.map(j => alike(i, j))) : null;
    return [String(i + 1), KIND_NAMES[k], best === null ? "–" : number(best, 2)];
  });
  const shown = table(make("table"), ["Trajectory", "Kind", "Similarity to the nearest expert"], rows, [2]);
  $("similar-numbers").querySelector(".scroll").replaceChildren(shown);
}
