"use strict";
// Charts as files: SVG, PNG and CSV by a click, and whole charts in a print.
//
// A chart is drawn once more, by the same program, on a canvas that writes down what is drawn: the SVG has the same
// lines as the screen, in the colours for paper.

const exporting = (() => {
  const { element } = charts;
  const WIDTH = 720;
  // A canvas of a PNG has so many pixels for one of CSS: about 300 an inch in a column of a paper.
  const PIXELS = 3;
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

  const escaped = (text) => String(text).replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);
  const short = (value) => String(Math.round(value * 100) / 100);

  /** A path of a canvas, as SVG writes it. */
  class Path {
    constructor(from) {
      this.parts = from ? [...from.parts] : [];
    }
    moveTo(x, y) { this.parts.push(`M${short(x)} ${short(y)}`); }
    // A line from nowhere begins where it goes to, as that of a canvas does.
    lineTo(x, y) { this.parts.push(`${this.parts.length ? "L" : "M"}${short(x)} ${short(y)}`); }
    bezierCurveTo(...at) { this.parts.push(`C${at.map(short).join(" ")}`); }
    rect(x, y, w, h) { this.parts.push(`M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}Z`); }
    closePath() { this.parts.push("Z"); }
    addPath(other) { this.parts.push(...other.parts); }
    arc(x, y, r, from, to) {
      if (to - from >= 2 * Math.PI - 1e-6) {
        this.parts.push(`M${short(x + r)} ${short(y)}A${short(r)} ${short(r)} 0 1 1 ${short(x - r)} ${short(y)}A${short(r)} ${short(r)} 0 1 1 ${short(x + r)} ${short(y)}`);
        return;
      }
      const at = (angle) => `${short(x + r * Math.cos(angle))} ${short(y + r * Math.sin(angle))}`;
      this.parts.push(`${this.parts.length ? "L" : "M"}${at(from)}A${short(r)} ${short(r)} 0 ${to - from > Math.PI ? 1 : 0} 1 ${at(to)}`);
    }
    get d() { return this.parts.join(""); }
  }

  /** What a canvas's context is asked to draw, as elements of SVG. */
  class Recorder {
    constructor(canvas) {
      this.canvas = canvas;
      this.measure = document.createElement("canvas").getContext("2d", { recorded: true });
      this.out = [];
      this.clips = 0;
      this.state = { strokeStyle: "#000", fillStyle: "#000", lineWidth: 1, lineCap: "butt", lineJoin: "miter", font: "10px sans-serif", textAlign: "start", textBaseline: "alphabetic", globalAlpha: 1, dash: [], dashOffset: 0, matrix: [1, 0, 0, 1, 0, 0], clip: null };
      this.saved = [];
      this.path = new Path();
      for (const key of Object.keys(this.state)) {
        if (!["dash", "matrix", "clip"].includes(key)) Object.defineProperty(this, key, { get: () => this.state[key], set: (value) => (this.state[key] = value) });
      }
      Object.defineProperty(this, "lineDashOffset", { get: () => this.state.dashOffset, set: (value) => (this.state.dashOffset = value) });
    }
    save() { this.saved.push({ ...this.state, matrix: [...this.state.matrix] }); }
    restore() { this.state = this.saved.pop() ?? this.state; }
    beginPath() { this.path = new Path(); }
    closePath() { this.path.closePath(); }
    moveTo(x, y) { this.path.moveTo(x, y); }
    lineTo(x, y) { this.path.lineTo(x, y); }
    rect(x, y, w, h) { this.path.rect(x, y, w, h); }
    arc(...at) { this.path.arc(...at); }
    setLineDash(dash) { this.state.dash = [...dash]; }
    measureText(text) {
      this.measure.font = this.state.font;
      return this.measure.measureText(text);
    }
    translate(x, y) { this.transform(1, 0, 0, 1, x, y); }
    rotate(angle) { this.transform(Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle), 0, 0); }
    transform(a, b, c, d, e, f) {
      const [A, B, C, D, E, F] = this.state.matrix;
      this.state.matrix = [A * a + C * b, B * a + D * b, A * c + C * d, B * c + D * d, A * e + C * f + E, B * e + D * f + F];
    }
    setTransform(a, b, c, d, e, f) { this.state.matrix = [a, b, c, d, e, f]; }
    clearRect() {}
    clip(path) {
      const id = `clip${this.clips++}`;
      const inner = this.state.clip ? ` clip-path="url(#${this.state.clip})"` : "";
      this.out.push(`<clipPath id="${id}"${inner}><path d="${(path ?? this.path).d}"${this.placed()}/></clipPath>`);
      this.state.clip = id;
    }
    /** A colour as an attribute: what converts an SVG for a paper may not know transparent colours. */
    painted(attribute, colour) {
      const found = /^rgba\((.+), ([\d.]+)\)$/.exec(colour);
      return found ? `${attribute}="rgb(${found[1]})" ${attribute}-opacity="${found[2]}"` : `${attribute}="${colour}"`;
    }
    placed() {
      const { matrix } = this.state;
      return matrix.join() === "1,0,0,1,0,0" ? "" : ` transform="matrix(${matrix.map((v) => String(Math.round(v * 1e4) / 1e4)).join(" ")})"`;
    }
    add(inner) {
      const { clip, globalAlpha } = this.state;
      const group = `${clip ? ` clip-path="url(#${clip})"` : ""}${globalAlpha < 1 ? ` opacity="${globalAlpha}"` : ""}`;
      this.out.push(group ? `<g${group}>${inner}</g>` : inner);
    }
    stroke(path) {
      const { strokeStyle, lineWidth, lineCap, lineJoin, dash } = this.state;
      const d = (path ?? this.path).d;
      if (!d || lineWidth <= 0) return;
      const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
      this.add(`<path d="${d}" fill="none" ${this.painted("stroke", strokeStyle)} stroke-width="${short(lineWidth)}" stroke-linecap="${lineCap}" stroke-linejoin="${lineJoin}"${dashes}${this.placed()}/>`);
    }
    fill(path) {
      const d = (path ?? this.path).d;
      if (d) this.add(`<path d="${d}" ${this.painted("fill", this.state.fillStyle)}${this.placed()}/>`);
    }
    fillRect(x, y, w, h) {
      const path = new Path();
      path.rect(x, y, w, h);
      this.fill(path);
    }
    strokeRect(x, y, w, h) {
      const path = new Path();
      path.rect(x, y, w, h);
      this.stroke(path);
    }
    fillText(text, x, y) {
      const size = /([\d.]+)px/.exec(this.state.font)?.[1] ?? "10";
      const bold = /\b(bold|600|700)\b/.test(this.state.font) ? ' font-weight="600"' : "";
      const anchor = { center: "middle", right: "end", end: "end" }[this.state.textAlign] ?? "start";
      // What SVG programs for papers understand is a shift, not a baseline by name.
      const shift = { top: 0.8, hanging: 0.8, middle: 0.35, bottom: -0.2 }[this.state.textBaseline] ?? 0;
      this.add(`<text x="${short(x)}" y="${short(y + shift * size)}" font-size="${size}"${bold} text-anchor="${anchor}" ${this.painted("fill", this.state.fillStyle)}${this.placed()}>${escaped(text)}</text>`);
    }
  }

  /** What is drawn while a function runs, on canvases that write it down; in the colours for paper. */
  function recorded(call) {
    const own = HTMLCanvasElement.prototype.getContext;
    const ownPath = window.Path2D;
    const root = document.documentElement;
    const theme = root.dataset.theme;
    const recorders = new Map();
    HTMLCanvasElement.prototype.getContext = function (kind, options) {
      if (options?.recorded) return own.call(this, kind);
      if (!recorders.has(this)) recorders.set(this, new Recorder(this));
      return recorders.get(this);
    };
    window.Path2D = Path;
    root.dataset.theme = "light";
    try {
      return call((canvas) => recorders.get(canvas));
    } finally {
      HTMLCanvasElement.prototype.getContext = own;
      window.Path2D = ownPath;
      if (theme === undefined) delete root.dataset.theme;
      else root.dataset.theme = theme;
    }
  }

  /** The elements of a chart as wide as said: { inner, width, height } in pixels of CSS. */
  function elements(chart, width) {
    return recorded((of) => {
      const made = chart.make(chart, width);
      const place = element("div");
      const plot = new uPlot({ ...made.options, width }, made.data, place);
      // The first drawing of uPlot waits for the end of the task; a batch is drawn at once.
      plot.batch(() => {
        const { min, max } = chart.plot.scales.x;
        plot.setScale("x", { min, max });
      });
      const canvas = plot.root.querySelector("canvas");
      const inner = of(canvas).out.join("");
      const found = { inner: `<svg width="${width}" height="${plot.height}" viewBox="0 0 ${canvas.width} ${canvas.height}">${inner}</svg>`, width, height: plot.height };
      plot.destroy();
      return found;
    });
  }

  let clips = 0;

  /** Parts below each other as one SVG with a title and a legend. */
  function together(title, note, parts, width, legend = [], defs = "") {
    const out = [defs];
    let y = 0;
    const say = (text, size, bold, colour) => {
      for (const line of wrapped(text, width, size)) {
        y += size * 1.35;
        out.push(`<text x="2" y="${short(y)}" font-size="${size}"${bold ? ' font-weight="600"' : ""} fill="${colour}">${escaped(line)}</text>`);
      }
    };
    if (title) say(title, 13, true, "#1d1d1b");
    if (note) say(note, 11, false, "#63625c");
    if (y) y += 6;
    for (const part of parts) {
      if (part.head) say(part.head, 11.5, true, "#1d1d1b");
      // Names of clips are the document's: each file has its own.
      const inner = part.inner.replace(/(id="|url\(#)clip/g, `$1c${clips++}-`);
      out.push(`<g transform="translate(0 ${short(y)})">${inner}</g>`);
      y += part.height;
    }
    const keys = legendLines(legend, width);
    for (const line of keys) {
      y += 17;
      for (const { x, name, colour, dash, dot, box } of line) {
        const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
        if (box) out.push(`<rect x="${short(x)}" y="${short(y - 10)}" width="22" height="11" fill="${colour}" stroke="#63625c" stroke-width="0.5"/>`);
        else out.push(dot ? `<circle cx="${short(x + 11)}" cy="${short(y - 4)}" r="3.4" fill="${colour}"/>` : `<line x1="${short(x)}" x2="${short(x + 22)}" y1="${short(y - 4)}" y2="${short(y - 4)}" stroke="${colour}" stroke-width="2"${dashes}/>`);
        out.push(`<text x="${short(x + 28)}" y="${short(y)}" font-size="11" fill="#1d1d1b">${escaped(name)}</text>`);
      }
    }
    const height = Math.ceil(y + 8);
    return `<svg xmlns="${NAMESPACE}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}">${out.join("")}</svg>`;
  }

  /** Names in a row, as many in a line as there is room for. */
  function legendLines(legend, width) {
    const lines = [];
    let x = Infinity;
    for (const each of legend) {
      const needed = 28 + textWidth(each.name, 11) + 18;
      if (x + needed > width) {
        lines.push([]);
        x = 2;
      }
      lines[lines.length - 1].push({ ...each, x });
      x += needed;
    }
    return lines;
  }

  function textWidth(text, size) {
    const context = document.createElement("canvas").getContext("2d", { recorded: true });
    context.font = `${size}px ${FONT}`;
    return context.measureText(text).width;
  }

  function wrapped(text, width, size) {
    const lines = [];
    for (const word of text.split(" ")) {
      const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
      if (lines.length && textWidth(longer, size) * 1.06 <= width) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  }

  /** A chart as SVG. */
  function chartFile(chart, spec, width = WIDTH) {
    const legend = recorded(() => chart.legend?.() ?? []);
    return together(spec.title, spec.note, [elements(chart, width)], width, legend);
  }

  /** The panels of a timeline as one SVG. */
  function panelsFile(title, outcome, panels, legend, width = WIDTH) {
    const parts = panels.map(({ chart, head }) => ({ ...elements(chart, width), head }));
    return together(title, outcome, parts, width, recorded(legend));
  }

  /** A map as SVG. */
  function mapFile(spec) {
    const texts = [[`${spec.y} \\ ${spec.x}`, ...spec.columns], ...spec.rows.map((row, i) => [row, ...spec.tiles[i].map((tile) => `${tile.text}${tile.sign}`)])];
    const widths = texts[0].map((_, i) => Math.max(...texts.map((row) => textWidth(row[i], 12))) + 18);
    const tones = { good: "0, 115, 79", bad: "176, 74, 0" };
    const out = [];
    texts.forEach((row, r) => {
      let x = 0;
      row.forEach((text, c) => {
        const tile = r && c ? spec.tiles[r - 1][c - 1] : null;
        if (tile && tone(tile)) out.push(`<rect x="${short(x)}" y="${r * 24}" width="${short(widths[c] - 2)}" height="22" rx="2" fill="rgb(${tones[tile.tone]})" fill-opacity="${short(0.1 + 0.45 * tile.strength)}"/>`);
        out.push(`<text x="${short(x + widths[c] - 9)}" y="${r * 24 + 16}" font-size="12" text-anchor="end" fill="${r && c ? "#1d1d1b" : "#63625c"}">${escaped(text)}</text>`);
        x += widths[c];
      });
    });
    const width = Math.ceil(Math.max(widths.reduce((a, b) => a + b, 0), 360));
    return together(spec.title, spec.note, [{ inner: out.join(""), height: texts.length * 24 }], width);

    function tone(tile) {
      return tile.strength > 0 && tile.tone in tones;
    }
  }

  /** Shares of wholes as SVG. */
  function sharesFile(title, note, spec, width = WIDTH) {
    const { defs, parts, legend } = shares.pieces(spec, width);
    return together(title, note, parts, width, legend, defs);
  }

  const csv = (rows) => rows.map((row) => row.map((value) => (/[",\n]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""))).join(",")).join("\n") + "\n";

  /** The numbers of a chart. */
  function rowsOf(spec) {
    if (spec.kind === "intervals") return [["condition", spec.x, "95 % from", "95 % to", "verdict", "note"], ...spec.items.map((item) => [item.label, item.at, item.low, item.high, item.verdict, item.note])];
    if (spec.kind === "map") return [[spec.y, ...spec.columns.map((column) => `${spec.x} ${column}`)], ...spec.rows.map((row, i) => [row, ...spec.tiles[i].map((tile) => tile.text)])];
    const intervals = spec.lines.some((line) => line.low);
    const place = (x) => (spec.categories.length ? spec.categories[x] : x);
    const heads = ["line", spec.x, spec.y, ...(intervals ? ["95 % from", "95 % to"] : [])];
    return [heads, ...spec.lines.flatMap((line) => line.x.map((x, i) => [line.name, place(x), line.y[i], ...(intervals ? [line.low?.[i], line.high?.[i]] : [])]))];
  }

  /** The numbers of a timeline: a column per line, and panels with times of their own below each other. */
  function rowsOfPanels(panels) {
    const bars = panels.some((panel) => panel.bars?.length);
    const rows = [["panel", "line", "time (s)", "value", "unit", ...(bars ? ["value at the end of the bar"] : [])]];
    const add = (panel, name, x, value, ...end) => rows.push([panel.title, name, +x.toFixed(6), value, panel.unit, ...(bars ? [end[0] ?? ""] : [])]);
    for (const panel of panels) {
      for (const line of panel.lines) panel.x.forEach((x, i) => line.values[i] !== null && add(panel, line.name, x, line.values[i]));
      for (const bar of panel.bars ?? []) bar.t.forEach((x, i) => add(panel, bar.name, x, +bar.from[i].toFixed(6), +bar.to[i].toFixed(6)));
    }
    return rows;
  }

  function save(name, type, content) {
    const blob = content instanceof Blob ? content : new Blob([content], { type });
    const link = element("a", { download: name, href: URL.createObjectURL(blob) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  async function png(svg) {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
    await image.decode();
    const canvas = element("canvas");
    canvas.width = image.width * PIXELS;
    canvas.height = image.height * PIXELS;
    const context = canvas.getContext("2d");
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }

  /** The buttons that save a chart: `svg` and `rows` make it when asked. */
  function buttons(name, svg, rows) {
    const button = (kind, call) => element("button", { type: "button", title: `Save as ${kind}`, "aria-label": `Save as ${kind}`, on: { click: call } }, kind);
    return element(
      "div",
      { class: "save" },
      "Save as ",
      button("SVG", () => save(`${name}.svg`, "image/svg+xml", svg())),
      button("PNG", async () => save(`${name}.png`, "image/png", await png(svg()))),
      button("CSV", () => save(`${name}.csv`, "text/csv", csv(rows()))),
    );
  }

  // --- Prints -------------------------------------------------------------------------------------------------------

  // A page of A4 or Letter between its margins, and half of it where charts stand next to each other.
  const PRINTED = 680;
  const PRINTED_HALF = 330;

  /** Puts each chart into the page as SVG, as wide as paper is: a canvas keeps the width of the screen. */
  function prepare(all) {
    for (const chart of all) {
      const half = chart.container.closest(".charts:not(.alone)") !== null;
      const printed = element("div", { class: "printed", "aria-hidden": "true" });
      const width = half ? PRINTED_HALF : PRINTED;
      // Title and legend are in the page already.
      printed.innerHTML = together("", "", [elements(chart, width)], width);
      chart.frame.after(printed);
    }
  }

  function tidy() {
    document.querySelectorAll(".printed").forEach((each) => each.remove());
  }

  return { buttons, chartFile, mapFile, panelsFile, prepare, rowsOf, rowsOfPanels, sharesFile, tidy };
})();
