// Layered graphs: boxes in columns from left to right. Edges pass between the boxes, never behind them.

// Distances from one item of a column to the next, and the least and the largest distance of two columns.
const ROOM = { boxes: 16, laneAndBox: 15, lanes: 9, columns: [60, 150], parts: 36 };
const HEAD = 7; // the length of an arrowhead

const mean = (items) => items.reduce((sum, { y }) => sum + y, 0) / items.length;
const isLane = (item) => item.width === undefined;
const byAscending = (key) => (a, b) => key(a) - key(b);
function grouped(items, key) {
  const groups = new Map();
  for (const item of items) groups.get(key(item))?.push(item) ?? groups.set(key(item), [item]);
  return groups;
}

// Every edge gets a left and a right end. In a cycle, the edge that closes it points to the left.
function directEdges(boxes, edges) {
  const out = grouped(edges, ({ from }) => from), open = new Set(), done = new Set();
  for (const edge of edges) Object.assign(edge, { left: edge.from, right: edge.to });
  for (const start of boxes) {
    const path = [], enter = (box) => { open.add(box); path.push({ box, rest: [...out.get(box) ?? []] }); };
    if (!done.has(start)) enter(start);
    while (path.length) {
      const { box, rest } = path.at(-1), edge = rest.shift();
      if (!edge) {
        open.delete(box);
        done.add(box);
        path.pop();
      } else if (open.has(edge.to)) Object.assign(edge, { left: edge.to, right: edge.from });
      else if (!done.has(edge.to)) enter(edge.to);
    }
  }
}

// The column of a box is the length of the longest path to it.
function setColumns(boxes, edges) {
  const out = grouped(edges, ({ left }) => left), missing = new Map(boxes.map((box) => [box, 0]));
  for (const { right } of edges) missing.set(right, missing.get(right) + 1);
  for (const box of boxes) box.column = 0;
  const ready = boxes.filter((box) => !missing.get(box));
  for (const box of ready) { // grows in the loop
    for (const { right } of out.get(box) ?? []) {
      right.column = Math.max(right.column, box.column + 1);
      missing.set(right, missing.get(right) - 1);
      if (!missing.get(right)) ready.push(right);
    }
  }
}

// An edge that passes a column has a lane there. Edges of one box share their lanes: they are one line that branches.
function addLanes(boxes, edges) {
  const first = Math.min(...boxes.map(({ column }) => column)), columns = [], lanesOf = new Map();
  const put = (item, column) => {
    (columns[column] ??= []).push(Object.assign(item, { column, before: [], after: [] }));
    return item;
  };
  const link = (left, right) => { left.after.push(right); right.before.push(left); };
  for (const box of boxes) put(box, box.column - first);
  for (const edge of [...edges].sort(byAscending(({ right }) => right.column))) {
    const { left, right } = edge, lanes = lanesOf.get(left) ?? lanesOf.set(left, new Map()).get(left);
    const kind = left === edge.to ? edge : Boolean(edge.late);
    const shared = lanes.get(kind) ?? lanes.set(kind, []).get(kind);
    let last = left;
    edge.lanes = [];
    for (let column = left.column + 1; column < right.column; column += 1) {
      const known = shared[column], lane = known ?? put({ height: 0 }, column);
      if (!known) link(last, shared[column] = lane);
      edge.lanes.push(last = lane);
    }
    link(last, right);
  }
  return Array.from(columns, (column) => column ?? []);
}

const room = (a, b) => (a.height + b.height) / 2
  + (isLane(a) !== isLane(b) ? ROOM.laneAndBox : isLane(a) ? ROOM.lanes : ROOM.boxes);

// Puts the items of a column as near as possible to where they want to be, in their order and with room between them.
// Those that want to be too close become a block, which stands at the mean of its wishes.
function spread(column, weight) {
  const blocks = [], wish = (block) => block.sum / block.weight;
  let offset = 0;
  column.forEach((item, n) => {
    if (n) offset += room(column[n - 1], item);
    item.y = offset;
    let block = { sum: weight(item) * (item.wanted - offset), weight: weight(item), start: n };
    while (blocks.length && wish(blocks.at(-1)) >= wish(block)) {
      const above = blocks.pop();
      block = { sum: above.sum + block.sum, weight: above.weight + block.weight, start: above.start };
    }
    blocks.push(block);
  });
  blocks.forEach((block, n) => {
    const end = blocks[n + 1]?.start ?? column.length;
    for (let at = block.start; at < end; at += 1) column[at].y += wish(block);
  });
}

