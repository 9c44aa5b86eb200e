"use strict";
// A stack's graphs over the time of a run. Legends and their figures are in the page already; this draws the lines.

(() => {
  const { style, colours, escaped, known, layoutOf, drawing, painter, start, guarded } = Plots;
  const DASHES = ["solid", "dot", "dash", "dashdot"];
  const LETTER = 6.2; // px, of the stages' names
  const HEIGHT = 212;
  const FEW = 48;
  const ROW = 12; // px, of names
  const MARGIN = { l: 44, r: 12, t: 18 + ROW, b: 24 };

  const { graphs, stages, step, length } = JSON.parse(document.getElementById("data").textContent);

  // Where hues run out, dashes go on.
  const hue = (i) => colours("--lines")[i % colours("--lines").length];
  const dash = (i) => DASHES[Math.floor(i / colours("--lines").length) % DASHES.length];

  function trace(line, i, unit) {
    const x = line.x ?? line.y.map((_, at) => at * step);
    return {
      type: "scatter", mode: line.x ? "markers" : "lines+markers", name: escaped(line.name), x, y: line.y,
      line: { color: hue(i), width: 1.6, dash: dash(i) }, marker: { color: hue(i), size: line.x ? 6 : dots(line.y) }, connectgaps: false,
      hovertemplate: `%{y:,.4~g}${unit && ` ${unit}`}`,
    };
  }

  // Few values are marked each. Of many, one between two gaps: it is no line, and would not be seen.
  const dots = (y) => y.map((value, i) => (y.length <= FEW || (known(value) && !known(y[i - 1]) && !known(y[i + 1])) ? 4 : 0));

  // Each side has its hue, and goes by turns, or two stages that follow each other would be one.
  const several = stages.some(([, , , side]) => side);
  function shades() {
    return stages.map(([, from, to, side, turn]) => ({
      type: "rect", yref: "paper", y0: 0, y1: 1, x0: from, x1: to, fillcolor: several ? hue(side) : style("--accent"), opacity: turn ? 0.07 : 0.14, line: { width: 0 }, layer: "below",
    }));
  }

  // The longest stages are named first, in a second row where there is no room in the first; a name that would lie over
  // another one there too, or out of the graph, is left out.
  function names(width) {
    const whole = width - MARGIN.l - MARGIN.r;
    const rows = [[], []];
    return [...stages].sort((a, b) => b[2] - b[1] - (a[2] - a[1])).flatMap(([name, from]) => {
      const long = LETTER * (name.length + 1);
      const start = Math.min((from / length) * whole, whole - long);
      const row = rows.findIndex((taken) => !taken.some(([low, high]) => start < high && low < start + long));
      if (start < 0 || row < 0) return [];
      rows[row].push([start, start + long]);
      return [{ x: (start / whole) * length, xanchor: "left", yref: "paper", y: 1, yanchor: "bottom", yshift: row * ROW, text: escaped(name), showarrow: false, font: { size: 10.5 } }];
    });
  }

  function graph(element) {
    const { unit, lines } = graphs[Number(element.dataset.graph)];
    const values = lines.flatMap((line) => line.y.filter(known));
    const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    const axes = { xaxis: { range: [0, length] }, yaxis: { range: [1.08 * low, 1.08 * high || 1], nticks: 5, zeroline: low < 0, zerolinecolor: style("--hairline") } };
    const layout = { ...layoutOf(HEIGHT, axes), margin: MARGIN, hovermode: "x unified", shapes: shades(), annotations: names(element.clientWidth) };
    return drawing(lines.map((line, i) => trace(line, i, unit)), layout);
  }

  function swatches() {
    for (const keys of document.querySelectorAll(".keys")) [...keys.children].forEach((key, i) => key.style.setProperty("--swatch", hue(i)));
  }

  const paint = painter({ graph });

  guarded(() => start(() => { swatches(); return paint(); }, "details"));
})();
