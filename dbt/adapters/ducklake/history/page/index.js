// The index of relations and versions. It is built once, and searches and clicks use it.

class Relation {
  constructor(facts) {
    Object.assign(this, { rows: null }, facts, { versions: [], older: new Map(), late: [] });
    this.search = `${this.name} ${this.node_id ?? ""}`.toLowerCase();
  }
  get newest() { return this.versions.at(-1) ?? null; }
  add(snapshot) {
    const version = { relation: this, id: snapshot.id, snapshot, place: this.versions.length, reads: snapshot.reads,
      readers: [], state: "superseded" };
    this.versions.push(version);
    return version;
  }
  // An input names a snapshot of the lake. The version that was read is the newest one as of that snapshot.
  versionAt(id) {
    let low = 0, high = this.versions.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.versions[middle].id <= id) low = middle + 1; else high = middle;
    }
    return this.versions[low - 1] ?? this.olderAt(id);
  }
  // A version that was read but is not in the page, because it is expired or too old. Its readers make it a node.
  olderAt(id) {
    const version = { relation: this, id, snapshot: null, place: -1, reads: [], readers: [], state: "older" };
    return this.older.get(id) ?? (this.older.set(id, version), version);
  }
  find(id) { return this.versions.find((version) => version.id === id) ?? this.older.get(id) ?? null; }
}

function readSnapshot(facts, before, relationNamed) {
  const { id, lake, author, message, node_id: node, invocation_id: invocation, rows, changed = [] } = facts;
  const parsed = Date.parse(facts.time), time = Number.isNaN(parsed) ? before?.time ?? 0 : parsed;
  const snapshot = { id, lake, time, since: before ? time - before.time : null, author: author || null, message, node,
    invocation, rows, reads: [], search: [`#${id}`, author, message, node, ...changed].join(" ").toLowerCase() };
  snapshot.versions = [...new Set(changed)].map((name) => relationNamed(name).add(snapshot));
  return snapshot;
}

function linkInputs(snapshot, inputs, relationNamed) {
  for (const input of inputs) {
    const relation = relationNamed(input.relation), version = relation.versionAt(input.snapshot);
    snapshot.reads.push({ relation, at: input.snapshot, version });
    version.readers.push(...snapshot.versions);
  }
}

// Whether a newer version of the input exists. A model that reads its own previous version is not stale.
const isOutdated = ({ relation: { newest }, at }, snapshot) => newest && newest.snapshot !== snapshot && at < newest.id;

function setVersionState(relation) {
  const { newest } = relation;
  if (!newest) return;
  // A view has no data. It computes its rows when it is queried, so it is never stale.
  if (relation.type !== "view") relation.late = newest.reads.filter((read) => isOutdated(read, newest.snapshot));
  newest.state = relation.gone ? "gone" : relation.late.length ? "stale" : "current";
}

// Drops the parts that all names share: `orders` if there is one schema, `main.orders` if there are several.
function shortenLabels(relations) {
  const heads = (n) => new Set(relations.map((relation) => relation.name.split(".", n).join("."))).size;
  const drop = heads(2) === 1 ? 2 : heads(1) === 1 ? 1 : 0;
  for (const relation of relations) {
    const parts = relation.name.split(".");
    relation.label = parts.slice(drop).join(".") || relation.name;
    relation.short = parts.slice(2).join(".") || relation.label;
    relation.schema = parts.length > 2 ? parts.slice(drop, 2).join(".") : "";
  }
}

function buildIndex(data) {
  const relations = new Map((data.relations ?? []).map((facts) => [facts.name, new Relation(facts)]));
  const relationNamed = (name) => {
    if (!relations.has(name)) relations.set(name, new Relation({ name, gone: true }));
    return relations.get(name);
  };
  const before = new Map(), given = [...(data.snapshots ?? [])].sort((a, b) => a.id - b.id);
  const snapshots = given.map((facts) => {
    const snapshot = readSnapshot(facts, before.get(facts.lake), relationNamed);
    before.set(facts.lake, snapshot);
    return snapshot;
  });
  snapshots.forEach((snapshot, n) => linkInputs(snapshot, given[n].inputs ?? [], relationNamed));
  const all = [...relations.values()];
  all.forEach(setVersionState);
  shortenLabels(all);
  all.sort((a, b) => (a.label < b.label ? -1 : 1));
  snapshots.sort((a, b) => b.time - a.time || b.id - a.id);
  const late = (relation) => relation.late.map((read) => ({ relation, read }));
  const stale = all.filter((relation) => !relation.gone).flatMap(late);
  // Tables that need something come first, and then large ones.
  const health = all.filter((relation) => relation.health && !relation.gone).sort((a, b) =>
    Boolean(b.health.command) - Boolean(a.health.command) || b.health.bytes - a.health.bytes);
  const authors = new Set(snapshots.map(({ author }) => author).sort((a, b) => (b === null || a < b ? -1 : 1)));
  return { relations, all, stale, health, authors: [...authors], lakes: before.size, snapshots };
}
