// The overview: the current version of each relation, and what it was built from.

const MANY = 300; // more relations than that are collapsed into groups at first
const FEW = 5; // fewer relations than that make no group of their own
const CROWD = 60; // a group of more relations than that is shown without the groups that it reads
const READABLE = 0.7; // the smallest scale at which text can be read
const GROUND = { padding: 20, margin: 4 }; // around the graph: of the style sheet, and of its drawing

// What a view reads is an input of the view's readers too. The way through the view says so, unless the input moved on.
function behindViews(views, found = new Set()) {
  for (const { relation } of views.flatMap((view) => view.newest?.reads ?? [])) {
    if (found.has(relation)) continue;
    found.add(relation);
    if (relation.type === "view") behindViews([relation], found);
  }
  return found;
}

function currentEdges(relations) {
  const shown = new Set(relations);
  return relations.flatMap((to) => {
    const read = new Set(to.newest?.reads.map(({ relation }) => relation));
    const inputs = [...read].filter((from) => from !== to && shown.has(from));
    const late = new Set(to.late.map(({ relation }) => relation));
    const implied = behindViews(inputs.filter(({ type }) => type === "view"));
    return inputs.filter((from) => late.has(from) || !implied.has(from))
      .map((from) => ({ from, to, late: late.has(from) }));
  });
}

