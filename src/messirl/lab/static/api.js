// Questions to the server. A page is known by a random name: of its requests the newest wins.
const page = Array.from(crypto.getRandomValues(new Uint8Array(8)), b => b.toString(36)).join("").slice(0, 16);

export class Failed extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

async function answered(response) {
  const found = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Failed(response.status, found.error);
  return found;
}

export async function read(what, key = "") {
  return answered(await fetch(`/api/${what}?${new URLSearchParams({ key, page })}`));
}

export async function fit(ask) {
  return answered(await fetch("/api/fit", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...ask, page }),
  }));
}
