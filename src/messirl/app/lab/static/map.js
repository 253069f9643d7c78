// A map of states: tiles or dots with colours for numbers, arrows, trajectories and a scale. All styles are attributes inside
// the SVG, so that it can be saved as it is.
import { cut, make, number, svg } from "./words.js";
import { kind, on, plain, scale } from "./colours.js";

const LAYERS = {
  reward: { signed: true, title: "reward" }, visits: { signed: false, title: "expected visits" },
  policy: { signed: false, title: "probability of the best action" }, truth: { signed: true, title: "true reward" },
  difference: { signed: true, title: "difference" },
};
let serial = 0;

export class StateMap {
  constructor(scene, title) {
    this.scene = scene;
    this.serial = ++serial;
    this.facts = make("p", { class: "facts" });
    this.heading = make("h2", {}, title);
    this.svg = svg("svg", { preserveAspectRatio: "xMidYMid meet" });
    this.inspect = make("p", { class: "inspect" });
    this.rows = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${title}, as a table` });
    this.details = make("details", { class: "numbers" }, make("summary", {}, "As a table"), this.rows);
    this.details.addEventListener("toggle", () => this.fillTable());
    this.element = make("figure", { class: "map" }, make("header", {}, this.heading, this.facts), this.svg, this.inspect, this.details);
    this.measure();
    this.build();
  }

  // Size and centre of each tile.
  measure() {
    const { at, kind: shape } = this.scene, xs = at.map(p => p[0]), ys = at.map(p => p[1]);
    const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const grid = shape !== "graph", wide = right - left + 1, tall = high - low + 1;
    if (grid) {
      const cell = 480 / Math.max(wide, Math.min(tall, wide * 1.2), 5);
      this.cell = shape === "lanes" ? [86, 40] : [cell, cell];
    } else {
      const unit = 480 / Math.max(wide, tall, 4);
      this.cell = [unit, Math.max(unit, Math.min(2.4 * unit, 260 / tall))];  // flat maps are drawn a little higher
    }
    this.pad = grid ? 1 : 14;
    this.foot = shape === "lanes" ? 30 : 0;
    this.width = wide * this.cell[0] + 2 * this.pad;
    this.height = tall * this.cell[1] + 2 * this.pad;
    this.middle = at.map(([x, y]) => [this.pad + (x - left + 0.5) * this.cell[0], this.pad + (high - y + 0.5) * this.cell[1]]);
    this.legendTop = this.height + this.foot + 14;
    this.total = this.legendTop + 42;
    this.unit = 1;  // drawing units per screen pixel: text has the same size on all maps
    this.svg.setAttribute("viewBox", `0 0 ${this.width.toFixed(1)} ${this.total.toFixed(1)}`);
  }

  build() {
    const { scene } = this, [w, h] = this.cell, grid = scene.kind !== "graph";
    this.layer = Object.fromEntries(["back", "edges", "tiles", "names", "arrows", "tracks", "hand", "scale"].map(name => [name, svg("g", { "data-layer": name })]));
    this.back = svg("rect", { width: this.width, height: this.total });
    this.layer.back.append(this.back);
    for (const [a, b] of scene.edges) {
      const [[x1, y1], [x2, y2]] = [this.middle[a], this.middle[b]];
      this.layer.edges.append(svg("line", { x1, y1, x2, y2, "stroke-width": 1.5 }));
    }
    const radius = Math.max(4, Math.min(15, 0.36 * w));
    this.radius = radius;
    this.tiles = this.middle.map(([x, y], i) => {
      const tile = grid
        ? svg("rect", { x: (x - w / 2).toFixed(2), y: (y - h / 2).toFixed(2), width: (w - 0.7).toFixed(2), height: (h - 0.7).toFixed(2), rx: Math.min(3, w / 10) })
        : svg("circle", { cx: x.toFixed(2), cy: y.toFixed(2), r: radius });
      tile.dataset.tile = i;
      return tile;
    });
    this.layer.tiles.append(...this.tiles);
    this.names = [];
    if (grid && w >= 70 && scene.named) {
      this.names = this.middle.map(([x, y], i) => svg("text", { x, y: y + h / 2 - 8, "text-anchor": "middle", "font-size": 11.5 }));
      this.layer.names.append(...this.names);
    }
    this.columns = scene.columns.map((text, i) => svg("text", { x: this.pad + (i + 0.5) * w, y: this.height + 15, "text-anchor": "middle", "font-size": 13 }, text));
    this.layer.names.append(...this.columns);
    for (const name of ["arrows", "tracks", "hand", "names"]) this.layer[name].setAttribute("pointer-events", "none");
    this.svg.setAttribute("font-family", "system-ui, sans-serif");
    this.svg.append(...Object.values(this.layer));
    new ResizeObserver(() => this.sized()).observe(this.svg);
    this.svg.addEventListener("pointermove", event => this.point(event.target.dataset?.tile));
    this.svg.addEventListener("pointerleave", () => this.point(undefined));
  }

  sized() {
    const wide = this.svg.clientWidth, high = this.svg.clientHeight;
    if (!wide || !high) return;
    this.unit = Math.max(this.width / wide, this.total / high);
    const size = (11.5 * this.unit).toFixed(1), fits = Math.floor(this.cell[0] / (6.2 * this.unit));
    this.names.forEach((name, i) => { name.setAttribute("font-size", size); name.textContent = cut(this.scene.labels[i], fits); });
    for (const name of this.columns) { name.setAttribute("font-size", (11.5 * this.unit).toFixed(1)); name.setAttribute("y", this.height + 13 * this.unit); }
    if (this.shown) this.drawScale(this.shown.title ?? LAYERS[this.shown.layer].title);
  }

  // Show numbers: { layer, values, arrows, best, chance, facts, unit }
  update(shown) {
    this.shown = shown;
    const look = LAYERS[shown.layer], colours = plain();
    this.scale = scale(shown.values, look.signed);
    this.back.setAttribute("fill", colours.card);
    this.layer.edges.setAttribute("stroke", colours.line);
    const graph = this.scene.kind === "graph";
    if (graph) this.layer.tiles.setAttribute("stroke", colours.soft);
    this.fills = shown.values.map(this.scale.colour);
    this.tiles.forEach((tile, i) => tile.setAttribute("fill", this.fills[i]));
    this.names.forEach((name, i) => name.setAttribute("fill", on(this.fills[i])));
    this.columns.forEach(name => name.setAttribute("fill", colours.soft));
    this.drawArrows();
    this.drawScale(shown.title ?? look.title);
    this.facts.replaceChildren(...(shown.facts ?? []));
    const say = this.scale;
    this.svg.setAttribute("aria-label", `${this.heading.textContent}: ${shown.title ?? look.title} of ${this.tiles.length} states, from ${number(Math.min(...shown.values.filter(Number.isFinite)))} to ${number(Math.max(...shown.values.filter(Number.isFinite)))}; colours from ${number(say.low)} to ${number(say.high)}. The table below has the numbers.`);
    this.fillTable();
    this.point(this.pointed);
  }

  drawArrows() {
    const { arrows, chance } = this.shown, [w, h] = this.cell, least = Math.min(w, h, 48);
    if (!arrows) { this.layer.arrows.replaceChildren(); return; }
    const graph = this.scene.kind === "graph", parts = new Map();
    arrows.forEach(([dx, dy], i) => {
      const long = Math.hypot(dx * w, dy * h), [x, y] = this.middle[i];
      if (!(long > 1e-6) || !(chance[i] > 0.02)) return;
      const ux = dx * w / long, uy = -dy * h / long, reach = (graph ? this.radius + 9 : 0.31 * least), from = graph ? this.radius * 0.2 : -0.25 * least;
      const head = graph ? 5 : 0.15 * least, [tx, ty] = [x + ux * reach, y + uy * reach];
      const path = `M${(x + ux * from).toFixed(1)} ${(y + uy * from).toFixed(1)}L${tx.toFixed(1)} ${ty.toFixed(1)}`
        + `M${(tx - head * (ux + 0.7 * uy)).toFixed(1)} ${(ty - head * (uy - 0.7 * ux)).toFixed(1)}L${tx.toFixed(1)} ${ty.toFixed(1)}L${(tx - head * (ux - 0.7 * uy)).toFixed(1)} ${(ty - head * (uy + 0.7 * ux)).toFixed(1)}`;
      const key = `${graph ? plain().arrow : on(this.fills[i])} ${chance[i] > 0.8 ? 0.95 : chance[i] > 0.5 ? 0.7 : 0.4}`;
      parts.set(key, (parts.get(key) ?? "") + path);
    });
    this.layer.arrows.replaceChildren(...Array.from(parts, ([key, d]) => {
      const [colour, opacity] = key.split(" ");
      return svg("path", { d, fill: "none", stroke: colour, "stroke-opacity": opacity, "stroke-width": Math.max(1.1, Math.min(2.2, least / 16)), "stroke-linecap": "round", "stroke-linejoin": "round" });
    }));
  }

  drawScale(title) {
    const id = `scale-${this.serial}`, colours = plain(), { low, high, stops } = this.scale, y = this.legendTop, u = this.unit;
    const long = Math.min(190 * u, this.width * 0.46), left = this.pad, text = { fill: colours.soft, "font-size": (12 * u).toFixed(1) };
    const gradient = svg("linearGradient", { id }, ...stops.map((colour, i) => svg("stop", { offset: i / (stops.length - 1), "stop-color": colour })));
    const marks = this.scale.signed ? [low, 0, high] : [low, (low + high) / 2, high];
    this.layer.scale.replaceChildren(
      svg("defs", {}, gradient), svg("rect", { x: left, y, width: long, height: 9 * u, rx: 3, fill: `url(#${id})`, stroke: colours.line, "stroke-width": 0.7 }),
      ...marks.map((value, i) => svg("text", { x: left + long * i / 2, y: y + 23 * u, "text-anchor": ["start", "middle", "end"][i], ...text }, number(value))),
      svg("text", { x: left + long + 10 * u, y: y + 9 * u, ...text }, title),
    );
  }

