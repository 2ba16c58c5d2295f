// Losses as a list, so many at a time.

const ROWS = 12;

class Losses {
  constructor(run, names, onpick) {
    this.run = run;
    this.names = names;
    this.onpick = onpick;
    this.first = 0;
    this.table = document.getElementById("table");
    this.kind = document.getElementById("kind");
    this.rows = document.getElementById("rows");
    const counts = new Uint32Array(REPAIRS.length);
    for (const repair of run.loss.repair) counts[repair] += 1;
    const tally = document.getElementById("tally");
    const total = run.loss.rows;
    const entries = [`${total.toLocaleString("en")} ${total === 1 ? "loss" : "losses"}`];
    this.kind.append(new Option("all", "all"));
    REPAIRS.forEach((words, repair) => {
      if (counts[repair] === 0) return;
      entries.push(`${words}: ${counts[repair].toLocaleString("en")}`);
      this.kind.append(new Option(words, String(repair)));
    });
    if (run.facts.held > 0) entries.push(`held back by caches, not lost: ${run.facts.held.toLocaleString("en")}`);
    for (const text of entries) tally.append(Object.assign(document.createElement("li"), { textContent: text }));
    this.kind.addEventListener("change", () => this.choose());
    document.getElementById("earlier").addEventListener("click", () => this.turn(this.first - ROWS));
    document.getElementById("later").addEventListener("click", () => this.turn(this.first + ROWS));
    this.choose();
  }

  choose() {
    const { repair } = this.run.loss;
    const kind = this.kind.value;
    const all = Uint32Array.from(repair.keys());
    this.shown = kind === "all" ? all : all.filter((i) => repair[i] === Number(kind));
    this.times = Float64Array.from(this.shown, (i) => this.run.loss.at[i]);
    this.turn(0);
  }

  turn(first) {
    this.first = Math.max(0, Math.min(first, Math.floor((this.shown.length - 1) / ROWS) * ROWS));
    this.table.textContent = "";
    const end = Math.min(this.first + ROWS, this.shown.length);
    for (let n = this.first; n < end; n += 1) this.table.append(this.row(this.shown[n]));
    this.rows.textContent = this.shown.length ? `${this.first + 1} to ${end} of ${this.shown.length.toLocaleString("en")}` : "none";
    this.mark(this.time ?? -1);
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

  /** Shows the losses of a time, and marks the last one. */
  follow(time) {
    this.time = time;
    const last = after(this.times, time) - 1;
    if (last >= 0 && (last < this.first || last >= this.first + ROWS)) this.turn(Math.floor(last / ROWS) * ROWS);
    else this.mark(time);
  }

  mark(time) {
    const last = after(this.times, time) - 1 - this.first;
    [...this.table.children].forEach((row, n) => row.classList.toggle("now", n === last));
  }

  /** When the next loss is; NaN after the last. */
  next(time) {
    const i = after(this.times, time);
    return i < this.times.length ? this.times[i] : NaN;
  }
}
