"use strict";
// The table of sessions: sorts, filters, and opens a session with its timeline and the command that repeats it.

const sessions = (() => {
  const { element } = charts;
  const PAGE = 50;
  const MOST_CHOICES = 40;

  // Of times that are shorter than a second hundredths still count, however long the longest is.
  const LEAST_DECIMALS = { s: 2 };

  /** So many decimals that the largest number of a column has three significant digits. */
  function decimals(values, unit) {
    let largest = 0;
    let whole = true;
    for (const value of values) {
      if (value === null) continue;
      largest = Math.max(largest, Math.abs(value));
      whole &&= Number.isInteger(value);
    }
    return whole || largest === 0 ? 0 : Math.min(Math.max(2 - Math.floor(Math.log10(largest)), LEAST_DECIMALS[unit] ?? 0), 4);
  }

  /** A name as it is compared: people write `mean bitrate`, `mean_bitrate` and `Mean Bitrate`. */
  const plain = (name) => name.toLowerCase().replace(/[\s_.]/g, "");

  /** The number of letters to add, to take away or to change from one text to the other. */
  function distance(a, b) {
    let row = Array.from({ length: b.length + 1 }, (_, i) => i);
    for (let i = 1; i <= a.length; i++) {
      const next = [i];
      for (let j = 1; j <= b.length; j++) next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
      row = next;
    }
    return row[b.length];
  }

  class Table {
    constructor(place, data, timelines) {
      this.data = data;
      this.timelines = timelines;
      this.rows = data.timelines.length || data.labels[0].values.length;
      this.columns = [
        ...data.labels.map((label) => ({ ...label, text: (row) => String(label.words[label.values[row]] ?? "–"), value: (row) => label.words[label.values[row]] })),
        ...data.numbers.map((number) => {
          const places = decimals(number.values, number.unit);
          return { ...number, number: true, text: (row) => (number.values[row] === null ? "–" : number.values[row].toFixed(places).replace("-", "−")), value: (row) => number.values[row] };
        }),
      ];
      this.sort = null;
      this.page = 0;
      this.query = "";
      this.choices = new Map();
      this.withTimeline = false;
      this.open = new Map();
      brush.attach(data);
      brush.listen("choice", () => this.change(() => {}));
      place.replaceChildren(this.controls(), this.frame());
      this.update();
      for (const row of data.opened) this.body.querySelector(`[data-row="${row}"] .open`)?.click();
    }

    // --- What is shown ----------------------------------------------------------------------------------------------

    controls() {
      const search = element("input", { type: "search", id: "filter", placeholder: this.example(), autocomplete: "off", spellcheck: "false", "aria-describedby": "filter-help" });
      search.addEventListener("input", () => this.change(() => (this.query = search.value)));
      const selects = this.data.labels.filter((label) => label.words.length > 1 && label.words.length <= MOST_CHOICES && label.key !== "seed").map((label) => this.select(label));
      const controls = element("div", { class: "controls" }, element("label", { class: "wide" }, "Filter", search), ...selects);
      if (this.timelines.length && this.timelines.length < this.rows) {
        const box = element("input", { type: "checkbox" });
        box.addEventListener("change", () => this.change(() => (this.withTimeline = box.checked)));
        controls.append(element("label", { class: "check" }, box, "with timeline"));
      }
      const help = element("p", { class: "quiet", id: "filter-help" }, "Words have to occur in a row; ", element("code", {}, this.condition()), " compares a column, in the unit that its head shows. A click on a row or a point of a chart shows its sessions.");
      this.problem = element("p", { class: "problem", role: "alert", hidden: true });
      this.chips = element("div", { class: "chips", "aria-label": "Chosen in charts" });
      return element("div", {}, controls, this.problem, help, this.chips);
    }

    example() {
      const label = this.data.labels.find((each) => !each.number && each.words.length > 1) ?? this.data.labels[0];
      return `${label.words[0]} ${this.condition()}`;
    }

    condition() {
      const number = this.data.numbers[0];
      return number ? `${number.name} > 1` : "seed = 1";
    }

    select(label) {
      const made = element("select", { "aria-label": label.name }, element("option", { value: "" }, "all"), ...label.words.map((word, i) => element("option", { value: String(i) }, String(word))));
      made.addEventListener("change", () => this.change(() => (made.value === "" ? this.choices.delete(label.key) : this.choices.set(label.key, +made.value))));
      return element("label", {}, label.name, made);
    }

    frame() {
      this.heads = this.columns.map((column, i) => {
        const button = element("button", { type: "button", on: { click: () => this.order(i) } }, column.name);
        if (column.unit) button.append(" ", element("span", { class: "unit" }, column.unit));
        return element("th", { scope: "col", title: column.key, class: column.number ? "number" : null, "aria-sort": "none" }, button);
      });
      this.body = element("tbody");
      this.count = element("span", { role: "status" });
      this.body.addEventListener("mouseover", (event) => brush.point(event.target.closest("tr[data-row]") ? +event.target.closest("tr[data-row]").dataset.row : null));
      this.body.addEventListener("mouseleave", () => brush.point(null));
      this.before = element("button", { type: "button", on: { click: () => this.turn(-1) } }, "← Previous");
      this.after = element("button", { type: "button", on: { click: () => this.turn(1) } }, "Next →");
      const table = element("table", { class: "sessions" }, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, element("span", { class: "hidden" }, "Open")), ...this.heads)), this.body);
      this.scroll = element("div", { class: "scroll", role: "region", "aria-label": "Sessions" }, table);
      new ResizeObserver(() => this.scroll.style.setProperty("--room", `${this.scroll.clientWidth}px`)).observe(this.scroll);
      return element("div", {}, this.scroll, element("div", { class: "pages" }, this.before, this.count, this.after));
    }

    // --- What is chosen ---------------------------------------------------------------------------------------------

    change(how) {
      how();
      this.page = 0;
      this.update();
    }

    order(column) {
      const down = this.sort?.column === column ? !this.sort.down : false;
      this.change(() => (this.sort = { column, down }));
    }

    turn(by) {
      this.page += by;
      this.update();
      this.scroll.scrollIntoView({ block: "nearest" });
    }

    /** A test of rows for each term of the filter; `this.problems` has what is wrong with others. */
    terms() {
      this.problems = [];
      const words = this.query.replace(/\s*(>=|<=|!=|=|>|<)\s*/g, "$1").trim().split(/\s+/).filter(Boolean);
      const tests = [];
      for (let at = 0; at < words.length; at++) {
        const taken = this.comparison(words, at);
        if (taken) at = taken.last;
        tests.push(taken ? taken.test : this.word(words[at]));
      }
      return tests.filter(Boolean);
    }

    word(word) {
      const lower = word.toLowerCase();
      return (row) => this.words(row).includes(lower);
    }

    /** The comparison that begins at a word, which may be the first of a name of several: its test and last word. */
    comparison(words, first) {
      for (let last = first; last < words.length; last++) {
        const found = /^(.+?)(>=|<=|!=|=|>|<)(.+)$/.exec(words.slice(first, last + 1).join(" "));
        if (!found) continue;
        const [, name, sign, text] = found;
        const column = this.named(name);
        if (column) return { last, test: this.compares(column, sign, text) };
        // Words before it may be words of their own; and a label may be written with a sign.
        if (last > first || this.occurs(words[last])) return null;
        this.problems.push(`No column is called “${name}”${this.nearest(name)}`);
        return { last, test: null };
      }
      return null;
    }

    compares(column, sign, text) {
      const wanted = Number(text);
      if (sign === "=" || sign === "!=") {
        const same = (row) => (column.number && !Number.isNaN(wanted) ? column.value(row) === wanted || column.text(row) === text : plain(String(column.value(row))) === plain(text));
        return sign === "=" ? same : (row) => !same(row);
      }
      if (Number.isNaN(wanted)) {
        this.problems.push(`“${column.name} ${sign} ${text}” needs a number.`);
        return null;
      }
      const tests = { ">": (v) => v > wanted, "<": (v) => v < wanted, ">=": (v) => v >= wanted, "<=": (v) => v <= wanted };
      // A label such as `30 ms` counts by its number.
      return (row) => column.value(row) !== null && tests[sign](parseFloat(column.value(row)));
    }

    /** The column of a name: in words, as its key, or as the end of its key. */
    named(name) {
      const lower = plain(name);
      const key = name.toLowerCase().replace(/\s/g, "_");
      return this.columns.find((column) => plain(column.name) === lower || column.key.toLowerCase() === key) ?? this.columns.find((column) => column.key.toLowerCase().endsWith(`.${key}`));
    }

    nearest(name) {
      const lower = plain(name);
      const ranked = this.columns.flatMap((column) => [column.name, column.key].map((text) => ({ text, far: distance(plain(text), lower) }))).sort((a, b) => a.far - b.far);
      return ranked[0].far <= Math.max(lower.length / 2, 2) ? `; did you mean “${ranked[0].text}”?` : `; the columns are ${this.columns.map((column) => column.name).join(", ")}.`;
    }

    occurs(word) {
      const test = this.word(word);
      return this.data.labels.some((label) => label.words.some((each) => String(each).toLowerCase().includes(word.toLowerCase()))) || Object.keys(this.data.errors).some((row) => test(+row));
    }

    words(row) {
      this.texts ??= [];
      return (this.texts[row] ??= [...this.data.labels.map((label) => String(label.words[label.values[row]])), this.data.errors[row] ?? ""].join(" ").toLowerCase());
    }

    found() {
      const tests = this.terms();
      for (const [key, place] of this.choices) {
        const label = this.data.labels.find((each) => each.key === key);
        tests.push((row) => label.values[row] === place);
      }
      if (brush.chosen.length) tests.push(brush.accepts);
      if (this.withTimeline) tests.push((row) => (this.data.timelines[row] ?? null) !== null);
      const rows = [];
      for (let row = 0; row < this.rows; row++) if (tests.every((test) => test(row))) rows.push(row);
      if (this.sort) {
        const { value } = this.columns[this.sort.column];
        const way = this.sort.down ? -1 : 1;
        // Rows without a value are the last ones in both orders.
        rows.sort((a, b) => {
          const [x, y] = [value(a), value(b)];
          if (x === y) return a - b;
          if (x === null || x === undefined) return 1;
          if (y === null || y === undefined) return -1;
          return (x < y ? -1 : 1) * way;
        });
      }
      return rows;
    }

    update() {
      const rows = this.found();
      brush.show(rows);
      this.problem.textContent = this.problems.join(" ");
      this.problem.hidden = !this.problems.length;
      this.showChosen(rows.length);
      const pages = Math.max(Math.ceil(rows.length / PAGE), 1);
      this.page = Math.min(Math.max(this.page, 0), pages - 1);
      for (const close of this.open.values()) close();
      this.open.clear();
      const from = this.page * PAGE;
      const shown = rows.slice(from, from + PAGE);
      this.body.replaceChildren(...shown.map((row) => this.row(row)));
      if (!shown.length) this.body.append(element("tr", {}, element("td", { colspan: String(this.columns.length + 1), class: "quiet" }, "No session matches.")));
      const of = rows.length === this.rows ? "" : ` (of ${this.rows.toLocaleString("en")})`;
      this.count.textContent = rows.length ? `${(from + 1).toLocaleString("en")} to ${(from + shown.length).toLocaleString("en")} of ${rows.length.toLocaleString("en")}${of}` : "";
      this.before.disabled = this.page === 0;
      this.after.disabled = this.page === pages - 1;
      this.before.hidden = this.after.hidden = pages === 1;
      this.heads.forEach((head, i) => head.setAttribute("aria-sort", this.sort?.column !== i ? "none" : this.sort.down ? "descending" : "ascending"));
    }

    /** What was chosen in charts: next to the table, and in a bar where the table is out of sight. */
    showChosen(count) {
      const remove = (one) => element("button", { type: "button", title: "Do not filter by this", on: { click: () => brush.drop(one) } }, `${one.text} `, element("span", { "aria-hidden": "true" }, "✕"));
      const clear = () => element("button", { type: "button", class: "clear", on: { click: () => brush.clear() } }, "Clear");
      this.chips.replaceChildren(...(brush.chosen.length ? ["From charts: ", ...brush.chosen.map(remove), clear()] : []));
      this.bar ??= document.body.appendChild(element("div", { class: "chosen", role: "status" }));
      this.bar.hidden = !brush.chosen.length;
      const text = `${count.toLocaleString("en")} of ${this.rows.toLocaleString("en")} sessions chosen `;
      this.bar.replaceChildren(...(brush.chosen.length ? [text, element("a", { href: "#sessions" }, "Show them"), " ", clear()] : []));
    }

    // --- One session ------------------------------------------------------------------------------------------------

    row(row) {
      const has = (this.data.timelines[row] ?? null) !== null;
      const what = has ? "Timeline and command" : "Command";
      const name = this.data.labels.map((label) => `${label.name} ${label.words[label.values[row]]}`).join(", ");
      const button = element("button", { type: "button", class: has ? "open has" : "open", "aria-expanded": "false", "aria-label": `${what} of ${name}`, title: what });
      const made = element("tr", { "data-row": String(row), class: this.data.errors[row] ? "failed" : null }, element("td", {}, button), ...this.columns.map((column) => element("td", { class: column.number ? "number" : null }, column.text(row))));
      const toggle = () => this.toggle(made, button, row);
      button.addEventListener("click", (event) => { event.stopPropagation(); toggle(); });
      made.addEventListener("click", () => { if (!getSelection().toString()) toggle(); });
      return made;
    }

    toggle(line, button, row) {
      const opened = this.open.get(row);
      button.setAttribute("aria-expanded", String(!opened));
      line.classList.toggle("opened", !opened);
      if (opened) {
        opened();
        this.open.delete(row);
        line.nextElementSibling.remove();
        return;
      }
      const inside = element("div", { class: "session" });
      line.after(element("tr", { class: "detail" }, element("td", { colspan: String(this.columns.length + 1) }, inside)));
      this.open.set(row, this.detail(inside, row));
    }

    /** Fills in what a row opens; returns what removes it. */
    detail(inside, row) {
      const stored = this.timelines[this.data.timelines[row] ?? -1];
      if (this.data.errors[row]) inside.append(element("p", { class: "error" }, `This run failed: ${this.data.errors[row]}`));
      if (stored) inside.append(element("h3", {}, stored.title), element("p", { class: "outcome" }, stored.outcome));
      const command = (this.data.commands[row] ?? []).map((part) => this.data.parts[part]).join(" ");
      if (command) inside.append(this.command(command, !stored));
      let close = () => {};
      let closed = false;
      if (stored) {
        const place = element("div", { class: "timeline" });
        inside.append(place);
        timeline.draw(place, stored).then((remove) => (closed ? remove() : (close = remove)));
      }
      return () => { closed = true; close(); };
    }

    command(text, alone) {
      const code = element("code", {}, text);
      const copy = element("button", { type: "button" }, "Copy");
      copy.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(text);
          copy.textContent = "Copied";
        } catch {
          // Without the right to the clipboard, the text is at least selected.
          getSelection().selectAllChildren(code);
          copy.textContent = "Selected";
        }
        setTimeout(() => (copy.textContent = "Copy"), 1500);
      });
      const does = alone ? "This command runs the session again and draws its timeline:" : "This command runs the session again:";
      return element("div", { class: "command" }, element("p", { class: "quiet" }, does), element("pre", { tabindex: "0" }, code), copy);
    }
  }

  return { Table };
})();
