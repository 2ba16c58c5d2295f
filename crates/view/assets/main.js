// The page: reads its data, joins map, charts, lists and time.

const element = (id) => document.getElementById(id);

/** One problem, in plain words, where everybody sees it. */
function complain(text) {
  element("warning").hidden = false;
  element("warning").textContent = text;
}

/** What a person should know before looking. */
function introduce(facts) {
  element("title").textContent = facts.name || "A run";
  const parts = [`seed ${facts.seed}`, `run ${facts.run}`, `${facts.nodes.length} nodes`, `${facts.links.length} links, one way each`];
  parts.push(`${facts.events.toLocaleString("en")} events`);
  if (facts.hash) parts.push(`scenario ${facts.hash.slice(0, 12)}`);
  if (facts.version) parts.push(`anabranch ${facts.version}`);
  element("about").textContent = parts.join(" · ");
  if (facts.cut !== null) complain(`The log breaks off after ${facts.cut.toLocaleString("en")} bytes: this is the run until ${seconds(facts.end, 3)} s.`);
}

function legend(run) {
  const entry = (canvas, text) => {
    const span = document.createElement("span");
    span.append(...[canvas, text].filter(Boolean));
    element("legend").append(span);
  };
  for (const look of PACKETS) entry(sample(look.colour, look.shape), look.name);
  entry(sample("lost", "cross"), "lost, or dead");
  const kinds = new Set(run.facts.nodes.map((node) => node.kind));
  for (const [kind, name] of [["gateway", "square"], ["router", "diamond"], ["host", "triangle"], ["node", "disc"]]) {
    if (kinds.has(kind)) entry(sample("soft", name), kind);
  }
  if (run.frame.rows > 0) entry(null, "ring: a radio frame");
  entry(null, "bar with a number: packets that wait");
  if (run.facts.idle.length > 0) entry(null, "grey band in charts: folded idle time");
  element("legend").append(Object.assign(document.createElement("span"), { id: "utilisation" }));
}

/** How much time charts show: all of it, or so much around now. */
function windows(length) {
  const all = [1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12].filter((nanos) => nanos < length);
  element("window").append(new Option("the whole run", "0"));
  for (const nanos of all.reverse()) element("window").append(new Option(span(nanos), String(nanos)));
}

/** A counter, told with its name. */
function counter(name) {
  const entry = document.createElement("div");
  const value = document.createElement("dd");
  entry.append(Object.assign(document.createElement("dt"), { textContent: name }), value);
  element("counts").append(entry);
  return value;
}

class Page {
  constructor(run) {
    this.run = run;
    this.names = new Names(run);
    this.fold = new Fold(run);
    this.map = new NetworkMap(run, this.names, element("map-canvas"));
    const pick = (time) => this.player.seek(time);
    this.charts = new Charts(run, this.fold, this.names, element("panels"), pick);
    this.losses = new Losses(run, this.names, pick);
    this.counters = ["waiting", "on links", "frames on the air", "arrived at ends of links", "losses"].map(counter);
    if (run.frame.rows === 0) this.counters[2].parentElement.hidden = true;
    this.player = new Player(run, this.fold, (time) => this.show(time));
    this.player.onnext = () => {
      const next = this.losses.next(this.player.time);
      if (!Number.isNaN(next)) pick(next);
    };
    element("second").append(new Option("no other path", ""));
    for (const { value, name } of this.charts.paths()) {
      element("path").append(new Option(name, value));
      if (value !== "files") element("second").append(new Option(name, value));
    }
    for (const { value, name } of this.charts.links()) element("link").append(new Option(name, value));
    // Runs without TCP have no paths to choose from, and runs in which nothing is sent no links.
    element("path").parentElement.hidden = element("path").length === 0;
    element("link").parentElement.hidden = element("link").length === 0;
    element("comparing").hidden = element("second").length < 3;
    legend(run);
    windows(this.player.length);
    element("folding").hidden = this.fold.spans.length === 0;
    element("fold").addEventListener("change", () => {
      this.fold.on = element("fold").checked;
      this.arrange();
    });
    this.happenings = listHappenings(run, this.names, pick);
    element("path").addEventListener("change", () => this.choose());
    element("second").addEventListener("change", () => this.choose());
    element("link").addEventListener("change", () => this.choose());
    element("window").addEventListener("change", () => {
      this.drawCharts();
      this.nameWindow();
      this.show(this.player.time);
    });
    // Links are as busy as in the time that the charts show, or in the last second if they show the
    // whole run.
    this.map.window = (time) => (element("window").value === "0" ? [time - 1e9, time] : this.shown(time));
    this.nameWindow();
    let waiting = false;
    const later = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        this.arrange();
      });
    };
    const sizes = new ResizeObserver(later);
    for (const one of [document.body, element("map")]) sizes.observe(one);
    dark.addEventListener("change", later);
    this.choose();
    this.arrange();
  }

  choose() {
    // Parts of a file have no windows to compare with.
    element("second").disabled = element("path").value === "files";
    if (element("path").value) this.charts.choosePath(element("path").value, element("second").value);
    if (element("link").value) this.charts.chooseLink(element("link").value);
    this.drawCharts();
  }

  /** After a change of size or colours. */
  arrange() {
    readTheme();
    this.map.arrange();
    for (const canvas of document.querySelectorAll("#legend canvas, figcaption canvas")) canvas.paint?.();
    this.player.drawStrip(element("strip"));
    this.drawCharts();
    this.player.seek(this.player.time);
  }

  /** The first and the last time that charts show at a time. */
  shown(time) {
    const width = Number(element("window").value);
    const { start, end } = this.run;
    if (width === 0) return [start, end];
    const { fold } = this;
    const first = Math.max(fold.to(start), Math.min(fold.to(end) - width, fold.to(time) - width / 2));
    return [fold.from(first), fold.from(first + width)];
  }

  nameWindow() {
    this.map.windowName = element("window").value === "0" ? "the last second" : "the time shown";
    element("utilisation").textContent = `percentage: share of ${this.map.windowName} in which the link transmits`;
  }

  drawCharts() {
    this.charts.draw(...this.shown(this.player.time));
    this.charts.point(this.player.time);
  }

  show(time) {
    // What has passed since the last picture is drawn with it, or short frames were seen only by chance.
    this.map.draw(time, time - this.player.frame);
    const width = Number(element("window").value);
    if (width > 0) this.drawCharts();
    else this.charts.point(time);
    const moment = this.run.moment(time);
    const sum = (counts) => counts.reduce((a, b) => a + b, 0);
    const figures = [sum(moment.queued), sum(moment.underWay), moment.onAir, moment.arrived, moment.lost];
    figures.forEach((figure, i) => { this.counters[i].textContent = figure.toLocaleString("en"); });
    this.losses.list.follow(time);
    this.happenings.follow(time);
  }
}

async function begin() {
  readTheme();
  const facts = JSON.parse(element("facts").textContent);
  introduce(facts);
  const octets = await inflate(fromBase64(element("data").textContent.trim()));
  element("data").textContent = "";
  const run = new Run(facts, readTables(facts.columns, octets));
  document.querySelector("main").hidden = false;
  const page = new Page(run);
  await check(page);
}

begin().catch((error) => {
  complain(error.message);
  if (location.hash) report({ errors: [String(error)] });
});
