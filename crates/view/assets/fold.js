// Time without the spans in which nothing happens. Axes, slider and player use folded time:
// nanoseconds of the run, of which each idle span has only a small part.

// What an idle span keeps, as a share of all other time: enough to be seen, and to be pointed at.
const KEPT = 0.02;

class Fold {
  constructor(run) {
    this.spans = run.facts.idle.map(([from, to]) => ({ from, to }));
    const idle = this.spans.reduce((sum, { from, to }) => sum + to - from, 0);
    this.kept = (run.end - run.start - idle) * KEPT;
    this.on = true;
  }

  /** The spans that are folded. */
  get folded() {
    return this.on ? this.spans : [];
  }

  /** Folded time of a time of the run. */
  to(time) {
    let saved = 0;
    for (const { from, to } of this.folded) {
      if (time <= from) break;
      const share = Math.min(1, (time - from) / (to - from));
      saved += share * (to - from - this.kept);
    }
    return time - saved;
  }

  /** The time of the run that a folded time is of. */
  from(folded) {
    let saved = 0;
    for (const { from, to } of this.folded) {
      const into = folded + saved - from;
      if (into <= 0) break;
      if (into < this.kept) return from + (into / this.kept) * (to - from);
      saved += to - from - this.kept;
    }
    return folded + saved;
  }

  /** The first time from `time` on, or the last until it, that is in no folded span. */
  leap(time, forward = true) {
    const span = this.folded.find(({ from, to }) => from < time && time < to);
    if (!span) return time;
    return forward ? span.to : span.from;
  }
}
