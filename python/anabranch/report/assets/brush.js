"use strict";
// What links charts and sessions: a condition or a range that is chosen in a chart filters the table of sessions, and
// the sessions that the table shows stand out in the charts.

const brush = (() => {
  /** Who hears of what is chosen: the table; of what is shown, and which session is under the pointer: the charts. */
  const listeners = { choice: [], shown: [], pointed: [] };
  /** What was chosen in charts: { text, labels } of a condition, or { text, key, low, high, labels } of a range of
      values, where labels are what its chart is of. */
  const chosen = [];
  let data = null;
  /** The rows that the table shows; null where it shows all of them. */
  let rows = null;
  /** The row under the pointer. */
  let pointed = null;
  const columns = new Map();
  const names = new Map();

  /** Whether a value of a chart is that of the table; charts round numbers for the screen. */
  function same(a, b) {
    if (typeof a === "number" && typeof b === "number") return Math.abs(a - b) <= 1e-5 * Math.max(Math.abs(a), Math.abs(b));
    return String(a) === String(b);
  }

  function attach(sessions) {
    data = sessions;
    for (const label of sessions.labels) {
      columns.set(label.key, (row) => label.words[label.values[row]]);
      names.set(label.key, label.name);
    }
    for (const number of sessions.numbers) columns.set(number.key, (row) => number.values[row]);
  }

  const tell = (what) => listeners[what].forEach((call) => call());
  const listen = (what, call) => listeners[what].push(call);

  /** Whether the table has what a chart would choose. */
  const knows = (labels) => data !== null && Object.keys(labels).length > 0 && Object.keys(labels).every((key) => columns.has(key));

  const matches = (row, labels) => Object.entries(labels).every(([key, value]) => !columns.has(key) || same(columns.get(key)(row), value));

  /** Whether a row is in all that was chosen: in one of the conditions, and in every range. */
  function accepts(row) {
    const conditions = chosen.filter((each) => !each.key);
    const ranges = chosen.filter((each) => each.key);
    if (conditions.length && !conditions.some((each) => matches(row, each.labels))) return false;
    return ranges.every(({ key, low, high, labels }) => {
      const value = columns.get(key)(row);
      return value !== null && value >= low && value <= high && matches(row, labels);
    });
  }

  /** A condition in words. */
  const worded = (labels) => Object.entries(labels).filter(([key]) => names.has(key)).map(([key, value]) => `${names.get(key)} = ${value}`).join(", ");

  /** Chooses a condition, or no longer chooses it. */
  function toggle(labels) {
    const text = worded(labels);
    const at = chosen.findIndex((each) => !each.key && each.text === text);
    if (at >= 0) chosen.splice(at, 1);
    else chosen.push({ labels, text });
    tell("choice");
  }

  /** Chooses the sessions whose value is in a range; there is one range for each column. */
  function range(key, low, high, labels, text) {
    const at = chosen.findIndex((each) => each.key === key);
    if (at >= 0) chosen.splice(at, 1);
    chosen.push({ key, low, high, text, labels });
    tell("choice");
  }

  function drop(one) {
    chosen.splice(chosen.indexOf(one), 1);
    tell("choice");
  }

  function clear() {
    chosen.length = 0;
    tell("choice");
  }

  /** The table says which rows it shows. */
  function show(shown) {
    rows = shown.length === (data.timelines.length || data.labels[0].values.length) ? null : shown;
    tell("shown");
  }

  function point(row) {
    if (row === pointed) return;
    pointed = row;
    tell("pointed");
  }

  /** Whether a condition is chosen. */
  const holds = (labels) => chosen.some((each) => !each.key && each.text === worded(labels));

  /** Whether a condition has a session that the table shows. */
  const stands = (labels) => rows === null || !knows(labels) || rows.some((row) => matches(row, labels));

  /** The values of a column of the sessions that the table shows, where it does not show all. */
  function values(key, labels) {
    if (rows === null || !columns.has(key)) return [];
    return rows.filter((row) => matches(row, labels)).map(columns.get(key)).filter((value) => value !== null);
  }

  /** The value of the session under the pointer, if it is of a condition. */
  function pointedAt(key, labels) {
    return pointed !== null && columns.has(key) && matches(pointed, labels) ? columns.get(key)(pointed) : null;
  }

  return { accepts, attach, chosen, clear, drop, holds, knows, listen, has: (key) => columns.has(key), pointedAt, point, range, show, stands, toggle, values };
})();
