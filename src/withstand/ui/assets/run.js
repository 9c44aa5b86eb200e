"use strict";
// One run: what it came to so far, and, while it goes on, its looks as they come.

(() => {
  const { UNKNOWN, known, node, told, said, ask, number, count, when, notice, state, maker } = Common;
  const $ = (id) => document.getElementById(id);
  const id = location.pathname.split("/").pop();
  const api = `/api/runs/${encodeURIComponent(id)}`;
  const KINDS = { run: "Run", search: "Search for a limit", import: "Imported", file: "Result file", comparison: "Comparison" };
  const view = { source: null, entry: null };

  // What stands above.

  function masthead(entry) {
    document.title = `${entry.name} · withstand`;
    $("name").replaceChildren(told(entry.name));
    $("what").replaceChildren([KINDS[entry.kind], entry.tool !== "withstand" && entry.tool, entry.model].filter(Boolean).join(" · "));
    $("target").replaceChildren(...(entry.target ? [told(entry.target), " · "] : []), when(entry.at_s));
    $("state").replaceChildren(state(entry.state), ...(entry.limit ? [" ", said(entry.limit)] : []), ...(entry.why && entry.state !== "running" ? [" ", said(entry.why)] : []), ...slo(entry));
  }

  const slo = (entry) => (known(entry.slo_kept) ? [" ", node("span", { className: entry.slo_kept ? "kept" : "missed", textContent: entry.slo_kept ? "The SLO is kept." : "The SLO is missed." })] : []);

  function deeds(entry) {
    if (entry.state === "damaged") return [];
    const ids = () => [id];
    const report = entry.page
      ? node("a", { className: "button", href: `/page/${entry.id}/${entry.page}`, textContent: "Report" })
      : maker(node("button", { type: "button", textContent: "Make the report" }), "report", ids);
    const files = ["JSON", "CSV"].map((form) => maker(node("button", { type: "button", className: "plain", textContent: form }), form.toLowerCase(), ids));
    const board = entry.board ? [node("a", { className: "button", href: `/page/${entry.id}/${entry.board}`, textContent: "Monitoring" })] : [];
    return [report, ...board, ...files];
  }

  // Stages and doubts.

  const COLUMNS = [
    ["State", (s) => (s.state ? state(s.state) : UNKNOWN)],
    ["Requests", (s) => count(s.requests)],
    ["Failed", (s) => (s.failed ? node("span", { className: "bad", textContent: count(s.failed) }) : count(s.failed))],
    ["Cut by us", (s) => count(s.cut)],
    ["req/s", (s) => number(s.request_rate)],
    ["tok/s", (s) => number(s.token_rate)],
    ["TTFT p50, ms", (s) => number(s.ttft_p50_ms)],
    ["TTFT p95, ms", (s) => number(s.ttft_p95_ms)],
    ["TPOT p50, ms", (s) => number(s.tpot_p50_ms)],
    ["TPOT p95, ms", (s) => number(s.tpot_p95_ms)],
    ["E2EL p95, ms", (s) => number(s.e2el_p95_ms)],
  ];

  const cells = (line) => COLUMNS.map(([, value]) => node("td", {}, value(line)));

  // The stage that goes on has the figures of the last look.
  function row(line) {
    if (line.state !== "running") return node("tr", {}, node("th", { scope: "row" }, told(line.name)), ...cells(line));
    const hint = "So far; rates are of the last 10 s";
    return node("tr", { className: "current", title: hint }, node("th", { scope: "row" }, told(line.name)), ...cells({ ...line, ...view.line }));
  }

  function goesOn(line) {
    view.line = line;
    const at = (view.detail?.stages ?? []).findIndex((stage) => stage.state === "running");
    if (at >= 0) $("stage-rows").children[at]?.replaceWith(row(view.detail.stages[at]));
  }

  function stages(lines) {
    $("stage-rows").replaceChildren(...lines.map(row));
    $("stages").hidden = !lines.length;
  }

  // Each kind once: the sentence of the first stage, and where else.
  function doubts(lines) {
    const kinds = Map.groupBy ? Map.groupBy(lines, (line) => line.kind) : lines.reduce((map, line) => map.set(line.kind, [...(map.get(line.kind) ?? []), line]), new Map());
    const items = [...kinds.values()].sort((a, b) => b.some((l) => l.blocking) - a.some((l) => l.blocking)).map((raised) => {
      const blocking = raised.some((line) => line.blocking);
      const where = [...new Set(raised.map((line) => line.stage).filter(Boolean))].join(", ");
      const first = raised.find((line) => line.blocking) ?? raised[0];
      return node("li", { className: blocking ? "blocking" : "" },
        node("p", { className: "kind", textContent: blocking ? `${first.kind} · blocking` : first.kind }),
        node("p", { className: "sentence" }, said(first.sentence)),
        ...(where ? [node("p", { className: "where" }, "in ", told(where))] : []),
        ...(first.remedy ? [node("p", { className: "remedy" }, said(first.remedy))] : []));
    });
    // Only news is put in its place, so that a screen reader tells nothing twice.
    const digest = JSON.stringify(lines);
    if (view.doubts !== digest) $("doubt-list").replaceChildren(...items);
    view.doubts = digest;
    $("doubts").hidden = !items.length;
  }

  // The live part.

  const SVG = "http://www.w3.org/2000/svg";
  const [WIDTH, HEIGHT] = [600, 130];

  function drawn(name, attributes) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  function path(xs, ys, [low, high], most) {
    let pen = "M";
    return ys.map((y, i) => {
      if (!known(y)) { pen = "M"; return ""; }
      const point = `${pen}${((xs[i] - low) / (high - low || 1) * WIDTH).toFixed(1)} ${(HEIGHT - y / most * HEIGHT).toFixed(1)}`;
      pen = "L";
      return point;
    }).join("");
  }

  // A course over the time that is kept; a second one is dashed.
  function course(title, unit, xs, lines) {
    const values = lines.flat().filter(known);
    const most = 1.08 * Math.max(...values, 1e-9);
    const span = [xs[0] ?? 0, xs.at(-1) ?? 1];
    const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    const latest = lines.map((line) => number(line.findLast(known))).join(" / ");
    svg.setAttribute("aria-label", `${title}: ${latest} ${unit} now, at most ${number(most / 1.08)}`);
    for (const part of [0, 0.5]) svg.append(drawn("line", { class: "rule", x1: 0, x2: WIDTH, y1: part * HEIGHT, y2: part * HEIGHT }));
    lines.forEach((line, i) => svg.append(drawn("path", { class: i ? "line second" : "line", d: path(xs, line, span, most) })));
    const figure = node("figure", { className: "course" },
      node("figcaption", {}, node("b", { textContent: latest }), title, " ", node("i", { textContent: unit })), svg,
      node("div", { className: "ends" }, node("span", { textContent: `${number(span[0])} s` }), node("span", { textContent: `top ${number(most)}` }), node("span", { textContent: `${number(span[1])} s` })));
    return figure;
  }

  function figure(label, value, unit, note) {
    return node("div", {}, node("dt", { textContent: label }), node("dd", {}, node("span", { className: "value" }, value, " ", node("span", { className: "unit", textContent: unit })), ...(note ? [node("div", { className: "note" }, note)] : [])));
  }

  function errors(kinds) {
    $("error-list").replaceChildren(...kinds.map((kind) => node("li", {}, node("b", { className: "bad", textContent: `${count(kind.count)} ${kind.status}` }), ...(kind.text ? [" ", told(kind.text)] : []))));
    $("errors").hidden = !kinds.length;
  }

  function look(event) {
    const now = Looks.read(JSON.parse(event.data));
    $("live").hidden = false;
    $("stage-now").replaceChildren(node("b", {}, told(now.stage ?? "Between two stages")), now.place ? ` · ${now.place}` : "");
    const bar = $("progress");
    if (known(now.share)) bar.value = Math.min(1, now.share); else bar.removeAttribute("value");
    $("figures").replaceChildren(...now.figures.map((one) => figure(...one)));
    $("courses").replaceChildren(...now.courses.map((one) => course(...one)));
    errors(now.errors);
    goesOn(now.line);
    if (now.doubts.length) doubts([...(view.detail?.doubts ?? []), ...now.doubts]);
    if (now.stages && now.stages !== view.stages) { view.line = {}; refresh(); }
    view.stages = now.stages;
    document.documentElement.dataset.looks = String(Number(document.documentElement.dataset.looks ?? 0) + 1);
  }

  // A hidden page lets go of the stream: a browser has few connections to give.

  function follow() {
    if (view.source || document.hidden) return;
    view.source = new EventSource(`${api}/live`);
    view.source.addEventListener("look", look);
    view.source.addEventListener("end", () => { unfollow(); setTimeout(refresh, 300); });
    view.source.addEventListener("error", () => { if (view.source?.readyState === EventSource.CLOSED) { unfollow(); setTimeout(refresh, 2000); } });
  }

  function unfollow() {
    view.source?.close();
    view.source = null;
  }

  async function refresh() {
    try {
      const detail = await ask(api);
      view.detail = detail;
      const running = detail.entry.state === "running";
      masthead(detail.entry);
      if (!running || view.entry?.page !== detail.entry.page || view.entry?.board !== detail.entry.board) $("deeds").replaceChildren(...deeds(detail.entry));
      view.entry = detail.entry;
      stages(detail.stages);
      doubts(detail.doubts);
      if (running) follow(); else { unfollow(); $("live").hidden = true; }
      notice();
    } catch (error) {
      notice(error instanceof TypeError ? "withstand ui has ended, or cannot be reached." : error.message);
      setTimeout(refresh, 3000);
    }
    document.documentElement.dataset.run = view.entry?.state ?? "unknown";
  }

  $("stage-heads").append(node("th", { scope: "col", textContent: "Stage" }), ...COLUMNS.map(([title]) => node("th", { scope: "col", textContent: title })));
  document.addEventListener("visibilitychange", () => { if (document.hidden) unfollow(); else refresh(); });
  addEventListener("pagehide", unfollow);
  refresh();
})();
