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
  /** `unit` stands at the axis; `scale` is what a value is divided by to be in it. */
  constructor(parent, title, unit, scale = 1) {
    this.title = title;
    this.unit = unit;
    this.scale = scale;
    this.series = [];
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
    parent.append(this.figure);
    this.range = new Float64Array(2);
    this.plot.addEventListener("pointermove", (event) => explain(event, this.at(event)));
    this.plot.addEventListener("pointerleave", (event) => explain(event, ""));
    this.plot.addEventListener("click", (event) => this.onpick?.(this.timeAt(event)));
  }

  /**
   * What is drawn: `{ name, colour, series, shape | dash, aside }`, the series being a `Series`. One that stands `aside` does not
   * press the others flat: it is left out if it lies far above them.
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
      one.far = usual > 4 * highest ? usual : 0;
    }
    this.caption.textContent = "";
    const title = document.createElement("b");
    title.textContent = this.title;
    this.caption.append(title);
    for (const one of this.series) {
      const entry = document.createElement("span");
      entry.append(one.shape ? sample(one.colour, one.shape) : sampleLine(one.colour, DASHES[one.dash ?? 0]));
      const far = one.far ? `: ${round(one.far / this.scale)}, far above` : "";
      entry.append(one.name + far);
      this.caption.append(entry);
    }
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
    this.width = width;
    this.inner = Math.max(1, width - LEFT - RIGHT);
    this.bottom = height - BOTTOM;
    pen.clearRect(0, 0, width, height);
    this.findRange();
    this.drawAxes(pen);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, TOP - 4, this.inner, this.bottom - TOP + 8);
    pen.clip();
    for (const one of this.series) {
      if (one.shape) this.drawPoints(pen, one);
      else this.drawLine(pen, one);
    }
    pen.restore();
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
    return LEFT + ((time - this.from) / (this.to - this.from)) * this.inner;
  }

  y(value) {
    return this.bottom - ((value - this.low) / (this.high - this.low)) * (this.bottom - TOP);
  }

  drawAxes(pen) {
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.fillStyle = theme.soft;
    pen.strokeStyle = theme.grid;
    pen.textAlign = "right";
    const step = stepFor((this.high - this.low) / this.scale, 5) * this.scale;
    pen.beginPath();
    for (let value = Math.ceil(this.low / step) * step; value <= this.high; value += step) {
      const y = Math.round(this.y(value)) + 0.5;
      pen.moveTo(LEFT, y);
      pen.lineTo(LEFT + this.inner, y);
      pen.fillText(round(value / this.scale, 6), LEFT - 5, y + 4);
    }
    const tick = stepFor((this.to - this.from) / 1e9, this.inner / 80) * 1e9;
    const places = Math.max(0, Math.min(9, -Math.floor(Math.log10(tick / 1e9) + 1e-9)));
    pen.textAlign = "center";
    for (let time = Math.ceil(this.from / tick) * tick; time <= this.to; time += tick) {
      const x = Math.round(this.x(time)) + 0.5;
      pen.moveTo(x, TOP);
      pen.lineTo(x, this.bottom);
      const text = seconds(time, places);
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(x, this.width - half - 1), this.bottom + 14);
    }
    pen.stroke();
    pen.textAlign = "right";
    pen.fillText("time (s)", LEFT + this.inner, this.bottom + 29);
    pen.save();
    pen.translate(11, (TOP + this.bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(this.unit, 0, 0);
    pen.restore();
  }

  /** A line of steps. Where a pixel has several values, it is drawn from the least to the greatest. */
  drawLine(pen, { series, colour, dash = 0 }) {
    const { times, values } = series;
    let i = Math.max(0, after(times, this.from) - 1);
    const end = after(times, this.to);
    pen.beginPath();
    pen.strokeStyle = theme[colour];
    pen.lineWidth = 1.8;
    pen.setLineDash(DASHES[dash]);
    let drawing = false;
    while (i < end) {
      const x = Math.max(LEFT, this.x(times[i]));
      // All that falls into this pixel.
      const next = Math.max(i + 1, after(times, this.from + ((Math.floor(x) + 1 - LEFT) / this.inner) * (this.to - this.from), i, end));
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
        pen.lineTo(next < times.length ? Math.min(this.x(times[next]), LEFT + this.inner) : LEFT + this.inner, this.y(last));
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
      const next = Math.max(i + 1, after(times, this.from + ((Math.floor(x) + 1 - LEFT) / this.inner) * (this.to - this.from), i, end));
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
    return this.from + (Math.max(0, Math.min(this.inner, x - LEFT)) / this.inner) * (this.to - this.from);
  }

  /** What the series say at the pointer. */
  at(event) {
    const time = this.timeAt(event);
    const lines = [`${seconds(time, 6)} s`];
    const near = (this.to - this.from) / this.inner;
    for (const { name, series, shape: points } of this.series) {
      const i = after(series.times, points ? time + 3 * near : time) - 1;
      if (i < 0 || (points && series.times[i] < time - 3 * near)) continue;
      lines.push(`${name}: ${round(series.values[i] / this.scale, 6)} ${this.unit.replace(/.*\((.*)\)/, "$1")}`);
    }
    return lines.join("\n");
  }
}
