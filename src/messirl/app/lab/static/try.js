// The view Try: a scene, its controls, and fits that follow them.
import { $, make, number } from "./words.js";
import { fit, read, Failed } from "./api.js";
import { onChange } from "./colours.js";
import { ask, begin, state } from "./state.js";
import * as controls from "./controls.js";
import * as similarity from "./similarity.js";
import * as weights from "./weights.js";
import { lines } from "./export.js";
import { StateMap } from "./map.js";
import { Hand } from "./draw.js";
import * as road from "./road.js";

const REST = 160;  // milliseconds without a change before the exact fit is requested
export const shown = { scene: null, found: null, maps: [] };
export const timings = [];  // milliseconds from the last change of a slider to its picture
const done = { rough: 0, exact: 0 };  // version of the last answered state
let hand = null, saved = () => {}, version = 0, moved = null, drawnVersion = -1, flying = null, resting = 0, rested = false, pointed = [], notice = "";

export function listen(remember) {
  saved = remember;
  controls.listen((name, dragging) => changed(dragging));
  $("scene").addEventListener("change", () => open($("scene").value));
  similarity.listen(some => { pointed = some; tracks(); });
  weights.listen();
  for (const input of document.querySelectorAll("[name=layer]")) input.addEventListener("change", () => { state.layer = input.value; draw(); saved(); });
  for (const [id, name] of [["arrows", "arrows"], ["show-others", "others"], ["show-expert", "own"]]) {
    $(id).addEventListener("change", () => { state[name] = $(id).checked; draw(); saved(); });
  }
  $("draw").addEventListener("click", () => hand?.switch(!hand.on));
  $("add").addEventListener("click", () => hand?.finish());
  $("undo").addEventListener("click", () => { if (hand.path.length) hand.back(); else { state.drawn = state.drawn.slice(0, -1); changed(false); handed(); } });
  $("clear").addEventListener("click", () => { state.drawn = []; hand.drop(); changed(false); });
  $("reset").addEventListener("click", () => open(state.scene));
  onChange(() => draw());
}

// Whether no request is running or pending.
export const idle = () => !flying && done.rough === version && done.exact === version;

const say = text => { $("speak").textContent = text; };

// said: notice that stays above the picture
export async function open(key, kept = {}, said = "") {
  const before = state.scene;
  notice = said;
  $("status").className = "";
  $("status").textContent = "Opening…";
  let scene;
  try { scene = await read("scene", key); } catch (error) { failed(error); $("scene").value = before && shown.scene ? before : key; return; }
  if (scene.dropped) return;  // replaced by a newer request
  begin(key, scene.defaults, kept);
  shown.scene = scene;
  shown.found = null;
  shown.maps = [];
  pointed = [];
  hand = new Hand(scene, { changed: handed, say, added: states => { state.drawn = [...state.drawn, states].slice(-20); say(`Added: ${states.length} states.`); changed(false); handed(); } });
  $("maps").replaceChildren();
  controls.sync(scene);
  for (const input of document.querySelectorAll("[name=layer]")) input.checked = input.value === state.layer;
  $("arrows").checked = state.arrows;
  $("show-others").checked = state.others;
  $("show-expert").checked = state.own;
  $("draw").disabled = !hand.able;
  $("road").hidden = !scene.road;
  handed();
  changed(false);
}

function changed(dragging) {
  version++;
  moved = dragging ? performance.now() : null;
  rested = false;
  clearTimeout(resting);
  resting = setTimeout(() => { rested = true; pump(); }, REST);
  saved();
  pump();
}

// One rough request at a time: later changes wait for its answer. An exact request is replaced at once.
function pump() {
  if (flying?.rough) return;
  if (done.rough < version) send(true);
  else if (rested && done.exact < version && !flying) send(false);
}

async function send(rough) {
  const mine = { rough, version, scene: shown.scene }, asked = ask(rough);
  flying = mine;
  try {
    const found = { ask: asked, ...await fit({ ...asked, have: shown.found?.sets ?? "" }) };
    if (!found.dropped && mine.version >= drawnVersion && mine.scene === shown.scene) arrived(found, mine);
  } catch (error) {
    if (mine.version === version) { failed(error); done.exact = version; }
  }
  const kind = rough ? "rough" : "exact";
  done[kind] = Math.max(done[kind], mine.version);
  if (flying === mine) flying = null;
  pump();
}

function arrived(found, mine) {
  if (mine.rough && shown.found && !shown.found.rough && drawnVersion === mine.version) return;  // the exact answer came first
  drawnVersion = mine.version;
  $("maps").classList.remove("stale");
  if (!found.tracks) for (const name of ["tracks", "kinds", "similarity", "truth"]) found[name] = shown.found[name];
  const same = shown.found?.sets === found.sets;
  shown.found = found;
  draw(same);
  if (mine.version === version && moved !== null) {
    const from = moved;
    moved = null;
    requestAnimationFrame(() => setTimeout(() => timings.push(performance.now() - from)));
  }
}

// Show an error; the picture then shows the previous state.
export function failed(error) {
  if (!(error instanceof Failed)) console.error(error);
  $("status").className = "bad";
  $("status").textContent = error instanceof Failed ? error.message.replace(/[^.?!]$/, "$&.") : `The page could not draw this: ${error.message}.`;
  $("maps").classList.add("stale");
}

