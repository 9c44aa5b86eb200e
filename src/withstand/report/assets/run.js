"use strict";
// The charts of one run. All numbers and tables are in the page already; this draws, and lets the reader choose stages.

(() => {
  const { style, colours, escaped, known, valueAxis, layoutOf, drawing, missing, painter, node, radioSet, start, guarded } = Plots;
  const METRICS = { ttft: "TTFT", tpot: "TPOT", itl: "ITL", e2el: "E2EL" };
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const MARKS = ["circle", "diamond", "square", "triangle-up"];
  const HUES = 5;
  const NOTHING = "Nothing was measured.";
  const CHOSEN_MAX = 16; // stages shown at first: more lie over each other

  const { stages, limit } = JSON.parse(document.getElementById("data").textContent);
  const phases = [...new Set(stages.map((stage) => stage.phase))];
  const state = { chosen: new Set(), metric: "ttft", times: "auto" };

  // A phase has its own hue, and its stages go through it from light to strong; a single phase has the whole ramp.

  function between(from, to, share) {
    const parts = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    const [a, b] = [parts(from), parts(to)];
    return `rgb(${a.map((value, i) => Math.round(value + share * (b[i] - value))).join(",")})`;
  }

  function colourOf(stage) {
    const ramp = colours(phases.length > 1 ? `--phase-${phases.indexOf(stage.phase) % HUES}` : "--ramp");
    const siblings = stages.filter((other) => other.phase === stage.phase);
    const place = siblings.length > 1 ? siblings.indexOf(stage) / (siblings.length - 1) : 0.5;
    const at = Math.min(place * (ramp.length - 1), ramp.length - 1.000001);
    return between(ramp[Math.floor(at)], ramp[Math.floor(at) + 1], at % 1);
  }

  // Where hues run out, dashes and marks go on.
  const phaseStyle = (list, stage) => list[Math.floor(phases.indexOf(stage.phase) / HUES) % list.length];
  const chosen = () => stages.filter((_, i) => state.chosen.has(i));

  // Latency against load: a chart a phase.

  function loadAxis(group) {
    const distinct = (key) => new Set(group.map((stage) => stage[key]).filter(known)).size > 1;
    if (distinct("asked")) return { at: (stage) => stage.asked, title: "offered, req/s" };
    if (distinct("cap")) return { at: (stage) => stage.cap, title: "concurrency", log: true };
    const prefix = commonStart(group.map((stage) => stage.name));
    return { at: (stage) => escaped(stage.name.slice(prefix.length)), title: escaped(prefix.replace(/[\s_:=-]+$/, "")), named: true };
  }

  function commonStart(names) {
    let length = 0;
    while (names.length > 1 && names.every((name) => name.length > length && name[length] === names[0][length])) length += 1;
    return names[0].slice(0, length).replace(/[0-9.]+$/, "");
  }

  function quantileTrace(group, axis, key) {
    const metric = (stage) => stage.metrics[state.metric][key];
    const seen = group.filter((stage) => known(metric(stage)[0]) && known(axis.at(stage)));
    if (!axis.named) seen.sort((a, b) => axis.at(a) - axis.at(b)); // a search goes to and fro
    const arm = (stage, end) => (known(metric(stage)[end]) ? Math.abs(metric(stage)[end] - metric(stage)[0]) : 0);
    const bounded = (stage) => known(metric(stage)[1]) && known(metric(stage)[2]);
    const colour = style(key === "p50" ? "--accent" : "--ink");
    return {
      type: "scatter", mode: "lines+markers", name: key, x: seen.map(axis.at), y: seen.map((stage) => metric(stage)[0]),
      line: { color: colour, width: 1.6, dash: key === "p50" ? "solid" : "dash" },
      marker: { color: colour, size: 8, symbol: seen.map((stage) => (bounded(stage) || state.metric === "itl" ? "circle" : "circle-open")) },
      error_y: {
        type: "data", symmetric: false, thickness: 1.2, width: 4, color: colour,
        array: seen.map((stage) => arm(stage, 2)), arrayminus: seen.map((stage) => arm(stage, 1)),
      },
      text: seen.map((stage) => escaped(stage.name)),
      hovertemplate: `%{text}<br>${METRICS[state.metric]} ${key} %{y:,.4~g} ms<extra></extra>`,
    };
  }

  function byLoad(element) {
    const group = stages.filter((stage) => stage.phase === element.dataset.phase);
    const axis = loadAxis(group);
    const traces = ["p50", "p99"].map((key) => quantileTrace(group, axis, key)).filter((trace) => trace.x.length);
    if (!traces.length) return missing(`No stage has a ${METRICS[state.metric]}.`);
    const xs = [...new Set(traces.flatMap((trace) => trace.x))];
    const reach = traces.flatMap((trace) => trace.y.flatMap((y, i) => [y - trace.error_y.arrayminus[i], y + trace.error_y.array[i]]));
    const xaxis = axis.named ? { type: "category" } : { tickvals: xs, type: axis.log ? "log" : "linear" };
    return drawing(traces, layoutOf(260, { xaxis: { ...xaxis, title: { text: axis.title, standoff: 6 } }, yaxis: valueAxis(reach, state.times) }));
  }

  // The limit that was looked for: what was found of each load, and between which loads it lies.

  const FOUND = { holds: ["--good", "circle"], breaks: ["--bad", "circle"], grows: ["--bad", "triangle-up"], open: ["--warn", "circle-open"] };

  function limitTrace(points, kind) {
    const seen = limit.loads.map((load, i) => ({ load, found: limit.found[i], point: points[i] })).filter((one) => one.point);
    const arm = (one, end) => (known(one.point[end]) ? Math.abs(one.point[end] - one.point[0]) : 0);
    const colour = seen.map((one) => style(FOUND[one.found][0]));
    return {
      type: "scatter", mode: "markers", x: seen.map((one) => one.load), y: seen.map((one) => one.point[0]),
      marker: { color: colour, size: 9, symbol: seen.map((one) => FOUND[one.found][1]), line: { color: colour, width: 1.6 } },
      error_y: {
        type: "data", symmetric: false, thickness: 1.2, width: 4, color: style("--muted"),
        array: seen.map((one) => arm(one, 2)), arrayminus: seen.map((one) => arm(one, 1)),
      },
      text: seen.map((one) => one.found),
      hovertemplate: `%{x:,.4~g} ${limit.unit}: %{text}<br>%{y${kind === "share" ? ":.2%" : ":,.4~g"}}${kind === "share" ? "" : " ms"}<extra></extra>`,
    };
  }

  // Without an end it reaches to the edge.
  function limitShapes(allowed, { type, range }) {
    const line = { type: "line", xref: "paper", x0: 0, x1: 1, y0: allowed, y1: allowed, line: { color: style("--ink"), width: 1, dash: "dot" } };
    if (!known(limit.low) && !known(limit.high)) return [line];
    const edges = (range ?? [0, Math.max(...limit.loads)]).map((edge) => (type === "log" ? 10 ** edge : edge));
    const ends = { x0: limit.low ?? edges[0], x1: limit.high ?? edges[1] };
    const band = { type: "rect", yref: "paper", y0: 0, y1: 1, ...ends, fillcolor: style("--accent"), opacity: 0.13, line: { width: 0 }, layer: "below" };
    const number = { type: "line", yref: "paper", y0: 0, y1: 1, x0: limit.load, x1: limit.load, line: { color: style("--accent"), width: 1.4 }, layer: "below" };
    return known(limit.load) ? [line, band, number] : [line, band];
  }

  function limitChart(element) {
    const { kind, promise: which } = element.dataset;
    const promise = limit.promises[which];
    const allowed = kind === "share" ? promise.allowed : promise.limit;
    const trace = limitTrace(kind === "share" ? promise.shares : promise.times, kind);
    if (!trace.x.length) return missing(kind === "share" ? "No request told anything of it." : "No such time was seen.");
    const reach = trace.y.flatMap((y, i) => [y - trace.error_y.arrayminus[i], y + trace.error_y.array[i]]);
    const most = Math.min(1, Math.max(...reach, 2 * allowed));
    const yaxis = kind === "share" ? { tickformat: ".0%", range: [-0.04 * most, 1.05 * most] } : valueAxis([...reach, allowed], state.times);
    const xaxis = { ...valueAxis(trace.x, "auto"), title: { text: limit.unit, standoff: 6 } };
    return drawing([trace], { ...layoutOf(280, { xaxis, yaxis }), shapes: limitShapes(allowed, xaxis) });
  }

  // Rates and outcomes: all stages.

  function achieved() {
    if (!stages.length) return missing(NOTHING);
    const offered = stages.filter((stage) => known(stage.asked));
    if (!offered.length) return missing("No stage had an offered rate: each sent as fast as its cap on concurrency allowed.");
    const x = offered.map((stage) => stage.asked);
    const most = 1.08 * Math.max(...x, ...offered.map((stage) => stage.sent || 0));
    const trace = (key, name, symbol, color) => ({
      type: "scatter", mode: "markers", name, x, y: offered.map((stage) => stage[key]), text: offered.map((stage) => escaped(stage.name)),
      marker: { size: 10, symbol, color, line: { color, width: 1.6 } }, hovertemplate: `%{text}<br>${name} %{y:,.4~g} of %{x:,.4~g} req/s<extra></extra>`,
    });
    const ideal = { type: "scatter", mode: "lines", x: [0, most], y: [0, most], hoverinfo: "skip", line: { color: style("--muted"), width: 1, dash: "dot" }, name: "as offered" };
    const traces = [ideal, trace("sent", "sent", "circle-open", style("--muted")), trace("done", "answered well", "circle", style("--accent"))];
    const layout = layoutOf(300, { xaxis: { range: [0, most], title: { text: "offered", standoff: 6 } }, yaxis: { range: [0, most] } });
    return drawing(traces, { ...layout, showlegend: true, legend: { x: 0.02, y: 0.98, bgcolor: "rgba(0,0,0,0)" } });
  }

  function rowsLayout(shown, xaxis) {
    const places = shown.map((_, i) => i);
    const text = shown.map((stage) => escaped(stage.name.length > 24 ? `${stage.name.slice(0, 23)}…` : stage.name));
    const yaxis = { tickvals: places, ticktext: text, autorange: "reversed", showgrid: false, ticklabelstandoff: 6 };
    const height = Math.max(70, 40 + 20 * shown.length);
    return { ...layoutOf(height, { xaxis: { showline: false, ...xaxis }, yaxis }), bargap: 0.42, barmode: "stack" };
  }

  function output() {
    if (!stages.some((stage) => known(stage.output))) return missing("The output tokens of no stage are known.");
    const trace = {
      type: "bar", orientation: "h", y: stages.map((_, i) => i), x: stages.map((stage) => stage.output), marker: { color: stages.map(colourOf) },
      text: stages.map((stage) => (known(stage.output) ? stage.output.toLocaleString("en") : "unknown")), textposition: "outside",
      constraintext: "none", textfont: { size: 12 }, cliponaxis: false, hoverinfo: "skip",
    };
    const layout = rowsLayout(stages, { visible: false });
    return drawing([trace], { ...layout, margin: { ...layout.margin, r: 50, b: 8 } });
  }

  function outcome() {
    if (!stages.length) return missing(NOTHING);
    const shown = stages.filter((stage) => Object.entries(stage.statuses).some(([status, n]) => status !== "ok" && n));
    if (!shown.length) return missing("Every request of every stage ended well.");
    const statuses = [...new Set(shown.flatMap((stage) => Object.keys(stage.statuses)))].sort((a, b) => (b === "ok") - (a === "ok") || a.localeCompare(b));
    const palette = colours("--outcomes");
    const traces = statuses.map((status, place) => ({
      type: "bar", orientation: "h", name: escaped(status.replaceAll("_", " ")), y: shown.map((_, i) => i),
      x: shown.map((stage) => (stage.attempted ? (stage.statuses[status] || 0) / stage.attempted : 0)),
      customdata: shown.map((stage) => stage.statuses[status] || 0), text: shown.map(() => escaped(status)), textposition: "none",
      marker: { color: status === "ok" ? style("--ok") : palette[(place - 1 + palette.length) % palette.length] },
      hovertemplate: "%{customdata:,} %{text}<extra></extra>",
    }));
    const annotations = shown.map((stage, i) => ({ xref: "paper", x: 1.01, y: i, xanchor: "left", showarrow: false, text: failures(stage), font: { size: 12 } }));
    const layout = rowsLayout(shown, { tickformat: ".0%", range: [0, 1], fixedrange: true });
    const legend = { orientation: "h", x: 0, y: 1, yanchor: "bottom", traceorder: "normal" };
    return drawing(traces, { ...layout, height: layout.height + 30, annotations, legend, showlegend: true, margin: { ...layout.margin, r: 150, t: 30 } });
  }

  function failures(stage) {
    const failed = Object.entries(stage.statuses).filter(([status]) => status !== "ok");
    return failed.map(([status, n]) => `${n.toLocaleString("en")} ${escaped(status.replaceAll("_", " "))}`).join(", ");
  }

  // Distributions and courses: the stages chosen.

  // The share of n values that are at most the quantile q of them: of three, a third is as small as the smallest.
  const atMost = (q, n) => q + (1 - q) / n;

  function ecdf(element) {
    const metric = element.dataset.metric;
    const seen = chosen().filter((stage) => stage.ecdf[metric]);
    if (!seen.length) return missing(nothing(metric));
    const traces = seen.map((stage) => {
      const quantiles = stage.ecdf[metric];
      const y = quantiles.map((_, i) => atMost(i / (quantiles.length - 1), stage.counts[metric]));
      return {
        type: "scatter", mode: "lines", name: escaped(stage.name), x: [quantiles[0], ...quantiles], y: [0, ...y],
        line: { color: colourOf(stage), width: 1.6, dash: phaseStyle(DASHES, stage), shape: "hv" },
        hovertemplate: `${escaped(stage.name)}<br>%{y:.1%} within %{x:,.4~g} ms<extra></extra>`,
      };
    });
    const xaxis = valueAxis(traces.flatMap((trace) => trace.x), state.times);
    return drawing(traces, layoutOf(270, { xaxis, yaxis: { tickformat: ".0%", range: [0, 1.01], tickvals: [0, 0.25, 0.5, 0.75, 0.9, 1] } }));
  }

  function scatter(element) {
    const metric = element.dataset.metric;
    const seen = chosen().filter((stage) => stage.scatter[metric]);
    if (!seen.length) return missing(nothing(metric));
    const traces = seen.map((stage) => ({
      type: "scatter", mode: "markers", name: escaped(stage.name), x: stage.scatter[metric][0], y: stage.scatter[metric][1],
      marker: { color: colourOf(stage), size: 4, opacity: 0.55, symbol: phaseStyle(MARKS, stage) },
      hovertemplate: `${escaped(stage.name)}<br>%{y:,.4~g} ms at %{x:,.1f} s<extra></extra>`,
    }));
    return drawing(traces, layoutOf(250, { xaxis: secondsAxis(seen.map((stage) => stage.scatter[metric][0])), yaxis: valueAxis(traces.flatMap((trace) => trace.y), state.times) }));
  }

  function secondsAxis(seen) {
    const most = Math.max(1, ...seen.flat());
    return { title: { text: "seconds", standoff: 6 }, range: [-0.015 * most, 1.02 * most] };
  }

  const nothing = (metric) => (state.chosen.size ? `The stages chosen have no ${METRICS[metric]}.` : "No stage is chosen.");

  function stepTrace(stage, values, dash, unit) {
    return {
      type: "scatter", mode: "lines", name: escaped(stage.name), x: stage.bins.at, y: values,
      line: { color: colourOf(stage), width: 1.5, dash, shape: "hv" },
      hovertemplate: `${escaped(stage.name)}<br>%{y:,.4~g} ${unit} at %{x:,.1f} s<extra></extra>`,
    };
  }

  function course(element) {
    const key = element.dataset.course;
    const seen = chosen().filter((stage) => stage.bins);
    if (!seen.length) return missing("No stage is chosen.");
    const traces = seen.map((stage) => stepTrace(stage, stage.bins[key], phaseStyle(DASHES, stage), key === "tokens" ? "tok/s" : "in flight"));
    return drawing(traces, layoutOf(250, { xaxis: secondsAxis(seen.map((stage) => stage.bins.at)), yaxis: { rangemode: "tozero" } }));
  }

  function flow() {
    const seen = chosen().filter((stage) => stage.bins);
    if (!seen.length) return missing("No stage is chosen.");
    const scheduled = seen.filter((stage) => stage.bins.scheduled.some(known));
    const traces = [
      ...scheduled.map((stage) => stepTrace(stage, stage.bins.scheduled, "dot", "scheduled/s")),
      ...seen.map((stage) => stepTrace(stage, stage.bins.completed, "solid", "answered/s")),
    ];
    return drawing(traces, layoutOf(240, { xaxis: secondsAxis(seen.map((stage) => stage.bins.at)), yaxis: { rangemode: "tozero" } }));
  }

  const linesOf = (element) => element.dataset.lines.split(" ");

  function server(element) {
    const lines = linesOf(element);
    const seen = chosen().filter((stage) => lines.some((line) => stage.server[line]));
    if (!seen.length) return missing("Nothing of it was seen in the stages chosen.");
    const share = lines[0].endsWith("_share");
    const traces = seen.flatMap((stage) => lines.filter((line) => stage.server[line]).map((line) => ({
      type: "scatter", mode: "lines+markers", name: escaped(stage.name), x: stage.server[line][0], y: stage.server[line][1],
      line: { color: colourOf(stage), width: 1.5, dash: line === lines[0] ? phaseStyle(DASHES, stage) : "dot" }, marker: { size: 3 },
      hovertemplate: `${escaped(stage.name)}<br>${line.replaceAll("_", " ")} %{y${share ? ":.1%" : ":,.4~g"}} at %{x:,.1f} s<extra></extra>`,
    })));
    const ends = seen.map((stage) => [...(stage.bins ? stage.bins.at : []), ...lines.flatMap((line) => (stage.server[line] ? stage.server[line][0] : []))]);
    const yaxis = share ? { tickformat: ".0%", rangemode: "tozero" } : { rangemode: "tozero" };
    return drawing(traces, layoutOf(220, { xaxis: secondsAxis(ends), yaxis }));
  }

  // Only what was seen of any stage has a place.
  function serverFigures() {
    const group = document.getElementById("server-side");
    for (const plot of group.querySelectorAll("[data-chart=server]")) {
      if (!stages.some((stage) => linesOf(plot).some((line) => stage.server[line]))) plot.closest("figure").remove();
    }
    if (!group.querySelector("figure")) group.remove();
  }

  const paint = painter({ limit: limitChart, byLoad, achieved, output, outcome, ecdf, scatter, course, flow, server });

  // The reader's choice.

  function choose(indexes) {
    state.chosen = new Set(indexes);
    for (const box of document.querySelectorAll("#selector [name=stage]")) box.checked = state.chosen.has(Number(box.value));
    paint();
  }

  function stageBox(stage, index) {
    const box = node("input", { type: "checkbox", name: "stage", value: String(index), checked: state.chosen.has(index) });
    box.addEventListener("change", () => choose(box.checked ? [...state.chosen, index] : [...state.chosen].filter((i) => i !== index)));
    const label = node("label", {}, box, stage.name);
    label.dataset.stage = String(index);
    return label;
  }

  function phaseSet(phase) {
    const members = stages.map((stage, i) => [stage, i]).filter(([stage]) => stage.phase === phase);
    const only = node("button", { type: "button", title: "Show only these", textContent: phase || "stages" });
    only.addEventListener("click", () => choose(members.map(([, i]) => i)));
    return node("fieldset", {}, node("legend", {}, only), ...members.map(([stage, i]) => stageBox(stage, i)));
  }

  function paintSwatches() {
    for (const label of document.querySelectorAll("#selector [data-stage]")) {
      label.style.setProperty("--swatch", colourOf(stages[Number(label.dataset.stage)]));
    }
  }

  function loadFigures() {
    const box = document.getElementById("by-load");
    const series = phases.filter((phase) => stages.filter((stage) => stage.phase === phase).length > 1);
    box.closest(".group").hidden = !series.length;
    box.classList.add(["one", "one", "two", "three"][Math.min(series.length, 3)]);
    box.append(...series.map((phase) => {
      const plot = node("div", { className: "plot" });
      Object.assign(plot.dataset, { chart: "byLoad", phase });
      return node("figure", {}, node("figcaption", {}, phase || "all stages"), plot);
    }));
  }

  function repaint() {
    paintSwatches();
    return paint();
  }

  guarded(async () => {
    state.chosen = new Set(stages.length > CHOSEN_MAX ? [...stages.keys()].filter((i) => stages[i].phase === phases.at(-1)) : stages.keys());
    const times = radioSet(state, "times", "times", { auto: "auto", linear: "linear", log: "log" }, paint);
    document.getElementById("selector").append(...phases.map(phaseSet), times);
    document.getElementById("metric").append(radioSet(state, "metric", "latency", METRICS, paint));
    loadFigures();
    serverFigures();
    await start(repaint, "#percentiles details, #doubts details");
  });
})();