const number = (column) => column.forEach((item, place) => { item.place = place; });

// Counts crossings of the edges between each two columns: pairs that stand in another order on their other side.
function countCrossings(columns) {
  let crossings = 0;
  for (const column of columns) {
    const tree = [], places = column.flatMap(({ after }) => after.map(({ place }) => place).sort((a, b) => a - b));
    const size = 1 + Math.max(0, ...places);
    places.forEach((place, before) => {
      let notLarger = 0;
      for (let at = place + 1; at > 0; at -= at & -at) notLarger += tree[at] ?? 0;
      crossings += before - notLarger;
      for (let at = place + 1; at <= size; at += at & -at) tree[at] = (tree[at] ?? 0) + 1;
    });
  }
  return crossings;
}

function swapNeighbors(columns) {
  const pairs = (a, b) => ["before", "after"].reduce((sum, side) => sum + a[side].reduce((part, { place }) =>
    part + b[side].filter((other) => other.place < place).length, 0), 0);
  for (let turn = 0, better = true; better && turn < 10; turn += 1) {
    better = false;
    for (const column of columns) {
      for (let n = 1; n < column.length; n += 1) {
        const [a, b] = [column[n - 1], column[n]];
        if (pairs(a, b) <= pairs(b, a)) continue;
        [column[n - 1], column[n], a.place, b.place, better] = [b, a, n, n - 1, true];
      }
    }
  }
}

// Orders each column by the mean height of its neighbors, from the left and from the right in turns, and keeps the
// order with the fewest crossings.
function orderItems(columns) {
  const items = columns.reduce((sum, column) => sum + column.length, 0);
  const turns = Math.min(24, Math.max(4, Math.floor(40_000 / items)));
  const arrange = (column, side) => {
    for (const item of column) item.wanted = item[side].length ? mean(item[side]) : item.y;
    column.sort(byAscending(({ wanted }) => wanted));
    spread(column, () => 1);
    number(column);
  };
  for (const column of columns) {
    for (const item of column) item.wanted = 0;
    spread(column, () => 1);
    number(column);
  }
  let best = columns.map((column) => [...column]), least = countCrossings(columns);
  for (let turn = 0; turn < turns && least; turn += 1) {
    if (turn % 2) for (const column of [...columns].reverse()) arrange(column, "after");
    else for (const column of columns) arrange(column, "before");
    const crossings = countCrossings(columns);
    if (crossings < least) [best, least] = [columns.map((column) => [...column]), crossings];
  }
  best.forEach((column, n) => { columns[n].splice(0, column.length, ...column); number(column); });
  if (least && items < 1500) swapNeighbors(columns);
}

// Sets the heights, so that edges are short and lanes straight.
function setHeights(columns) {
  const pull = (a, b) => (isLane(a) && isLane(b) ? 8 : isLane(a) || isLane(b) ? 2 : 1);
  for (let turn = 0; turn < 28; turn += 1) {
    for (const column of turn % 2 ? [...columns].reverse() : columns) {
      for (const item of column) {
        const near = turn > 23 ? [...item.before, ...item.after] : turn % 2 ? item.after : item.before;
        item.force = near.reduce((sum, other) => sum + pull(item, other), 0);
        const pulled = near.reduce((sum, other) => sum + pull(item, other) * other.y, 0);
        item.wanted = near.length ? pulled / item.force : item.y;
      }
      spread(column, ({ force }) => force || 0.2);
    }
  }
  const items = columns.flat(), top = Math.min(...items.map(({ y, height }) => y - height / 2));
  for (const item of items) item.y = Math.round(item.y - top);
}

// Sets where columns stand. Steep edges get more room between them.
function setWidths(columns) {
  let x = 0;
  return columns.map((column) => {
    const width = Math.max(0, ...column.map((item) => item.width ?? 0));
    const steepest = Math.max(0, ...column.flatMap((item) => item.after.map(({ y }) => Math.abs(y - item.y))));
    const left = x, right = x + width;
    for (const item of column) if (!isLane(item)) Object.assign(item, { x, width });
    x = right + clamp(ROOM.columns[0] + steepest / 8, ...ROOM.columns);
    return { left, right };
  });
}

