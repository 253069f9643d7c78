// Where the page begins: what there is to pick, the views, and the address that holds the state.
import { $ } from "./words.js";
import { read } from "./api.js";
import { fromFragment, state, toFragment } from "./state.js";
import { fill } from "./controls.js";
import { idle, listen, open, shown, timings } from "./try.js";
import { save } from "./export.js";

let writing = 0, written = "";
const views = { results: () => import("./results.js"), fits: () => import("./fitted.js") };
let catalogue = null;

function remember() {
  clearTimeout(writing);
  writing = setTimeout(() => { written = `#${toFragment()}`; history.replaceState(null, "", written); }, 120);
}

async function show(view) {
  state.view = view in views ? view : "try";
  for (const button of document.querySelectorAll("[data-view]")) {
    if (button.dataset.view === state.view) button.setAttribute("aria-current", "page"); else button.removeAttribute("aria-current");
  }
  for (const name of ["try", "results", "fits"]) $(`view-${name}`).hidden = name !== state.view;
  document.querySelector(".tools").hidden = state.view !== "try";
  remember();
  if (state.view !== "try") await (await views[state.view]()).open(catalogue, remember);
}

async function restore() {
  const kept = fromFragment(location.hash);
  for (const name of ["view", "folder", "domain"]) if (name in kept) state[name] = kept[name];
  const known = catalogue.scenes.some(({ key }) => key === kept.scene);
  await open(known ? kept.scene : "gridworld", known ? kept : {});
  await show(kept.view ?? "try");
}

async function copied(button, text) {
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Copy it from the address bar"; }
  setTimeout(() => { button.textContent = button.id === "copy-link" ? "Copy link" : "Copy"; }, 1500);
}

for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => show(button.dataset.view));
for (const button of document.querySelectorAll("[data-export]")) button.addEventListener("click", () => save(button.dataset.export, shown));
$("copy-link").addEventListener("click", () => { written = `#${toFragment()}`; history.replaceState(null, "", written); copied($("copy-link"), location.href); });
$("copy-code").addEventListener("click", () => copied($("copy-code"), $("lines").textContent));
$("controls").addEventListener("submit", event => event.preventDefault());
addEventListener("hashchange", () => { if (location.hash !== written) restore(); });
document.addEventListener("click", event => { if (!$("export").contains(event.target)) $("export").open = false; });
$("export").addEventListener("keydown", event => { if (event.key === "Escape") { $("export").open = false; $("export").querySelector("summary").focus(); } });

catalogue = await read("catalogue").catch(error => { $("status").textContent = error.message; throw error; });
fill(catalogue);
listen(remember);
globalThis.lab = { state, shown, timings, idle };  // for those who look with the console
await restore();
