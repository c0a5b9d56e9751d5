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

  // Paper is white, and what is folded on the screen belongs to a print.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
    apply("light");
  });
  addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
    apply(chosen);
  });
  document.getElementById("print").addEventListener("click", () => print());

  // Far below, charts wait until they are near: a page with many opens at once.
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      charts.draw(target, data.charts[+target.dataset.chart]);
    }
  }, { rootMargin: "600px" });
  const figures = document.querySelectorAll("figure[data-chart]");
  figures.forEach((figure) => near.observe(figure));
  addEventListener("beforeprint", () => {
    for (const figure of figures) {
      if (figure.querySelector(".u-wrap, .uplot")) continue;
      near.unobserve(figure);
      charts.draw(figure, data.charts[+figure.dataset.chart]);
    }
  });

  if (data.sessions) new sessions.Table(document.getElementById("table"), data.sessions, data.timelines);
  root.dataset.ready = "true";
})();
