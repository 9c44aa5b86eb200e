"use strict";
// What the charts of all pages share: colours, axes, layout, drawing, controls.
// It knows no markup from outside: names reach the page as text nodes, and Plotly as escaped strings.

const Plots = (() => {
  const CONFIG = { displayModeBar: false, responsive: false, doubleClick: "reset" };
  const LOG_FROM = 30; // largest / smallest of what is shown, from which equal steps hide the small ones
  const root = document.documentElement;

  // Colours stand in the style sheet, so that dark, light and print need no second list.

  const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colours = (name) => style(name).split(/\s+/);
  const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const known = (value) => value !== null && value !== undefined;

  // Axes and layout. A margin on both sides keeps lines and marks whole at the edges.

  function steps(low, high) {
    const values = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      for (const digit of high / low > 300 ? [1] : [1, 2, 5]) values.push(digit * 10 ** power);
    }
    return values;
  }

  function valueAxis(values, scale) {
    const positive = values.filter((value) => value > 0);
    if (!positive.length) return { rangemode: "tozero" };
    const [low, high] = [Math.min(...positive), Math.max(...positive)];
    if (!(scale === "log" || (scale === "auto" && high / low > LOG_FROM))) return { range: [0, 1.05 * high] };
    const ticks = steps(low, high);
    const margin = 0.04 * Math.log10(high / low) + 0.03;
    const range = [Math.log10(low) - margin, Math.log10(high) + margin];
    return { type: "log", range, tickvals: ticks, ticktext: ticks.map((value) => value.toLocaleString("en")) };
  }

  function layoutOf(height, axes) {
    const axis = {
      gridcolor: style("--grid"), linecolor: style("--hairline"), zeroline: false, automargin: true, ticks: "",
      separatethousands: true, exponentformat: "none", title: { standoff: 8 }, fixedrange: false,
    };
    return {
      height, margin: { l: 44, r: 12, t: 8, b: 34 }, hovermode: "closest", showlegend: false, separators: ".,",
      font: { family: style("--sans"), size: 12, color: style("--muted") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: "zoom",
      hoverlabel: { align: "left", bgcolor: style("--paper"), bordercolor: style("--hairline"), font: { color: style("--ink"), family: style("--sans") } },
      ...axes, xaxis: { ...axis, showgrid: false, showline: true, ...axes.xaxis }, yaxis: { ...axis, ...axes.yaxis },
    };
  }

  // A chart is a function of its element; it comes to a drawing, or to the sentence that stands in its place.

  const drawing = (traces, layout) => ({ traces, layout });
  const missing = (sentence) => ({ sentence });

  function draw(charts, element) {
    const chart = charts[element.dataset.chart](element);
    if (chart.sentence) {
      Plotly.purge(element);
      element.replaceChildren(node("p", { className: "empty", textContent: chart.sentence }));
      return Promise.resolve();
    }
    element.querySelector(".empty")?.remove();
    return Plotly.react(element, chart.traces, { ...chart.layout, width: Math.floor(element.clientWidth) }, CONFIG);
  }

  // What is folded away has no width yet: it is drawn when it is opened.
  const visible = (element) => element.clientWidth > 0;

  // Plotly ends a drawing later than it returns, and must not be asked for another before.
  function painter(charts) {
    let running = null;
    let again = false;

    async function once() {
      const plots = [...document.querySelectorAll(".plot")].filter(visible);
      await Promise.all(plots.map((element) => draw(charts, element)));
      root.dataset.charts = plots.every((plot) => plot.childElementCount) ? "drawn" : "failed";
    }

    return function paint() {
      again = running !== null;
      running ??= once().finally(() => {
        running = null;
        return again ? paint() : undefined;
      });
      return running;
    };
  }

  // Controls.

  const node = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  function radioSet(state, key, legend, choices, changed) {
    const buttons = Object.entries(choices).map(([value, title]) => {
      const radio = node("input", { type: "radio", name: key, value, checked: value === state[key] });
      radio.addEventListener("change", () => { state[key] = value; changed(); });
      return node("label", {}, radio, title);
    });
    return node("fieldset", {}, node("legend", { textContent: legend }), ...buttons);
  }

  function name(plot) {
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", `Chart: ${plot.previousElementSibling.textContent}. Its numbers are in the tables.`);
  }

  // Draws now, and again whenever colours, width or medium change. ``printing`` opens what paper cannot unfold.
  function start(paint, printing) {
    document.querySelectorAll(".plot").forEach(name);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
    const print = (on) => {
      root.classList.toggle("printing", on);
      if (on) for (const details of document.querySelectorAll(printing)) details.open = true;
      paint();
    };
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    let wait = 0;
    addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(paint, 120); });
    for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", () => { if (details.querySelector(".plot")) paint(); });
    return paint();
  }

  const guarded = (begin) => {
    begin().catch((error) => {
      root.dataset.charts = "failed";
      throw error;
    });
  };

  return { style, colours, escaped, known, valueAxis, layoutOf, drawing, missing, painter, node, radioSet, start, guarded };
})();
