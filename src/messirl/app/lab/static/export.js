// Export of pictures, data and Python code.
import { $, download, svg } from "./words.js";
import { plain } from "./colours.js";
import { Failed } from "./api.js";

// All maps side by side in one SVG, each with its title.
function picture(maps) {
  const high = 560, gap = 28, top = 44, colours = plain();
  let x = gap;
  const parts = maps.map(map => {
    const wide = high * map.width / map.total, inner = map.svg.cloneNode(true);
    inner.querySelector("[data-layer=hand]")?.remove();
    for (const name of ["tabindex", "role", "aria-label", "aria-describedby"]) inner.removeAttribute(name);
    for (const [key, value] of Object.entries({ x, y: top, width: wide, height: high })) inner.setAttribute(key, value);
    const title = svg("text", { x, y: 28, "font-size": 17, "font-weight": 600, fill: colours.ink, "font-family": "system-ui, sans-serif" }, map.heading.textContent);
    x += wide + gap;
    return [title, inner];
  });
  const out = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width: x.toFixed(0), height: top + high + 12, viewBox: `0 0 ${x.toFixed(0)} ${top + high + 12}` });
  out.append(svg("rect", { width: "100%", height: "100%", fill: colours.card }), ...parts.flat());
  return { text: new XMLSerializer().serializeToString(out), wide: x, high: top + high + 12 };
}

async function pixels(found) {
  const image = new Image(), url = URL.createObjectURL(new Blob([found.text], { type: "image/svg+xml" }));
  await new Promise((done, failed) => { image.onload = done; image.onerror = failed; image.src = url; });
  const canvas = document.createElement("canvas");
  canvas.width = 2 * found.wide;
  canvas.height = 2 * found.high;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise(done => canvas.toBlob(done, "image/png"));
}

// A CSV field: quoted, and never a spreadsheet formula.
const field = value => {
  const text = String(value ?? "");
  return typeof value === "number" ? text : `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
};

export const lines = found => found.models.map(({ label, code }) => (found.models.length > 1 ? `# ${label}\n${code}` : code)).join("\n\n");

// failed(error): called if there is nothing to export
export async function save(what, { maps, scene, found }, failed) {
  $("export").open = false;
  if (!found) { failed(new Failed(0, "There is nothing to export yet: wait for a fit")); return; }
  if (what === "py" && found.rough) { failed(new Failed(0, "The Python code comes with the exact fit: wait until it is done")); return; }
  const name = `messirl-${scene.key.replace(/[^\w-]+/g, "-")}`;
  if (what === "svg") download(`${name}.svg`, picture(maps).text, "image/svg+xml");
  if (what === "png") download(`${name}.png`, await pixels(picture(maps)), "image/png");
  if (what === "json") {
    const { similarity, ...rest } = found;
    download(`${name}.json`, JSON.stringify({ labels: scene.labels, features: scene.features, ...rest }, null, 1), "application/json");
  }
  if (what === "csv") {
    const head = ["state", "x", "y", ...found.models.flatMap(m => ["reward", "visits", "action", "chance"].map(column => `${column} (${m.label})`))];
    const rows = scene.labels.map((label, i) => [label, ...scene.at[i], ...found.models.flatMap(m => [m.reward[i], m.visits[i], scene.actions[m.best[i]], m.chance[i]])]);
    download(`${name}.csv`, [head, ...rows].map(row => row.map(field).join(",")).join("\r\n") + "\r\n", "text/csv");
  }
  if (what === "py") download(`${name}.py`, lines(found), "text/x-python");
}
