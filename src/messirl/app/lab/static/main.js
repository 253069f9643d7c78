// Entry point of the page: catalogue, views, and the URL fragment with the state.
import { $ } from "./words.js";
import { read, SILENT } from "./api.js";
import { fromFragment, look, state, toFragment } from "./state.js";
import { fill } from "./controls.js";
import { failed, idle, listen, open, shown, timings } from "./try.js";
import { save } from "./export.js";

let writing = 0, written = "";
const views = { results: () => import("./results.js"), fits: () => import("./fitted.js") };
let catalogue = null;

function write(another = false) {
  clearTimeout(writing);
  if (!state.scene) return;  // nothing was opened: keep the address, so that reloading tries again
  written = `#${toFragment()}`;
  if (another) history.pushState(null, "", written); else history.replaceState(null, "", written);
}

function remember() {
  clearTimeout(writing);
  writing = setTimeout(write, 120);
}

async function show(view) {
  state.view = view;
  for (const button of document.querySelectorAll("[data-view]")) {
    if (button.dataset.view === state.view) button.setAttribute("aria-current", "page"); else button.removeAttribute("aria-current");
  }
  for (const name of ["try", "results", "fits"]) $(`view-${name}`).hidden = name !== state.view;
  document.querySelector(".tools").hidden = state.view !== "try";
  remember();
  if (view === "try") return;
  try { await (await views[view]()).open(catalogue, remember); } catch { $(view === "results" ? "results-story" : "fit-words").textContent = SILENT; }
}

async function restore() {
  const kept = fromFragment(location.hash), known = catalogue.scenes.some(({ key }) => key === kept.scene);
  written = location.hash;
  look(kept);
  const said = known || !kept.scene ? "" : `Unknown problem ${kept.scene}; this is the gridworld instead. If it is a folder, start messirl lab with it.`;
  await Promise.all([open(known ? kept.scene : "gridworld", known ? kept : {}, said), show(state.view)]);
}

async function copied(button, text) {
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Copy it from the address bar"; }
  setTimeout(() => { button.textContent = button.id === "copy-link" ? "Copy link" : "Copy"; }, 1500);
}

for (const button of document.querySelectorAll("[data-view]")) {
  button.addEventListener("click", () => {
    if (button.dataset.view === state.view) return;
    write();
    show(button.dataset.view);
    write(true);  // so that Back leads to the previous view
  });
}
for (const button of document.querySelectorAll("[data-export]")) button.addEventListener("click", () => save(button.dataset.export, shown, failed));
$("copy-link").addEventListener("click", () => { write(); copied($("copy-link"), location.href); });
$("copy-code").addEventListener("click", () => copied($("copy-code"), $("lines").textContent));
$("controls").addEventListener("submit", event => event.preventDefault());
addEventListener("hashchange", () => { if (location.hash !== written) restore(); });
document.addEventListener("click", event => { if (!$("export").contains(event.target)) $("export").open = false; });
$("export").addEventListener("keydown", event => { if (event.key === "Escape") { $("export").open = false; $("export").querySelector("summary").focus(); } });

catalogue = await read("catalogue").catch(error => { failed(error); throw error; });
fill(catalogue);
listen(remember);
globalThis.lab = { state, shown, timings, idle };  // for the console
await restore();