function panels(found) {
  const titles = found.models.map(model => model.label);
  if (found.models.length > 1) titles.push("Difference");
  if (shown.maps.length !== titles.length) {
    shown.maps = titles.map(title => new StateMap(shown.scene, title));
    $("maps").replaceChildren(...shown.maps.map(map => map.element));
    shown.maps.forEach((map, i) => {
      map.element.classList.toggle("alone", titles.length === 1);
      if (i >= found.models.length) { map.svg.setAttribute("role", "img"); return; }
      map.svg.setAttribute("role", "application");
      map.svg.setAttribute("aria-describedby", "draw-hint");
      map.svg.setAttribute("tabindex", "0");
      hand.listen(map);
    });
  }
  shown.maps.forEach((map, i) => { map.heading.textContent = titles[i]; });
}

function draw(same = false) {
  const { found, scene } = shown;
  if (!found) return;
  panels(found);
  $("layer-truth").hidden = !found.truth;
  const layer = state.layer === "truth" && !found.truth ? "reward" : state.layer;
  found.models.forEach((model, i) => shown.maps[i].update({
    layer, values: { reward: model.reward, visits: model.visits, policy: model.chance, truth: found.truth }[layer],
    arrows: state.arrows ? model.arrows : null, best: model.best, chance: model.chance, facts: facts(model, scene),
  }));
  if (found.models.length > 1) shown.maps.at(-1).update({ layer: "difference", ...difference(found.models, layer), arrows: null });
  tracks();
  if (!same) similarity.draw(found);
  weights.draw(scene, found.models);
  if (!found.rough) $("lines").textContent = lines(found);
  const remarks = found.models.flatMap(model => model.remarks.map(text => `${model.label}: ${text}`));
  $("remarks").hidden = remarks.length === 0 || found.rough;
  $("remarks").querySelector("summary").textContent = `Warnings (${remarks.length})`;
  $("remarks").querySelector("ul").replaceChildren(...remarks.map(text => make("li", {}, text)));
  if (found.rough) return;  // the status is shown when the slider rests
  const status = found.models.map(model => `${model.label}: score ${number(model.score)}${model.performance === null ? "" : `, performance ${number(model.performance)}`}, ${model.converged ? "converged" : "not converged"}`);
  $("status").className = "";
  $("status").textContent = `${notice ? `${notice} ` : ""}${status.join(" · ")} · ${found.ms} ms`;
}

function facts(model, scene) {
  const out = [];
  const put = (name, value) => { if (value !== null) out.push(`${out.length ? " · " : ""}${name} `, make("b", {}, number(value))); };
  if (scene.judged) put("performance", model.performance);
  put("score", model.score);
  put("held out", model.held_out);
  if (!model.converged) out.push(" · not converged");
  return out;
}

// Difference of two fits: standardised rewards, visits, or states with different most likely actions.
function difference([a, b], layer) {
  if (layer === "visits") return { values: a.visits.map((v, i) => v - b.visits[i]), title: "visits, 1st − 2nd" };
  if (layer === "policy") return { values: a.best.map((v, i) => (v === b.best[i] ? 0 : a.chance[i])), title: "where actions differ" };
  const [x, y] = [a.reward, b.reward].map(values => {
    const mean = values.reduce((s, v) => s + v, 0) / values.length, spread = Math.sqrt(values.reduce((s, v) => s + (v - mean) ** 2, 0) / values.length) || 1;
    return values.map(v => (v - mean) / spread);
  });
  return { values: x.map((v, i) => v - y[i]), title: "reward / its spread" };
}

function tracks() {
  const { found } = shown;
  if (!found) return;
  const some = found.tracks.map((states, i) => ({ states, kind: found.kinds[i], strong: pointed.includes(i) || (!pointed.length && found.kinds[i] < 2), i }));
  const visible = some.filter(({ kind, i }) => pointed.includes(i) || (!pointed.length && (kind < 2 ? state.own : state.others)));
  if (shown.scene.road) road.draw(shown.scene, found, pointed[0] ?? Math.max(found.kinds.lastIndexOf(1), 0));
  for (const map of shown.maps.slice(0, found.models.length)) map.drawTracks(visible.sort((a, b) => a.strong - b.strong));
}

function handed() {
  const drawing = { path: hand.tiles, reachable: hand.reachable, cursor: hand.focused ? hand.cursor : null };
  for (const map of shown.maps.slice(0, shown.found?.models.length ?? 1)) { map.drawHand(drawing); map.element.classList.toggle("in-hand", hand.on); }
  $("draw").setAttribute("aria-pressed", String(hand.on));
  $("add").disabled = !hand.ready;
  $("undo").disabled = !hand.path.length && !state.drawn.length;
  $("clear").disabled = !state.drawn.length;
  const left = shown.scene?.horizon && hand.path.length ? ` ${shown.scene.horizon - hand.path.length} more states are needed.` : "";
  const own = state.drawn.length ? ` ${state.drawn.length} drawn.` : "";
  $("draw-hint").textContent = `Drag over the map, or click from place to place. With the keyboard: focus the map, Space starts, arrows move, Enter adds, Escape discards.${left}${own}`;
}
