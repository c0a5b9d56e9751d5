"use strict";
// The table of sessions: sorts, filters, and opens a session with its timeline and the command that repeats it.

const sessions = (() => {
  const { element } = charts;
  const PAGE = 50;
  const MOST_CHOICES = 40;

  /** So many decimals that the largest number of a column has three significant digits. */
  function decimals(values) {
    let largest = 0;
    let whole = true;
    for (const value of values) {
      if (value === null) continue;
      largest = Math.max(largest, Math.abs(value));
      whole &&= Number.isInteger(value);
    }
    return whole || largest === 0 ? 0 : Math.min(Math.max(2 - Math.floor(Math.log10(largest)), 0), 4);
  }

  /** A long name with places where a line may end. */
  function breakable(name) {
    return name.split(/(?<=[_.])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
  }

  class Table {
    constructor(place, data, timelines) {
      this.data = data;
      this.timelines = timelines;
      this.rows = data.timelines.length || data.labels[0].values.length;
      this.columns = [
        ...data.labels.map((label) => ({ ...label, text: (row) => String(label.words[label.values[row]] ?? "–"), value: (row) => label.words[label.values[row]] })),
        ...data.numbers.map((number) => {
          const places = decimals(number.values);
          return { ...number, number: true, text: (row) => (number.values[row] === null ? "–" : number.values[row].toFixed(places).replace("-", "−")), value: (row) => number.values[row] };
        }),
      ];
      this.sort = null;
      this.page = 0;
      this.query = "";
      this.choices = new Map();
      this.withTimeline = false;
      this.open = new Map();
      place.replaceChildren(this.controls(), this.frame());
      this.update();
      for (const row of data.opened) this.body.querySelector(`[data-row="${row}"] .open`)?.click();
    }

    // --- What is shown ----------------------------------------------------------------------------------------------

    controls() {
      const search = element("input", { type: "search", id: "filter", placeholder: this.example(), autocomplete: "off", spellcheck: "false", "aria-describedby": "filter-help" });
      search.addEventListener("input", () => this.change(() => (this.query = search.value)));
      const selects = this.data.labels.filter((label) => label.words.length > 1 && label.words.length <= MOST_CHOICES && label.name !== "seed").map((label) => this.select(label));
      const controls = element("div", { class: "controls" }, element("label", { class: "wide" }, "Filter", search), ...selects);
      if (this.timelines.length && this.timelines.length < this.rows) {
        const box = element("input", { type: "checkbox" });
        box.addEventListener("change", () => this.change(() => (this.withTimeline = box.checked)));
        controls.append(element("label", { class: "check" }, box, "with timeline"));
      }
      const help = element("p", { class: "quiet", id: "filter-help" }, "Words have to occur in a row; ", element("code", {}, this.condition()), " compares a column, in the unit that its head shows.");
      return element("div", {}, controls, help);
    }

    example() {
      const label = this.data.labels.find((each) => !each.number && each.words.length > 1) ?? this.data.labels[0];
      return `${label.words[0]} ${this.condition()}`;
    }

    condition() {
      const number = this.data.numbers[0];
      return number ? `${number.name}>1` : "seed=1";
    }

    select(label) {
      const made = element("select", { "aria-label": label.name }, element("option", { value: "" }, "all"), ...label.words.map((word, i) => element("option", { value: String(i) }, String(word))));
      made.addEventListener("change", () => this.change(() => (made.value === "" ? this.choices.delete(label.name) : this.choices.set(label.name, +made.value))));
      return element("label", {}, label.name, made);
    }

    frame() {
      this.heads = this.columns.map((column, i) => {
        const button = element("button", { type: "button", on: { click: () => this.order(i) } }, ...breakable(column.name));
        if (column.unit) button.append(" ", element("span", { class: "unit" }, column.unit));
        return element("th", { scope: "col", class: column.number ? "number" : null, "aria-sort": "none" }, button);
      });
      this.body = element("tbody");
      this.count = element("span", { role: "status" });
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

    /** A test of rows for each term of the filter. */
    terms() {
      return this.query.trim().split(/\s+/).filter(Boolean).map((term) => {
        const found = /^(.+?)(>=|<=|!=|=|>|<)(.+)$/.exec(term);
        const column = found && this.named(found[1]);
        if (!column) {
          const word = term.toLowerCase();
          return (row) => this.words(row).includes(word);
        }
        const [, , sign, text] = found;
        const wanted = Number(text);
        if (sign === "=" || sign === "!=") {
          const same = (row) => (column.number && !Number.isNaN(wanted) ? column.value(row) === wanted || column.text(row) === text : String(column.value(row)).toLowerCase() === text.toLowerCase());
          return sign === "=" ? same : (row) => !same(row);
        }
        const tests = { ">": (v) => v > wanted, "<": (v) => v < wanted, ">=": (v) => v >= wanted, "<=": (v) => v <= wanted };
        return (row) => column.value(row) !== null && tests[sign](Number(column.value(row)));
      });
    }

    named(name) {
      const lower = name.toLowerCase();
      return this.columns.find((column) => column.name.toLowerCase() === lower);
    }

    words(row) {
      this.texts ??= [];
      return (this.texts[row] ??= [...this.data.labels.map((label) => String(label.words[label.values[row]])), this.data.errors[row] ?? ""].join(" ").toLowerCase());
    }

    found() {
      const tests = this.terms();
      for (const [name, place] of this.choices) {
        const label = this.data.labels.find((each) => each.name === name);
        tests.push((row) => label.values[row] === place);
      }
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
      const does = alone ? "This session again, with its timeline as a figure:" : "This session again:";
      return element("div", { class: "command" }, element("p", { class: "quiet" }, does), element("pre", { tabindex: "0" }, code), copy);
    }
  }

  return { Table };
})();
