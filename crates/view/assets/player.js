// Time: what is shown now, whether it moves and how fast. Whatever changes it goes through `seek`.

const SPEEDS = [1e-6, 1e-5, 1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000];
const STEPS = 10000;

class Player {
  constructor(run, fold, onchange) {
    this.run = run;
    this.fold = fold;
    this.onchange = onchange;
    this.start = run.start;
    this.end = run.end;
    this.time = this.start;
    this.playing = false;
    this.button = document.getElementById("play");
    this.slider = document.getElementById("time");
    this.clock = document.getElementById("clock");
    this.speeds = document.getElementById("speed");
    // The whole run in about half a minute.
    const whole = this.length / 1e9 / 30;
    this.speed = SPEEDS.findLast((speed) => speed <= whole) ?? SPEEDS[0];
    for (const speed of SPEEDS) {
      const text = speed >= 1 ? `${speed} s in 1 s` : `${round(speed * 1000)} ms in 1 s`;
      this.speeds.append(new Option(text, String(speed), false, speed === this.speed));
    }
    this.speeds.addEventListener("change", () => { this.speed = Number(this.speeds.value); });
    this.button.addEventListener("click", () => this.toggle());
    document.getElementById("back").addEventListener("click", () => this.step(-1));
    document.getElementById("forth").addEventListener("click", () => this.step(1));
    this.slider.addEventListener("input", () => {
      this.seek(this.timeAt(Number(this.slider.value) / STEPS));
    });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** Folded time of the whole run. */
  get length() {
    return this.fold.to(this.end) - this.fold.to(this.start);
  }

  /** Which share of the run, in folded time, is over at a time. */
  shareAt(time) {
    return (this.fold.to(time) - this.fold.to(this.start)) / this.length;
  }

  timeAt(share) {
    return this.fold.from(this.fold.to(this.start) + share * this.length);
  }

  toggle() {
    this.playing = !this.playing;
    this.button.textContent = this.playing ? "Pause" : "Play";
    if (!this.playing) return;
    if (this.time >= this.end) this.time = this.start;
    let last = performance.now();
    const tick = (now) => {
      if (!this.playing) return;
      // Who wants no motion gets two pictures a second.
      if (still.matches && now - last < 500) {
        requestAnimationFrame(tick);
        return;
      }
      // A tab that was away does not leap.
      const passed = Math.min(still.matches ? 600 : 100, Math.max(0, now - last));
      last = now;
      this.seek(this.fold.leap(this.time + passed * 1e6 * this.speed));
      if (this.time >= this.end) this.toggle();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  /** What passes between two pictures. */
  get frame() {
    return (this.speed * 1e9) / 60;
  }

  /** A step is a tenth of a second of watching. */
  step(direction) {
    this.seek(this.fold.leap(this.time + direction * this.speed * 1e8, direction > 0));
  }

  faster(direction) {
    const place = SPEEDS.indexOf(this.speed) + direction;
    this.speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, place))];
    this.speeds.value = String(this.speed);
  }

  seek(time) {
    this.time = Math.max(this.start, Math.min(this.end, time));
    this.slider.value = String(Math.round(this.shareAt(this.time) * STEPS));
    const text = `${seconds(this.time, 6)} s`;
    this.clock.textContent = `${text} of ${seconds(this.end, 3)} s`;
    this.slider.setAttribute("aria-valuetext", text);
    this.onchange(this.time);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const inChoice = event.target instanceof HTMLSelectElement;
    // A space presses a button and checks a box.
    const onButton = event.target instanceof HTMLButtonElement || event.target.type === "checkbox";
    const acts = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      Home: () => this.seek(this.start),
      End: () => this.seek(this.end),
      "+": () => this.faster(1),
      "-": () => this.faster(-1),
      n: () => this.onnext?.(),
    };
    if (!onButton) acts[" "] = () => this.toggle();
    const act = acts[event.key];
    if (!act || inChoice) return;
    event.preventDefault();
    act();
  }

  /** Losses and faults over the whole run, above the slider. */
  drawStrip(canvas) {
    const { pen, width, height } = fit(canvas);
    pen.clearRect(0, 0, width, height);
    const bars = Math.max(1, Math.floor(width / 2));
    const { flight, loss, change } = this.run;
    const bar = (times, colour, tall) => {
      const counts = new Float64Array(bars);
      let from = after(times, this.start - 1);
      for (let b = 0; b < bars; b += 1) {
        const to = after(times, this.timeAt((b + 1) / bars), from);
        counts[b] = to - from;
        from = to;
      }
      const most = counts.reduce((a, b) => Math.max(a, b), 1);
      pen.fillStyle = colour;
      counts.forEach((count, b) => {
        const size = count === 0 ? 0 : Math.max(1.5, Math.sqrt(count / most) * tall);
        pen.fillRect((b / bars) * width, height - size, width / bars - 0.4, size);
      });
    };
    pen.fillStyle = theme.grid;
    for (const { from, to } of this.fold.folded) {
      const [left, right] = [this.shareAt(from) * width, this.shareAt(to) * width];
      pen.fillRect(left, 0, right - left, height);
    }
    bar(flight.sent, theme.line, height - 4);
    bar(loss.at, theme.lost, (height - 4) * 0.6);
    pen.fillStyle = theme.ink;
    for (const at of change.at) pen.fillRect(this.shareAt(at) * width - 1, 0, 2, height);
  }
}
