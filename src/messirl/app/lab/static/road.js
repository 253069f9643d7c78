// One drive on the highway over time: lanes, cars, and the path between them.
import { $, svg } from "./words.js";
import { kind, KIND_NAMES, plain } from "./colours.js";

const LANE = 22, STEP = 13, LEFT = 54, TOP = 4;

export function draw(scene, found, i) {
  const { place, beside, cars } = scene.road, states = found.tracks[i], k = found.kinds[i], colours = plain(), picture = $("road-picture");
  const x = t => LEFT + (t + 0.5) * STEP, y = p => TOP + (p + 0.5) * LANE, wide = LEFT + states.length * STEP + 6, high = 2 * TOP + 6 * LANE;
  const verge = p => svg("rect", { x: LEFT, y: TOP + p * LANE, width: states.length * STEP, height: LANE, fill: colours.missing });
  const dashes = p => svg("line", { x1: LEFT, x2: wide - 6, y1: TOP + p * LANE, y2: TOP + p * LANE, stroke: colours.line, "stroke-width": 1.2, ...(p === 1 || p === 5 ? {} : { "stroke-dasharray": "9 7" }) });
  const names = scene.columns.map((text, p) => svg("text", { x: LEFT - 8, y: y(p) + 4, "text-anchor": "end", "font-size": 11.5, fill: colours.soft }, text));
  const met = states.flatMap((s, t) => cars[beside[s]].map(lane => svg("rect", { x: x(t) - 5, y: y(lane + 1) - 6.5, width: 10, height: 13, rx: 3, fill: "#d5700f" })));
  const bad = states.map((s, t) => [s, t]).filter(([s]) => place[s] === 0 || place[s] === 5 || cars[beside[s]].includes(place[s] - 1));
  const way = states.map((s, t) => `${x(t)},${y(place[s])}`).join(" ");
  const line = { points: way, fill: "none", "stroke-linejoin": "round", "stroke-linecap": "round" };
  picture.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  picture.setAttribute("font-family", "system-ui, sans-serif");
  picture.setAttribute("aria-label", `The drive of trajectory ${i + 1}, ${KIND_NAMES[k]}: ${states.length} steps, ${bad.length} of them in a collision or off the road.`);
  picture.replaceChildren(verge(0), verge(5), ...[1, 2, 3, 4, 5].map(dashes), ...names, ...met,
    svg("polyline", { ...line, stroke: colours.card, "stroke-width": 5.5 }), svg("polyline", { ...line, stroke: kind(k), "stroke-width": 3 }),
    ...bad.map(([s, t]) => svg("circle", { cx: x(t), cy: y(place[s]), r: 6, fill: "none", stroke: "#d6003c", "stroke-width": 2.4 })));
  $("road-title").textContent = `A drive: ${KIND_NAMES[k]} ${i + 1}; ${bad.length ? `${bad.length} collisions or steps off the road` : "no collision, never off the road"}`;
}
