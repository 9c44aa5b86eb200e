"use strict";
// The list: asked for again and again, searched and sorted here, so that it answers at once.

(() => {
  const { UNKNOWN, known, node, told, said, ask, number, count, when, notice, state, maker } = Common;
  const EVERY_MS = 3000;
  const $ = (id) => document.getElementById(id);
  const MISSING = () => node("span", { className: "none", textContent: UNKNOWN });

  const COLUMNS = [
    { key: "name", title: "Run", up: true, value: (e) => e.name.toLowerCase(), left: true },
    { key: "state", title: "State", up: true, value: (e) => e.state, left: true },
    { key: "at_s", title: "When", value: (e) => e.at_s, left: true },
    { key: "stages", title: "Stages", value: (e) => e.stages, wide: true },
    { key: "requests", title: "Requests", value: (e) => e.requests },
    { key: "request_rate", title: "Best req/s", value: (e) => e.request_rate },
    { key: "token_rate", title: "Best tok/s", value: (e) => e.token_rate },
    { key: "ttft_p95_ms", title: "TTFT p95, ms", up: true, value: (e) => e.ttft_p95_ms, hint: "At the stage with the most answers a second" },
    { key: "doubts", title: "Doubts", value: (e) => (known(e.doubts) ? e.doubts + 1000 * e.blocking : null) },
    { key: "slo", title: "SLO", value: (e) => (known(e.slo_kept) ? Number(e.slo_kept) : null) },
  ];
  const KINDS = { run: "", search: "find-limit", import: "imported", file: "result file", comparison: "comparison" };

  const view = { entries: [], sort: "at_s", up: false, ticked: new Set(), blocks: false };

  // One line.

  const place = (entry) => (entry.kind === "comparison" ? `/page/${entry.id}/${entry.page}` : `/run/${entry.id}`);

  function title(entry) {
    const link = node("a", { href: place(entry) }, told(entry.name));
    const about = [KINDS[entry.kind], entry.model, entry.target].filter(Boolean);
    if (entry.tool && entry.tool !== "withstand") about.splice(1, 0, entry.tool);
    const lines = [link];
    if (about.length) lines.push(node("small", {}, ...about.flatMap((part, i) => (i ? [" · ", told(part)] : [told(part)]))));
    const also = entry.limit ?? entry.headline ?? entry.why;
    if (also) lines.push(node("small", {}, said(also)));
    if (entry.board) lines.push(node("small", {}, node("a", { href: `/page/${entry.id}/${entry.board}`, textContent: "monitoring" })));
    return node("th", { scope: "row" }, ...lines);
  }

  const text = (words) => (words === UNKNOWN ? MISSING() : words);

  const CELLS = {
    state: (e) => state(e.state),
    at_s: (e) => node("time", { title: new Date(e.at_s * 1000).toString(), textContent: when(e.at_s) }),
    stages: (e) => (!known(e.stages) ? MISSING() : e.stages_done === e.stages ? count(e.stages) : `${count(e.stages_done)} of ${count(e.stages)}`),
    requests: (e) => [text(count(e.requests)), ...(e.failed ? [node("small", { className: "bad", textContent: `${count(e.failed)} failed` })] : []), ...(e.cut ? [node("small", { textContent: `${count(e.cut)} cut by us` })] : [])],
    request_rate: (e) => text(number(e.request_rate)),
    token_rate: (e) => text(number(e.token_rate)),
    ttft_p95_ms: (e) => text(number(e.ttft_p95_ms)),
    doubts: (e) => (known(e.doubts) ? node("span", { className: e.blocking ? "blocks" : e.doubts ? "doubtful" : "", textContent: e.blocking ? `${e.doubts}, ${e.blocking} blocking` : String(e.doubts) }) : MISSING()),
    slo: (e) => (known(e.slo_kept) ? node("span", { className: e.slo_kept ? "kept" : "missed", textContent: e.slo_kept ? "kept" : "missed" }) : MISSING()),
  };

  function cell(column, entry) {
    const element = node("td", { className: `${column.wide ? "wide " : ""}${column.left ? "left " : ""}${column.key}-cell` }, ...[CELLS[column.key](entry)].flat());
    element.dataset.label = column.title;
    return element;
  }

  const comparable = (entry) => entry.kind !== "comparison" && entry.state !== "damaged";

  function tick(entry) {
    if (!comparable(entry)) return node("td", { className: "tick" });
    const box = node("input", { type: "checkbox", checked: view.ticked.has(entry.id) });
    box.setAttribute("aria-label", `Compare ${entry.name}`);
    box.addEventListener("change", () => { view.ticked[box.checked ? "add" : "delete"](entry.id); bar(); });
    return node("td", { className: "tick" }, box);
  }

  function line(entry) {
    const row = node("tr", {}, tick(entry), title(entry), ...COLUMNS.slice(1).map((column) => cell(column, entry)));
    row.dataset.id = entry.id;
    row.dataset.told = JSON.stringify(entry);
    return row;
  }

  // The whole. A line that has not changed stays as it is: the focus and what a reader has marked stay with it.

  // A block lies below its comparison, and is shown when asked for, or while it goes on.
  const isFolded = (entry) => known(entry.block_of) && entry.state !== "running";
  const listed = () => (view.blocks ? view.entries : view.entries.filter((entry) => !isFolded(entry)));

  function ordered() {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const texts = (e) => [e.name, e.state, KINDS[e.kind], e.model, e.target, e.tool, e.limit].join(" ").toLowerCase();
    const { value } = COLUMNS.find((column) => column.key === view.sort);
    const sign = view.up ? 1 : -1;
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (!known(x) || !known(y)) return Number(known(y)) - Number(known(x));
      return x < y ? -sign : x > y ? sign : b.at_s - a.at_s;
    };
    return listed().filter((entry) => { const all = texts(entry); return words.every((word) => all.includes(word)); }).sort(order);
  }

  function draw() {
    const entries = ordered();
    const rows = $("rows");
    const old = new Map([...rows.children].map((row) => [row.dataset.id, row]));
    const lines = entries.map((entry) => {
      const row = old.get(entry.id);
      return row && row.dataset.told === JSON.stringify(entry) ? row : line(entry);
    });
    if (lines.length !== rows.childElementCount || lines.some((row, i) => rows.children[i] !== row)) keepingFocus(() => rows.replaceChildren(...lines));
    for (const row of lines) { const time = row.querySelector("time"); if (time) time.textContent = when(JSON.parse(row.dataset.told).at_s); }
    const all = listed().length;
    $("count").textContent = entries.length === all ? `${count(all)} in all` : `${count(entries.length)} of ${count(all)}`;
    const blocks = view.entries.filter(isFolded).length;
    $("blocks").hidden = !blocks;
    $("block-count").textContent = blocks === 1 ? "Show 1 block of a comparison" : `Show ${count(blocks)} blocks of comparisons`;
    heads();
    bar();
  }

  function keepingFocus(change) {
    const focused = document.activeElement;
    const id = focused?.closest?.("tr")?.dataset.id;
    const nth = id ? [...focused.closest("tr").querySelectorAll("a, input")].indexOf(focused) : -1;
    change();
    if (id && document.activeElement !== focused) [...document.querySelectorAll("#rows tr")].find((row) => row.dataset.id === id)?.querySelectorAll("a, input")[nth]?.focus();
  }

  function heads() {
    for (const head of document.querySelectorAll("#heads [data-key]")) {
      const chosen = head.dataset.key === view.sort;
      if (chosen) head.setAttribute("aria-sort", view.up ? "ascending" : "descending"); else head.removeAttribute("aria-sort");
    }
    $("sort").value = view.sort;
  }

  function bar() {
    for (const id of [...view.ticked]) if (!view.entries.some((entry) => entry.id === id && comparable(entry))) view.ticked.delete(id);
    $("ticked").hidden = !view.ticked.size;
    $("ticks").textContent = view.ticked.size === 1 ? "1 ticked; tick another to compare." : `${view.ticked.size} ticked; the oldest is the baseline.`;
    $("compare").disabled = view.ticked.size < 2;
  }

  const oldestFirst = () => view.entries.filter((entry) => view.ticked.has(entry.id)).sort((a, b) => a.at_s - b.at_s).map((entry) => entry.id);

  function chosen(key) {
    const column = COLUMNS.find((one) => one.key === key);
    view.up = view.sort === key ? !view.up : Boolean(column.up);
    view.sort = key;
    draw();
  }

  function head(column) {
    const button = node("button", { type: "button", textContent: column.title, title: column.hint ?? "" });
    button.addEventListener("click", () => chosen(column.key));
    const element = node("th", { scope: "col", className: `${column.wide ? "wide " : ""}${column.left ? "left " : ""}${column.key}-head` }, button);
    element.dataset.key = column.key;
    return element;
  }

  async function look() {
    let wait = EVERY_MS;
    try {
      const listing = await ask("/api/runs");
      view.entries = listing.entries;
      $("place").replaceChildren("below ", told(listing.folder), listing.cut ? "; it holds more folders than are looked into" : "", listing.unread ? `; ${count(listing.unread)} more are being read` : "");
      $("first").hidden = Boolean(listing.entries.length || listing.unread);
      $("table").hidden = !listing.entries.length;
      draw();
      if (listing.unread) wait = 50;
      if (view.lost) { view.lost = false; notice(); }
    } catch {
      view.lost = true;
      notice("withstand ui has ended, or cannot be reached; what is shown is as it was last.");
    }
    document.documentElement.dataset.list = "drawn";
    setTimeout(later, wait);
  }

  // A page that nobody sees asks for nothing.
  const later = () => (document.hidden ? document.addEventListener("visibilitychange", later, { once: true }) : look());

  $("heads").append(node("td", { className: "tick" }), ...COLUMNS.map(head));
  $("sort").append(...COLUMNS.map((column) => node("option", { value: column.key, textContent: column.title })));
  $("sort").addEventListener("change", () => chosen($("sort").value));
  $("search").addEventListener("input", draw);
  $("show-blocks").addEventListener("change", () => { view.blocks = $("show-blocks").checked; draw(); });
  $("tools").addEventListener("submit", (event) => event.preventDefault());
  $("untick").addEventListener("click", () => { view.ticked.clear(); for (const box of document.querySelectorAll(".tick input")) box.checked = false; bar(); });
  maker($("compare"), "comparison", oldestFirst);
  look();
})();
