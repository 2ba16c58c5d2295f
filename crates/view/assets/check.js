// What tests ask of the page: `#selftest=0.5,1` writes what the page knows, with what is where at these seconds, as JSON to
// the console; `#bench` measures pictures; `#show=0.5` begins there.

const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)));
addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));

function report(answer) {
  console.log(`answer ${JSON.stringify(answer)}`);
}

const pictures = (count) => new Promise((done) => {
  const next = (left) => (left === 0 ? done() : requestAnimationFrame(() => next(left - 1)));
  next(count);
});

async function check(page) {
  const [what, times = ""] = location.hash.slice(1).split("=");
  if (what === "show") page.player.seek(Number(times) * 1e9);
  if (what === "selftest") report(await selftest(page, times.split(",").filter(Boolean).map(Number)));
  if (what === "bench") report(await bench(page));
}

async function selftest(page, times) {
  const { run, player } = page;
  const moments = times.map((time) => {
    player.seek(time * 1e9);
    const moment = run.moment(player.time);
    const shown = [...document.querySelectorAll("#counts dd")].map((dd) => Number(dd.textContent.replaceAll(",", "")));
    const busy = page.run.facts.links.slice(0, 8).map((_, link) => run.busy(link, player.time));
    return { time, busy, labels: page.map.labels.map(({ pair, short }) => page.map.labelLines(pair, short, player.time)), queued: [...moment.queued], under_way: [...moment.underWay], on_air: moment.onAir, arrived: moment.arrived, lost: moment.lost, shown };
  });
  player.seek(player.start);
  document.getElementById("play").click();
  const before = player.time;
  await pictures(5);
  const played = player.time - before;
  document.getElementById("play").click();
  const paused = player.time;
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
  const atEnd = player.time;
  const rows = {};
  for (const table of ["packet", "flight", "frame", "state", "chunk", "change", "leg", "loss"]) rows[table] = run[table].rows;
  const repairs = new Array(REPAIRS.length).fill(0);
  for (const repair of run.loss.repair) repairs[repair] += 1;
  const root = document.documentElement;
  return {
    rows,
    repairs,
    moments,
    played,
    paused: paused === before + played,
    at_end: atEnd === player.end,
    wide: root.scrollWidth,
    window: innerWidth,
    dark: dark.matches,
    overlaps: overlaps(),
    collisions: collisions(page.map),
    charts: page.charts.all.filter(({ figure }) => !figure.hidden).map(described),
    second: compared(page),
    folded: folded(page),
    names: page.map.nameBoxes.length,
    tips: page.map.pairs.slice(0, 8).map(([link]) => page.map.explainLink(link)),
    drawn: drawn(document.getElementById("map-canvas")),
    tables: document.querySelectorAll("#losses-list tr").length,
    errors,
  };
}

/** How many pixels of a canvas are not empty. */
function drawn(canvas) {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 3; i < data.length; i += 4) if (data[i] > 0) count += 1;
  return count;
}

/** Pairs of things that lie on each other though neither is in the other, and things that leave their parent. */
function overlaps() {
  const found = [];
  const all = [...document.querySelectorAll("h1, header p, button, select, output, input, dl div, #legend span, figcaption span, .plot, #map, h2, #tally li")];
  const boxes = all.map((one) => [one, one.getBoundingClientRect()]).filter(([, box]) => box.width > 0 && box.height > 0);
  for (const [a, [one, box]] of boxes.entries()) {
    if (box.left < -0.5 || box.right > innerWidth + 0.5) found.push(`${one.tagName}#${one.id} leaves the window`);
    for (const [other, second] of boxes.slice(a + 1)) {
      const across = Math.min(box.right, second.right) - Math.max(box.left, second.left);
      const down = Math.min(box.bottom, second.bottom) - Math.max(box.top, second.top);
      if (across > 1 && down > 1 && !one.contains(other) && !other.contains(one)) found.push(`${one.tagName}#${one.id} and ${other.tagName}#${other.id}`);
    }
  }
  return found;
}

