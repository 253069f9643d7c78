// Looks for words in all pages. What they say is loaded when it is first asked for, also where pages are read from a folder.
"use strict";
(() => {
  const told = document.currentScript.dataset;
  const box = document.getElementById("search"), list = document.getElementById("found"), menu = document.getElementById("menu");
  const wide = matchMedia("(min-width: 801px)");
  const unfold = () => { menu.open = wide.matches; };
  wide.addEventListener("change", unfold);
  unfold();

  let loading = null;
  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = told.words;
    script.onload = () => done(window.messirlWords.map(([address, page, title, text]) =>
      ({ address, page, title, text, low: text.toLowerCase(), head: title.toLowerCase(), of: page.toLowerCase() })));
    script.onerror = failed;
    document.head.append(script);
  });

  // All words must be there; those in headings count most, whole words more than parts of words.
  const rank = (section, words) => {
    let sum = 0;
    for (const word of words) {
      const here = (section.head === word ? 60 : section.head.includes(word) ? 20 : 0) + (section.of.includes(word) ? 6 : 0)
        + Math.min(section.low.split(word).length - 1, 5);
      if (!here) return 0;
      sum += here;
    }
    return sum;
  };

  const around = (section, words) => {
    const at = Math.min(...words.map(word => section.low.indexOf(word)).filter(i => i >= 0), section.text.length);
    const from = at === section.text.length ? 0 : Math.max(0, at - 40);
    return (from ? "… " : "") + section.text.slice(from, from + 120) + (section.text.length > from + 120 ? " …" : "");
  };

  const marked = (text, words) => {
    const out = document.createElement("small");
    const low = text.toLowerCase();
    let at = 0;
    while (at < text.length) {
      const next = words.map(word => [low.indexOf(word, at), word.length]).filter(([i]) => i >= 0).sort((a, b) => a[0] - b[0])[0];
      if (!next) break;
      const mark = document.createElement("mark");
      mark.textContent = text.slice(next[0], next[0] + next[1]);
      out.append(text.slice(at, next[0]), mark);
      at = next[0] + next[1];
    }
    out.append(text.slice(at));
    return out;
  };

  const show = async () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) { list.replaceChildren(); return; }
    const all = await load();
    const best = all.map(section => [rank(section, words), section]).filter(([sum]) => sum).sort((a, b) => b[0] - a[0]).slice(0, 12);
    if (words.join(" ") !== box.value.toLowerCase().split(/\s+/).filter(Boolean).join(" ")) return;
    list.replaceChildren(...(best.length ? best : [[0, null]]).map(([, section]) => {
      const item = document.createElement("li");
      if (!section) { item.textContent = "Nothing was found."; return item; }
      const link = document.createElement("a");
      link.href = told.root.replace(/\/?$/, "/") + section.address;
      link.textContent = section.title === section.page ? section.page : `${section.page}: ${section.title}`;
      item.append(link, marked(around(section, words), words));
      return item;
    }));
  };
  box.form.addEventListener("submit", event => event.preventDefault());
  box.addEventListener("input", show);
  box.addEventListener("focus", () => load());
})();
