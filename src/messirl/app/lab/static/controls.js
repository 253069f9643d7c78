// The controls: each shows and changes one field of the state.
import { $, make, number } from "./words.js";
import { state } from "./state.js";

const log = (low, high, zero = false) => ({ // a slider of 200 steps; with zero, its first step is 0
  min: 0, max: 200,
  value: p => (zero && p === 0 ? 0 : Number((low * (high / low) ** (p / 200)).toPrecision(3))),
  place: v => (v <= 0 ? 0 : Math.round(200 * Math.log(Math.max(v, low) / low) / Math.log(high / low))),
});
const plainly = (min, max, step = 1) => ({ min: 0, max: Math.round((max - min) / step), value: p => Number((min + p * step).toFixed(6)), place: v => Math.round((v - min) / step) });
const SLIDERS = {
  lambda0: log(1e-3, 1e3, true), sigma: log(1e-2, 1e4), theta_max: log(0.1, 1e4), weight: log(1e-4, 1, true),
  u: plainly(0, 100), nu: plainly(0, 1, 0.01), experts: plainly(0, 50),
};

function options(select, entries) {
  select.replaceChildren(...entries.map(([value, text]) => make("option", { value }, text)));
}

export function fill(catalogue) {
  const groups = new Map();
  for (const { key, title, group } of catalogue.scenes) {
    if (!groups.has(group)) groups.set(group, make("optgroup", { label: group }));
    groups.get(group).append(make("option", { value: key }, title));
  }
  $("scene").replaceChildren(...groups.values());
  const methods = Object.entries(catalogue.methods);
  options($("method"), methods);
  options($("second"), [["", "nothing"], ...methods]);
  options($("similarity"), Object.entries(catalogue.similarities));
}

// changed(name, dragging): called when a field of the state has changed
export function listen(changed) {
  for (const [name, slider] of Object.entries(SLIDERS)) {
    $(name).addEventListener("input", () => {
      state[name] = slider.value(Number($(name).value));
      show(name);
      changed(name, true);
    });
  }
  for (const name of ["method", "second", "similarity", "objective"]) {
    $(name).addEventListener("change", () => { state[name] = $(name).value; enable(); changed(name, false); });
  }
  $("seed").addEventListener("change", () => {
    const value = Math.min(Math.max(Math.round(Number($("seed").value)) || 0, 0), 9999);
    $("seed").value = state.seed = value;
    changed("seed", false);
  });
  for (const [id, name] of [["expert", "expert"], ["mixture-text", "mixture"], ["mixture-select", "mixture"]]) {
    $(id).addEventListener("change", () => { state[name] = $(id).value; changed(name, false); });
  }
}

function show(name) {
  const text = number(state[name]);
  $(`${name}-out`).textContent = text;
  $(name).setAttribute("aria-valuetext", text);
}

function enable() {
  $("sigma").disabled = state.similarity === "complete";
}

// Show the state of an opened scene.
export function sync(scene) {
  const drawn = Object.keys(scene.mixtures).length > 0;
  SLIDERS.experts = plainly(0, drawn ? scene.defaults.experts : 50);
  for (const [name, slider] of Object.entries(SLIDERS)) {
    const input = $(name);
    input.min = slider.min;
    input.max = slider.max;
    input.step = 1;
    input.value = slider.place(state[name]);
    show(name);
  }
  $("scene").value = state.scene;
  for (const name of ["method", "second", "similarity", "objective", "seed", "expert"]) $(name).value = state[name];
  options($("mixture-select"), Object.entries(scene.mixtures));
  $(drawn ? "mixture-select" : "mixture-text").value = state.mixture;
  $("filters").replaceChildren(...scene.filters.map(value => make("option", { value })));
  const only = { seed: drawn, nu: drawn, "mixture-select": drawn, "mixture-text": !drawn, expert: !drawn };
  for (const [name, there] of Object.entries(only)) document.querySelector(`[data-for="${name}"]`).hidden = !there;
  $("story").textContent = scene.story;
  enable();
}