  // Draw trajectories: [{ states, kind, strong }], thin ones below.
  drawTracks(tracks) {
    if (this.scene.road) return;  // they jump between rows with the traffic: the road below shows them
    const out = [], [w, h] = this.cell, least = this.scene.kind === "graph" ? 10 : Math.min(w, h);
    const bold = tracks.filter(({ strong }) => strong).length > 4 ? 0.6 : 1;
    tracks.forEach(({ states, kind: k, strong }, number) => {
      const shift = strong && number === 0 ? [0, 0] : [Math.sin(number * 2.4) * 0.22 * least, Math.cos(number * 2.4) * 0.22 * least];
      const points = states.map(s => this.scene.tile[s]).filter(t => t >= 0).map(t => this.middle[t].map((v, i) => (v + shift[i]).toFixed(1)));
      if (!points.length) return;
      const line = { points: points.map(p => p.join(",")).join(" "), fill: "none", "stroke-linejoin": "round", "stroke-linecap": "round" };
      const wide = bold * Math.max(1.6, Math.min(4, least / 9));
      if (strong) out.push(svg("polyline", { ...line, stroke: plain().card, "stroke-opacity": 0.85, "stroke-width": wide + 2.6 }));
      out.push(svg("polyline", { ...line, stroke: kind(k), "stroke-width": strong ? wide : wide * 0.45, "stroke-opacity": strong ? 1 : 0.5 }));
      if (strong) {
        const [[x0, y0], [x1, y1]] = [points[0], points.at(-1)];
        out.push(svg("circle", { cx: x0, cy: y0, r: wide * 1.3, fill: plain().card, stroke: kind(k), "stroke-width": wide * 0.6 }));
        out.push(svg("circle", { cx: x1, cy: y1, r: wide * 1.4, fill: kind(k), stroke: plain().card, "stroke-width": 1 }));
      }
    });
    this.layer.tracks.replaceChildren(...out);
  }

