// The graph of a version: inputs on the left, versions that were built from it on the right.

const URGENCY = { stale: 0, current: 1, gone: 2, superseded: 3, older: 4 };
let cap = 8;

// Breadth first, with at most `cap` versions per level: a source may have thousands of readers.
function collectLevels(start, next, side, columns, more) {
  const seen = new Set([start]);
  let level = [start];
  for (let n = 1; n <= state.depth && level.length; n += 1) {
    const found = [...new Set(level.flatMap(next).filter((version) => !seen.has(version)))];
    found.sort((a, b) => URGENCY[a.state] - URGENCY[b.state] || b.id - a.id);
    for (const version of found) seen.add(version);
    level = found.slice(0, cap).filter((version) => !columns.has(version));
    for (const version of level) columns.set(version, side * n);
    if (found.length > cap) more.push({ column: side * n, hidden: found.length - cap });
  }
}

// The edges among the shown versions, without those that bypass the selected version.
const edgesAmong = (columns) => [...columns].flatMap(([to, column]) =>
  to.reads.filter(({ version }) => version !== to && (column > 0 ? columns.get(version) >= 0 : columns.has(version)))
    .map((read) => ({ from: read.version, to, late: to.state === "stale" && isOutdated(read, to.snapshot) })));

// Makes every edge go from left to right: a version with an edge to its own column moves outwards.
function moveOutwards(columns, edges) {
  for (let turn = 0, moved = true; moved && turn < columns.size; turn += 1) {
    moved = false;
    for (const { from, to } of edges) {
      const left = columns.get(from), right = columns.get(to);
      if (left < right) continue;
      if (right <= 0) columns.set(from, right - 1); else columns.set(to, left + 1);
      moved = true;
    }
  }
}

function versionNode(box, centre) {
  const { version, hidden, width, height } = box, middle = version === centre;
  const label = version ? `${version.relation.name} ${at(version)}, ${version.state}` : `${hidden} more, left out`;
  const widen = () => { cap *= 3; drawDetail(); };
  return boxNode(box, { look: `${version?.state ?? "more"}${middle ? " centre" : ""}`, label, focus: middle,
    current: middle ? "true" : null, clicked: version ? () => choose(version.relation, version) : widen },
  svg("title", {}, label), svg("rect", { class: "box", width, height, rx: 5 }),
  ...(version ? [
    svg("rect", { class: "mark", width: 4, height, rx: 2 }),
    svgText({}, 13, 18, shorten(version.relation.label, width - 22)), svgText({ class: "small" }, 13, 34, at(version)),
    svgText({ class: "word", "text-anchor": "end" }, width - 9, 34, `${MARKS[version.state]} ${version.state}`),
  ] : [svgText({ "text-anchor": "middle" }, width / 2, 27, `${count(hidden)} more`)]));
}

function drawGraph(ground, centre) {
  const columns = new Map([[centre, 0]]), more = [];
  collectLevels(centre, (version) => version.reads.map((read) => read.version), -1, columns, more);
  collectLevels(centre, (version) => version.readers, 1, columns, more);
  const reads = edgesAmong(columns);
  moveOutwards(columns, reads);
  const line = (version) => `${at(version)}  ${MARKS[version.state]} ${version.state}`;
  const boxOf = new Map([...columns].map(([version, column], n) =>
    [version, boxFor([version.relation.label, line(version)], { version, column, n })]));
  const boxes = [...boxOf.values(), ...more.map((facts) => boxFor([""], facts))];
  // An input that was read at several snapshots may be the same version.
  const unique = new Map(reads.map((read) => [`${boxOf.get(read.from).n} ${boxOf.get(read.to).n}`, read]));
  const edges = [...unique.values()].map(({ from, to, late }) => ({ from: boxOf.get(from), to: boxOf.get(to), late }));
  const size = layOut(boxes, edges), middle = boxOf.get(centre), top = 22;
  for (const box of boxes) box.element = versionNode(box, centre);
  for (const edge of edges) edge.element = edgeLine(edge, edge.from === middle || edge.to === middle ? " near" : "");
  const beside = (step) => boxes.find(({ column }) => column === middle.column + step);
  const heads = [[beside(-1), "end", "built from"], [beside(1), "start", "went into"]].filter(([box]) => box)
    .map(([{ x, width }, anchor, text]) => svgText({ class: "small", "text-anchor": anchor },
      anchor === "end" ? x + width : x, -8, text));
  const label = "What this version was built from, and what was built from it";
  ground.append(trace(graphView({ ...size, top, label }, boxes, edges, heads), boxes, edges));
  ground.scrollTo(middle.x - (ground.clientWidth - middle.width) / 2, middle.y + top - ground.clientHeight / 2);
}