// Where edges leave and reach a box, so that their ends do not lie on each other.
function setEnds(edges) {
  const fan = (ends, name, { height }, step) => ends.forEach((end, n) => {
    end[name] = (n - (ends.length - 1) / 2) * Math.min(step, (height - 14) / Math.max(1, ends.length - 1));
  });
  for (const [box, reaching] of grouped(edges, ({ right }) => right)) {
    fan(reaching.sort(byAscending(({ lanes, left }) => (lanes.at(-1) ?? left).y)), "reach", box, 9);
  }
  for (const [box, leaving] of grouped(edges, ({ left }) => left)) {
    const kinds = [...grouped(leaving, (edge) => (edge.left === edge.to ? edge : Boolean(edge.late))).values()];
    const next = (kind) => mean(kind.map(({ lanes, right }) => lanes[0] ?? right));
    const ends = kinds.sort(byAscending(next)).map((kind) => ({ kind }));
    fan(ends, "leave", box, 8);
    for (const { kind, leave } of ends) for (const edge of kind) edge.leave = leave;
  }
}

function routeEdges(columns, edges) {
  const bounds = setWidths(columns);
  setEnds(edges);
  for (const edge of edges) {
    const { left, right, lanes } = edge, backward = left === edge.to;
    const passed = lanes.flatMap((lane) => [[bounds[lane.column].left, lane.y], [bounds[lane.column].right, lane.y]]);
    edge.points = [[left.x + left.width + (backward ? HEAD : 0), left.y + edge.leave], ...passed,
      [right.x - (backward ? 0 : HEAD), right.y + edge.reach]];
    if (backward) edge.points.reverse();
  }
  const items = columns.flat();
  return { width: bounds.at(-1).right, height: Math.max(...items.map(({ y, height }) => y + height / 2)) };
}

// Boxes are { width, height } and get their left end `x` and their middle `y`. Edges are { from, to, late } and get
// `points`. The steps are Sugiyama's: columns, lanes, order, heights. Boxes may bring their columns.
function layOut(boxes, edges) {
  if (boxes[0].column === undefined) {
    directEdges(boxes, edges);
    setColumns(boxes, edges);
  } else {
    for (const edge of edges) {
      const [left, right] = [edge.from, edge.to].sort(byAscending(({ column }) => column));
      Object.assign(edge, { left, right });
    }
  }
  const columns = addLanes(boxes, edges);
  orderItems(columns);
  setHeights(columns);
  return routeEdges(columns, edges);
}

// Lays out the parts that no edge connects one by one, and puts them in rows of about the shape of the window.
function layOutParts(boxes, edges, window) {
  const near = grouped(edges.flatMap(({ from, to }) => [[from, to], [to, from]]), ([box]) => box);
  const parts = [], seen = new Set();
  const alone = Math.max(0, ...boxes.filter((box) => !near.has(box)).map(({ width }) => width));
  for (const start of boxes) {
    if (seen.has(start)) continue;
    const part = [start];
    seen.add(start);
    for (const box of part) { // grows in the loop
      for (const [, other] of near.get(box) ?? []) if (!seen.has(other)) seen.add(other) && part.push(other);
    }
    if (part.length === 1) start.width = alone;
    const members = new Set(part), own = edges.filter(({ from }) => members.has(from));
    parts.push({ boxes: part, edges: own, ...layOut(part, own) });
  }
  parts.sort((a, b) => b.edges.length - a.edges.length);
  const area = parts.reduce((sum, part) => sum + (part.width + ROOM.parts) * (part.height + ROOM.parts), 0);
  const fitting = Math.min(Math.sqrt(area * window.width / window.height), window.width);
  const most = Math.max(fitting, ...parts.map((part) => part.width));
  let x = 0, y = 0, row = 0, width = 0;
  for (const part of parts) {
    const gap = part.edges.length ? ROOM.parts : ROOM.boxes;
    if (x && x + part.width > most) [x, y, row] = [0, y + row, 0];
    for (const box of part.boxes) { box.x += x; box.y += y; }
    for (const edge of part.edges) for (const point of edge.points) { point[0] += x; point[1] += y; }
    row = Math.max(row, part.height + gap);
    width = Math.max(width, x + part.width);
    x += part.width + gap;
  }
  return { width, height: y + row };
}
