"use strict";
// The charts of a comparison. Tables hold every number; this draws them, and lets the reader hide sides.

(() => {
  const { style, escaped, known, valueAxis, layoutOf, drawing, missing, painter, node, radioSet, start, guarded } = Plots;
  const MARKS = ["circle", "diamond", "square", "triangle-up", "cross", "star", "hexagon", "triangle-down"];
  const DASHES = ["solid", "dash"];
  const COLOURS = 8;
  const LABELS_MAX = 24;
  const LABEL_WIDTH = 36; // pixels of a number on a bar; where there is less, they would lie over each other
  const LINE_CHARACTERS = 64;
  const CHARACTER_WIDTH = 6.2; // pixels of a tick's label, on average
  const AXES = { rate: "offered, req/s", concurrency: "concurrency", length: "prompt tokens" };

  const { sides, groups, courses, metrics, sentences } = JSON.parse(document.getElementById("data").textContent);
  const state = { shown: new Set(sides.keys()), scale: "auto" };

  const colourOf = (side) => style(`--side-${side % COLOURS}`);
  const shown = () => [...state.shown].sort((a, b) => a - b);
  const NOT_DRAWN = "There was no room for this chart; its numbers are in the table.";

  // What stands at a mark.

  // As the tables have it: as many decimals as the smallest value of the metric needs, fewer on bars.
  const fixed = (value, digits) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const figure = (value, metric) => (metric.share ? `${(100 * value).toLocaleString("en", { maximumFractionDigits: 1 })} %` : `${fixed(value, metric.decimals)} ${metric.unit}`);
  const label = (value, metric) => (metric.share ? `${(100 * value).toLocaleString("en", { maximumFractionDigits: 1 })} %` : fixed(value, value < 99.995 ? Math.max(2, metric.decimals) : value < 999.95 ? 1 : 0));

  function wrapped(text, most = LINE_CHARACTERS) {
    const lines = [""];
    for (const word of text.split(" ")) {
      if (lines.at(-1) && lines.at(-1).length + word.length >= most) lines.push("");
      lines[lines.length - 1] += `${lines.at(-1) ? " " : ""}${word}`;
    }
    return lines;
  }

  const ticked = (label, width) => wrapped(label, Math.floor(width / CHARACTER_WIDTH)).map(escaped).join("<br>");

  function told(metric, side, group, cell) {
    const [value, low, high, n, verdict, notes] = cell;
    const ends = known(low) || known(high) ? `95 %: ${[low, high].map((end) => (known(end) ? figure(end, metric) : "?")).join(" to ")}` : "no interval";
    const lines = [`${sides[side]}, ${group}`, `${metric.title} ${figure(value, metric)}`, known(n) ? `${ends}, n = ${n.toLocaleString("en")}` : ends];
    if (verdict) lines.push(verdict);
    return [...lines, ...notes.flatMap((i) => wrapped(sentences[i]))].map(escaped).join("<br>");
  }

  // One mark a group that has the metric: {group, place, cell}.
  function marksOf(metric, side, places) {
    return places.map((place, i) => ({ ...place, i, cell: metric.rows[place.index]?.[side] })).filter((mark) => mark.cell && known(mark.cell[0]));
  }

  function traceOf(metric, side, marks) {
    const arm = (mark, end) => (known(mark.cell[end]) ? Math.abs(mark.cell[end] - mark.cell[0]) : known(mark.cell[3 - end]) ? 0 : NaN);
    return {
      name: escaped(sides[side]), y: marks.map((mark) => mark.cell[0]), hovertext: marks.map((mark) => told(metric, side, groups[mark.index], mark.cell)), hoverinfo: "text",
      error_y: {
        type: "data", symmetric: false, thickness: 1.2, width: 4, color: style("--ink"), visible: marks.some((mark) => known(mark.cell[1]) || known(mark.cell[2])),
        array: marks.map((mark) => arm(mark, 2)), arrayminus: marks.map((mark) => arm(mark, 1)),
      },
    };
  }

  const reachOf = (traces) => traces.flatMap((trace) => trace.y.flatMap((y, i) => [y - (trace.error_y.arrayminus[i] || 0), y + (trace.error_y.array[i] || 0)]));

  // Grouped bars, always from zero.

  function bars(element) {
    const metric = metrics[element.dataset.metric];
    if (!metric) return missing(NOT_DRAWN);
    const places = groups.map((group, index) => ({ group, index })).filter(({ index }) => metric.rows[index]);
    const traces = shown().map((side) => {
      const marks = marksOf(metric, side, places);
      const pattern = { shape: marks.map((mark) => (mark.cell[6] ? "/" : "")), size: 7, solidity: 0.55, fillmode: "overlay", fgcolor: style("--paper"), fgopacity: 0.55 };
      return { ...traceOf(metric, side, marks), type: "bar", x: marks.map((mark) => mark.i), marker: { color: colourOf(side), pattern } };
    });
    const values = reachOf(traces);
    if (!values.length) return missing("No side that is shown has this metric.");
    const bounded = traces.some((trace) => trace.error_y.visible);
    if (!bounded && element.clientWidth >= LABEL_WIDTH * (places.length * traces.length + 1)) {
      for (const trace of traces) Object.assign(trace, { text: trace.y.map((y) => label(y, metric)), textposition: "outside", textangle: 0, constraintext: "none", textfont: { size: 11 }, cliponaxis: false });
    }
    const xaxis = { tickvals: places.map((_, i) => i), ticktext: places.map(({ group }) => ticked(group, element.clientWidth / places.length)), tickangle: 0, range: [-0.5, places.length - 0.5] };
    const yaxis = metric.share ? { range: [0, 1.08], tickformat: ".0%" } : { range: [0, 1.14 * Math.max(...values)] };
    return drawing(traces, { ...layoutOf(240, { xaxis, yaxis }), barmode: "group", bargap: 0.3, bargroupgap: 0.06 });
  }

  // Lines against load. What has no number on the axis (inf) stands apart at its end, and is not joined.

  function placesOf({ kind, places: given }) {
    const own = given.map(([index, at]) => ({ index, at }));
    const numbers = own.map(({ at }) => at).filter(known);
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const log = numbers.length > 1 && low > 0 && (kind === "rate" ? high / low > 100 : high / low >= 8);
    const beyond = log ? high * Math.max(2, (high / low) ** 0.2) : high + Math.max(0.15 * (high - low), 0.15 * high);
    const placed = own.map((place) => ({ ...place, x: known(place.at) ? place.at : beyond, apart: !known(place.at) }));
    return { log, places: numbers.length ? placed.sort((a, b) => a.x - b.x) : placed.map((place, i) => ({ ...place, x: i })) };
  }

  function loadAxis({ log, places }, kind) {
    const seen = new Map(places.map((place) => [place.x, place.apart ? "inf" : place.at.toLocaleString("en")]));
    const [low, high] = [places[0].x, places.at(-1).x];
    const range = log ? [Math.log10(low) - 0.05 * Math.log10(high / low), Math.log10(high) + 0.05 * Math.log10(high / low)] : [low - 0.05 * (high - low), high + 0.05 * (high - low)];
    return { type: log ? "log" : "linear", range, tickvals: [...seen.keys()], ticktext: [...seen.values()], title: { text: AXES[kind], standoff: 6 } };
  }

  function lines(element) {
    const course = courses[element.dataset.course];
    const keys = element.dataset.metrics.split(" ").filter((key) => metrics[key]);
    const axis = placesOf(course);
    const traces = keys.flatMap((key, style) => shown().flatMap((side) => linesOf(metrics[key], side, axis.places, DASHES[style])));
    if (!traces.length) return missing(keys.length ? "No side that is shown has this metric." : NOT_DRAWN);
    const yaxis = metrics[keys[0]].share ? { range: [Math.min(0.95, ...reachOf(traces)) - 0.03, 1.015], tickformat: ".0%" } : valueAxis(reachOf(traces), state.scale);
    return drawing(traces, layoutOf(260, { xaxis: loadAxis(axis, course.kind), yaxis }));
  }

  // A course and, apart from it, what stands at inf.
  const parts = (marks) => [marks.filter((mark) => !mark.apart), marks.filter((mark) => mark.apart)].filter((part) => part.length);
  const linesOf = (metric, side, places, dash) => parts(marksOf(metric, side, places)).map((part) => ({ ...lineTrace(metric, side, part, dash), x: part.map((mark) => mark.x) }));

  function lineTrace(metric, side, marks, dash) {
    const color = colourOf(side);
    const trace = traceOf(metric, side, marks);
    return {
      ...trace, type: "scatter", mode: "lines+markers", cliponaxis: false, line: { color, width: 1.8, dash }, error_y: { ...trace.error_y, color },
      marker: { color: dash === "solid" ? color : style("--paper"), size: 8, symbol: MARKS[side % MARKS.length], line: { color, width: 1.6 } },
    };
  }

  // Latency against throughput: a line goes through the loads in their order.

  function curve(element) {
    const [across, up] = element.dataset.metrics.split(" ").map((key) => metrics[key]);
    if (!across || !up) return missing(NOT_DRAWN);
    const { places } = placesOf(courses[element.dataset.course]);
    const named = places.length <= LABELS_MAX / 2;
    const traces = shown().flatMap((side, place) => parts(marksOf(up, side, places).filter((mark) => known(across.rows[mark.index]?.[side][0]))).map((marks) => ({
      ...lineTrace(up, side, marks, "solid"), x: marks.map((mark) => across.rows[mark.index][side][0]), mode: named && place === 0 ? "lines+markers+text" : "lines+markers",
      text: marks.map((mark) => (mark.apart ? "inf" : mark.at.toLocaleString("en"))), textposition: "bottom right", textfont: { size: 10 },
    })));
    if (!traces.length) return missing("No side that is shown has both metrics.");
    const most = 1.06 * Math.max(...traces.flatMap((trace) => trace.x));
    const xaxis = { range: [0, most], title: { text: escaped(across.unit), standoff: 6 } };
    const yaxis = valueAxis(reachOf(traces), state.scale);
    if (!yaxis.type && yaxis.range) yaxis.range[1] *= 1.05;
    return drawing(traces, layoutOf(260, { xaxis, yaxis }));
  }

  const paint = painter({ bars, lines, curve });

  // The reader's choice.

  function sideBox(label, side) {
    const box = node("input", { type: "checkbox", name: "side", value: String(side), checked: true });
    box.addEventListener("change", () => { state.shown[box.checked ? "add" : "delete"](side); paint(); });
    const element = node("label", {}, box, label);
    element.dataset.stage = String(side);
    return element;
  }

  function repaint() {
    for (const label of document.querySelectorAll("#selector [data-stage]")) label.style.setProperty("--swatch", colourOf(Number(label.dataset.stage)));
    return paint();
  }

  guarded(async () => {
    const scale = radioSet(state, "scale", "lines", { auto: "auto", linear: "linear", log: "log" }, paint);
    document.getElementById("selector").append(node("fieldset", {}, node("legend", { textContent: "sides" }), ...sides.map(sideBox)), scale);
    await start(repaint, "#doubts details, #method details");
  });
})();
