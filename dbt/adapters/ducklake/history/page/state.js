// Selection and filters. They are kept in the URL's hash, so that a link can be shared.

const NO_FILTERS = { q: "", author: undefined, from: null, to: null, only: false };
const INITIAL_STATE = { ...NO_FILTERS, model: null, version: null, tab: null, depth: 3, show: null, gone: false };
const TABS = { overview: "overview", lineage: "lineage-panel", stale: "stale-panel", health: "health-panel" };
let index = null, lists = null, strip = null, overview = null, state = INITIAL_STATE;

// A link to a model or with filters of snapshots opens the history.
const defaultTab = ({ model, author, from, to, only }) =>
  (model !== null || author !== undefined || from !== null || to !== null || only ? "lineage" : "overview");

function fromHash() {
  const given = new URLSearchParams(location.hash.slice(1)), author = given.get("author") || null;
  const version = given.has("version") ? Number(given.get("version")) : NaN, depth = Number(given.get("depth"));
  state = {
    q: given.get("q") ?? "",
    author: given.has("author") && index.authors.includes(author) ? author : undefined,
    from: parseTime(given.get("from")), to: parseTime(given.get("to")), only: given.has("only"),
    model: given.get("model"), version: Number.isSafeInteger(version) ? version : null,
    depth: depth >= 1 && depth <= 9 ? depth : INITIAL_STATE.depth,
    show: given.get("show"), gone: given.has("gone"),
  };
  state.tab = given.get("tab") in TABS ? given.get("tab") : defaultTab(state);
}

function toHash() {
  const words = { ...state, from: state.from && toMinute(state.from), to: state.to && toMinute(state.to),
    author: state.author === null ? "" : state.author, only: state.only ? 1 : false, gone: state.gone ? 1 : false,
    tab: state.tab === defaultTab(state) ? null : state.tab };
  return `#${new URLSearchParams(Object.entries(words).filter(([name, word]) => word !== INITIAL_STATE[name]))}`;
}

let hashTimer = 0;
function update(change) {
  const step = ["model", "version", "tab", "show"].some((name) => name in change && change[name] !== state[name]);
  const write = () => {
    if (toHash() === (location.hash || "#")) return;
    try { history[step ? "pushState" : "replaceState"](null, "", toHash()); } catch { location.hash = toHash(); }
  };
  state = { ...state, ...change };
  clearTimeout(hashTimer);
  // A selection is a history entry; typing is not. Browsers limit how often the URL may change, hence the delay.
  if (step) write(); else hashTimer = setTimeout(write, 150);
  render();
}

function choose(relation, version = null) {
  pane("detail");
  update({ model: relation.name, version: version?.id ?? null, tab: "lineage" });
  // On a phone or at a high zoom, the list with the focus is hidden now.
  if (!document.activeElement.checkVisibility()) byId("version-list").focus();
}
