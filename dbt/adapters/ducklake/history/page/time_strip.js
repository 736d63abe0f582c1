// The time strip: the number of snapshots over time, newest on top like the list beside it.

const TICKS = [1, 5, 15, 30, 60, 180, 360, 720].map((n) => n * MINUTE)
  .concat([1, 2, 7, 14, 30, 90, 365, 3650].map((n) => n * DAY));
const LABELS = 56;

class Strip {
  constructor(box, snapshots) {
    // A margin at both ends, also if all snapshots have the same time, so that every bar can be clicked.
    const high = snapshots[0]?.time ?? 0, low = snapshots.at(-1)?.time ?? 0;
    const rim = Math.max(MINUTE, (high - low) / 100), span = high - low + 2 * rim;
    Object.assign(this, { box, all: snapshots, low: low - rim, span, start: null, cursor: 0, matching: [] });
    this.view = box.appendChild(svg("svg", { "aria-hidden": "true" }));
    this.focus = svg("rect", { class: "cursor" });
    const point = (event) => this.point(event);
    fill(box, { pointerdown: point, pointermove: point, pointerup: point, keydown: (event) => this.key(event),
      pointercancel: () => { this.start = null; this.draw(); } });
    new ResizeObserver(() => { this.measure(); this.draw(); }).observe(box);
    this.measure();
  }
  measure() {
    const height = this.box.clientHeight || 1, bins = Math.max(1, Math.floor(height / 4));
    Object.assign(this, { height, bins, size: height / bins, width: this.box.clientWidth });
  }
  y(time) { return (1 - (time - this.low) / this.span) * this.height; }
  time(y) { return this.low + (1 - clamp(y / this.height, 0, 1)) * this.span; }
  counts(snapshots) {
    const bins = new Array(this.bins).fill(0);
    for (const { time } of snapshots) bins[clamp(Math.floor(this.y(time) / this.size), 0, this.bins - 1)] += 1;
    return bins;
  }
  bars(name, bins, most) {
    const wide = (n) => Math.max(2, Math.sqrt(n / most) * (this.width - LABELS - 8));
    const bar = (n, place) => (n ? `M${LABELS} ${place * this.size}h${wide(n)}v${this.size - 1}h${-wide(n)}z` : "");
    return svg("path", { class: name, d: bins.map(bar).join("") });
  }
  ticks() {
    const step = TICKS.find((size) => this.span / size <= this.height / 34) ?? TICKS.at(-1), ticks = [];
    for (let time = Math.ceil(this.low / step) * step; time <= this.low + this.span; time += step) {
      const y = this.y(time), said = toMinute(time);
      const label = step >= 30 * DAY ? said.slice(0, 7) : time % DAY ? said.slice(11) : said.slice(5, 10);
      if (y < 8 || y > this.height - 6) continue;
      ticks.push(svg("line", { class: "tick", x1: LABELS - 6, x2: this.width - 8, y1: y, y2: y }),
        svg("text", { x: LABELS - 8, y: y + 4, "text-anchor": "end" }, label));
    }
    return ticks;
  }
  show(matching) { this.matching = matching; this.draw(); }
  draw(from = state.from, to = state.to === null ? null : state.to + MINUTE) {
    const all = this.counts(this.all), most = Math.max(1, ...all), top = to === null ? 0 : this.y(to);
    const chosen = { class: "chosen", x: LABELS - 4, y: top, width: Math.max(0, this.width - LABELS),
      height: Math.max(2, (from === null ? this.height : this.y(from)) - top) };
    this.view.replaceChildren(...this.ticks(), this.bars("all", all, most),
      this.bars("matching", this.counts(this.matching), most),
      ...(from === null && to === null ? [] : [svg("rect", chosen)]), this.focus);
    this.describeCursor(all);
  }
  // Describes the bar under the keyboard cursor for screen readers.
  describeCursor(bins) {
    const y = this.cursor * this.size, last = this.bins - 1;
    const [from, to] = [y + this.size, y].map((end) => toSecond(this.time(end)));
    fill(this.focus, { x: LABELS - 4, y, width: Math.max(0, this.width - LABELS), height: this.size });
    fill(this.box, { "aria-valuemin": 0, "aria-valuemax": last, "aria-valuenow": last - this.cursor,
      "aria-valuetext": `${from} to ${to}, ${counted(bins[this.cursor] ?? 0, "snapshot")}` });
  }
  // Rounds to whole minutes, as the two input fields do.
  narrow(y1, y2) {
    const whole = (y) => Math.floor(this.time(y) / MINUTE) * MINUTE;
    update({ from: whole(Math.max(y1, y2)), to: whole(Math.min(y1, y2)) });
  }
  narrowTo(bar) { this.narrow(bar * this.size, (bar + 1) * this.size); }
  point({ type, clientY, button, pointerId }) {
    const y = clientY - this.box.getBoundingClientRect().top, start = this.start;
    if (type === "pointerdown" && button === 0) {
      this.start = y;
      this.box.setPointerCapture(pointerId);
    } else if (type === "pointermove" && start !== null) {
      this.draw(this.time(Math.max(y, start)), this.time(Math.min(y, start)));
    } else if (type === "pointerup" && start !== null) {
      this.start = null;
      if (Math.abs(y - start) > 3) this.narrow(start, y); else this.narrowTo(Math.floor(y / this.size));
    }
  }
  key(event) {
    const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (step) {
      this.cursor = clamp(this.cursor + step, 0, this.bins - 1);
      this.draw();
    } else if (event.key === "Enter" || event.key === " ") this.narrowTo(this.cursor);
    else return;
    event.preventDefault();
  }
}
