// Drawing of graphs.

const SMALL = 11 / 12; // the size of small text, of that of labels
const BOX = { height: 44, least: 118, most: 240, padding: 24 };
const canvas = document.createElement("canvas").getContext("2d");
const textWidth = (text) => canvas.measureText(text).width;
function shorten(text, width) {
  const fits = (tried) => textWidth(tried) <= width;
  if (text.length <= 200 && fits(text)) return text;
  const end = /^[\w.]+$/.test(text) ? text.slice(-9) : "", letters = [...text].slice(0, 60);
  while (letters.length && !fits(`${letters.join("")}…${end}`)) letters.pop();
  return `${letters.join("")}…${end}`;
}
// As wide as its label, and as the small line below it.
function boxFor([label, line = ""], facts) {
  const width = Math.max(textWidth(label.slice(0, 60)), SMALL * textWidth(line.slice(0, 60)));
  return { ...facts, height: BOX.height, width: clamp(Math.ceil(width) + BOX.padding, BOX.least, BOX.most) };
}

// The points are ends of curves, one in each gap between columns, and of the straight lines between them.
function pathOf(points) {
  const [[x, y], ...rest] = points;
  let path = `M${x} ${y}`;
  rest.forEach(([x2, y2], n) => {
    const [x1, y1] = points[n], middle = (x1 + x2) / 2;
    path += n % 2 || y1 === y2 ? `L${x2} ${y2}` : `C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
  });
  return path;
}

function edgeLine(edge, look = "") {
  const d = pathOf(edge.points), state = edge.late ? " late" : "";
  return svg("g", { class: `line${state}` }, svg("path", { class: "hit", d }),
    svg("path", { class: `edge${look}${state}`, d, "data-from": edge.from.n, "data-to": edge.to.n }));
}

const svgText = (look, x, y, text) => svg("text", { ...look, x, y }, text);
// `parts` are drawn into the box, and `clicked` is called for a click and for Enter.
function boxNode(box, { look, label, focus, current = null, clicked }, ...parts) {
  return svg("g", { class: `node ${look}`, role: "button", tabindex: focus ? 0 : -1, "aria-label": label,
    "aria-current": current, transform: `translate(${box.x} ${box.y - box.height / 2})`, "data-n": box.n,
    click: clicked }, ...parts);
}

// Right and left follow an edge if there is one, else they move to the next column. Enter selects.
function graphKey(event, boxes, edges) {
  const here = boxes.find((box) => box.element === document.activeElement);
  const across = { ArrowLeft: -1, ArrowRight: 1 }[event.key], along = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!here || !(across || along || event.key === "Enter" || event.key === " ")) return;
  event.preventDefault();
  if (!across && !along) here.element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const [left, right] = across > 0 ? ["from", "to"] : ["to", "from"];
  const near = new Set(edges.filter((edge) => edge[left] === here).map((edge) => edge[right]));
  const ahead = (box) => (across ? (box.x - here.x) * across > 0 : along && (box.y - here.y) * along > 0);
  const away = (box) => Math.abs(box.x - here.x) * 1e3 + Math.abs(box.y - here.y);
  const distance = (box) => (across && near.has(box) ? Math.abs(box.y - here.y) : across ? 1e9 + away(box) : away(box));
  const target = boxes.filter(ahead).sort(byAscending(distance))[0];
  if (!target) return;
  for (const box of boxes) box.element.setAttribute("tabindex", box === target ? 0 : -1);
  target.element.focus();
}

// Highlights what leads to a box and from it, at any distance, while the pointer or the focus is on it; and of an edge
// what leads to its start and from its end. `noticed` gets the box. Returns an element around the graph that listens:
// browsers put the focus on an svg element that has a listener for it.
function trace(view, boxes, edges, noticed = () => {}) {
  const into = grouped(edges, ({ to }) => to), out = grouped(edges, ({ from }) => from);
  const whose = new Map([...boxes, ...edges].map((item) => [item.element, item]));
  const follow = (start, next, end, lit) => {
    const reached = new Set([start]);
    for (const box of reached) { // grows in the loop
      lit.add(box);
      for (const edge of next.get(box) ?? []) { lit.add(edge); reached.add(edge[end]); }
    }
  };
  const show = (item) => {
    const lit = new Set(item ? [item] : []);
    if (item) {
      follow(item.from ?? item, into, "from", lit);
      follow(item.to ?? item, out, "to", lit);
    }
    view.classList.toggle("tracing", lit.size > 0);
    for (const [element, other] of whose) element.classList.toggle("lit", lit.has(other));
    noticed(item && !item.from ? item : null);
  };
  const at = ({ target }) => whose.get(target.closest?.(".node, .line")) ?? null;
  let shown = null;
  const change = (item) => { if (item !== shown) show(shown = item); };
  return el("div", {
    pointerover: (event) => change(at(event)), pointerleave: () => change(null),
    focusin: (event) => { if (event.target.matches(":focus-visible")) change(at(event)); },
    focusout: () => change(null),
  }, view);
}

function graphView({ width, height, top = 0, label }, boxes, edges, heads = []) {
  const { margin } = GROUND;
  return svg("svg", { width: width + 2 * margin, height: height + top + 2 * margin, role: "group", "aria-label": label,
    viewBox: `${-margin} ${-top - margin} ${width + 2 * margin} ${height + top + 2 * margin}`,
    keydown: (event) => graphKey(event, boxes, edges) },
  ...heads, ...edges.map((edge) => edge.element), ...boxes.map((box) => box.element));
}
