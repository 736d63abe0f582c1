// Virtual lists: only visible rows are in the document, so long lists stay fast.

class VirtualList {
  constructor(box, write, choose) {
    Object.assign(this, { box, write, choose, items: [], active: 0, chosen: null, top: 0 });
    this.space = box.appendChild(el("div", { role: "presentation" }));
    const draw = () => { this.frame = null; this.draw(); };
    fill(box, {
      scroll: () => { this.top = box.scrollTop; this.frame ??= requestAnimationFrame(draw); },
      click: (event) => this.take(Number(event.target.closest(".option")?.dataset.n ?? NaN)),
      keydown: (event) => this.key(event),
    });
    new ResizeObserver(() => {
      const unseen = !this.room; // a list that was hidden scrolls to its selection when it is shown
      this.measure();
      if (unseen) this.reveal(); else this.draw();
    }).observe(box);
    this.measure();
  }
  // The row height is in the style sheet; it is larger on a phone.
  measure() {
    this.row = parseFloat(getComputedStyle(this.box).getPropertyValue("--row"));
    Object.assign(this, { room: this.box.clientHeight, drawn: null });
  }
  show(items, chosen, empty) {
    const before = this.items[this.active], reveal = chosen !== this.chosen;
    const found = items.indexOf(reveal && chosen ? chosen : before);
    Object.assign(this, { items, chosen, drawn: null, active: Math.max(0, found) });
    if (items.length) this.box.removeAttribute("data-empty"); else this.box.setAttribute("data-empty", empty);
    if (found < 0 && this.top) this.box.scrollTop = this.top = 0;
    if (reveal && items[this.active] === chosen) this.reveal(); else this.draw();
  }
  // Uses the cached height and scroll position: reading them from the browser would force a layout each time.
  draw() {
    const { row, room, items } = this, top = clamp(this.top, 0, Math.max(0, items.length * row - room));
    const first = Math.max(0, Math.floor(top / row) - 4), last = Math.ceil((top + room) / row) + 4;
    this.space.style.height = `${items.length * row}px`;
    if (this.drawn !== `${first} ${last}`) {
      this.drawn = `${first} ${last}`;
      this.space.replaceChildren(...items.slice(first, last).map((item, n) => this.option(item, first + n)));
    }
    this.mark();
  }
  option(item, n) {
    const option = el("div", { class: "option", role: "option", id: `${this.box.id}-${n}`, "data-n": n,
      "aria-setsize": this.items.length, "aria-posinset": n + 1, "aria-selected": String(item === this.chosen) });
    option.style.transform = `translateY(${n * this.row}px)`;
    this.write(item, option);
    return option;
  }
  // Marks the active row in place: redrawing rows between press and release would lose a click.
  mark() {
    const id = `${this.box.id}-${this.active}`;
    for (const option of this.space.children) option.classList.toggle("active", option.id === id);
    if (byId(id)) this.box.setAttribute("aria-activedescendant", id);
    else this.box.removeAttribute("aria-activedescendant");
  }
  reveal() {
    const low = this.active * this.row, high = low - this.room + this.row;
    this.space.style.height = `${this.items.length * this.row}px`;
    if (this.room) this.box.scrollTop = this.top = clamp(this.top, Math.max(0, Math.min(low, high)), low);
    this.draw();
  }
  take(n) {
    if (!(n in this.items)) return;
    this.active = n;
    this.mark();
    this.choose(this.items[n]);
  }
  key(event) {
    const page = Math.max(1, Math.floor(this.room / this.row) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step) {
      this.active = clamp(this.active + step, 0, Math.max(0, this.items.length - 1));
      this.reveal();
    } else if (event.key === "Enter" || event.key === " ") this.take(this.active);
    else return;
    event.preventDefault();
  }
}

const MARKS = { current: "●", stale: "▲", superseded: "○", gone: "✕", older: "◌" };
const mark = (name) => el("span", { class: name, "aria-hidden": "true" }, MARKS[name] ?? "·");
const at = (version) => (version ? `@${version.id}` : "–");
// Long names often differ at their end, so plain names are cut in the middle.
const nameOf = ({ label }) => el("span", { class: "name", title: label }, ...(/^[\w.]{18,}$/.test(label)
  ? [dataText(label.slice(0, -9), "cut"), dataText(label.slice(-9))] : [dataText(label, "cut")]));

function modelRow(relation, option) {
  const verdict = relation.newest?.state ?? (relation.gone ? "gone" : "");
  option.title = relation.name;
  option.append(mark(verdict), nameOf(relation), el("span", { class: verdict === "stale" ? "mono stale" : "mono dim" },
    at(relation.newest)), el("span", { class: "unseen" }, verdict));
}

function rowCounts(rows) {
  const signs = [["inserted", "+", "current"], ["updated", "~", "stale"], ["deleted", "−", "gone"]];
  return signs.filter(([what]) => rows?.[what]).map(([what, sign, colour]) =>
    el("span", { class: colour, title: `${count(rows[what])} ${what}` }, `${sign}${compact.format(rows[what])} `));
}

function logRow({ id, lake, time, since, author, message, node, rows, versions }, option) {
  const wrote = versions.map((version) => version.relation.label).join(", ");
  option.title = [message, node, wrote].filter(Boolean).join("\n");
  option.append(
    cell("id mono", index.lakes > 1 ? dataText(`${lake} `, "dim") : null, `#${id}`),
    cell("when mono", toSecond(time)), cell("since mono dim", since === null ? "" : duration(since)),
    cell("author", author ? dataText(author) : dimText("no author")),
    cell("message", message ? dataText(message) : dimText("no message")),
    cell("wrote mono", wrote ? dataText(wrote) : dimText("no table or view"), " ",
      node ? dataText(node, "dim") : dimText("not by dbt")),
    cell("rows mono", ...rowCounts(rows)));
}

function versionRow(version, option) {
  option.append(mark(version.state), el("span", { class: "mono" }, at(version)),
    cell("mono dim", toSecond(version.snapshot.time).slice(0, 16)), el("span", { class: "unseen" }, version.state));
}

function staleRow({ relation, read }, option) {
  const { newest, name, gone } = read.relation, behind = newest.place - read.version.place;
  option.title = `${relation.name} was built from ${name} @${read.at}, which is now @${newest.id}`;
  option.append(nameOf(relation), cell("mono", at(relation.newest)), nameOf(read.relation),
    cell("mono stale", `@${read.at}`), cell("mono", at(newest)),
    cell("dim", gone ? "gone" : read.version.snapshot ? counted(behind, "version") : "not known"));
}

function healthRow({ name, label, health }, option) {
  const { files, bytes, small_files: small, deleted_share: deleted, inlined_rows: inlined, old_bytes: old } = health;
  const share = deleted ? `${(100 * deleted).toFixed(deleted < 0.1 ? 1 : 0)} %` : "";
  option.title = [name, health.command, health.saves && `saves ${health.saves}`].filter(Boolean).join("\n");
  option.append(nameOf({ label }), cell("mono", count(files)), cell("mono", bytesText(bytes)),
    cell("mono", small ? count(small) : ""), cell("mono", share), cell("mono", inlined ? count(inlined) : ""),
    cell("mono", old ? bytesText(old) : ""),
    health.command ? cell("mono stale", dataText(health.command)) : cell("dim", "nothing to do"));
}
