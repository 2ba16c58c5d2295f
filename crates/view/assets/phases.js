// The phases of SET transfers, simulated and deployed: a bar for each transfer, all from its start
// on, so that they can be compared.

const PHASES = ["request", "handshakes", "first byte", "striping", "tail", "confirmation"];
const PHASE_COLOURS = ["data", "ack", "again", "other", "lost", "soft"];
// Height of a row: its name, and the bar below.
const NAME = 15;
const BAR = 17;
const ROW = NAME + BAR + 6;
// Simulated transfers with a bar; the CSV file has all of them.
const MOST_BARS = 40;
// Time since the start of a transfer, of which nothing is folded.
const PLAIN = { folded: [], to: (time) => time, from: (time) => time, leap: (time) => time };

class PhasesChart extends Chart {
  constructor({ run, parent }) {
    super({ run, parent, fold: PLAIN }, "phases", "Phases of SET transfers", "duration (s)", 1e9);
    this.axis = "time since the start of the transfer (s)";
    this.transfers = run.facts.transfers.map(([name, start, phases]) => {
      let from = 0;
      const spans = phases.map((length, phase) => {
        from += length;
        return { phase, from: from - length, to: from };
      });
      return { name, start, spans, end: from };
    });
    const simulated = this.transfers.filter(({ start }) => start !== null);
    this.rows = [...simulated.slice(0, MOST_BARS), ...this.transfers.filter(({ start }) => start === null)];
    if (simulated.length > MOST_BARS) this.title += `, the first ${MOST_BARS} of ${simulated.length}`;
    this.origin = simulated.length === 1 ? simulated[0].start : NaN;
    this.longest = this.rows.reduce((longest, { end }) => Math.max(longest, end), 0);
    this.height = this.rows.length * ROW + TOP + BOTTOM;
    this.plot.style.height = `${this.height}px`;
    // The legend needs a series with a value for each entry.
    const series = new Series(Float64Array.of(0), Float64Array.of(0));
    const there = PHASES.filter((_, phase) => this.rows.some(({ spans }) => spans.length > phase));
    this.show(there.map((name, phase) => ({ name, colour: PHASE_COLOURS[phase], shape: "square", series })));
    this.canvas.setAttribute("aria-label", `${this.title}: ${this.rows.map((row) => this.words(row)).join("; ")}`);
  }

  /** All transfers are shown whole, whatever part of the run other charts show. */
  draw() {
    super.draw(0, this.longest);
  }

  findRange() {}

  drawValues() {}

  /** The bars instead of lines. */
  drawSeries(pen) {
    for (const [i, row] of this.rows.entries()) {
      const { name, spans } = row;
      const top = TOP + i * ROW;
      pen.textAlign = "left";
      pen.fillStyle = theme.ink;
      pen.fillText(this.fitting(pen, `${this.total(row)}: ${name}`, this.inner), LEFT, top + 11);
      for (const { phase, from, to } of spans) {
        const [left, right] = [this.x(from), this.x(to)];
        pen.fillStyle = theme[PHASE_COLOURS[phase]];
        pen.beginPath();
        // A gap tells neighbours apart without their colours.
        pen.rect(left, top + NAME, Math.max(0.5, right - left - 1), BAR);
        pen.fill();
        const text = [`${PHASES[phase]} ${span(to - from)}`, span(to - from), PHASES[phase]].find((text) => pen.measureText(text).width < right - left - 6);
        if (to === from || text === undefined) continue;
        pen.fillStyle = theme.page;
        pen.fillText(text, left + 3, top + NAME + 12);
      }
    }
  }

  /** As much of a text as fits. */
  fitting(pen, text, width) {
    if (pen.measureText(text).width <= width) return text;
    let length = text.length - 1;
    while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
    return `${text.slice(0, length)}…`;
  }

  total({ spans, end }) {
    return spans.length < PHASES.length ? "not delivered" : span(end);
  }

  words(row) {
    return `${row.name}, ${this.total(row)}: ${row.spans.map(({ phase, from, to }) => `${PHASES[phase]} ${span(to - from)}`).join(", ")}`;
  }

  /** The phase at the pointer, with its transfer. */
  at(event) {
    const y = event.clientY - this.canvas.getBoundingClientRect().top - TOP;
    const row = this.rows[Math.floor(y / ROW)];
    if (!row) return "";
    const time = this.timeAt(event);
    const { phase, from, to } = row.spans.find(({ from, to }) => from <= time && time < to) ?? {};
    if (phase === undefined) return `${row.name}: ${this.total(row)}`;
    return `${row.name}\n${PHASES[phase]}: ${span(to - from)}, from ${seconds(from, 6)} s to ${seconds(to, 6)} s`;
  }

  /** The run's time that is pointed at, and back; there is none if the run has several transfers. */
  timeOfRun(time) {
    return time + this.origin;
  }

  point(time) {
    super.point(time - this.origin);
  }

  csv() {
    const rows = [["transfer", "phase", "start (s)", "end (s)"]];
    for (const { name, spans } of this.transfers) {
      for (const { phase, from, to } of spans) rows.push([name, PHASES[phase], seconds(from, 9), seconds(to, 9)]);
    }
    return `${rows.map(csvRow).join("\r\n")}\r\n`;
  }
}