/** What a chart shows, and whether its files can be read. */
function described(chart) {
  const parsed = new DOMParser().parseFromString(chart.svg(), "image/svg+xml");
  const button = chart.exports.querySelector("button");
  const saved = [];
  const click = HTMLAnchorElement.prototype.click;
  HTMLAnchorElement.prototype.click = function note() { saved.push(this.download, this.protocol); };
  for (const one of chart.exports.children) one.click();
  HTMLAnchorElement.prototype.click = click;
  const csv = chart.csv().trimEnd().split("\r\n");
  return {
    title: chart.title,
    unit: chart.unit,
    names: chart.complete.filter(({ quiet }) => !quiet).map(({ label, name }) => label ?? name),
    lines: chart.complete.length,
    svg: parsed.querySelector("parsererror") ? "broken" : parsed.documentElement.tagName,
    paths: parsed.querySelectorAll("path").length,
    csv: csv.slice(0, 2),
    rows: csv.length - 1,
    saved,
    visible: button.getBoundingClientRect().width > 0,
  };
}

/** What charts of windows and round-trip times show with the second path compared to the first. */
function compared(page) {
  const choice = document.getElementById("second");
  if (choice.length < 3) return null;
  const paths = [...document.getElementById("path").options].map(({ value }) => value).filter((value) => value !== "files");
  const before = document.getElementById("path").value;
  document.getElementById("path").value = paths[0];
  choice.value = paths[1];
  page.choose();
  const names = [page.charts.windows, page.charts.trips].map(({ complete }) => complete.map(({ name }) => name));
  choice.value = "";
  document.getElementById("path").value = before;
  page.choose();
  return names;
}

/**
 * How long axes are, in seconds, with idle time folded and not, and where the player goes from the
 * midst of each idle span.
 */
function folded(page) {
  const { fold, player } = page;
  const box = document.getElementById("fold");
  const lengths = [true, false].map((on) => {
    box.checked = on;
    box.dispatchEvent(new Event("change"));
    return player.length / 1e9;
  });
  box.checked = true;
  box.dispatchEvent(new Event("change"));
  const leaps = fold.spans.map(({ from, to }) => {
    player.seek((from + to) / 2);
    player.step(1);
    return player.time / 1e9;
  });
  // There and back is where one was.
  const exact = fold.spans.every(({ from, to }) => [from - 1, from, to, to + 1].every((time) => Math.abs(fold.from(fold.to(time)) - time) < 1));
  return { lengths, leaps, exact, hidden: document.getElementById("folding").hidden };
}

/**
 * Text of the map that lies on other text or on a node, labels that lie on a link, and what leaves
 * the map.
 */
function collisions(map) {
  const found = [];
  const labels = map.labels.map(({ box }) => box);
  const all = [...map.nodeBoxes, ...map.nameBoxes, ...labels];
  for (const [i, box] of all.entries()) {
    if (i >= map.nodeBoxes.length && !map.room.inside(box)) found.push(`${i} leaves the map`);
    for (let other = Math.max(i + 1, map.nodeBoxes.length); other < all.length; other += 1) {
      if (!apart(box, all[other])) found.push(`${i} and ${other}`);
    }
  }
  for (const box of labels) for (const line of map.linesDrawn()) if (crosses(line, box)) found.push(`a label and the link at ${line}`);
  return found;
}

/**
 * Draws 200 pictures one after another, a sixtieth of a second of watching apart, from the middle of the run. Reading a pixel
 * makes the browser finish each, which it would otherwise put off.
 */
async function bench(page) {
  const { player, run } = page;
  const ready = performance.now();
  await pictures(2);
  const pen = document.getElementById("map-canvas").getContext("2d");
  const times = new Float64Array(200);
  player.seek((player.start + player.end) / 2);
  for (let i = 0; i < times.length; i += 1) {
    const before = performance.now();
    player.seek(player.time + player.frame);
    pen.getImageData(0, 0, 1, 1);
    times[i] = performance.now() - before;
  }
  times.sort();
  return { ready, tenth: times[20], median: times[100], p95: times[190], worst: times[199], flights: run.flight.rows, errors };
}
