// Requests to the server. A page has a random id, and its newest request wins.
const page = Array.from(crypto.getRandomValues(new Uint8Array(8)), b => b.toString(36)).join("").slice(0, 16);

export class Failed extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

export const SILENT = "The server does not answer: is messirl lab still running?";

const sent = (...what) => fetch(...what).catch(() => { throw new Failed(0, SILENT); });

async function answered(response) {
  const found = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Failed(response.status, found.error);
  return found;
}

export async function read(what, key = "") {
  return answered(await sent(`/api/${what}?${new URLSearchParams({ key, page })}`));
}

export async function fit(ask) {
  return answered(await sent("/api/fit", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...ask, page }),
  }));
}
