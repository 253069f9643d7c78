// The view of the paper's figures: interactive curves of a reproduction, and the claims.
import { $, make, number, prose } from "./words.js";
import { read } from "./api.js";
import { onChange } from "./colours.js";
import { state } from "./state.js";

let found = null, begun = false, plotly = null, remember = () => {};

// Plotly's script from the installed package; loaded when it is first needed.
function library() {
  plotly ??= fetch("/plotly-styles").then(answer => answer.json()).then(ids => new Promise((done, failed) => {
    document.head.append(...ids.map(id => make("meta", { id })));
    const script = make("script", { src: "/plotly.js" });
    script.onload = () => done(globalThis.Plotly);
    script.onerror = () => failed(new Error("Plotly's script could not be loaded"));
    document.head.append(script);
  }));
  return plotly;
}

export async function open(catalogue, saved) {
  remember = saved;
  const folders = Object.entries(catalogue.results), view = $("view-results");
  view.querySelector(".empty").hidden = folders.length > 0;
  for (const element of view.querySelectorAll(".bar, h2, .scroll, .figures, .story")) element.hidden = folders.length === 0;
  if (!folders.length) return;
  if (!begun) {
    begun = true;
    $("results-folder").replaceChildren(...folders.map(([key, title]) => make("option", { value: key }, title)));
    $("results-folder").addEventListener("change", () => load($("results-folder").value));
    $("results-domain").addEventListener("change", () => { state.domain = $("results-domain").value; remember(); draw(); });
    $("results-solver").addEventListener("change", draw);
    onChange(() => draw());
  }
  const wanted = Object.hasOwn(catalogue.results, state.folder) ? state.folder : folders[0][0];
  $("results-folder").value = wanted;
  await load(wanted);
}

async function load(key) {
  state.folder = key;
  remember();
  $("results-story").textContent = "Reading…";
  let answer;
  try { answer = await read("results", key); } catch (error) { $("results-story").textContent = error.message; return; }
  if (answer.dropped) return;  // replaced by a newer request
  found = answer;
  $("results-domain").replaceChildren(...found.domains.map(({ key: domain, title }) => make("option", { value: domain }, title)));
  if (!found.domains.some(({ key: domain }) => domain === state.domain)) state.domain = found.domains[0]?.key ?? "";
  $("results-domain").value = state.domain;
  await draw();
}

async function draw() {
  if (!found) return;
  $("results-story").textContent = `Performance: ${found.measures[state.domain]}; higher is better. Means over runs with 95 % bands; drag to zoom (on a touch screen: + and −), double-click to reset, click a name to hide its line.`;
  claims();
  const exact = $("results-solver").value === "exact";
  const here = found.figures.filter(({ domain }) => domain === state.domain).map(figure => ({ ...figure, lines: figure.lines.filter(line => line.exact === exact) }))
    .filter(({ lines }) => lines.some(({ x }) => x.length > 1));
  const places = here.map(({ title }) => make("div", { class: "plot", role: "group", "aria-label": `${title}: performance by method` }));
  $("figures").replaceChildren(...here.map(({ title, lines }, i) => make("figure", { class: "card" }, make("h2", {}, title), places[i], numbers(lines))));
  const finger = matchMedia("(pointer: coarse)").matches, Plotly = await library(), style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(name).trim();
  await Promise.all(here.map(({ along, log, lines }, i) => Plotly.newPlot(places[i], lines.flatMap(trace), {
    margin: { l: 62, r: 12, t: finger ? 34 : 8, b: 44 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent", hovermode: "closest",
    font: { family: "system-ui, sans-serif", size: 12, color: colour("--ink") },
    xaxis: { title: { text: along }, type: log ? "log" : "linear", gridcolor: colour("--line"), zeroline: false },
    yaxis: { title: { text: "performance" }, gridcolor: colour("--line"), zeroline: false },
    legend: { orientation: "h", y: -0.24, yanchor: "top", font: { size: 11 } }, dragmode: finger ? false : "zoom",  // a finger scrolls
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--accent") },
  }, { displaylogo: false, responsive: true, displayModeBar: finger || "hover", modeBarButtonsToRemove: finger ? ["select2d", "lasso2d", "zoom2d", "pan2d", "autoScale2d", "toImage"] : ["select2d", "lasso2d"] })));
}

function trace({ label, colour, dash, x: along, mean, low, high, runs }) {
  const shared = { legendgroup: label };
  const soft = `rgba(${[1, 3, 5].map(k => parseInt(colour.slice(k, k + 2), 16)).join(",")},0.14)`;
  return [
    { ...shared, x: [...along, ...along.toReversed()], y: [...high, ...low.toReversed()], fill: "toself", fillcolor: soft, line: { width: 0 }, hoverinfo: "skip", showlegend: false, mode: "lines" },
    { ...shared, x: along, y: mean, name: label, mode: along.length > 30 ? "lines" : "lines+markers", line: { color: colour, dash, width: 2 },
      hovertemplate: `%{x}: %{y:.4g} (${runs} runs)` },
  ];
}

function numbers(lines) {
  const details = make("details", { class: "numbers" }, make("summary", {}, "As a table"));
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    const rows = lines.map(({ label, x, mean, low, high }) => make("tr", {}, make("th", { scope: "row" }, label), make("td", { class: "n" }, String(x.at(-1))), make("td", { class: "n" }, `${number(mean.at(-1))} [${number(low.at(-1))}, ${number(high.at(-1))}]`)));
    const head = make("thead", {}, make("tr", {}, ...["Method", "Last point", "Performance, 95 % interval"].map(text => make("th", { scope: "col" }, text))));
    details.append(make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figure as a table" }, make("table", {}, head, make("tbody", {}, ...rows))));
  });
  return details;
}

function claims() {
  const kinds = { holds: "holds", "does not hold": "fails" };
  const rows = found.claims.filter(({ domain }) => domain === state.domain || domain.startsWith(`${state.domain} `)).map(claim => make("tr", {},
    make("th", { scope: "row" }, claim.text), make("td", {}, make("span", { class: `verdict ${kinds[claim.verdict] ?? ""}` }, claim.verdict)),
    make("td", {}, claim.solver === "paper" ? "fixed steps" : "exact"), make("td", {}, prose([claim.evidence, claim.note].filter(Boolean).join("; ")) || "–"), make("td", {}, claim.test), make("td", {}, claim.where)));
  $("claims").replaceChildren(make("thead", {}, make("tr", {}, ...["Claim", "Verdict", "Solver", "Evidence", "Test", "Where"].map(text => make("th", { scope: "col" }, text)))), make("tbody", {}, ...rows));
}
