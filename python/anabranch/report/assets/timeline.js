"use strict";
// The timeline of a session: panels above each other that share their time, its zoom and its cursor.

const timeline = (() => {
  const { Chart, element, ink, pathColour, faded, axis, common, stepAlong, swatch, ticks, within, written } = charts;
  const LEFT = 44;
  const MB = 1e-6;
  // Kinds of segments, by their places in `KINDS` of the Python package.
  const [SEGMENT, RETRANSMISSION, COPY] = [0, 1, 2];
  let number = 0;

  /** What was stored compressed. */
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  function times(data) {
    return Array.from({ length: data.points }, (_, i) => data.first_s + i * data.width_s);
  }

  // How lines look by what they are, and the heights of panels by what these show.
  const LOOKS = {
    bitrate: { colour: "ink", fill: 0.12, gaps: true, stepped: true },
    buffer: { colour: "muted", fill: 0.18 },
    capacity: { fill: 0.16, width: 0.8, faint: true },
    total: { colour: "muted", width: 1 },
    switches: { colour: "muted", fill: 0.35, stepped: true },
    discards: { colour: "bad", fill: 0.35, stepped: true },
    note: { colour: "ink", joined: true },
  };
  const HEIGHTS = { bitrate: 120, buffer: 105, throughput: 100, window: 130, "round-trip": 110, switches: 80, discards: 80, note: 100 };

  const line = (name, colour, values, more = {}) => ({ name, colour, values, ...more });

  /** What is drawn, panel by panel. */
  function panelsOf(data) {
    const shared = { intervals: times(data), states: data.state_times };
    const graphs = data.graphs.map((graph) => ({
      ...graph,
      height: HEIGHTS[graph.kind],
      x: shared[graph.times] ?? graph.times,
      lines: graph.lines.map((one) => ({ ...one, ...LOOKS[one.role], ...(one.colour === null ? {} : { colour: `c${one.colour}` }) })),
      forbidden: data.paths.find((path) => path.name === graph.path)?.disabled,
      signed: graph.kind === "note",
      extra: (time) => textAt(graph, time),
    }));
    return [...graphs, ...(data.packets ? packetPanels(data.packets) : [])];
  }

  /** The text of the span in which a time lies; the times of such a graph are beginnings and ends. */
  function textAt({ times, texts }, time) {
    if (!texts.length) return "";
    const place = placeOf(times, time);
    return place % 2 ? texts[(place - 1) / 2] : "";
  }

  /** Numbers that are stored as differences. */
  function summed(steps, unit = 1) {
    let sum = 0;
    return steps.map((step) => (sum += step) * unit);
  }

  /** Bars from a first byte to the one behind the last, in MB, at their instants. */
  function barsOf(name, colour, t, begin, length, keep = () => true, wide = false) {
    const kept = [...t.keys()].filter(keep);
    return { name, colour, wide, t: kept.map((i) => t[i]), from: kept.map((i) => begin[i] * MB), to: kept.map((i) => (begin[i] + length[i]) * MB) };
  }

  /** Sequence numbers per subflow, those of the data, and round trips. */
  function packetPanels(packets) {
    const until = packets.until_s === null ? "" : `, the first ${written(packets.until_s, 4)} s`;
    const stepped = { stepped: true, gaps: true, width: 1 };
    const panel = (title, x, lines, bars) => ({ title, unit: `MB${until}`, height: 170, x, lines, bars: bars.filter((each) => each.t.length) });
    const found = [];
    const ofData = [];
    for (const flow of packets.flows) {
      const { sent, acks, sacks } = flow;
      const [t, begin, length, kind] = [summed(sent.t, packets.tick_s), summed(sent.begin), summed(sent.length), summed(sent.kind)];
      const ends = summed(acks.end, MB);
      const windows = summed(acks.window, MB).map((size, i) => ends[i] + size);
      const lines = [line("acknowledged", "muted", ends, stepped), line("window", "c4", windows, stepped)];
      const bars = [
        barsOf("SACK", "sack", summed(sacks.t, packets.tick_s), summed(sacks.begin), summed(sacks.length)),
        barsOf("segment", `c${flow.colour}`, t, begin, length, (i) => kind[i] === SEGMENT),
        barsOf("copy", "ink", t, begin, length, (i) => kind[i] === COPY, true),
        barsOf("retransmission", "again", t, begin, length, (i) => kind[i] === RETRANSMISSION, true),
      ];
      if (t.length && ends.length) found.push(panel(flow.sequence_title, summed(acks.t, packets.tick_s), lines, bars));
      if (sent.data) ofData.push(barsOf(flow.name, `c${flow.colour}`, t, summed(sent.data), length));
    }
    for (const data of packets.data) {
      if (data.t.length) found.push(panel(packets.data_title, summed(data.t, packets.tick_s), [line("acknowledged", "muted", summed(data.end, MB), stepped)], ofData));
    }
    for (const { round_trips_title, colour, rtts } of packets.flows) {
      const values = summed(rtts.value, packets.tick_s * 1e3);
      if (values.length) found.push({ title: round_trips_title, unit: `ms${until}`, height: 110, x: summed(rtts.t, packets.tick_s), lines: [line("sample", `c${colour}`, values, { dotted: true })] });
    }
    return found;
  }

  /** The first place of a sorted list whose value is at least this. */
  function placeOf(list, value) {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function bars(plot, list) {
    const { min, max } = plot.scales.x;
    within(plot, (ctx) => {
      for (const { colour, wide, t, from, to } of list) {
        ctx.strokeStyle = ink(colour);
        ctx.lineWidth = (wide ? 3 : 2) * devicePixelRatio;
        ctx.beginPath();
        let last = "";
        for (let i = placeOf(t, min); i < t.length && t[i] <= max; i++) {
          const [x, bottom, top] = [plot.valToPos(t[i], "x", true), plot.valToPos(from[i], "y", true), plot.valToPos(to[i], "y", true)].map(Math.round);
          const here = `${x} ${bottom} ${top}`;
          if (here === last) continue;
          last = here;
          ctx.moveTo(x, bottom);
          // A short one must be seen, too.
          ctx.lineTo(x, Math.min(top, bottom - 2 * devicePixelRatio));
        }
        ctx.stroke();
      }
    });
  }

  function dots(plot, x, { colour, values }) {
    const { min, max } = plot.scales.x;
    const size = 2 * devicePixelRatio;
    within(plot, (ctx) => {
      ctx.fillStyle = ink(colour);
      let last = "";
      for (let i = placeOf(x, min); i < x.length && x[i] <= max; i++) {
        const [left, top] = [plot.valToPos(x[i], "x", true), plot.valToPos(values[i], "y", true)].map(Math.round);
        if (`${left} ${top}` === last) continue;
        last = `${left} ${top}`;
        ctx.fillRect(left - size / 2, top - size / 2, size, size);
      }
    });
  }

  /** From the bytes that are acknowledged to those that are sent, in the time that is shown; the window may lie above. */
  function fitted(plot, panel) {
    const { min, max } = plot.scales.x;
    const [line] = panel.lines;
    const low = line.values[Math.max(placeOf(panel.x, min ?? 0) - 1, 0)] ?? 0;
    let high = low;
    for (const { t, to } of panel.bars) high = Math.max(high, to[placeOf(t, max ?? Infinity) - 1] ?? low);
    const pad = (high - low) * 0.04 || MB;
    return [min <= panel.x[0] ? 0 : low - pad, high + pad];
  }

  function spans(plot, list, colour) {
    const { ctx, bbox } = plot;
    ctx.fillStyle = colour;
    for (const [begin, end] of list) {
      const left = Math.max(plot.valToPos(begin, "x", true), bbox.left);
      const right = Math.min(plot.valToPos(end, "x", true), bbox.left + bbox.width);
      // A short one must be seen, too.
      if (right >= bbox.left && left <= bbox.left + bbox.width) ctx.fillRect(left, bbox.top, Math.max(right - left, devicePixelRatio), bbox.height);
    }
  }

  function marks(plot, data, named) {
    const { ctx, bbox } = plot;
    const pixel = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, 0, bbox.width, bbox.top + bbox.height);
    ctx.clip();
    ctx.font = `${10.5 * pixel}px ${ink("sans")}`;
    ctx.textBaseline = "alphabetic";
    let free = -Infinity;
    const end = data.ending ? [[...data.ending, true]] : [];
    for (const [at, text, strong] of [...data.marks, ...end]) {
      const x = plot.valToPos(at, "x", true);
      ctx.strokeStyle = ctx.fillStyle = ink("ink");
      ctx.lineWidth = (strong ? 1.8 : 1) * pixel;
      ctx.setLineDash(strong ? [] : [4 * pixel, 3 * pixel]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top - (named ? 4 * pixel : 0));
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (!named) continue;
      // A text that found no room is in the list of events below.
      const width = ctx.measureText(text).width;
      const left = x + width > bbox.left + bbox.width ? x - width - 3 * pixel : x + 3 * pixel;
      if (left < free || left < bbox.left) continue;
      ctx.fillText(text, left, bbox.top - 5 * pixel);
      free = left + width + 8 * pixel;
    }
    ctx.restore();
  }

  /** The bars where the path policy forbids new data: along the foot of the panel. */
  function forbidden(plot, list) {
    if (!list?.length) return;
    const { ctx, bbox } = plot;
    ctx.fillStyle = ink("bad");
    for (const [begin, end] of list) {
      const [a, b] = [plot.valToPos(begin, "x", true), plot.valToPos(end, "x", true)];
      ctx.fillRect(a, bbox.top + bbox.height - 4 * devicePixelRatio, Math.max(b - a, 1), 4 * devicePixelRatio);
    }
  }

  function underflows(plot, list) {
    const { ctx, bbox } = plot;
    const size = 4 * devicePixelRatio;
    ctx.fillStyle = ink("ink");
    for (const at of list ?? []) {
      const x = plot.valToPos(at, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x - size, bbox.top);
      ctx.lineTo(x + size, bbox.top);
      ctx.lineTo(x, bbox.top + size * 1.5);
      ctx.fill();
    }
  }

  function series(one) {
    const colour = ink(one.colour);
    return {
      label: one.name,
      stroke: one.faint ? faded(colour, 0.55) : colour,
      width: one.width ?? 1.5,
      fill: one.fill ? faded(colour, one.fill) : undefined,
      spanGaps: one.joined ?? false,
      paths: one.dotted ? () => null : one.stepped ? uPlot.paths.stepped({ align: one.gaps ? 1 : 0 }) : uPlot.paths.linear(),
      points: { show: false },
    };
  }

  function options(panel, data, extent, shared, first, last) {
    const base = common(panel.height + (first ? 16 : 0) + (last ? 34 : 0));
    return {
      ...base,
      padding: [first ? 22 : 8, 12, last ? 0 : 6, 0],
      cursor: { ...base.cursor, sync: { key: shared, scales: ["x", null] } },
      scales: {
        x: { time: false, range: (_, min, max) => (min === null ? extent : [min, max]), min: extent[0], max: extent[1] },
        y: { range: (plot, min, max) => panel.bars ? fitted(plot, panel) : [panel.signed ? Math.min((min ?? 0) * 1.06, 0) : 0, Math.max(Math.min(max ?? 1, panel.limit ?? Infinity) * 1.06, 0) || 1] },
      },
      axes: [
        axis(last ? "time (s)" : null, { values: last ? ticks : () => [], size: last ? 26 : 0, space: 60 }),
        axis(null, { size: LEFT, values: ticks, space: 26 }),
      ],
      series: [{}, ...panel.lines.map(series)],
      hooks: {
        drawAxes: [(plot) => spans(plot, data.stalls, faded(ink("stall"), 0.35))],
        draw: [(plot) => { marks(plot, data, first); forbidden(plot, panel.forbidden); underflows(plot, panel.underflows); bars(plot, panel.bars ?? []); panel.lines.filter((one) => one.dotted).forEach((one) => dots(plot, panel.x, one)); }],
      },
    };
  }

  /** Head of a panel: what it shows, and the values under the cursor. */
  function head(panel) {
    const values = panel.lines.map(() => element("span", { class: "value" }));
    const extra = element("span", { class: "value" });
    const several = panel.lines.length + (panel.bars?.length ?? 0) > 1;
    const names = panel.lines.map((one, i) => element("span", { class: "series" }, swatch(one.colour, 0, one.fill && one.faint), several ? `${one.name} ` : "", values[i]));
    const title = element("div", { class: "panel-title" }, element("b", {}, panel.title), element("span", { class: "unit" }, panel.unit), ...names, ...(panel.bars ?? []).map((bar) => element("span", { class: "series" }, swatch(bar.colour, 0), bar.name)), extra);
    return { title, values, extra };
  }

  function panelChart(place, panel, data, extent, group, first, last) {
    const { title, values, extra } = head(panel);
    const plot = element("div", { class: "plot" });
    place.append(element("div", { class: "panel" }, title, plot));
    const chart = new Chart(plot, panel.title, () => {
      const made = options(panel, data, extent, group.key, first, last);
      // A drawing for a file moves no panel.
      made.hooks.setScale = [(self, key) => key === "x" && self === chart?.plot && group.follow(self)];
      made.hooks.setCursor = [(self) => show(self)];
      return { extent, step: (self, by, way) => (way === "x" ? stepAlong(self, by) : false), data: [panel.x, ...panel.lines.map((one) => one.values)], options: made };
    }, false);
    function show(self) {
      const { left } = self.cursor;
      const inside = left !== undefined && left >= 0;
      const x = inside ? self.posToVal(left, "x") : null;
      panel.lines.forEach((one, i) => {
        const at = inside ? charts.valueAt({ x: panel.x }, x, one.gaps) : null;
        values[i].textContent = at === null ? "" : written(one.values[at]);
      });
      extra.textContent = inside ? panel.extra?.(x) ?? "" : "";
      if (first) group.time.textContent = inside ? `${written(x, 4)} s` : "";
    }
    return chart;
  }

  /** Draws a timeline and returns a function that removes it. */
  async function draw(place, stored) {
    const data = await unpacked(stored.packed);
    const panels = panelsOf(data);
    const t = times(data);
    const extent = [0, Math.max(t[t.length - 1] + data.width_s / 2, data.ending?.[0] ?? 0)];
    const group = { key: `timeline-${number++}`, charts: [], busy: false, time: element("span", { class: "at", "aria-live": "off" }) };
    // All panels show the same time.
    group.follow = (from) => {
      if (group.busy) return;
      group.busy = true;
      const { min, max } = from.scales.x;
      for (const chart of group.charts) {
        const own = chart.plot.scales.x;
        if (chart.plot !== from && (own.min !== min || own.max !== max)) chart.plot.setScale("x", { min, max });
      }
      group.busy = false;
    };
    place.append(legend(data, group));
    const parts = () => panels.map((panel, i) => ({ chart: group.charts[i], head: `${panel.title} (${panel.unit})` }));
    const key = (name, colour) => ({ name, colour, dash: [] });
    const paths = () => data.paths.map((path) => key(path.name, pathColour(path.colour)));
    // Of plots of packets: lines and bars, but for those of segments, which have the colour of their path.
    const ofPackets = () => panels.filter((panel) => panel.bars).flatMap((panel) => [...panel.lines, ...panel.bars]).filter(({ name }) => name !== "segment").map(({ name, colour }) => key(name, ink(colour)));
    const keys = () => [...new Map([...ofPackets(), ...paths()].map((each) => [each.name, each])).values()];
    const name = stored.title.replace(/[^\w.]+/g, "-");
    const svg = () => exporting.panelsFile(stored.title, stored.outcome, parts(), keys);
    panels.forEach((panel, i) => group.charts.push(panelChart(place, panel, data, extent, group, i === 0, i === panels.length - 1)));
    place.append(exporting.buttons(name, svg, () => exporting.rowsOfPanels(panels)));
    if (data.marks.length) place.append(events(data));
    if (data.why) place.append(why(data.why, stored, name, (begin, end) => group.charts[0].zoomTo(begin, end)));
    return () => group.charts.forEach((chart) => chart.remove());
  }

  function legend(data, group) {
    const items = [group.time];
    if (data.stalls.length) items.push(element("span", { class: "series" }, swatch("stall", 0, true), "stall"));
    if (data.graphs.some((graph) => graph.underflows.length)) items.push(element("span", { class: "series" }, "▼ buffer underflow"));
    if (data.paths.some((path) => path.disabled.length)) items.push(element("span", { class: "series" }, swatch("bad", 0), "path not used"));
    const button = (text, label, call) => element("button", { type: "button", "aria-label": label, title: label, on: { click: call } }, text);
    const first = () => group.charts[0];
    return element(
      "div",
      { class: "timeline-head" },
      element("div", { class: "keys" }, ...items),
      element("div", { class: "zoom" }, button("+", "Zoom in", () => first().zoom(1 / 1.6)), button("−", "Zoom out", () => first().zoom(1.6)), button("⤢", "Show all", () => first().reset())),
    );
  }

  /** Where the link time of the session and of each stall went. */
  function why(found, stored, name, zoom) {
    const stalls = found.rows.length - 1;
    const heading = stalls > 0 ? `Why it stalled` : "Where the link time went";
    const place = element("div", { class: "why" }, element("h4", {}, heading));
    const show = ({ label, span: [begin, end] }) => {
      const more = (end - begin) * 0.2;
      return element("button", { type: "button", class: "show", "aria-label": `Show ${label} in the panels`, on: { click: () => zoom(begin - more, end + more) } }, "Show");
    };
    if (found.rows.length) place.append(element("p", { class: "quiet" }, "While a response is due, each link could carry its rate times the time. What was no new data of the session went to one cause each."));
    shares.draw(place, found, (row) => (row === found.rows[0] ? [] : [show(row)]));
    if (found.note) place.append(element("p", { class: "quiet" }, found.note));
    if (found.rows.length) place.append(exporting.buttons(`${name}-causes`, () => exporting.sharesFile(`${heading}: ${stored.title}`, stored.outcome, found), () => shares.table(found)));
    return place;
  }

  function events(data) {
    const list = data.marks.map(([at, text]) => element("li", {}, `${written(at, 4)} s: ${text}`));
    return element("details", { class: "events" }, element("summary", {}, `${list.length} event${list.length === 1 ? "" : "s"} of the network`), element("ul", {}, ...list.slice(0, 200)));
  }

  return { draw };
})();
