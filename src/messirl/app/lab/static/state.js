// State of the page: fields of requests and of the display. It is saved in the URL fragment and restored from it.
export const ASKED = { // fields of a request, with their types
  scene: "text", seed: "number", expert: "text", experts: "number", mixture: "text", u: "number", nu: "number", lambda0: "number",
  sigma: "number", similarity: "text", theta_max: "number", weight: "number", objective: "text", method: "text", second: "text",
};
const BASE = { seed: 0, expert: "", experts: 1, mixture: "", u: 20, nu: 0.5, lambda0: 0.05, sigma: 1, similarity: "rbf",
  theta_max: 500, weight: 0, objective: "choices", method: "MESSI", second: "" };
const SHOWN = { view: "try", layer: "reward", arrows: true, others: false, own: true, folder: "", domain: "" };
const OF = { view: ["try", "results", "fits"], layer: ["reward", "visits", "policy", "truth"] };  // allowed values

export const state = { scene: "", ...BASE, ...SHOWN, drawn: [] };
let defaults = { ...BASE };

export function begin(scene, known, kept = {}) {
  defaults = { ...BASE, ...known };
  Object.assign(state, defaults, { scene, drawn: [] }, kept);
}

// Set the display from a fragment; fields that it does not have get their defaults.
export function look(kept) {
  for (const name of Object.keys(SHOWN)) state[name] = kept[name] ?? SHOWN[name];
}

export function ask(rough) {
  return { ...Object.fromEntries(Object.keys(ASKED).map(name => [name, state[name]])), drawn: state.drawn, rough };
}

export function toFragment() {
  const out = new URLSearchParams();
  for (const name of Object.keys(ASKED)) if (name === "scene" || state[name] !== defaults[name]) out.set(name, state[name]);
  for (const name of Object.keys(SHOWN)) if (state[name] !== SHOWN[name]) out.set(name, state[name]);
  if (state.drawn.length) out.set("drawn", state.drawn.map(row => row.join(".")).join("_"));
  return out.toString();
}

// Parse a fragment; invalid entries are ignored.
export function fromFragment(text) {
  const out = {};
  for (const [name, value] of new URLSearchParams(text.replace(/^#/, ""))) {
    if (name === "drawn") out.drawn = value.split("_").map(row => row.split(".").map(Number)).filter(row => row.length > 1 && row.every(Number.isInteger)).slice(0, 20);
    else if (!Object.hasOwn(ASKED, name) && !Object.hasOwn(SHOWN, name)) continue;
    else if (ASKED[name] === "number") { if (value.trim() !== "" && Number.isFinite(Number(value))) out[name] = Number(value); }
    else if (typeof SHOWN[name] === "boolean") out[name] = value === "true";
    else if (!OF[name] || OF[name].includes(value)) out[name] = value;
  }
  return out;
}
