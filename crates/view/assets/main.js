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
  if (facts.cut !== null) complain(`The log breaks off after ${facts.cut.toLocaleString("en")} octets: this is the run until ${seconds(facts.end, 3)} s.`);
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
  element("legend").append(Object.assign(document.createElement("span"), { id: "utilisation" }));
}

/** How much time charts show: all of it, or so much around now. */
function windows(run) {
  const length = run.end - run.start;
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
    this.map = new NetworkMap(run, this.names, element("map-canvas"));
    const pick = (time) => this.player.seek(time);
    this.charts = new Charts(run, this.names, element("panels"), pick);
    this.losses = new Losses(run, this.names, pick);
    this.counters = ["waiting", "on links", "frames on the air", "arrived at ends of links", "losses"].map(counter);
    if (run.frame.rows === 0) this.counters[2].parentElement.hidden = true;
    this.player = new Player(run, (time) => this.show(time));
    this.player.onnext = () => {
      const next = this.losses.next(this.player.time);
      if (!Number.isNaN(next)) pick(next);
    };
    for (const { value, name } of this.charts.paths()) element("path").append(new Option(name, value));
    for (const { value, name } of this.charts.links()) element("link").append(new Option(name, value));
    legend(run);
    windows(run);
    this.happenings = listHappenings(run, this.names, pick);
    element("path").addEventListener("change", () => this.choose());
    element("link").addEventListener("change", () => this.choose());
    element("window").addEventListener("change", () => {
      this.drawCharts();
      this.nameWindow();
      this.show(this.player.time);
    });
    // Links are as busy as in the time that the charts show, or in the last second if they show the whole run.
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
    new ResizeObserver(later).observe(document.body);
    dark.addEventListener("change", later);
    this.choose();
    this.arrange();
  }

  choose() {
    if (element("path").value) this.charts.choosePath(element("path").value);
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
    const from = Math.max(start, Math.min(end - width, time - width / 2));
    return [from, from + width];
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
