// The selected version.

// The resource types that have a page in dbt docs.
const DOCS = ["model", "source", "seed", "snapshot", "test", "analysis"];
const docsLink = (type, node, text) =>
  (node && DOCS.includes(type) ? el("a", { href: `index.html#!/${type}/${encodeURIComponent(node)}` }, text) : null);
// Replaces a pending announcement of the counts.
const announce = (text) => { clearTimeout(announceTimer); byId("status").textContent = text; };

async function copy(text, code, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    announce("Copied");
  } catch { // Some browsers have no clipboard for a page from a file: select the text, so that the reader can copy it.
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
    announce("The text is selected: copy it with the keyboard");
  }
}

function copyLine(label, text) {
  const code = el("code", { class: "cut", title: text }, text);
  return el("div", { class: "copy" },
    el("button", { click: (event) => copy(text, code, event.currentTarget) }, `Copy ${label}`), code);
}

const fact = (name, ...values) => el("div", {}, el("dt", {}, name), el("dd", {}, ...values));

function snapshotFacts({ time, author, message, node, invocation, rows, versions }, relation) {
  const others = versions.filter((version) => version.relation !== relation).map((version) => el("button",
    { class: "link", click: () => choose(version.relation, version) }, dataText(version.relation.label)));
  const counted = rowCounts(rows);
  return el("dl", {},
    fact("time", `${toSecond(time)} UTC`), fact("author", author ? dataText(author) : "not known"),
    fact("message", message ? dataText(message) : "none"),
    fact("written by", node ? docsLink(node.split(".")[0], node, dataText(node)) ?? dataText(node) : "not by dbt"),
    counted.length ? fact("rows", ...counted) : null,
    invocation ? fact("invocation", dataText(invocation, "mono")) : null,
    others.length ? fact("changed too", ...others) : null);
}

function whyStale({ late }) {
  const reads = late.slice(0, 5).flatMap(({ relation, at }, n) =>
    [n ? "; " : "", dataText(relation.label, "mono"), ` at ${at}, now at ${relation.newest.id}`]);
  return el("p", {}, el("span", { class: "stale" }, "▲ stale: "), "built from ", ...reads,
    late.length > 5 ? `; and ${counted(late.length - 5, "other input")}` : "");
}

function versionTitle(relation, version) {
  const rows = relation.rows === null ? null : `${counted(relation.rows, "row")} now`;
  const kind = relation.gone ? ["no longer there"] : [relation.resource_type, relation.type, rows];
  return el("div", { class: "title" }, el("strong", { class: "mono" }, dataText(relation.name)),
    version ? el("span", { class: version.state }, `${MARKS[version.state]} ${at(version)} ${version.state}`) : null,
    dimText(kind.filter(Boolean).join(" · ")), docsLink(relation.resource_type, relation.node_id, "open in dbt docs"));
}

function drawVersion(box, relation, version) {
  const facts = el("div", { class: "facts" }, versionTitle(relation, version));
  const note = (text) => facts.append(el("p", { class: "dim" }, text));
  box.replaceChildren(facts);
  if (!version) {
    note(state.version === null ? "No snapshot here changed it." : `This page has no version ${state.version} of it.`);
    return;
  }
  if (version.snapshot) facts.append(snapshotFacts(version.snapshot, relation));
  else note("Its snapshot is expired, or older than those in this page: only what was built from it is known.");
  if (version.state === "stale") facts.append(whyStale(relation));
  const { sql_name: name, macro } = relation, { id } = version;
  facts.append(el("div", { class: "copies" },
    name ? copyLine("SQL", `select * from ${name} version as of ${id}`) : "",
    macro ? copyLine("macro", `select * from {{ ducklake_at(${macro}, version=${id}) }}`) : ""));
  const ends = [version.snapshot && !version.reads.length ? "No inputs in the lake are known of this version." : "",
    version.readers.length ? "" : "Nothing was built from it."].filter(Boolean);
  if (ends.length) note(ends.join(" "));
  const graph = el("div", { class: "graph" });
  box.append(graph);
  drawGraph(graph, version);
}

const chosenRelation = () => index.relations.get(state.model) ?? null;
const chosenVersion = (relation) => (state.version === null ? relation?.newest : relation?.find(state.version)) ?? null;

function drawDetail() {
  const relation = chosenRelation(), version = chosenVersion(relation);
  const inside = byId("version").contains(document.activeElement);
  byId("hint").hidden = relation !== null;
  byId("hint").textContent = state.model !== null ? `There is no ${state.model} in this page.`
    : "Choose a model or a snapshot, to see from which data it was built and what was built from it.";
  for (const part of document.querySelectorAll(".versions, .version")) part.hidden = relation === null;
  if (!relation) return;
  byId("version-count").textContent = counted(relation.versions.length, "version");
  lists.versions.show(relation.backwards ??= [...relation.versions].reverse(), version, "None in this page.");
  drawVersion(byId("version"), relation, version);
  if (inside) document.querySelector(".node.centre")?.focus(); // the focused element was redrawn
}
