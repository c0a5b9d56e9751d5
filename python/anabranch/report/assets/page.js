"use strict";
// Draws what the page's data has, and changes between light and dark.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  let chosen = null;

  function apply(theme) {
    if (theme === null) delete root.dataset.theme;
    else root.dataset.theme = theme;
    charts.redraw();
  }

  function isDark() {
    return chosen === null ? dark.matches : chosen === "dark";
  }

  function label() {
    button.textContent = isDark() ? "Light" : "Dark";
  }

  button.addEventListener("click", () => {
    chosen = isDark() ? "light" : "dark";
    apply(chosen);
    label();
  });
  dark.addEventListener("change", () => {
    apply(chosen);
    label();
  });
  label();

  function draw(figure) {
    near.unobserve(figure);
    if (figure.dataset.drawn) return;
    figure.dataset.drawn = "true";
    const spec = data.charts[+figure.dataset.chart];
    if (spec.kind === "shares") {
      shares.draw(figure, spec);
      figure.append(exporting.buttons(spec.name || "chart", () => exporting.sharesFile(spec.title, spec.note, spec), () => shares.table(spec)));
      return;
    }
    const chart = spec.kind === "map" ? null : charts.draw(figure, spec);
    const svg = () => (chart ? exporting.chartFile(chart, spec) : exporting.mapFile(spec));
    const buttons = exporting.buttons(spec.name || "chart", svg, () => exporting.rowsOf(spec));
    figure.append(buttons);
  }

  // Paper is white, and what is folded on the screen belongs to a print.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
    apply("light");
    figures.forEach(draw);
    exporting.prepare(charts.drawn);
  });
  addEventListener("afterprint", () => {
    exporting.tidy();
    for (const each of folded) each.open = false;
    apply(chosen);
  });
  document.getElementById("print").addEventListener("click", () => print());

  // Far below, charts wait until they are near: a page with many opens at once.
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      draw(target);
    }
  }, { rootMargin: "600px" });
  const figures = document.querySelectorAll("figure[data-chart]");
  // The table first: charts ask it for what they link to.
  if (data.sessions) new sessions.Table(document.getElementById("table"), data.sessions, data.timelines);
  figures.forEach((figure) => near.observe(figure));
  root.dataset.ready = "true";
})();
