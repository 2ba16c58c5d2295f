// A chart over time: its axes, its lines and points, and no more of them than there are pixels.

const LEFT = 62;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 34;
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

/** Steps of 1, 2 or 5 times a power of ten, at most `most` of them. */
function stepFor(range, most) {
  const rough = range / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) if (power * factor >= rough) return power * factor;
  return power * 10;
}

class Chart {
  /**
   * `kind` is the chart's part of a file's name; `unit` stands at the axis, and `scale` is what a
   * value is divided by to be in it.
   */
  constructor(page, kind, title, unit, scale = 1) {
    const { run, fold, parent } = page;
    this.runName = run.facts.name;
    this.fold = fold;
    this.kind = kind;
    this.title = title;
    this.unit = unit;
    this.scale = scale;
    this.axis = "time (s)";
    // Of the plot in an SVG file, in pixels.
    this.height = 300;
    this.series = [];
    // With the series that lie far above the others and are not drawn.
    this.complete = [];
    this.figure = document.createElement("figure");
    this.caption = document.createElement("figcaption");
    this.plot = document.createElement("div");
    this.plot.className = "plot";
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.cursor = document.createElement("div");
    this.cursor.className = "cursor";
    this.plot.append(this.canvas, this.cursor);
    this.figure.append(this.caption, this.plot);
    this.exports = document.createElement("span");
    this.exports.className = "exports";
    for (const [ending, type, text] of [["svg", "image/svg+xml", () => this.svg()], ["csv", "text/csv", () => this.csv()]]) {
      const button = document.createElement("button");
      button.textContent = ending.toUpperCase();
      button.title = `Save this chart as ${ending.toUpperCase()}`;
      button.addEventListener("click", () => download(fileName(this.runName, this.kind, ending), type, text()));
      this.exports.append(button);
    }
    parent.append(this.figure);
    this.figure.hidden = true;
    this.range = new Float64Array(2);
    this.plot.addEventListener("pointermove", (event) => explain(event, this.at(event)));
    this.plot.addEventListener("pointerleave", (event) => explain(event, ""));
    this.plot.addEventListener("click", (event) => {
      const time = this.timeOfRun(this.timeAt(event));
      if (!Number.isNaN(time)) this.onpick?.(time);
    });
  }

  /**
   * What is drawn: `{ name, colour, series, shape | dash, aside, quiet, joined, note }`, the series being
   * a `Series`. One that stands `aside` does not press the others flat: it is left out if it lies
   * far above them. One that is `quiet` has no entry in the legend. Values are steps, each from its
   * time to the next, unless they are `joined` by straight lines. A `note` explains
   * the entry in the legend.
   */
  show(all) {
    this.series = all.filter((one) => one.series.times.length > 0);
    const highest = this.series.filter((one) => !one.aside).reduce((high, { series }) => {
      series.range(0, series.values.length, this.range);
      return Math.max(high, this.range[1]);
    }, 0);
    for (const one of this.series.filter(({ aside }) => aside)) {
      // The last value counts: windows open within the first round trips.
      const usual = one.series.values[one.series.values.length - 1];
      one.far = usual > 2 * highest ? usual : 0;
    }
    this.caption.textContent = "";
    const title = document.createElement("b");
    title.textContent = this.title;
    this.caption.append(title);
    for (const one of this.series.filter(({ quiet }) => !quiet)) {
      const entry = document.createElement("span");
      entry.append(one.shape ? sample(one.colour, one.shape) : sampleLine(one.colour, DASHES[one.dash ?? 0]));
      const far = one.far ? `: ${round(one.far / this.scale)}, far above` : "";
      if (one.note) entry.title = one.note;
      entry.append((one.label ?? one.name) + far);
      this.caption.append(entry);
    }
    this.caption.append(this.exports);
    this.complete = this.series;
    this.series = this.series.filter((one) => !one.far);
    this.canvas.setAttribute("aria-label", `${this.title}: ${this.series.map((one) => one.name).join(", ")}`);
    this.figure.hidden = this.series.length === 0;
  }

