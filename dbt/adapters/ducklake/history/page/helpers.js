// Helpers. Values from the data become text nodes or attributes, never markup.

const byId = (id) => document.getElementById(id);
function fill(node, properties, children = []) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}
const el = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);
const svg = (tag, properties = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
// A bdi isolates right-to-left text and direction overrides that are never closed.
const dataText = (text, name) => el("bdi", { class: name }, String(text));
const dimText = (text) => el("span", { class: "dim" }, text);
const cell = (name, ...children) => el("span", { class: `cut ${name}` }, ...children);

const count = (n) => n.toLocaleString("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const counted = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;
const bytesText = (n) => {
  const unit = Math.min(5, Math.max(0, Math.floor(Math.log2(Math.max(n, 1)) / 10)));
  return `${(n / 2 ** (10 * unit)).toLocaleString("en", { maximumFractionDigits: unit ? 1 : 0 })} ${["B", "KiB", "MiB", "GiB",
    "TiB", "PiB"][unit]}`;
};
const clamp = (n, low, high) => Math.max(low, Math.min(high, n));
// All times are in UTC, so that two people who share a link see the same times.
const toSecond = (time) => new Date(time).toISOString().slice(0, 19).replace("T", " ");
const toMinute = (time) => new Date(time).toISOString().slice(0, 16);
const MINUTE = 60e3, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const parseTime = (text) => { const time = Date.parse(`${text}Z`); return Number.isNaN(time) ? null : time; };

function duration(span) {
  const size = Math.abs(span), units = [[DAY, "d"], [HOUR, "h"], [MINUTE, "m"], [1000, "s"], [1, "ms"]];
  const n = Math.max(0, units.findIndex(([unit]) => size >= unit)), [unit, name] = units[size ? n : 4];
  const [less, small] = n < 3 ? units[n + 1] : [Infinity, ""], rest = Math.floor((size % unit) / less);
  return `${span < 0 ? "−" : ""}${Math.floor(size / unit)}${name}${rest ? ` ${rest}${small}` : ""}`;
}