  // Draw the hand-drawn path so far, the reachable tiles, and the keyboard cursor.
  drawHand({ path = [], reachable = [], cursor = null } = {}) {
    const out = [], [w, h] = this.cell, graph = this.scene.kind === "graph", colours = plain();
    const ring = (t, attributes) => {
      const [x, y] = this.middle[t];
      return graph ? svg("circle", { cx: x, cy: y, r: this.radius + 3, fill: "none", ...attributes })
        : svg("rect", { x: x - w / 2 + 1, y: y - h / 2 + 1, width: w - 2.7, height: h - 2.7, rx: 3, fill: "none", ...attributes });
    };
    for (const t of reachable) out.push(ring(t, { stroke: kind(1), "stroke-width": 1.5, "stroke-dasharray": "3 3" }));
    const points = path.map(t => this.middle[t].join(",")).join(" ");
    if (path.length) {
      out.push(svg("polyline", { points, fill: "none", stroke: colours.card, "stroke-width": 7, "stroke-linecap": "round", "stroke-linejoin": "round" }));
      out.push(svg("polyline", { points, fill: "none", stroke: kind(1), "stroke-width": 4, "stroke-linecap": "round", "stroke-linejoin": "round" }));
      const [x, y] = this.middle[path.at(-1)];
      out.push(svg("circle", { cx: x, cy: y, r: 6, fill: kind(1), stroke: colours.card, "stroke-width": 2 }));
    }
    if (cursor !== null) out.push(ring(cursor, { stroke: colours.focus, "stroke-width": 3.5 }), ring(cursor, { stroke: colours.card, "stroke-width": 1 }));
    this.layer.hand.replaceChildren(...out);
  }

  describe(t) {
    const { shown, scene } = this, parts = [`${scene.labels[t]}: ${shown.title ?? LAYERS[shown.layer].title} ${number(shown.values[t])}`];
    if (shown.best) parts.push(`${scene.actions[shown.best[t]]} with ${Math.round(100 * shown.chance[t])} %`);
    return parts.join("; ");
  }

  point(tile) {
    this.pointed = tile;
    const text = tile === undefined || !this.shown ? "Point at a state to read its numbers." : this.describe(Number(tile));
    if (this.inspect.textContent !== text) this.inspect.textContent = text;
  }

  fillTable() {
    if (!this.details.open || !this.shown) return;
    const { shown, scene } = this, head = ["State", shown.title ?? LAYERS[shown.layer].title, ...(shown.best ? ["Most likely action", "Probability"] : [])];
    const rows = scene.labels.map((label, i) => [label, number(shown.values[i]), ...(shown.best ? [scene.actions[shown.best[i]], number(shown.chance[i])] : [])]);
    const body = rows.map(row => make("tr", {}, ...row.map((text, i) => make(i ? "td" : "th", i ? { class: i === 2 ? "" : "n" } : { scope: "row" }, text))));
    this.rows.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head.map((text, i) => make("th", { scope: "col", class: i === 1 || i === 3 ? "n" : "" }, text)))), make("tbody", {}, ...body)));
  }
}