  /** Draws what lies between two times. */
  draw(from, to) {
    if (this.figure.hidden) return;
    const { pen, width, height } = fit(this.canvas);
    this.from = from;
    this.to = Math.max(to, from + 1);
    pen.clearRect(0, 0, width, height);
    this.paint(pen, width, height);
  }

  /** Draws the plot with a pen, which need not be that of the canvas. */
  paint(pen, width, height) {
    this.width = width;
    this.inner = Math.max(1, width - LEFT - RIGHT);
    this.bottom = height - BOTTOM;
    // Folded time at the left, and as much of it as the axis has.
    this.first = this.fold.to(this.from);
    this.length = Math.max(1, this.fold.to(this.to) - this.first);
    this.findRange();
    this.drawBreaks(pen);
    this.drawAxes(pen);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, TOP - 4, this.inner, this.bottom - TOP + 8);
    pen.clip();
    this.drawSeries(pen);
    pen.restore();
  }

  drawSeries(pen) {
    // Grey lines lie below the others.
    for (const one of [...this.series.filter(({ colour }) => colour === "line"), ...this.series.filter(({ colour }) => colour !== "line")]) {
      if (one.shape) this.drawPoints(pen, one);
      else this.drawLine(pen, one);
    }
  }

  findRange() {
    let [low, high] = [Infinity, -Infinity];
    for (const { series, shape: points } of this.series) {
      const first = Math.max(0, after(series.times, this.from) - (points ? 0 : 1));
      series.range(first, after(series.times, this.to), this.range);
      low = Math.min(low, this.range[0]);
      high = Math.max(high, this.range[1]);
    }
    if (low > high) [low, high] = [0, 1];
    // What is counted from nothing is shown from nothing, unless all of it is far from there.
    if (low > 0 && low < high * 0.6) low = 0;
    if (high === low) high = low + Math.max(1, Math.abs(low) * 0.1);
    this.low = low;
    this.high = high + (high - low) * 0.04;
  }

  x(time) {
    return LEFT + ((this.fold.to(time) - this.first) / this.length) * this.inner;
  }

  /** The run's time of a time on the axis. */
  timeOfRun(time) {
    return time;
  }

  /** The time at a distance from the left. */
  time(x) {
    return this.fold.from(this.first + ((x - LEFT) / this.inner) * this.length);
  }

  y(value) {
    return this.bottom - ((value - this.low) / (this.high - this.low)) * (this.bottom - TOP);
  }

  /** Idle time that is folded: a band, with two strokes on the axis. */
  drawBreaks(pen) {
    for (const { from, to } of this.fold.folded) {
      const [left, right] = [this.x(from), this.x(to)].map((x) => Math.max(LEFT, Math.min(LEFT + this.inner, x)));
      if (right <= left) continue;
      pen.fillStyle = theme.grid;
      pen.beginPath();
      pen.rect(left, TOP, right - left, this.bottom - TOP);
      pen.fill();
      pen.strokeStyle = theme.soft;
      pen.lineWidth = 1.2;
      pen.beginPath();
      for (const x of [(left + right) / 2 - 2, (left + right) / 2 + 2]) {
        pen.moveTo(x - 2, this.bottom + 5);
        pen.lineTo(x + 2, this.bottom - 5);
      }
      pen.stroke();
    }
  }

  drawAxes(pen) {
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.fillStyle = theme.soft;
    pen.strokeStyle = theme.grid;
    pen.beginPath();
    this.drawValues(pen);
    this.drawTimes(pen);
  }

  /** The axis of values, with its lines in the path. */
  drawValues(pen) {
    pen.textAlign = "right";
    const step = stepFor((this.high - this.low) / this.scale, 5) * this.scale;
    for (let value = Math.ceil(this.low / step) * step; value <= this.high; value += step) {
      const y = Math.round(this.y(value)) + 0.5;
      pen.moveTo(LEFT, y);
      pen.lineTo(LEFT + this.inner, y);
      pen.fillText(round(value / this.scale, 6), LEFT - 5, y + 4);
    }
    pen.save();
    pen.translate(11, (TOP + this.bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(this.unit, 0, 0);
    pen.restore();
  }

  drawTimes(pen) {
    const tick = stepFor(this.length / 1e9, this.inner / 80) * 1e9;
    const places = Math.max(0, Math.min(9, -Math.floor(Math.log10(tick / 1e9) + 1e-9)));
    pen.textAlign = "center";
    let free = 0;
    for (let time = Math.ceil(this.from / tick) * tick; time <= this.to; time += tick) {
      // Idle time is too narrow for ticks of its own.
      time = Math.max(time, Math.ceil(this.fold.leap(time) / tick) * tick);
      if (time > this.to) break;
      const x = Math.round(this.x(time)) + 0.5;
      pen.moveTo(x, TOP);
      pen.lineTo(x, this.bottom);
      const text = seconds(time, places);
      const half = pen.measureText(text).width / 2;
      const middle = Math.min(x, this.width - half - 1);
      if (middle - half < free) continue;
      pen.fillText(text, middle, this.bottom + 14);
      free = middle + half + 6;
    }
    pen.stroke();
    pen.textAlign = "right";
    pen.fillText(this.axis, LEFT + this.inner, this.bottom + 29);
  }

  /** A line. Where a pixel has several values, it is drawn from the least to the greatest. */
  drawLine(pen, { series, colour, dash = 0, joined }) {
    const { times, values } = series;
    let i = Math.max(0, after(times, this.from) - 1);
    // A line that is joined goes on to the first value beyond the right edge.
    const end = Math.min(times.length, after(times, this.to) + (joined ? 1 : 0));
    pen.beginPath();
    pen.strokeStyle = theme[colour];
    pen.lineWidth = 1.8;
    pen.setLineDash(DASHES[dash]);
    let drawing = false;
    while (i < end) {
      const x = joined ? this.x(times[i]) : Math.max(LEFT, this.x(times[i]));
      // All that falls into this pixel.
      const next = Math.max(i + 1, after(times, this.time(Math.floor(x) + 1), i, end));
      series.range(i, next, this.range);
      const last = values[next - 1];
      if (Number.isNaN(last) || this.range[0] > this.range[1]) {
        drawing = false;
      } else {
        if (!drawing) pen.moveTo(x, this.y(values[i]));
        else pen.lineTo(x, this.y(values[i]));
        if (next - i > 1) {
          pen.lineTo(x, this.y(this.range[0]));
          pen.lineTo(x, this.y(this.range[1]));
          pen.lineTo(x, this.y(last));
        }
        if (!joined) pen.lineTo(next < times.length ? Math.min(this.x(times[next]), LEFT + this.inner) : LEFT + this.inner, this.y(last));
        drawing = true;
      }
      i = next;
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  /** Points; where a pixel has many, the least, the greatest and what lies between as a bar. */
  drawPoints(pen, { series, colour, shape: name }) {
    const { times, values } = series;
    let i = after(times, this.from - 1);
    const end = after(times, this.to);
    const size = end - i > this.inner ? 2 : 3.2;
    pen.beginPath();
    pen.fillStyle = theme[colour];
    pen.strokeStyle = theme[colour];
    pen.lineWidth = name === "cross" ? 1.8 : 1;
    while (i < end) {
      const x = this.x(times[i]);
      const next = Math.max(i + 1, after(times, this.time(Math.floor(x) + 1), i, end));
      if (next - i <= 4) {
        for (let n = i; n < next; n += 1) shape(pen, name, this.x(times[n]), this.y(values[n]), size);
      } else {
        series.range(i, next, this.range);
        const [top, bottom] = [this.y(this.range[1]), this.y(this.range[0])];
        if (name === "cross") shape(pen, name, x, top, size);
        else pen.rect(x - 1, top - 1, 2.2, bottom - top + 2);
      }
      i = next;
    }
    if (name === "cross") pen.stroke();
    else pen.fill();
  }

  /** Moves the line that shows the time. */
  point(time) {
    if (this.figure.hidden || this.inner === undefined) return;
    const inside = time >= this.from && time <= this.to;
    this.cursor.style.display = inside ? "" : "none";
    if (inside) this.cursor.style.transform = `translateX(${this.x(time)}px)`;
  }

  timeAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    return this.time(Math.max(LEFT, Math.min(LEFT + this.inner, x)));
  }

  /** What the series say at the pointer. */
  at(event) {
    const time = this.timeAt(event);
    const lines = [`${seconds(time, 6)} s`];
    const [before, behind] = [-3, 3].map((pixels) => this.time(this.x(time) + pixels));
    for (const { name, series, shape: points, quiet } of this.series) {
      if (quiet) continue;
      const i = after(series.times, points ? behind : time) - 1;
      if (i < 0 || (points && series.times[i] < before)) continue;
      lines.push(`${name}: ${round(series.values[i] / this.scale, 6)} ${this.plainUnit}`);
    }
    return lines.join("\n");
  }

  /** The unit without the name of what is measured in it. */
  get plainUnit() {
    return this.unit.replace(/.*\((.*)\)/, "$1");
  }

  /** The chart as it is shown, with its title and its legend, as an SVG file. */
  svg() {
    const [width, plot] = [800, this.height];
    const entries = this.complete.filter(({ quiet }) => !quiet);
    const pen = new SvgPen(width, 0);
    const places = [];
    let [x, y] = [LEFT, 42];
    pen.font = "12px system-ui, sans-serif";
    for (const { name: own, label: name = own, far } of entries) {
      const text = far ? `${name}: ${round(far / this.scale)}, far above` : name;
      const wide = 40 + pen.measureText(text).width;
      if (x > LEFT && x + wide > width - RIGHT) [x, y] = [LEFT, y + 18];
      places.push([x, y, text]);
      x += wide + 14;
    }
    const top = y + 12;
    pen.height = top + plot;
    pen.fillStyle = theme.page;
    pen.rect(0, 0, width, pen.height);
    pen.fill();
    pen.fillStyle = theme.ink;
    pen.font = "600 14px system-ui, sans-serif";
    pen.fillText([this.runName, this.title].filter(Boolean).join(": "), LEFT, 20);
    pen.font = "12px system-ui, sans-serif";
    entries.forEach((one, i) => {
      const [x, y, text] = places[i];
      Object.assign(pen, { fillStyle: theme[one.colour], strokeStyle: theme[one.colour], lineWidth: 2 });
      pen.beginPath();
      if (one.shape) shape(pen, one.shape, x + 15, y - 4, 5);
      else [pen.moveTo(x, y - 4), pen.lineTo(x + 30, y - 4), pen.setLineDash(DASHES[one.dash ?? 0])];
      if (one.shape && one.shape !== "cross") pen.fill();
      else pen.stroke();
      pen.setLineDash([]);
      pen.fillStyle = theme.ink;
      pen.fillText(text, x + 36, y);
    });
    pen.save();
    pen.translate(0, top);
    this.paint(pen, width, plot);
    pen.restore();
    // The plot on the page has another size.
    this.draw(this.from, this.to);
    return pen.text();
  }

  /**
   * All values of the time that is shown, and of lines those that hold at its beginning, as CSV.
   */
  csv() {
    const rows = [["time (s)", "series", this.unit]];
    for (const { name, series, shape: points } of this.complete) {
      const first = Math.max(0, after(series.times, this.from - (points ? 1 : 0)) - (points ? 0 : 1));
      const end = after(series.times, this.to);
      for (let i = first; i < end; i += 1) {
        if (!Number.isNaN(series.values[i])) rows.push([seconds(Math.max(this.from, series.times[i]), 9), name, String(series.values[i] / this.scale)]);
      }
    }
    return `${rows.map(csvRow).join("\r\n")}\r\n`;
  }
}
