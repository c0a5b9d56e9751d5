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

  // The columns with which a table begins, before its numbers, say what a row is. The first one stays where the table is wider than its
  // box, and those next to it as far as half of the box is left for numbers.
  const LEFT = ["", "--second", "--third", "--fourth"];
  function stay(box) {
    const [heads] = box.querySelector("thead").rows;
    const opens = box.querySelector("table").classList.contains("sessions");
    let stays = 0, left = 0;
    for (const head of heads.cells) {
      const least = opens ? 2 : 1;
      if (stays === LEFT.length || head.classList.contains("number")) break;
      if (stays >= least && left + head.offsetWidth > box.clientWidth / 2) break;
      if (stays) box.style.setProperty(LEFT[stays], `${left}px`);
      left += head.offsetWidth;
      stays += 1;
    }
    box.dataset.stay = Math.max(1, stays);
  }

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
  const widths = new ResizeObserver((entries) => entries.forEach(({ target }) => stay(target.closest(".scroll"))));
  for (const table of document.querySelectorAll(".scroll > table")) {
    widths.observe(table);
    widths.observe(table.parentElement);
  }
  root.dataset.ready = "true";
})();
