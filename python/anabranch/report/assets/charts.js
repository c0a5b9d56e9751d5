"use strict";
// Charts: lines, distributions and intervals, drawn with uPlot, that zoom, show values, and can be used by keyboard.

const charts = (() => {
  const DASHES = [[], [7, 3], [2, 3]];
  // What the table of sessions does not show is so faint in a chart.
  const PALE = 0.16;
  const ZOOM = 1.6;
  // A pointer that moves no further has clicked, and one no further from a point means it; in pixels.
  const CLICK = 5;
  const NEAR = 14;
  const drawn = new Set();

  /** A colour of the page's styles, which differ between light and dark. */
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const pathColour = (place) => ink(`c${place % 6}`);
  const faded = (colour, share) => `rgba(${[1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)).join(", ")}, ${share})`;
  /** A font of whole pixels: on a screen of two pixels per pixel, uPlot would draw 11.5px as 11.10px. */
  const font = (size) => `${Math.round(size)}px ${ink("sans")}`;

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
  function swatch(colour, dash, filled = false, dotted = false) {
    const dashes = DASHES[dash % DASHES.length].join(" ");
    const made = element("span", { class: "swatch", "aria-hidden": "true" });
    const shape = filled
      ? `<rect x="1" y="2" width="20" height="8" fill="var(--${colour})" opacity=".35"/>`
      : `<line x1="1" y1="6" x2="21" y2="6" stroke="var(--${colour})" stroke-width="2.2" stroke-dasharray="${dashes}"/>`;
    const point = [`<circle cx="11" cy="6" r="4"/>`, `<rect x="7.2" y="2.2" width="7.6" height="7.6"/>`, `<path d="M11 1l4.6 9h-9.2z"/>`][dash % DASHES.length];
    const drawn = dotted ? `<g fill="var(--${colour})">${point}</g>` : shape;
    made.innerHTML = `<svg width="22" height="12" viewBox="0 0 22 12">${drawn}</svg>`;
    return made;
  }

  const axis = (label, more = {}) => ({
    stroke: ink("muted"),
    font: font(11),
    labelFont: font(11),
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
   * `make(chart, width)` gives { options, data, step(plot, by), extent } of the present colours; exports call it, too.
   * `choose(plot)`, if there is one, chooses what is under the cursor.
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
      this.buttons = tools ? this.tools() : null;
      if (tools) container.append(this.buttons);
      container.append(this.readout);
      this.build();
      this.observer = new ResizeObserver(() => this.fit());
      this.observer.observe(this.frame);
      drawn.add(this);
    }

    build() {
      const range = this.plot ? { ...this.plot.scales.x } : null;
      this.plot?.destroy();
      const made = this.make(this, this.width());
      this.made = made;
      made.options.width = this.width();
      this.plot = new uPlot(made.options, made.data, this.frame);
      this.plot.over.addEventListener("dblclick", () => this.reset());
      let pressed = null;
      this.plot.over.addEventListener("mousedown", (event) => (pressed = [event.clientX, event.clientY]));
      // The end of a drag is no choice.
      this.plot.over.addEventListener("click", (event) => {
        if (pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) < CLICK) made.choose?.(this.plot);
      });
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
      // At once: a print that begins now takes the range from the plot.
      this.plot.batch(() => this.plot.setScale("x", { min: Math.max(min, low), max: Math.min(max, high) }));
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
        Enter: () => this.made.choose?.(this.plot) ?? false,
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

  /** Lines with the same places on a categorical axis stand next to each other. */
  function dodged(spec) {
    if (!spec.categories.length) return spec.lines;
    const step = Math.min(0.6 / spec.lines.length, 0.14);
    return spec.lines.map((line, i) => ({ ...line, x: line.x.map((x) => x + (i - (spec.lines.length - 1) / 2) * step) }));
  }

  function extentOf(lines) {
    const xs = lines.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]).filter((x) => x !== undefined);
    const [low, high] = [Math.min(...xs), Math.max(...xs)];
    return low === high ? [low - 1, high + 1] : [low, high];
  }

  /** Draws within the panel, whatever the grid was drawn with. */
  function within(plot, call) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.setLineDash([]);
    call(ctx);
    ctx.restore();
  }

  /** Where a point of a line stands among the sessions. */
  const condition = (spec, line, x) => {
    const labels = { ...spec.where, ...line.labels };
    if (!spec.stepped) labels[spec.axis] = spec.categories.length ? spec.categories[Math.round(x)] : x;
    return labels;
  };

  /** Points with their intervals; those that the table of sessions does not show are pale. */
  function dots(ctx, plot, spec, lines, hidden) {
    ctx.lineWidth = 1.4 * devicePixelRatio;
    lines.forEach((line, number) => {
      if (hidden.has(number)) return;
      ctx.strokeStyle = ctx.fillStyle = pathColour(line.colour);
      line.x.forEach((x, i) => {
        if (line.y[i] === null) return;
        const labels = condition(spec, line, spec.lines[number].x[i]);
        ctx.globalAlpha = brush.stands(labels) ? 1 : PALE;
        const [left, top] = [plot.valToPos(x, "x", true), plot.valToPos(line.y[i], "y", true)];
        if (line.low && line.low[i] !== null && line.high[i] !== null) {
          ctx.beginPath();
          ctx.moveTo(left, plot.valToPos(line.low[i], "y", true));
          ctx.lineTo(left, plot.valToPos(line.high[i], "y", true));
          ctx.stroke();
        }
        dot(ctx, left, top, line.dash, brush.holds(labels));
      });
    });
  }

  /** A point; what tells lines of one colour apart by dashes does so by shape here. */
  function dot(ctx, x, y, shape, strong) {
    const size = (strong ? 5 : 3.4) * devicePixelRatio;
    ctx.beginPath();
    if (shape % DASHES.length === 1) ctx.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
    else if (shape % DASHES.length === 2) {
      ctx.moveTo(x, y - size * 1.25);
      ctx.lineTo(x + size * 1.2, y + size * 0.9);
      ctx.lineTo(x - size * 1.2, y + size * 0.9);
      ctx.closePath();
    } else ctx.arc(x, y, size, 0, 2 * Math.PI);
    ctx.fill();
  }

  /** Below a distribution: the values of the sessions that the table shows; across it that under the pointer. */
  function rug(ctx, plot, spec, hidden) {
    const { bbox } = plot;
    const upright = (value, from) => {
      const x = plot.valToPos(value, "x", true);
      ctx.beginPath();
      ctx.moveTo(x, from);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    };
    spec.lines.forEach((line, number) => {
      if (hidden.has(number)) return;
      const labels = condition(spec, line);
      ctx.strokeStyle = pathColour(line.colour);
      ctx.lineWidth = 1.4 * devicePixelRatio;
      for (const value of brush.values(spec.axis, labels)) upright(value, bbox.top + bbox.height - 9 * devicePixelRatio);
      const pointed = brush.pointedAt(spec.axis, labels);
      ctx.lineWidth = 2 * devicePixelRatio;
      if (pointed !== null) upright(pointed, bbox.top);
    });
  }

  /** What names the lines, hides them, and shows their values. */
  function lineLegend(lines, dotted, toggled) {
    const values = lines.map(() => element("span", { class: "value" }));
    const items = lines.map((line, number) => {
      const button = element("button", { type: "button", "aria-pressed": "true", title: "Show or hide" }, swatch(`c${line.colour}`, line.dash, false, dotted), line.name);
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
      x: { time: false, distr: spec.logarithmic ? 3 : 1, range: (_, min, max) => (min === null ? whole : [min, max]), min: whole[0], max: whole[1] },
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
      alpha: !spec.stepped || brush.stands(condition(spec, line)) ? 1 : PALE,
      // Between categories there is nothing that a line could show.
      paths: spec.categories.length ? () => null : spec.stepped ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
      points: { show: false },
    };
  }

  function lineAxes(spec) {
    const named = { values: (_, splits) => splits.map((x) => spec.categories[x] ?? ""), splits: () => spec.categories.map((_, i) => i), grid: { show: false } };
    return [axis(spec.x, spec.categories.length ? named : { values: ticks, space: 55 }), axis(spec.y, { size: 46, values: ticks, space: 34 })];
  }

  function lineChart(figure, spec) {
    const lines = dodged(spec);
    const hidden = new Set();
    const legend = lineLegend(lines, spec.categories.length > 0, (number) => {
      if (!hidden.delete(number)) hidden.add(number);
      chart.plot.setSeries(number + 1, { show: !hidden.has(number) });
      return !hidden.has(number);
    });
    const extent = extentOf(lines);
    const pad = spec.categories.length ? 0.4 : (extent[1] - extent[0]) * 0.02;
    const whole = spec.logarithmic ? [extent[0] / 1.06, extent[1] * 1.06] : [extent[0] - pad, extent[1] + pad];
    let selecting = false;
    const make = () => ({
      extent: whole,
      step: (plot, by, way) => (way === "x" ? stepAlong(plot, by) : false),
      choose: (plot) => choose(plot),
      data: uPlot.join(lines.map((line) => [line.x, line.y])),
      options: {
        ...common(spec.stepped ? 270 : 290),
        scales: lineScales(spec, lines, whole),
        axes: lineAxes(spec),
        series: [{}, ...lines.map((line, number) => lineSeries(spec, line, !hidden.has(number)))],
        hooks: {
          draw: [(plot) => within(plot, (ctx) => (spec.stepped ? rug(ctx, plot, spec, hidden) : dots(ctx, plot, spec, lines, hidden)))],
          setCursor: [(plot) => showLines(plot, spec, legend)],
          ready: [(plot) => (plot.cursor.drag.setScale = !selecting)],
          setSelect: [(plot) => select(plot)],
        },
      },
    });

    /** Chooses the sessions of the point under the cursor. */
    function choose(plot) {
      const { left, top } = plot.cursor;
      if (spec.stepped || left < 0) return false;
      let nearest = null;
      let least = NEAR;
      lines.forEach((line, number) => line.x.forEach((x, i) => {
        if (hidden.has(number) || line.y[i] === null) return;
        const far = Math.hypot(plot.valToPos(x, "x") - left, plot.valToPos(line.y[i], "y") - top);
        if (far < least) [least, nearest] = [far, { number, x: spec.lines[number].x[i] }];
      }));
      if (!nearest) return false;
      const line = spec.lines[nearest.number];
      const labels = condition(spec, line, nearest.x);
      if (brush.knows(labels)) brush.toggle(labels);
      return true;
    }

    /** Chooses the sessions of the dragged part of a distribution. */
    function select(plot) {
      if (!selecting || plot.select.width < CLICK) return;
      const [low, high] = [plot.select.left, plot.select.left + plot.select.width].map((at) => plot.posToVal(at, "x"));
      plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      brush.range(spec.axis, low, high, spec.where, `${written(low)} ≤ ${spec.x} ≤ ${written(high)}`);
    }

    const chart = new Chart(figure.querySelector(".plot"), spec.title, make);
    chart.readout.append(legend.place, legend.list);
    chart.spec = spec;
    chart.follows = () => lines.forEach((line, number) => (chart.plot.series[number + 1].alpha = lineSeries(spec, line, true).alpha));
    chart.legend = () => spec.lines.flatMap((line, number) => (hidden.has(number) ? [] : [{ name: line.name, colour: pathColour(line.colour), dash: DASHES[line.dash % DASHES.length], dot: spec.categories.length > 0 }]));
    if (spec.stepped && brush.has(spec.axis)) {
      const label = "Select sessions by dragging over their values";
      const button = element("button", { type: "button", "aria-pressed": "false", "aria-label": label, title: label }, "⇔");
      button.addEventListener("click", () => {
        selecting = !selecting;
        button.setAttribute("aria-pressed", String(selecting));
        chart.plot.cursor.drag.setScale = !selecting;
      });
      chart.buttons.prepend(button);
    }
    if (spec.view) chart.zoomTo(...spec.view);
    // Values of all lines at each move would be too much to listen to.
    chart.readout.setAttribute("aria-live", "off");
    return chart;
  }

  // --- Intervals ----------------------------------------------------------------------------------------------------

  const ROW = 24;
  // Between the label of a row and the chart.
  const LABEL_GAP = 14;
  const LEAST_LETTERS = 5;
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

  function drawIntervals(ctx, plot, spec) {
    const { bbox } = plot;
    const pixel = devicePixelRatio;
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
      ctx.globalAlpha = brush.stands({ ...spec.where, ...item.labels }) ? 1 : PALE;
      if (brush.holds({ ...spec.where, ...item.labels })) {
        ctx.fillStyle = faded(ink("accent"), 0.14);
        ctx.fillRect(bbox.left, y - (ROW / 2) * pixel, bbox.width, ROW * pixel);
      }
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
    const labels = Math.min(textWidth(spec.items.map((item) => item.label)) + LABEL_GAP, room * 0.42);
    return [
      axis(textWidth([spec.x]) < room - labels ? spec.x : spec.short, { values: ticks, space: 60 }),
      axis(null, {
        size: labels,
        font: font(12),
        stroke: ink("ink"),
        splits: () => spec.items.map((_, i) => i),
        values: (_, splits) => splits.map((y) => clipped(spec.items[last - y]?.label ?? "", labels - LABEL_GAP)),
        grid: { stroke: ink("grid"), width: 1, dash: [1, 4] },
      }),
    ];
  }

  function intervalChart(figure, spec) {
    const rows = spec.items.length;
    const extent = intervalExtent(spec);
    let hot = null;
    const make = (_, width) => ({
      extent,
      step: (plot, by, way) => (way === "y" ? pick(plot, hot === null ? 0 : Math.min(Math.max(hot + by, 0), rows - 1)) : undefined),
      choose: () => choose(),
      data: intervalData(spec),
      options: {
        ...common(rows * ROW + 66),
        cursor: { ...common(0).cursor, x: false },
        scales: {
          x: { time: false, distr: spec.logarithmic ? 3 : 1, range: (_, min, max) => (min === null ? extent : [min, max]), min: extent[0], max: extent[1] },
          y: { range: [-0.7, rows - 0.3] },
        },
        axes: intervalAxes(spec, width),
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: {
          draw: [(plot) => within(plot, (ctx) => drawIntervals(ctx, plot, spec))],
          ready: [(plot) => plot.over.append((plot.band = element("div", { class: "hot", hidden: true })))],
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
      plot.band.hidden = false;
      plot.band.style.top = `${middle - ROW / 2}px`;
      plot.band.style.height = `${ROW}px`;
      chart.readout.textContent = `${item.label}: ${item.verdict}; ${item.note}`;
    }

    const chart = new Chart(figure.querySelector(".plot"), spec.title, make);
    /** Chooses the sessions of the row under the cursor. */
    function choose() {
      const item = spec.items[hot];
      const labels = { ...spec.where, ...item?.labels };
      if (!item || !brush.knows(labels)) return false;
      brush.toggle(labels);
      return true;
    }

    chart.spec = spec;
    chart.readout.classList.add("one");
    chart.readout.textContent = spec.margin ? "Shaded: differences without practical meaning." : "";
    return chart;
  }

  /** As much of a text as there is room for. */
  function clipped(text, width) {
    let most = text.length;
    while (most > LEAST_LETTERS && textWidth([most < text.length ? `${text.slice(0, most)}…` : text]) > width) most--;
    return most < text.length ? `${text.slice(0, most)}…` : text;
  }

  function draw(figure, spec) {
    return spec.kind === "intervals" ? intervalChart(figure, spec) : lineChart(figure, spec);
  }

  // Charts that follow the table of sessions are drawn again once for each frame of the screen, if they are in sight.
  let waiting = false;
  function followed(charts) {
    for (const chart of charts) chart.stale = true;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      refresh();
    });
  }
  brush.listen("shown", () => followed([...drawn].filter((chart) => chart.spec)));
  // Distributions alone show the session under the pointer.
  brush.listen("pointed", () => followed([...drawn].filter((chart) => chart.spec?.stepped)));

  function refresh() {
    for (const chart of drawn) {
      if (!chart.stale) continue;
      const { top, bottom } = chart.frame.getBoundingClientRect();
      if (bottom < 0 || top > innerHeight) continue;
      chart.stale = false;
      chart.follows?.();
      chart.plot.redraw(false);
    }
  }
  addEventListener("scroll", refresh, { passive: true });

  /** Draws all charts again, with the colours of now. */
  function redraw() {
    for (const chart of drawn) chart.build();
  }

  return { Chart, DASHES, axis, common, draw, drawn, element, faded, font, ink, pathColour, redraw, stepAlong, swatch, ticks, valueAt, within, written };
})();
