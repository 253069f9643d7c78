// Drawing of expert trajectories: by dragging over the map, by clicks from place to place, or with the keyboard.
import { $ } from "./words.js";

const KEYS = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

export class Hand {
  // changed(): redraw; added(states): a trajectory is complete; say(text): for screen readers
  constructor(scene, { changed, added, say }) {
    Object.assign(this, { scene, changed, added, say });
    this.on = false;
    this.path = [];
    this.cursor = null;
    this.after = new Map();
    this.able = scene.moves !== null;
    if (!this.able) return;
    const { from, to, p } = scene.moves;
    from.forEach((s, i) => {
      if (s === to[i] || scene.tile[to[i]] < 0) return;
      if (!this.after.has(s)) this.after.set(s, []);
      this.after.get(s).push([to[i], p[i]]);
    });
    for (const ways of this.after.values()) ways.sort((a, b) => b[1] - a[1]);
    this.first = new Map();  // possible start state of each tile
    for (const s of scene.starts ?? scene.tile.keys()) {
      const t = scene.tile[s];
      if (t >= 0 && !this.first.has(t)) this.first.set(t, s);
    }
    this.terminal = new Set(scene.terminal);
  }

  get tiles() { return this.path.map(s => this.scene.tile[s]); }
  get reachable() {
    if (this.on && !this.path.length && this.first.size < this.scene.at.length) return [...this.first.keys()];
    return this.on && this.path.length ? [...new Set((this.after.get(this.path.at(-1)) ?? []).map(([s]) => this.scene.tile[s]))] : [];
  }
  get ready() { return this.path.length > 1 && (this.scene.horizon === null || this.path.length === this.scene.horizon || this.terminal.has(this.path.at(-1))); }

  switch(on) { this.on = on && this.able; if (!this.on) this.drop(); this.changed(); }
  drop() { this.path = []; this.changed(); }
  back() { this.path.pop(); this.changed(); }

  begin(tile) {
    const at = this.first.has(tile) || this.first.size > 1 ? tile : [...this.first.keys()][0];
    if (!this.first.has(at)) { this.say("No trajectory starts here: start at one of the marked places."); return; }
    this.path = [this.first.get(at)];
    this.cursor = at;
    this.changed();
  }

  // A state of this tile that can be entered next, or undefined.
  next(tile) { return (this.after.get(this.path.at(-1)) ?? []).find(([s]) => this.scene.tile[s] === tile)?.[0]; }

  step(tile) {
    const to = this.next(tile);
    if (to === undefined || this.full) return false;
    this.path.push(to);
    this.cursor = tile;
    if (this.terminal.has(to) || (this.scene.horizon !== null && this.path.length === this.scene.horizon)) this.finish();
    else this.changed();
    return true;
  }

  get full() { return this.path.length >= (this.scene.horizon ?? 400); }

  // Go to a tile by the shortest path.
  walk(tile) {
    if (this.step(tile)) return true;
    const goal = s => this.scene.tile[s] === tile, came = new Map([[this.path.at(-1), null]]), todo = [this.path.at(-1)];
    for (let s; (s = todo.shift()) !== undefined;) {
      if (goal(s)) {
        const way = [];
        for (let at = s; came.get(at) !== null; at = came.get(at)) way.unshift(at);
        for (const at of way) if (!this.path.length || !this.step(this.scene.tile[at])) break;
        return way.length > 0;
      }
      for (const [to] of this.after.get(s) ?? []) if (!came.has(to) && !this.terminal.has(s)) { came.set(to, s); todo.push(to); }
    }
    return false;
  }

  finish() {
    if (!this.ready) {
      const left = this.scene.horizon === null ? "at least two states are needed" : `${this.scene.horizon - this.path.length} more states are needed`;
      this.say(`Not yet: ${left}.`);
      return;
    }
    const states = this.path;
    this.path = [];
    this.added(states);
  }

  // Listen to pointer and keyboard events on one map.
  listen(map) {
    if (!this.able) return;
    const tileAt = event => document.elementFromPoint(event.clientX, event.clientY)?.dataset?.tile;
    let dragging = false, moved = false;
    map.svg.addEventListener("pointerdown", event => {
      const tile = event.target.dataset?.tile;
      if (!this.on || tile === undefined || event.button !== 0) return;
      event.preventDefault();
      map.svg.focus({ preventScroll: true });
      dragging = true;
      moved = false;
      if (!this.path.length) this.begin(Number(tile));
      if (this.path.length && this.tiles.at(-1) !== Number(tile)) this.walk(Number(tile));
    });
    map.svg.addEventListener("pointermove", event => {
      const tile = dragging ? tileAt(event) : undefined;
      if (tile === undefined || !this.path.length || this.tiles.at(-1) === Number(tile)) return;
      moved = this.walk(Number(tile)) || moved;
      if (!this.path.length) dragging = false;
    });
    addEventListener("pointerup", () => {
      if (dragging && moved && this.scene.horizon === null && this.path.length > 1) this.finish();
      dragging = false;
    });
    map.svg.addEventListener("keydown", event => this.key(event, map));
    map.svg.addEventListener("focus", () => { this.cursor ??= [...this.first.keys()][0] ?? 0; this.focused = true; this.changed(); });
    map.svg.addEventListener("blur", () => { this.focused = false; this.changed(); });
  }

  key(event, map) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in KEYS) this.arrow(KEYS[event.key], map);
    else if (event.key === " ") { if (!this.on) $("draw").click(); if (!this.path.length) { this.begin(this.cursor ?? 0); if (this.path.length) this.say(`Started at ${map.describe(this.cursor)}.`); } }
    else if (event.key === "Enter") { if (this.path.length) this.finish(); else return; }
    else if (event.key === "Escape") { if (this.path.length) this.say("Discarded."); this.drop(); }
    else if (event.key === "Backspace" && this.path.length) this.back();
    else return;
    event.preventDefault();
  }

  // Move to the best tile in a direction, among those that can be entered or, without a path, among all.
  arrow([dx, dy], map) {
    const at = this.scene.at, [x, y] = at[this.cursor ?? 0], free = !this.path.length;
    const among = free ? at.keys() : this.reachable;
    let best = null, least = Infinity;
    for (const t of among) {
      const [ex, ey] = [at[t][0] - x, at[t][1] - y], along = ex * dx + ey * dy, across = Math.abs(ex * dy) + Math.abs(ey * dx);
      const far = Math.hypot(ex, ey), cost = free ? far + 2 * across : across / (along || 1e-9);
      if (along > 1e-9 && (free || along >= 0.38 * far) && cost < least) { least = cost; best = t; }
    }
    if (best === null && !free && dy > 0) best = this.reachable.find(t => at[t][0] === x) ?? null;  // straight ahead on a road
    if (best === null) { this.say("There is no transition in this direction."); return; }
    if (free) { this.cursor = best; this.changed(); } else this.step(best);
    if (this.cursor !== null) this.say(`${map.describe(this.cursor)}${this.path.length ? `; ${this.path.length} states` : ""}`);
  }
}
