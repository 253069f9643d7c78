// Colours in light and dark mode: scales of numbers, and kinds of trajectories.
const dark = matchMedia("(prefers-color-scheme: dark)");
export const onChange = done => dark.addEventListener("change", done);

const SIGNED = {
  light: ["#432a7d", "#6a51a3", "#9087bd", "#b9b3d6", "#dcdcec", "#f8f7f9", "#fee3bd", "#fdc27a", "#f09a3e", "#d5700f", "#a84c00"],
  dark: ["#a58fe6", "#8672cb", "#6858a6", "#4b417b", "#342f4e", "#26242c", "#493019", "#74491a", "#a3671f", "#d08a30", "#f7b355"],
};
const AMOUNT = {
  light: ["#f5f8fb", "#d3e5f1", "#9ccae1", "#529fca", "#1f6dab", "#08386b"],
  dark: ["#22242b", "#1e3f5b", "#22669c", "#3d97d2", "#87c8f0", "#e0f3ff"],
};
const PLAIN = {
  light: { ink: "#1b1a1f", soft: "#5d5a66", line: "#d5d1dc", card: "#ffffff", focus: "#b35806", missing: "#e4e2e8", arrow: "#1b1a1f" },
  dark: { ink: "#ece9f1", soft: "#aaa5b4", line: "#423d4b", card: "#1d1b22", focus: "#ffc069", missing: "#2f2c35", arrow: "#f4f1f8" },
};
// expert, drawn, near-expert, other, unknown
const KINDS = { light: ["#111014", "#c2005f", "#007a5a", "#0067a5", "#6b6775"], dark: ["#ffffff", "#ff77b4", "#3fd0a4", "#6fc0ff", "#b3aebd"] };
export const KIND_NAMES = ["expert", "drawn by you", "unlabelled, near-expert", "unlabelled, other", "unlabelled"];

const mode = () => (dark.matches ? "dark" : "light");
export const plain = () => PLAIN[mode()];
export const kind = k => KINDS[mode()][k];

function between(stops, t) {
  const x = Math.min(Math.max(t, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(x), stops.length - 2), f = x - i;
  const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
  return "#" + [0, 1, 2].map(k => Math.round(part(stops[i], k) * (1 - f) + part(stops[i + 1], k) * f).toString(16).padStart(2, "0")).join("");
}

// A colour scale with its limits. Signed scales are white at zero (dark in dark mode).
export function scale(values, signed) {
  const known = values.filter(v => v !== null && Number.isFinite(v));
  const most = Math.max(...known.map(Math.abs), 0) || 1;
  const stops = (signed ? SIGNED : AMOUNT)[mode()];
  const low = signed ? -most : 0;
  const at = v => (v - low) / (most - low);
  return { low, high: most, signed, stops, colour: v => (v === null || !Number.isFinite(v) ? plain().missing : between(stops, at(v))) };
}

export function luminance(hex) {
  const l = [0, 1, 2].map(k => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16) / 255).map(v => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2];
}
export const on = hex => (luminance(hex) > 0.2 ? "#1b1a1f" : "#ffffff");
