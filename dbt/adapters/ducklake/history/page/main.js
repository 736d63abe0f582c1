// The page.

const panes = document.querySelectorAll("nav button");
function pane(name) {
  document.body.dataset.pane = name;
  for (const button of panes) button.setAttribute("aria-pressed", String(button.dataset.pane === name));
}

function findSnapshots(words, only = null) {
  const from = state.from ?? -Infinity, to = state.to === null ? Infinity : state.to + MINUTE; // includes the whole minute
  return index.snapshots.filter((snapshot) =>
    snapshot.time >= from && snapshot.time < to && (state.author === undefined || snapshot.author === state.author)
    && (!only || snapshot.versions.some((version) => version.relation === only))
    && words.every((word) => snapshot.search.includes(word)));
}

// Filters by author and time keep the models that such a snapshot changed.
function findModels(words) {
  const named = index.all.filter((relation) => words.every((word) => relation.search.includes(word)));
  if (state.from === null && state.to === null && state.author === undefined) return named;
  const changed = new Set(findSnapshots([]).flatMap(({ versions }) => versions.map(({ relation }) => relation)));
  return named.filter((relation) => changed.has(relation));
}

function renderFilters(relation) {
  // Writes only values that differ: the user may be typing in the field.
  const write = (id, value) => { if (byId(id).value !== value) byId(id).value = value; };
  write("search", state.q);
  write("from", state.from === null ? "" : toMinute(state.from));
  write("to", state.to === null ? "" : toMinute(state.to));
  write("depth", String(state.depth));
  byId("author").selectedIndex = state.author === undefined ? 0 : index.authors.indexOf(state.author) + 1;
  byId("only").disabled = !relation;
  byId("only").checked = Boolean(state.only && relation);
  byId("only-name").textContent = relation?.label ?? "the chosen model";
  byId("all-time").disabled = state.from === null && state.to === null;
}

let announceTimer = 0;
function renderCounts(models, snapshots, stale, unwell) {
  const ofAll = (n, all) => (n === all ? count(all) : `${count(n)} of ${count(all)}`);
  byId("model-count").textContent = ofAll(models, index.all.length);
  byId("log-count").textContent = ofAll(snapshots, index.snapshots.length);
  byId("stale-count").textContent = stale;
  byId("health-count").textContent = unwell || "";
  clearTimeout(announceTimer); // announces once typing has stopped, not at every letter
  announceTimer = setTimeout(() => announce(`${counted(models, "model")}, ${counted(snapshots, "snapshot")}`), 400);
}

function renderTabs(chosen) {
  for (const [name, panel] of Object.entries(TABS)) {
    fill(byId(`${name}-tab`), { "aria-selected": String(name === chosen), tabindex: name === chosen ? 0 : -1 });
    byId(panel).hidden = name !== chosen;
  }
  for (const id of ["scope-label", "gone-label", "zoom", "all-groups"]) byId(id).hidden = chosen !== "overview";
  byId("depth-label").hidden = chosen !== "lineage";
}

let shownDetail = null;
function render() {
  const relation = chosenRelation(), words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const snapshots = findSnapshots(words, state.only ? relation : null), models = findModels(words);
  const shown = new Set(models), stale = index.stale.filter((row) => shown.has(row.relation));
  const health = index.health.filter((relation) => shown.has(relation));
  renderFilters(relation);
  renderTabs(state.tab);
  renderCounts(models.length, snapshots.length, new Set(stale.map((row) => row.relation)).size,
    health.filter((relation) => relation.health.command).length);
  strip.show(snapshots);
  lists.models.show(models, relation, "No model is like that.");
  lists.log.show(snapshots, chosenVersion(relation)?.snapshot ?? null, "No snapshot is like that.");
  lists.stale.show(stale, null, index.stale.length ? "No stale model is like that."
    : "Every model was built from the newest version of its inputs.");
  lists.health.show(health, null, index.health.length ? "No table is like that."
    : "This lineage says nothing of files: run dbt docs generate again.");
  byId("tip").hidden = true;
  if (state.tab === "overview") overview.show(shown, models.length < index.all.length);
  const detail = JSON.stringify([state.model, state.version, state.depth]);
  if (state.tab !== "lineage" || detail === shownDetail) return;
  shownDetail = detail;
  cap = 8;
  drawDetail();
}

function chooseSnapshot({ versions, node }) {
  const version = versions.find(({ relation }) => relation.name === state.model)
    ?? versions.find(({ relation }) => node && relation.node_id === node) ?? versions[0];
  if (version) choose(version.relation, version); else announce("This snapshot changed no table or view");
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const search = byId("search"), typing = event.target.matches?.("input:not([type=checkbox]), select");
  if (event.key === "/" && !typing) {
    search.focus();
    search.select();
  } else if (event.key === "Escape") {
    // Clears one thing at a time: the search, then the other filters, then the selection.
    if (state.q) update({ q: "" });
    else if (Object.keys(NO_FILTERS).some((name) => state[name] !== NO_FILTERS[name])) update(NO_FILTERS);
    else update({ model: null, version: null, show: null, tab: "overview" });
  } else if (event.target === search && ["ArrowDown", "Enter"].includes(event.key)) {
    pane("models");
    byId("model-list").focus();
  } else return;
  event.preventDefault();
}

