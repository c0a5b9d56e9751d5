"use strict";
// Shares of a whole as bars of filled pieces, a row each: where link time went. They are HTML, so that they print, wrap on a
// narrow screen, and follow light and dark by themselves.

const shares = (() => {
  const { element } = charts;
  // Pale and dark fillings have other colours on dark paper; the names are those of styles.
  const NAMED = { "#cfe0ee": "useful", "#4a4a4a": "down", "#ffffff": "paper" };
  const ANGLES = { "////": [-45], "xxxx": [-45, 45], "....": [90] };

  const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;

  /** How a piece is filled, as a style. */
  function filling([, colour, hatch]) {
    const base = colour in NAMED ? `var(--${NAMED[colour]})` : colour;
    const line = colour === "#ffffff" ? "var(--muted)" : "color-mix(in srgb, var(--paper) 65%, transparent)";
    const lines = (ANGLES[hatch] ?? []).map((angle) => `repeating-linear-gradient(${angle}deg, ${line} 0 1.4px, transparent 1.4px 5px)`);
    return `background: ${[...lines, base].join(", ")}`;
  }

  function bar(row, causes) {
    const pieces = row.parts.filter(([, share]) => share > 0).map(([cause, share, text]) => element("span", { class: "piece", style: `flex-grow: ${share}; ${filling(causes[cause])}`, title: `${percent(share)} ${text}` }));
    return element("div", { class: "stacked", "aria-hidden": "true" }, ...pieces);
  }

  /** The parts in words: new data, then the largest first, and the sum of the smaller ones at the end. */
  function list(row, causes) {
    const [useful, ...lost] = row.parts;
    const rank = ([cause, share]) => (causes[cause][3] ? -1 : share);
    const items = [useful, ...lost.toSorted((a, b) => rank(b) - rank(a))].map(([, share, text]) => element("li", {}, element("b", {}, percent(share)), ` ${text}`));
    return element("ul", {}, ...items);
  }

  /** What each filling means. */
  function legend(causes) {
    const keys = causes.map((cause) => element("span", { class: "series" }, element("span", { class: "fill", style: filling(cause) }), cause[0]));
    return element("div", { class: "keys" }, ...keys);
  }

  /** Draws rows into a place; `more(row)` gives what stands next to a row's name. */
  function draw(place, { causes, rows }, more = () => []) {
    for (const row of rows) {
      place.append(element("div", { class: "shares-row" }, element("p", {}, element("b", {}, row.label), " ", ...more(row)), bar(row, causes), element("p", { class: "quiet" }, row.said), list(row, causes)));
    }
    if (causes.length) place.append(legend(causes));
  }

  const escaped = (text) => String(text).replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);

  /** The rows as parts of an SVG, and its legend: what `exporting.sharesFile` puts together. */
  function pieces({ causes, rows }, width) {
    const marks = { "////": ["M0 6L6 0"], "xxxx": ["M0 6L6 0", "M0 0L6 6"], "....": ["M3 0V6"] };
    const patterns = causes.map(([, colour, hatch], i) => {
      const lines = (marks[hatch] ?? []).map((d) => `<path d="${d}" stroke="${colour === "#ffffff" ? "#63625c" : "#fdfdfb"}" stroke-width="1"/>`).join("");
      return `<pattern id="cause${i}" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" fill="${colour}"/>${lines}</pattern>`;
    });
    const parts = rows.map((row) => {
      const whole = row.parts.reduce((sum, [, share]) => sum + share, 0) || 1;
      let x = 0;
      const rects = row.parts.map(([cause, share, text]) => {
        const size = (share / whole) * (width - 4);
        const rect = `<rect x="${(x + 2).toFixed(2)}" y="4" width="${size.toFixed(2)}" height="16" fill="url(#cause${cause})" stroke="#fdfdfb" stroke-width="0.6"><title>${escaped(`${percent(share)} ${text}`)}</title></rect>`;
        x += size;
        return rect;
      });
      return { head: `${row.label}: ${percent(row.parts[0][1])} ${row.parts[0][2]}`, inner: rects.join(""), height: 26 };
    });
    return { defs: `<defs>${patterns.join("")}</defs>`, parts, legend: causes.map(([name], i) => ({ name, colour: `url(#cause${i})`, dash: [], box: true })) };
  }

  const table = ({ causes, rows }) => [["explained", "cause", "part", "share"], ...rows.flatMap((row) => row.parts.map(([cause, share, text]) => [row.label, causes[cause][0], text, share]))];

  return { draw, pieces, table };
})();
