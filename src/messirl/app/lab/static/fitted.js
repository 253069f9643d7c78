// The view Your fits: a saved fit. Pointing at a feature or a trajectory shows it on the map.
import { $, make, number, prose } from "./words.js";
import { read } from "./api.js";
import { onChange } from "./colours.js";
import { state } from "./state.js";
import { StateMap } from "./map.js";

let found = null, map = null, begun = false, remember = () => {}, feature = null;

export async function open(catalogue, saved) {
  remember = saved;
  const folders = Object.entries(catalogue.fits), view = $("view-fits");
  view.querySelector(".empty").hidden = folders.length > 0;
  for (const element of view.querySelectorAll(".bar, .lower, .card, .words")) element.hidden = folders.length === 0;
  if (!folders.length) return;
  if (!begun) {
    begun = true;
    $("fits-folder").replaceChildren(...folders.map(([key, title]) => make("option", { value: key }, title)));
    $("fits-folder").addEventListener("change", () => load($("fits-folder").value));
    for (const input of document.querySelectorAll("[name=fit-layer]")) input.addEventListener("change", () => { state.layer = input.value; remember(); draw(); });
    onChange(() => draw());
  }
  const wanted = Object.hasOwn(catalogue.fits, state.folder) ? state.folder : folders[0][0];
  $("fits-folder").value = wanted;
  await load(wanted);
}

async function load(key) {
  state.folder = key;
  remember();
  $("fit-words").textContent = "Reading…";
  let answer;
  try { answer = await read("fitted", key); } catch (error) { $("fit-words").textContent = error.message; return; }
  if (answer.dropped) return;  // replaced by a newer request
  found = answer;
  feature = null;
  map = new StateMap(found.scene, found.model.label);
  map.svg.setAttribute("role", "img");
  $("fit-map").replaceChildren(map.element);
  $("fit-words").replaceChildren(...found.words.map(text => make("p", {}, prose(text))));
  features();
  trajectories();
  for (const input of document.querySelectorAll("[name=fit-layer]")) input.checked = input.value === (state.layer === "truth" ? "reward" : state.layer);
  draw();
}

function draw() {
  if (!found) return;
  const { model } = found, layer = ["visits", "policy"].includes(state.layer) ? state.layer : "reward";
  const shown = feature === null ? { layer, values: { reward: model.reward, visits: model.visits, policy: model.chance }[layer] }
    : { layer: "difference", values: found.values[feature], title: found.scene.features[feature] };
  map.update({ ...shown, arrows: feature === null ? model.arrows : null, best: model.best, chance: model.chance, facts: [] });
}

// A row that shows something on the map while it is pointed at or has the focus.
function row(cells, shows, hides) {
  const made = make("tr", { tabindex: 0 }, ...cells);
  const on = yes => { made.classList.toggle("on", yes); if (yes) shows(); else hides(); };
  made.addEventListener("pointerenter", () => on(true));
  made.addEventListener("pointerleave", () => on(false));
  made.addEventListener("focus", () => on(true));
  made.addEventListener("blur", () => on(false));
  return made;
}

function features() {
  const { theta } = found.model, order = [...theta.keys()].sort((a, b) => Math.abs(theta[b]) - Math.abs(theta[a]));
  const rows = order.map(j => row([
    make("th", { scope: "row" }, found.scene.features[j]), make("td", { class: "n" }, number(theta[j])), make("td", { class: "n" }, number(found.estimates[j].error)),
  ], () => { feature = j; draw(); }, () => { feature = null; draw(); }));
  $("fit-features").replaceChildren(make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Feature"), make("th", { scope: "col", class: "n" }, "Weight"), make("th", { scope: "col", class: "n" }, "Standard error"))), make("tbody", {}, ...rows));
}

function trajectories() {
  $("fit-tracks-title").textContent = found.tracks_title;
  const name = s => { const t = found.scene.tile[s]; return t < 0 ? "end" : found.scene.labels[t]; };
  const rows = found.tracks.map((states, i) => row([
    make("th", { scope: "row" }, String(i + 1)), make("td", { class: "n" }, String(states.length)), make("td", { class: "n" }, number(found.scores[i])),
    make("td", {}, states.slice(0, 12).map(name).join(" → ") + (states.length > 12 ? " …" : "")),
  ], () => map.drawTracks([{ states, kind: 0, strong: true }]), () => map.drawTracks([])));
  $("fit-tracks").replaceChildren(make("thead", {}, make("tr", {}, ...["Trajectory", "States", "Score per step", "Visited states"].map((text, i) => make("th", { scope: "col", class: i === 1 || i === 2 ? "n" : "" }, text)))), make("tbody", {}, ...rows));
}