const systemDark = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
const showTheme = () => { byId("theme").textContent = isDark() ? "☀ Light" : "☾ Dark"; };
function toggleTheme() {
  const dark = !isDark();
  root.dataset.theme = dark === systemDark.matches ? "" : dark ? "dark" : "light"; // empty: follow the system
  try { localStorage.setItem("lineage-theme", root.dataset.theme); } catch { /* not for a page from a file, here */ }
  showTheme();
}

function listen() {
  const on = (id, event, change) => byId(id).addEventListener(event, ({ target }) => update(change(target)));
  on("search", "input", ({ value }) => ({ q: value }));
  on("author", "change", ({ selectedIndex }) => ({ author: [undefined, ...index.authors][selectedIndex] }));
  on("from", "change", ({ value }) => ({ from: parseTime(value) }));
  on("to", "change", ({ value }) => ({ to: parseTime(value) }));
  on("only", "change", ({ checked }) => ({ only: checked }));
  on("depth", "change", ({ value }) => ({ depth: Number(value) }));
  on("all-time", "click", () => ({ from: null, to: null }));
  on("clear", "click", () => NO_FILTERS);
  on("scope", "change", ({ value }) => ({ show: value }));
  byId("back").addEventListener("click", () => { pane("overview"); update({ tab: "overview" }); });
  on("all-groups", "click", () => ({ show: "groups" }));
  on("gone", "change", ({ checked }) => ({ gone: checked }));
  const tabs = Object.keys(TABS);
  tabs.forEach((name, n) => {
    on(`${name}-tab`, "click", () => ({ tab: name }));
    byId(`${name}-tab`).addEventListener("keydown", ({ key }) => {
      const step = { ArrowLeft: tabs.length - 1, ArrowRight: 1 }[key], other = tabs[(n + step) % tabs.length];
      if (!step) return;
      update({ tab: other });
      byId(`${other}-tab`).focus();
    });
  });
  for (const button of panes) {
    button.addEventListener("click", () => {
      const { pane: name } = button.dataset;
      pane(name);
      if (name === "overview") update({ tab: "overview" });
      else if (name === "log" || (name === "detail" && state.tab === "overview")) update({ tab: "lineage" });
    });
  }
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", () => { fromHash(); render(); });
}

function describe(data) {
  const lakes = (data.lakes ?? []).map((lake) => `${lake.name} @${lake.snapshot}`).join(", ");
  const when = Date.parse(data.generated_at), made = Number.isNaN(when) ? null : `${toSecond(when)} UTC`;
  const words = [data.project, data.target, lakes, made].filter(Boolean).join(" · ");
  fill(byId("about"), { title: words }, [dataText(words)]);
  if (data.project) document.title = `${data.project}: snapshot lineage`;
}

function start(data) {
  index = buildIndex(data);
  for (const author of ["Any author", ...index.authors]) byId("author").append(el("option", {}, author ?? "no author"));
  byId("log-list").classList.toggle("lakes", index.lakes > 1);
  strip = new Strip(byId("strip"), index.snapshots);
  lists = {
    models: new VirtualList(byId("model-list"), modelRow, (relation) => choose(relation)),
    log: new VirtualList(byId("log-list"), logRow, chooseSnapshot),
    versions: new VirtualList(byId("version-list"), versionRow, (version) => choose(version.relation, version)),
    stale: new VirtualList(byId("stale-list"), staleRow, ({ relation }) => choose(relation)),
    health: new VirtualList(byId("health-list"), healthRow, (relation) => choose(relation)),
  };
  canvas.font = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
  overview = new Overview(byId("canvas"));
  fromHash();
  pane(state.tab === "overview" ? "overview" : "detail");
  listen();
  render();
}

function readData() {
  try { return JSON.parse(byId("lineage").textContent); } catch { return null; }
}

function problemWith(data) {
  if (data === null) return "There is no lineage in this page: dbt docs generate writes one, into the target folder.";
  if (!(data.format <= 1)) return `This page reads format 1 of the lineage, and this is format ${data.format}. A newer`
    + " dbt-ducklake wrote it: run dbt docs generate again, with one version of dbt-ducklake.";
  return data.relations?.length || data.snapshots?.some((snapshot) => snapshot.changed?.length) ? null
    : "The lake is empty: it has no tables yet. Run dbt build, and then dbt docs generate again.";
}

showTheme();
systemDark.addEventListener("change", showTheme);
byId("theme").addEventListener("click", toggleTheme);
const data = readData(), nothing = problemWith(data);
if (data) describe(data);
if (nothing === null) start(data);
else {
  fill(byId("notice"), {}, [nothing]).hidden = false;
  for (const part of document.querySelectorAll("main, nav, #search, #author, #clear")) part.hidden = true;
}