// Groups by schema, and in a schema of many relations by the first word of the name: `stg_*`.
function groupsOf(relations) {
  const groups = new Map();
  const add = (names, members) => {
    const name = names.filter(Boolean).join(".");
    groups.set(name, [...groups.get(name) ?? [], ...members]);
  };
  for (const [schema, inSchema] of grouped(relations, (relation) => relation.schema)) {
    if (inSchema.length <= MANY) { add([schema || "others"], inSchema); continue; }
    for (const [word, members] of grouped(inSchema, ({ short }) => short.split("_")[0])) {
      add([schema, members.length < FEW ? "others" : `${word}_*`], members);
    }
  }
  return new Map([...groups].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const KINDS = ["source", "seed", "model", "snapshot"];
const kindOf = ({ type, resource_type: kind }) => (type === "view" && kind !== "source" ? "view" : kind ?? "table");
const verdictOn = ({ gone, newest }) => (gone ? "gone" : newest?.state ?? "");
const staleAmong = (relations) => relations.filter((relation) => verdictOn(relation) === "stale").length;
const whyStaleList = ({ gone, late }) => (gone ? [] : late.map(({ relation: { label, newest }, at: read }) =>
  `${label} was read at @${read} and is now at @${newest.id}`));

// The line below the name, in full and shorter.
function linesBelow(relation) {
  const kind = `${at(relation.newest)} ${kindOf(relation)}`;
  return [...(relation.schema ? [`${kind} · ${relation.schema}`] : []), kind, at(relation.newest)];
}

function relationNode(box) {
  const { relation, width, height } = box, { name, short, newest } = relation;
  const kind = kindOf(relation), verdict = verdictOn(relation), badge = { stale: "▲ stale", gone: "✕ gone" }[verdict];
  const color = KINDS.includes(relation.resource_type) ? `kind-${relation.resource_type}` : "";
  const look = `${color} ${verdict} ${kind === "view" ? "view" : ""}`;
  const pill = badge ? textWidth(badge) * SMALL + 12 : 0, space = (width - 20 - pill) / SMALL;
  const lines = linesBelow(relation), line = lines.find((tried) => textWidth(tried) <= space) ?? lines.at(-1);
  const label = [`${name} ${at(newest)}, ${kind}, ${verdict || "no version"}`, ...whyStaleList(relation)].join("; ");
  return boxNode(box, { look, label, clicked: () => choose(relation) },
    svg("rect", { class: "box", width, height, rx: 5 }), svg("rect", { class: "mark", width: 4, height, rx: 2 }),
    svgText({ class: "label" }, 13, 18, shorten(short, width - 20)), svgText({ class: "small" }, 13, 35, line),
    ...(badge ? [svg("rect", { class: "badge", x: width - pill - 6, y: 24, width: pill, height: 15, rx: 7.5 }),
      svgText({ class: "word", "text-anchor": "middle" }, width - pill / 2 - 6, 35, badge)] : []));
}

const GROUP_ENDS = { from: "what is read from this group", to: "what reads in this group" };

function groupNode(box) {
  const { group, members, end, width, height } = box;
  const stale = staleAmong(members), size = counted(members.length, "relation");
  const label = [group, size, `${stale} stale`, GROUP_ENDS[end], "opens the group"].filter(Boolean).join(", ");
  return boxNode(box, { look: "group", label, clicked: () => update({ show: `in:${group}` }) },
    svg("rect", { class: "behind", x: 3, y: 3, width, height, rx: 5 }),
    svg("rect", { class: "box", width, height, rx: 5 }),
    svgText({ class: "label" }, 12, 18, shorten(group, width - 20)), svgText({ class: "small" }, 12, 35, size),
    ...(stale ? [svgText({ class: "word stale", "text-anchor": "end" }, width - 9, 35, `▲ ${count(stale)}`)] : []));
}

function relationFacts(relation) {
  const { name, gone, type, resource_type: node, rows, newest } = relation, reasons = whyStaleList(relation);
  const facts = [node ?? "not a node of this project", gone ? "gone" : type, rows !== null && counted(rows, "row")];
  const { id, time, author, message } = newest?.snapshot ?? {};
  const commit = id === undefined ? ["no snapshot in this page changed it"]
    : [`@${id}`, `${toSecond(time)} UTC`, author, message?.slice(0, 120)];
  return [el("strong", { class: "mono" }, dataText(name)), dimText(facts.filter(Boolean).join(" · ")),
    el("span", { class: "dim" }, dataText(commit.filter(Boolean).join(" · "))),
    ...reasons.slice(0, 6).map((reason) => el("span", { class: "stale" }, "▲ ", dataText(reason))),
    reasons.length > 6 ? dimText(`and ${counted(reasons.length - 6, "other input")}`) : null];
}

const groupFacts = ({ group, members, end }) => [el("strong", { class: "mono" }, dataText(group)),
  dimText(`${counted(members.length, "relation")}, ${count(staleAmong(members))} stale`),
  end ? dimText(GROUP_ENDS[end]) : null];

class Overview {
  constructor(ground) {
    Object.assign(this, { ground, boxes: [], edges: [], drawn: null, view: null, tipped: null });
    Object.assign(this, { scale: 1, fitted: READABLE });
    this.existing = index.all.filter((relation) => !relation.gone);
    fill(ground, {
      wheel: (event) => this.wheel(event), pointerdown: (event) => this.drag(event), scroll: () => this.tip(this.tipped),
      keydown: ({ key }) => this.zoomBy({ "+": 1.25, "-": 0.8, 0: 1 / this.scale }[key]),
    });
    new ResizeObserver(() => { if (this.fitted !== null) this.fit(this.fitted); }).observe(ground);
    const clicks = { "zoom-out": () => this.zoomBy(0.8), "zoom-level": () => this.zoomBy(1 / this.scale),
      "zoom-in": () => this.zoomBy(1.25), "zoom-fit": () => this.fit(0) };
    for (const [id, click] of Object.entries(clicks)) fill(byId(id), { click });
  }

  // All relations that may be shown, with their edges and groups.
  get content() {
    const relations = state.gone ? index.all : this.existing;
    if (this.known?.relations !== relations) {
      this.known = { relations, edges: currentEdges(relations), groups: groupsOf(relations) };
    }
    return this.known;
  }
  // What is shown of them: "all", "groups", what is "around" the chosen relation, or what is "in:" a group.
  get scope() {
    const { relations, groups } = this.content, chosen = relations.includes(chosenRelation());
    const possible = { all: true, groups: groups.size > 1, around: chosen };
    if (possible[state.show] || (state.show?.startsWith("in:") && groups.has(state.show.slice(3)))) return state.show;
    if (relations.length <= MANY) return "all";
    return chosen ? "around" : groups.size > 1 ? "groups" : "all";
  }
  around(chosen) {
    const found = new Set([chosen]);
    for (const [end, other] of [["from", "to"], ["to", "from"]]) {
      const next = grouped(this.content.edges, (edge) => edge[end]), reached = new Set([chosen]);
      let level = [chosen];
      for (let n = 0; n < state.depth; n += 1) {
        const ahead = level.flatMap((relation) => next.get(relation) ?? []).map((edge) => edge[other]);
        level = [...new Set(ahead)].filter((relation) => !reached.has(relation));
        for (const relation of level) { reached.add(relation); found.add(relation); }
      }
    }
    return found;
  }
  // Returns what stands for a relation at the end of an edge, "from" or "to", or alone: itself, its group, or nothing.
  standsFor(scope) {
    const { groups } = this.content;
    if (scope === "all") return (relation) => relation;
    if (scope === "around") {
      const found = this.around(chosenRelation());
      return (relation) => (found.has(relation) ? relation : null);
    }
    const inside = new Set(groups.get(scope.slice(3))), crowded = inside.size > CROWD, places = new Map();
    for (const [group, members] of groups) {
      // Beside a group, others are boxes on the left, for what is read from them, and on the right, for their readers.
      const [alone, from, to] = [null, "from", "to"].map((end) => ({ group, members, end }));
      const place = scope === "groups" ? { alone, from: alone, to: alone } : crowded ? {} : { from, to };
      for (const member of members) places.set(member, place);
    }
    return (relation, end) => (inside.has(relation) ? relation : places.get(relation)[end]);
  }
  graph(scope) {
    const { relations, edges } = this.content, standsFor = this.standsFor(scope), boxOf = new Map(), joined = new Map();
    const groupLine = (members) => `${counted(members.length, "relation")}  ▲ ${staleAmong(members)}`;
    const newBox = (item, n) => (item.group === undefined
      ? boxFor([item.short, linesBelow(item)[0]], { relation: item, n })
      : boxFor([item.group, groupLine(item.members)], { ...item, n }));
    const box = (item) => boxOf.get(item) ?? boxOf.set(item, newBox(item, boxOf.size)).get(item);
    for (const item of relations.map((relation) => standsFor(relation, "alone"))) if (item) box(item);
    for (const edge of edges) {
      const [from, to] = [standsFor(edge.from, "from"), standsFor(edge.to, "to")];
      if (!from || !to || from === to || (from.end && to.end)) continue;
      const [left, right] = [box(from), box(to)], key = `${left.n} ${right.n}`;
      joined.set(key, { from: left, to: right, late: edge.late || Boolean(joined.get(key)?.late) });
    }
    return { boxes: [...boxOf.values()], edges: [...joined.values()] };
  }

  // Shows the scope. With a search or filters, what does not match is faint.
  show(matching, searched) {
    const { scope } = this, chosen = chosenRelation();
    const wanted = JSON.stringify([scope, state.gone, ...(scope === "around" ? [state.model, state.depth] : [])]);
    this.showTools(scope);
    if (wanted !== this.drawn) {
      this.drawn = wanted;
      this.draw(scope);
    }
    for (const { element, relation, members = [relation] } of this.boxes) {
      const current = relation !== undefined && relation === chosen;
      element.classList.toggle("off", searched && !members.some((member) => matching.has(member)));
      element.classList.toggle("chosen", current);
      element.setAttribute("aria-current", current);
    }
    const isOff = ({ element }) => element.classList.contains("off");
    for (const { element, from, to } of this.edges) element.classList.toggle("off", isOff(from) || isOff(to));
    const chosenBox = this.boxes.find(({ relation }) => relation && relation === chosen);
    if (chosenBox && chosen !== this.chosen) {
      this.focusable(chosenBox);
      this.reveal(chosenBox);
    } else if (searched && state.q !== this.searched) {
      const found = this.boxes.filter((box) => !isOff(box));
      if (found.length && !found.some((box) => this.isVisible(box))) this.reveal(found[0]);
    }
    Object.assign(this, { chosen, searched: state.q });
  }
  draw(scope) {
    Object.assign(this, this.graph(scope), { view: null, chosen: null });
    const { boxes, edges, ground } = this;
    ground.replaceChildren();
    if (!boxes.length) return;
    const [width, height] = [ground.clientWidth, ground.clientHeight].map((n) => Math.max(200, n - 2 * GROUND.padding) / READABLE);
    this.size = layOutParts(boxes, edges, { width, height });
    for (const box of boxes) box.element = box.relation ? relationNode(box) : groupNode(box);
    for (const edge of edges) edge.element = edgeLine(edge);
    const label = "The current version of each relation, and what it was built from";
    this.view = graphView({ ...this.size, label }, boxes, edges);
    ground.append(trace(this.view, boxes, edges, (box) => this.tip(box)));
    this.focusable(boxes[0]);
    this.fit();
    ground.scrollTo(0, 0);
  }
  showTools(scope) {
    const { relations, edges, groups } = this.content, chosen = chosenRelation(), several = groups.size > 1;
    const gone = index.all.length - this.existing.length, stale = staleAmong(relations);
    const bySchema = [...groups.keys()].every((name) => !/(\*|others)$/.test(name));
    const options = [["all", `every relation (${count(relations.length)})`],
      several && ["groups", `${bySchema ? "schemas" : "groups by name"} (${count(groups.size)})`],
      relations.includes(chosen) && ["around", `around ${chosen.label}`],
      ...(several ? [...groups].map(([name, members]) => [`in:${name}`, `${name} (${count(members.length)})`]) : []),
    ].filter(Boolean);
    byId("scope").replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
    byId("scope").value = scope;
    byId("scope-label").hidden = options.length < 2;
    byId("all-groups").hidden = !scope.startsWith("in:");
    byId("depth-label").hidden = scope !== "around";
    byId("gone-label").hidden = !gone;
    byId("gone-count").textContent = `${count(gone)} gone`;
    byId("gone").checked = state.gone;
    byId("overview-count").textContent = [counted(relations.length, "relation"), counted(edges.length, "edge"),
      stale ? `${count(stale)} stale` : "none stale"].join(", ");
    const kinds = new Set(relations.flatMap((relation) =>
      [kindOf(relation), relation.resource_type, verdictOn(relation)]));
    for (const part of document.querySelectorAll(".legend [data-of]")) part.hidden = !kinds.has(part.dataset.of);
  }
  focusable(box) {
    for (const other of this.boxes) other.element.setAttribute("tabindex", other === box ? 0 : -1);
  }

  // Says what is known of a box, below it.
  tip(box) {
    const tip = byId("tip");
    this.tipped = box;
    tip.hidden = !box;
    if (!box) return;
    const inputs = this.edges.filter(({ to }) => to === box), readers = this.edges.filter(({ from }) => from === box);
    const near = `${inputs.length ? counted(inputs.length, "input") : "no inputs"} · read by ${readers.length || "none"}`;
    const facts = box.relation ? [...relationFacts(box.relation), dimText(near)] : groupFacts(box);
    tip.replaceChildren(...facts.filter(Boolean));
    const node = box.element.getBoundingClientRect(), { width, height } = tip.getBoundingClientRect();
    const below = node.bottom + 8, top = below + height < innerHeight ? below : Math.max(6, node.top - height - 8);
    const left = clamp(node.left, 6, Math.max(6, innerWidth - width - 6));
    Object.assign(tip.style, { left: `${left}px`, top: `${top}px` });
  }

  // The graph scrolls in its ground, so that every way to scroll pans it. It does not become too small to be read by
  // itself, only if the reader asks for the whole.
  fit(least = READABLE) {
    const { ground, view, size } = this, rim = 2 * GROUND.padding, margins = 2 * GROUND.margin;
    if (!view || !ground.clientWidth) return;
    const whole = Math.min((ground.clientWidth - rim) / (size.width + margins),
      (ground.clientHeight - rim) / (size.height + margins));
    this.zoomBy(clamp(whole, least, 1) / this.scale);
    this.fitted = least; // until the reader zooms, it fits when the size of the window changes
  }
  // Zooms about a point of the window, else about the middle.
  zoomBy(factor, x = null, y = null) {
    const { ground, view, size } = this, margins = 2 * GROUND.margin;
    if (!view || !factor) return;
    const box = ground.getBoundingClientRect(), before = view.getBoundingClientRect();
    const [atX, atY] = [x ?? box.left + box.width / 2, y ?? box.top + box.height / 2];
    this.scale = clamp(this.scale * factor, 0.05, 2.5);
    this.fitted = null;
    fill(view, { width: (size.width + margins) * this.scale, height: (size.height + margins) * this.scale });
    const after = view.getBoundingClientRect();
    ground.scrollBy(after.left - atX + (atX - before.left) / before.width * after.width,
      after.top - atY + (atY - before.top) / before.height * after.height);
    byId("zoom-level").textContent = `${Math.round(this.scale * 100)} %`;
  }
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoomBy(Math.exp(-clamp(event.deltaY, -60, 60) / 200), event.clientX, event.clientY);
  }
  drag({ button, pointerType, target, clientX, clientY }) {
    if (button || pointerType === "touch" || target.closest(".node")) return;
    const { ground } = this, left = ground.scrollLeft + clientX, top = ground.scrollTop + clientY;
    const until = new AbortController();
    const end = () => { until.abort(); ground.classList.remove("dragged"); };
    ground.classList.add("dragged");
    addEventListener("pointermove", (event) => ground.scrollTo(left - event.clientX, top - event.clientY), until);
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, end, until);
  }
  isVisible({ element }) {
    const box = this.ground.getBoundingClientRect(), { left, right, top, bottom } = element.getBoundingClientRect();
    return right > box.left && left < box.right && bottom > box.top && top < box.bottom;
  }
  reveal({ element }) {
    const box = this.ground.getBoundingClientRect(), { left, top, width, height } = element.getBoundingClientRect();
    this.ground.scrollBy(left + width / 2 - box.left - box.width / 2, top + height / 2 - box.top - box.height / 2);
  }
}
