"use strict";
// Charts: lines, distributions and intervals, drawn with uPlot, that zoom, show values, and can be used by keyboard.

const charts = (() => {
  const DASHES = [[], [7, 3], [2, 3]];
  const ZOOM = 1.6;
  const drawn = new Set();

  /** A colour of the page's styles, which differ between light and dark. */
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const pathColour = (place) => ink(`c${place % 6}`);
  const faded = (colour, share) => `color-mix(in srgb, ${colour} ${share * 100}%, transparent)`;
  const font = (size) => `${size}px ${ink("sans")}`;

  /** A number with so many significant digits, without an exponent where people would not write one. */
  function written(value, digits = 3) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (value === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(value)));
    if (size >= 7 || size < -4) return value.toExponential(2);
    return value.toFixed(Math.max(0, Math.min(digits - 1 - size, 6))).replace("-", "−");
  }

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "on") for (const [event, call] of Object.entries(value)) made.addEventListener(event, call);
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children);
    return made;
  }

  /** A piece of a line as it is drawn, for legends: colour and dashes. */
  function swatch(colour, dash, filled = false) {
    const dashes = DASHES[dash % DASHES.length].join(" ");
    const made = element("span", { class: "swatch", "aria-hidden": "true" });
    const shape = filled
      ? `<rect x="1" y="2" width="20" height="8" fill="var(--${colour})" opacity=".35"/>`
      : `<line x1="1" y1="6" x2="21" y2="6" stroke="var(--${colour})" stroke-width="2.2" stroke-dasharray="${dashes}"/>`;
    made.innerHTML = `<svg width="22" height="12" viewBox="0 0 22 12">${shape}</svg>`;
    return made;
  }

  const axis = (label, more = {}) => ({
    stroke: ink("muted"),
    font: font(11),
    labelFont: font(11.5),
    label,
    labelSize: label ? 18 : 0,
    labelGap: 2,
    gap: 4,
    size: 30,
    grid: { stroke: ink("grid"), width: 1 },
    ticks: { show: false },
    ...more,
  });
  const ticks = (_, splits) => splits.map((value) => (value === null ? "" : String(+value.toPrecision(6)).replace("-", "−")));

  /** The options that all charts have in common. */
  const common = (height) => ({
    height,
    padding: [10, 14, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: true, dist: 6 },
      focus: { prox: -1 },
    },
  });

  /**
   * A chart in a container: made again when colours change, as wide as its container, with zoom by mouse, keys and
   * buttons.
   *
   * `make` gives { options, data, shown(plot), step(plot, by), extent } of the present colours.
   */
  class Chart {
    constructor(container, label, make, tools = true) {
      this.make = make;
      this.container = container;
      this.readout = element("div", { class: "readout", "aria-live": "polite" });
      this.frame = element("div", {
        class: "frame",
        tabindex: "0",
        role: "group",
        "aria-label": `${label}. Arrow keys show values, plus and minus zoom, 0 shows all.`,
        on: { keydown: (event) => this.key(event) },
      });
      container.append(this.frame);
      if (tools) container.append(this.tools());
      container.append(this.readout);
      this.build();
      this.observer = new ResizeObserver(() => this.fit());
      this.observer.observe(this.frame);
      drawn.add(this);
    }

    build() {
      const range = this.plot ? { ...this.plot.scales.x } : null;
      this.plot?.destroy();
      const made = this.make(this);
      this.made = made;
      made.options.width = this.width();
      this.plot = new uPlot(made.options, made.data, this.frame);
      this.plot.over.addEventListener("dblclick", () => this.reset());
      if (range && range.min !== null) this.zoomTo(range.min, range.max);
    }

    width() {
      return Math.max(Math.floor(this.frame.clientWidth), 220);
    }

    fit() {
      if (this.plot && this.width() !== this.plot.width) this.plot.setSize({ width: this.width(), height: this.plot.height });
    }

    remove() {
      this.observer.disconnect();
      this.plot.destroy();
      drawn.delete(this);
    }

    get extent() {
      return this.made.extent;
    }

    zoomTo(min, max) {
      const [low, high] = this.extent;
      this.plot.setScale("x", { min: Math.max(min, low), max: Math.min(max, high) });
    }

    zoom(by) {
      const { min, max } = this.plot.scales.x;
      const cursor = this.plot.cursor.left;
      const centre = cursor >= 0 ? this.plot.posToVal(cursor, "x") : (min + max) / 2;
      this.zoomTo(centre - (centre - min) * by, centre + (max - centre) * by);
    }

    reset() {
      this.zoomTo(...this.extent);
    }

    tools() {
      const button = (text, label, call) =>
        element("button", { type: "button", "aria-label": label, title: label, on: { click: call } }, text);
      return element(
        "div",
        { class: "zoom" },
        button("+", "Zoom in", () => this.zoom(1 / ZOOM)),
        button("−", "Zoom out", () => this.zoom(ZOOM)),
        button("⤢", "Show all", () => this.reset()),
      );
    }

    key(event) {
      const keys = {
        ArrowLeft: () => this.made.step(this.plot, -1, "x"),
        ArrowRight: () => this.made.step(this.plot, 1, "x"),
        ArrowUp: () => this.made.step(this.plot, -1, "y"),
        ArrowDown: () => this.made.step(this.plot, 1, "y"),
        "+": () => this.zoom(1 / ZOOM),
        "=": () => this.zoom(1 / ZOOM),
        "-": () => this.zoom(ZOOM),
        0: () => this.reset(),
        Escape: () => this.reset(),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      // Up and down scroll the page where a chart has nothing to step through.
      if (keys[event.key]() !== false) event.preventDefault();
    }
  }

  /** Moves the cursor of a chart to the next of its points. */
  function stepAlong(plot, by) {
    const xs = plot.data[0];
    const { min, max } = plot.scales.x;
    let at = plot.cursor.idx;
    at = at === null || at === undefined ? xs.findIndex((x) => x >= min) : at + by;
    while (at > 0 && at < xs.length - 1 && xs[at] === xs[at - by]) at += by;
    if (at < 0 || at >= xs.length || xs[at] < min || xs[at] > max) return;
    plot.setCursor({ left: plot.valToPos(xs[at], "x"), top: plot.bbox.height / 2 / devicePixelRatio });
  }

  // --- Lines and distributions --------------------------------------------------------------------------------------

  /** The value of a line at x: that of its last point before it if it is stepped, or else that of the nearest. */
  function valueAt(line, x, stepped) {
    let low = 0;
    let high = line.x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (line.x[middle] <= x) low = middle + 1;
      else high = middle;
    }
    if (stepped) return low === 0 ? 0 : low - 1;
    if (low === 0) return 0;
    if (low === line.x.length) return low - 1;
    return x - line.x[low - 1] < line.x[low] - x ? low - 1 : low;
  }

  /** Lines with the same places on a categorical axis stand beside each other. */
  function dodged(spec) {
    if (!spec.categories.length) return spec.lines;
    const step = Math.min(0.5 / spec.lines.length, 0.1);
    return spec.lines.map((line, i) => ({ ...line, x: line.x.map((x) => x + (i - (spec.lines.length - 1) / 2) * step) }));
  }

  function extentOf(lines) {
    const xs = lines.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]).filter((x) => x !== undefined);
    const [low, high] = [Math.min(...xs), Math.max(...xs)];
    return low === high ? [low - 1, high + 1] : [low, high];
  }

  function whiskers(plot, lines, hidden) {
    const { ctx } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    ctx.clip();
    // What the grid was drawn with still holds.
    ctx.setLineDash([]);
    ctx.lineWidth = 1.4 * devicePixelRatio;
    lines.forEach((line, number) => {
      if (!line.low || hidden.has(number)) return;
      ctx.strokeStyle = pathColour(line.colour);
      line.x.forEach((x, i) => {
        if (line.low[i] === null || line.high[i] === null) return;
        const left = plot.valToPos(x, "x", true);
        ctx.beginPath();
        ctx.moveTo(left, plot.valToPos(line.low[i], "y", true));
        ctx.lineTo(left, plot.valToPos(line.high[i], "y", true));
        ctx.stroke();
      });
    });
    ctx.restore();
  }

  /** What names the lines, hides them, and shows their values. */
  function lineLegend(lines, toggled) {
    const values = lines.map(() => element("span", { class: "value" }));
    const items = lines.map((line, number) => {
      const button = element("button", { type: "button", "aria-pressed": "true", title: "Show or hide" }, swatch(`c${line.colour}`, line.dash), line.name);
      button.addEventListener("click", () => button.setAttribute("aria-pressed", String(toggled(number))));
      return element("li", {}, button, values[number]);
    });
    return { list: element("ul", { class: "legend" }, ...items), values, place: element("span", { class: "at" }) };
  }

  /** Writes the values at the cursor into the legend. */
  function showLines(plot, spec, { values, place }) {
    const { left } = plot.cursor;
    if (left < 0 || left === undefined) {
      place.textContent = "";
      values.forEach((value) => (value.textContent = ""));
      return;
    }
    let x = plot.posToVal(left, "x");
    if (spec.categories.length) x = Math.min(Math.max(Math.round(x), 0), spec.categories.length - 1);
    place.textContent = `${spec.x}: ${spec.categories.length ? spec.categories[x] : written(x, 4)}`;
    spec.lines.forEach((line, number) => {
      const at = valueAt(line, x, spec.stepped);
      const before = spec.stepped && x < line.x[0];
      const ends = line.low?.[at] === null || !line.low ? "" : ` (${written(line.low[at])} to ${written(line.high[at])})`;
      values[number].textContent = before ? "0" : `${written(line.y[at])}${ends}`;
    });
  }

  function lineScales(spec, lines, whole) {
    const highs = lines.flatMap((line) => line.high ?? []).filter((y) => y !== null);
    const lows = lines.flatMap((line) => line.low ?? []).filter((y) => y !== null);
    const fitted = (_, min, max) => uPlot.rangeNum(Math.min(min, ...lows), Math.max(max, ...highs), 0.08, true);
    return {
      x: { time: false, range: (_, min, max) => (min === null ? whole : [min, max]), min: whole[0], max: whole[1] },
      y: { range: spec.stepped ? [0, 1.02] : fitted },
    };
  }

  function lineSeries(spec, line, shown) {
    const colour = pathColour(line.colour);
    return {
      label: line.name,
      stroke: colour,
      width: 1.8,
      dash: DASHES[line.dash % DASHES.length],
      spanGaps: true,
      show: shown,
      paths: spec.stepped ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
      points: spec.stepped ? { show: false } : { show: true, size: 6, fill: colour, stroke: colour },
    };
  }

  function lineAxes(spec) {
    const named = { values: (_, splits) => splits.map((x) => spec.categories[x] ?? ""), splits: () => spec.categories.map((_, i) => i), grid: { show: false } };
    return [axis(spec.x, spec.categories.length ? named : { values: ticks, space: 55 }), axis(spec.y, { size: 46, values: ticks, space: 34 })];
  }

  function lineChart(figure, spec) {
    const lines = dodged(spec);
    const hidden = new Set();
    const legend = lineLegend(lines, (number) => {
      if (!hidden.delete(number)) hidden.add(number);
      chart.plot.setSeries(number + 1, { show: !hidden.has(number) });
      return !hidden.has(number);
    });
    const extent = extentOf(lines);
    const pad = spec.categories.length ? 0.4 : (extent[1] - extent[0]) * 0.02;
    const whole = [extent[0] - pad, extent[1] + pad];
    const make = () => ({
      extent: whole,
      step: (plot, by, way) => (way === "x" ? stepAlong(plot, by) : false),
      data: uPlot.join(lines.map((line) => [line.x, line.y])),
      options: {
        ...common(spec.stepped ? 270 : 290),
        scales: lineScales(spec, lines, whole),
        axes: lineAxes(spec),
        series: [{}, ...lines.map((line, number) => lineSeries(spec, line, !hidden.has(number)))],
        hooks: { draw: [(plot) => whiskers(plot, lines, hidden)], setCursor: [(plot) => showLines(plot, spec, legend)] },
      },
    });
    const chart = new Chart(figure.querySelector(".plot"), spec.title, make);
    chart.readout.append(legend.place, legend.list);
    if (spec.view) chart.zoomTo(...spec.view);
    // Values of all lines at each move would be too much to listen to.
    chart.readout.setAttribute("aria-live", "off");
    return chart;
  }

  // --- Intervals ----------------------------------------------------------------------------------------------------

  const ROW = 24;
  const TONES = { good: "good", bad: "bad", same: "same", open: "open", plain: "ink" };

  function intervalExtent(spec) {
    const values = spec.items.flatMap((item) => [item.low, item.high, item.at]);
    const margin = spec.margin ?? 0;
    const low = Math.min(0, -margin, ...values);
    const high = Math.max(0, margin, ...values);
    const pad = (high - low || 1) * 0.05;
    return [low - pad, high + pad];
  }

  function textWidth(texts) {
    const context = element("canvas").getContext("2d");
    context.font = font(12);
    return Math.max(...texts.map((text) => context.measureText(text).width));
  }

  function drawIntervals(plot, spec) {
    const { ctx, bbox } = plot;
    const pixel = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    // What the grid was drawn with still holds.
    ctx.setLineDash([]);
    const zero = plot.valToPos(0, "x", true);
    if (spec.margin) {
      ctx.fillStyle = faded(ink("same"), 0.13);
      const [a, b] = [plot.valToPos(-spec.margin, "x", true), plot.valToPos(spec.margin, "x", true)];
      ctx.fillRect(a, bbox.top, b - a, bbox.height);
    }
    ctx.strokeStyle = ink("muted");
    ctx.lineWidth = pixel;
    ctx.beginPath();
    ctx.moveTo(zero, bbox.top);
    ctx.lineTo(zero, bbox.top + bbox.height);
    ctx.stroke();
    spec.items.forEach((item, row) => {
      const y = plot.valToPos(spec.items.length - 1 - row, "y", true);
      const x = plot.valToPos(item.at, "x", true);
      const colour = ink(TONES[item.tone]);
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = 2 * pixel;
      if (item.low !== item.high) {
        const [a, b] = [plot.valToPos(item.low, "x", true), plot.valToPos(item.high, "x", true)];
        ctx.beginPath();
        ctx.moveTo(a, y);
        ctx.lineTo(b, y);
        for (const end of [a, b]) {
          ctx.moveTo(end, y - 4 * pixel);
          ctx.lineTo(end, y + 4 * pixel);
        }
        ctx.stroke();
      }
      marker(ctx, x, y, 4.4 * pixel, item.tone);
    });
    ctx.restore();
  }

  /** The shape says the verdict, too: colours differ for not everybody. */
  function marker(ctx, x, y, size, tone) {
    ctx.beginPath();
    if (tone === "good" || tone === "bad") {
      const up = tone === "good" ? -1 : 1;
      ctx.moveTo(x, y + up * size * 1.2);
      ctx.lineTo(x + size * 1.1, y - up * size * 0.9);
      ctx.lineTo(x - size * 1.1, y - up * size * 0.9);
    } else if (tone === "same") ctx.rect(x - size * 0.85, y - size * 0.85, size * 1.7, size * 1.7);
    else ctx.arc(x, y, size, 0, 2 * Math.PI);
    ctx.closePath();
    if (tone === "open") {
      ctx.save();
      ctx.fillStyle = ink("paper");
      ctx.fill();
      ctx.restore();
      ctx.stroke();
    } else ctx.fill();
  }

  /** The estimates in ascending order, and their rows: what is drawn comes from the items themselves. */
  function intervalData(spec) {
    const order = spec.items.map((_, i) => i).sort((a, b) => spec.items[a].at - spec.items[b].at);
    return [order.map((i) => spec.items[i].at), order.map((i) => spec.items.length - 1 - i)];
  }

  function intervalAxes(spec, room) {
    const last = spec.items.length - 1;
    const labels = Math.min(textWidth(spec.items.map((item) => item.label)) + 14, room * 0.42);
    return [
      axis(textWidth([spec.x]) < room - labels ? spec.x : spec.short, { values: ticks, space: 60 }),
      axis(null, {
        size: labels,
        font: font(12),
        stroke: ink("ink"),
        splits: () => spec.items.map((_, i) => i),
        values: (_, splits) => splits.map((y) => clipped(spec.items[last - y]?.label ?? "", labels)),
        grid: { stroke: ink("grid"), width: 1, dash: [1, 4] },
      }),
    ];
  }

  function intervalChart(figure, spec) {
    const rows = spec.items.length;
    const extent = intervalExtent(spec);
    let hot = null;
    const band = element("div", { class: "hot", hidden: true });
    const make = () => ({
      extent,
      step: (plot, by, way) => (way === "y" ? pick(plot, hot === null ? 0 : Math.min(Math.max(hot + by, 0), rows - 1)) : undefined),
      data: intervalData(spec),
      options: {
        ...common(rows * ROW + 66),
        cursor: { ...common(0).cursor, x: false },
        scales: {
          x: { time: false, range: (_, min, max) => (min === null ? extent : [min, max]), min: extent[0], max: extent[1] },
          y: { range: [-0.7, rows - 0.3] },
        },
        axes: intervalAxes(spec, figure.clientWidth || 600),
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: {
          draw: [(plot) => drawIntervals(plot, spec)],
          ready: [(plot) => plot.over.append(band)],
          setCursor: [(plot) => follow(plot)],
        },
      },
    });

    function follow(plot) {
      const { left, top } = plot.cursor;
      if (left < 0 || top < 0) return;
      const row = rows - 1 - Math.round(plot.posToVal(top, "y"));
      if (row >= 0 && row < rows && row !== hot) pick(plot, row);
    }

    function pick(plot, row) {
      hot = row;
      const item = spec.items[row];
      const middle = plot.valToPos(rows - 1 - row, "y");
      band.hidden = false;
      band.style.top = `${middle - ROW / 2}px`;
      band.style.height = `${ROW}px`;
      chart.readout.textContent = `${item.label}: ${item.verdict}; ${item.note}`;
    }

    const chart = new Chart(figure.querySelector(".plot"), spec.title, make);
    chart.readout.classList.add("one");
    chart.readout.textContent = spec.margin ? "Shaded: differences without practical meaning." : "";
    return chart;
  }

  function clipped(text, width) {
    const most = Math.max(Math.floor(width / 6.2), 6);
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  }

  function draw(figure, spec) {
    return spec.kind === "intervals" ? intervalChart(figure, spec) : lineChart(figure, spec);
  }

  /** Draws all charts again, with the colours of now. */
  function redraw() {
    for (const chart of drawn) chart.build();
  }

  return { Chart, DASHES, axis, common, draw, element, faded, font, ink, pathColour, redraw, stepAlong, swatch, ticks, valueAt, written };
})();
