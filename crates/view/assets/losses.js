// Lists in order of time, so many lines at once: losses, and what else happened. They follow the time.

const ROWS = 12;

/** A list, with buttons to turn it. */
class Listing {
  /** `line` makes the element of one of the rows. */
  constructor(name, line) {
    this.body = document.getElementById(name);
    this.place = document.getElementById(`${name}-rows`);
    this.line = line;
    this.time = -1;
    document.getElementById(`${name}-earlier`).addEventListener("click", () => this.turn(this.first - ROWS));
    document.getElementById(`${name}-later`).addEventListener("click", () => this.turn(this.first + ROWS));
  }

  /** Shows these rows, with the time of each. */
  fill(rows, times) {
    this.rows = rows;
    this.times = times;
    this.turn(0);
  }

  turn(first) {
    const last = Math.max(0, Math.floor((this.rows.length - 1) / ROWS) * ROWS);
    this.first = Math.max(0, Math.min(first, last));
    const end = Math.min(this.first + ROWS, this.rows.length);
    const lines = [];
    for (let n = this.first; n < end; n += 1) lines.push(this.line(this.rows[n]));
    this.body.replaceChildren(...lines);
    this.place.textContent = lines.length ? `${this.first + 1} to ${end} of ${this.rows.length.toLocaleString("en")}` : "none";
    this.marked = -1;
    this.mark();
  }

  /** Shows the rows of a time, and marks the last one. */
  follow(time) {
    this.time = time;
    const last = after(this.times, time) - 1;
    if (last >= 0 && (last < this.first || last >= this.first + ROWS)) this.turn(Math.floor(last / ROWS) * ROWS);
    else this.mark();
  }

  mark() {
    const last = after(this.times, this.time) - 1 - this.first;
    if (last === this.marked) return;
    this.body.children[this.marked]?.classList.remove("now");
    this.body.children[last]?.classList.add("now");
    this.marked = last;
  }
}

class Losses {
  constructor(run, names, onpick) {
    this.run = run;
    this.names = names;
    this.onpick = onpick;
    this.list = new Listing("losses-list", (loss) => this.row(loss));
    this.kind = document.getElementById("kind");
    const counts = new Uint32Array(REPAIRS.length);
    for (const repair of run.loss.repair) counts[repair] += 1;
    const total = run.loss.rows;
    const entries = [`${total.toLocaleString("en")} ${total === 1 ? "loss" : "losses"}`];
    this.kind.append(new Option("all", "all"));
    REPAIRS.forEach((words, repair) => {
      if (counts[repair] === 0) return;
      entries.push(`${words}: ${counts[repair].toLocaleString("en")}`);
      this.kind.append(new Option(words, String(repair)));
    });
    if (run.facts.held > 0) entries.push(`held back by caches, not lost: ${run.facts.held.toLocaleString("en")}`);
    const tally = document.getElementById("tally");
    for (const text of entries) tally.append(Object.assign(document.createElement("li"), { textContent: text }));
    this.kind.addEventListener("change", () => this.choose());
    this.choose();
  }

  choose() {
    const { at, repair } = this.run.loss;
    const all = Uint32Array.from(repair.keys());
    const shown = this.kind.value === "all" ? all : all.filter((i) => repair[i] === Number(this.kind.value));
    this.list.fill(shown, Float64Array.from(shown, (i) => at[i]));
  }

  row(loss) {
    const { run, names } = this;
    const { at, packet, repair, after: took } = run.loss;
    const late = repair[loss] >= 1 && repair[loss] <= 5 ? round(took[loss] / 1e6, 4) : "-";
    const texts = [seconds(at[loss], 6), names.packet(packet[loss]), names.place(loss), names.reason(loss), names.repair(loss), late];
    const row = document.createElement("tr");
    row.tabIndex = 0;
    for (const text of texts) row.append(Object.assign(document.createElement("td"), { textContent: text }));
    const go = () => this.onpick(at[loss]);
    row.addEventListener("click", go);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
    return row;
  }

  /** When the next loss is; NaN after the last. */
  next(time) {
    const { times } = this.list;
    const i = after(times, time);
    return i < times.length ? times[i] : NaN;
  }
}

/** What else happened, as a list. */
function listHappenings(run, names, onpick) {
  const { happenings, moreHappenings } = run.facts;
  const list = new Listing("happenings", ([at, node, text]) => {
    const line = document.createElement("li");
    const where = node === null ? "" : ` ${names.node(node)}:`;
    line.append(Object.assign(document.createElement("b"), { textContent: `${seconds(at, 6)} s` }), `${where} ${text}`);
    line.addEventListener("click", () => onpick(at));
    return line;
  });
  list.fill(happenings, Float64Array.from(happenings, ([at]) => at));
  if (moreHappenings > 0) {
    const more = `${moreHappenings.toLocaleString("en")} more after these are in the log only.`;
    document.getElementById("events").append(Object.assign(document.createElement("p"), { textContent: more }));
  }
  document.getElementById("events").hidden = happenings.length === 0;
  return list;
}
