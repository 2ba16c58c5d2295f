// The network's map. Links and nodes are drawn once on a canvas of their own and copied; packets are drawn anew for each picture.

const MOST_DRAWN = 3000;
const SIDE = 4;
// Above this many links labels would hide the map, and above this many lines names no longer look
// for room between them.
const MOST_LABELS = 24;
const MOST_LINES = 2000;
const LEAST_HEIGHT = 240;

/** The items of one and then of the other. */
function* both(first, second) {
  yield* first;
  yield* second;
}

const LABEL_FONT = "11px system-ui, sans-serif";

/** Sets a pen to write text around a point, legible on lines. */
function setText(pen, font, colour) {
  pen.font = font;
  pen.fillStyle = colour;
  pen.strokeStyle = theme.panel;
  pen.lineWidth = 4;
  pen.lineJoin = "round";
  pen.textAlign = "center";
}

function writeText(pen, text, x, y) {
  pen.strokeText(text, x, y);
  pen.fillText(text, x, y);
}

class NetworkMap {
  constructor(run, names, canvas) {
    this.run = run;
    this.names = names;
    this.canvas = canvas;
    this.ground = document.createElement("canvas");
    const { facts, frame } = run;
    this.queued = new Uint32Array(facts.links.length);
    // Rows to draw, by kind, and how many there are.
    this.buckets = PACKETS.map(() => new Uint32Array(MOST_DRAWN + 1));
    this.filled = new Uint32Array(PACKETS.length);
    this.framesShown = frame.rows > 0;
    this.legs = new Legs(run.leg, facts.nodes);
    this.moves = new Uint8Array(facts.nodes.length);
    for (const node of this.legs.movers) this.moves[node] = 1;
    this.pairs = this.pairUp();
    // The time of which labels say how much of it links transmit.
    this.window = (time) => [time - 1e9, time];
    this.windowName = "the last second";
    canvas.addEventListener("pointermove", (event) => explain(event, this.at(event)));
    canvas.addEventListener("pointerleave", (event) => explain(event, ""));
  }

  /** Puts nodes and links in their places; after a change of size or colours. */
  arrange() {
    const { nodes, links, metres } = this.run.facts;
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    const places = nodes.map(({ x, y }) => [x, y]);
    for (const [x, y] of both(places, this.legs.places())) {
      left = Math.min(left, x);
      right = Math.max(right, x);
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
    const frame = this.canvas.parentElement;
    frame.style.height = "";
    const pad = frame.clientWidth < 480 ? 34 : 52;
    // A row of nodes, or a map that is wider than high, leaves the rest of the height to the
    // charts.
    const share = high - low < 1e-9 ? 0 : metres ? (high - low) / Math.max(right - left, 1e-9) : Infinity;
    const needed = Math.max(LEAST_HEIGHT, share * (frame.clientWidth - 2 * pad) + 2 * pad);
    if (needed < frame.clientHeight) frame.style.height = `${needed}px`;
    const { pen, width, height } = fit(this.canvas);
    this.width = width;
    this.height = height;
    let across = (width - 2 * pad) / Math.max(right - left, 1e-9);
    let up = (height - 2 * pad) / Math.max(high - low, 1e-9);
    // A map has one scale; a drawing of who is connected to whom has not.
    if (metres) across = up = Math.min(across, up);
    if (right - left < 1e-9) across = 0;
    if (high - low < 1e-9) up = 0;
    this.onX = (x) => width / 2 + (x - (left + right) / 2) * across;
    this.onY = (y) => height / 2 - (y - (low + high) / 2) * up;
    this.x = Float64Array.from(nodes, (n) => this.onX(n.x));
    this.y = Float64Array.from(nodes, (n) => this.onY(n.y));
    // A scale bar needs pixels for a metre.
    this.scale = metres ? across || up : 0;
    this.radius = Math.max(4, Math.min(11, Math.sqrt((width * height) / nodes.length) / 9));
    this.x0 = new Float64Array(links.length);
    this.y0 = new Float64Array(links.length);
    this.dx = new Float64Array(links.length);
    this.dy = new Float64Array(links.length);
    this.shown = NaN;
    this.placeLinks();
    this.drawGround();
    return pen;
  }

  /** Links as pairs: a link, and the one back or -1. */
  pairUp() {
    const { links } = this.run.facts;
    const open = new Map();
    const pairs = [];
    links.forEach(([from, to, over], link) => {
      const forth = open.get(`${to} ${from} ${over}`)?.shift();
      if (forth === undefined) {
        const pair = [link, -1];
        pairs.push(pair);
        const key = `${from} ${to} ${over}`;
        open.set(key, [...(open.get(key) ?? []), pair]);
      } else {
        forth[1] = link;
      }
    });
    return pairs;
  }

  /**
   * Whether the map has a line for a link: a node that moves has a link to every other, near or
   * far.
   */
  isDrawn(link) {
    const [from, to, over] = this.run.facts.links[link];
    return over === 0 || !(this.moves[from] || this.moves[to]);
  }

  /** Nodes that move are where they are at a time. */
  move(time) {
    if (this.legs.movers.length === 0 || this.shown === time) return;
    this.shown = time;
    for (const node of this.legs.movers) {
      const [x, y] = this.legs.place(node, time);
      this.x[node] = this.onX(x);
      this.y[node] = this.onY(y);
    }
    this.placeLinks();
    this.drawGround();
  }

  placeLinks() {
    this.run.facts.links.forEach(([from, to], link) => {
      const [dx, dy] = [this.x[to] - this.x[from], this.y[to] - this.y[from]];
      const length = Math.hypot(dx, dy) || 1;
      // Each way keeps to its side.
      this.x0[link] = this.x[from] - (dy / length) * SIDE;
      this.y0[link] = this.y[from] + (dx / length) * SIDE;
      this.dx[link] = dx;
      this.dy[link] = dy;
    });
  }

  drawGround() {
    this.ground.width = this.canvas.width;
    this.ground.height = this.canvas.height;
    const pen = this.ground.getContext("2d");
    const fine = this.canvas.width / Math.max(1, this.width);
    pen.setTransform(fine, 0, 0, fine, 0, 0);
    const { nodes, links } = this.run.facts;
    for (const [style, over] of [[[3, 5], 1], [[], 0]]) {
      pen.setLineDash(style);
      pen.beginPath();
      pen.strokeStyle = theme.line;
      pen.lineWidth = over ? 1 : 2;
      pen.globalAlpha = over && links.length > 300 ? 0.45 : 1;
      links.forEach(([from, to, medium], link) => {
        if ((medium > 0 ? 1 : 0) !== over || !this.isDrawn(link)) return;
        pen.moveTo(this.x[from], this.y[from]);
        pen.lineTo(this.x[to], this.y[to]);
      });
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.setLineDash([]);
    this.drawNodes(pen, nodes);
    this.drawScale(pen);
  }

  drawNodes(pen, nodes) {
    const r = this.radius;
    pen.lineWidth = 1.5;
    pen.strokeStyle = theme.ink;
    pen.fillStyle = theme.node;
    const shapes = { gateway: "square", router: "diamond", host: "triangle" };
    nodes.forEach((node, i) => {
      pen.beginPath();
      shape(pen, shapes[node.kind] ?? "disc", this.x[i], this.y[i], r);
      pen.fill();
      pen.stroke();
    });
    this.drawNames(pen, nodes);
  }

  /**
   * Names where there is room: those that would lie on others are left to the pointer. Then labels
   * of links.
   */
  drawNames(pen, nodes) {
    const r = this.radius;
    const size = this.width < 480 ? 11 : 12;
    const room = new Room(this.width, this.height);
    this.room = room;
    room.taken = nodes.map((_, i) => around(this.x[i], this.y[i], r));
    if (this.scale) room.taken.push([0, this.height - 22, 130, this.height]);
    room.wanted = this.queueBoxes();
    if (this.dx.length <= MOST_LINES) room.lines = this.linesDrawn();
    this.nodeBoxes = room.taken.slice(0, nodes.length);
    this.nameBoxes = [];
    setText(pen, `600 ${size}px system-ui, sans-serif`, theme.ink);
    nodes.forEach((node, i) => {
      const wide = pen.measureText(node.name).width / 2 + 2;
      const high = size / 2 + 1;
      const x = Math.max(wide, Math.min(this.width - wide, this.x[i]));
      const [far, beside] = [r + 4 + high, r + 3 + wide];
      const boxes = [[x, this.y[i] + far], [x, this.y[i] - far], [this.x[i] + beside, this.y[i]], [this.x[i] - beside, this.y[i]]];
      const places = boxes.map(([x, y]) => around(x, y, wide, high));
      // Rather where no link and no queue is.
      const box = room.take(places, true) ?? room.take(places.slice(0, 2), false);
      if (!box) return;
      this.nameBoxes.push(box);
      writeText(pen, node.name, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2 + size * 0.36);
    });
    this.labels = this.legs.movers.length > 0 || this.pairs.length > MOST_LABELS ? [] : this.placeLabels(pen, room);
  }

  /** Both ends of each link that the map has a line for. */
  linesDrawn() {
    const lines = [];
    this.run.facts.links.forEach(([from, to], link) => {
      if (this.isDrawn(link)) lines.push([this.x[from], this.y[from], this.x[to], this.y[to]]);
    });
    return lines;
  }

  /** Where the numbers of queues may stand, from a short one to a long one. */
  queueBoxes() {
    const boxes = [];
    for (let link = 0; link < this.dx.length; link += 1) {
      if (!this.isDrawn(link)) continue;
      const [, , length] = this.direction(link);
      for (const half of [6, Math.min(20, length / 6), Math.min(36, length / 6)]) {
        const [x, y] = this.queueNumber(link, 2 * half);
        boxes.push(around(x, y, 10, 8));
      }
    }
    return boxes;
  }

  /**
   * Places for what links can do and how busy they are: beside the middle of each, where nothing
   * else is.
   */
  placeLabels(pen, room) {
    setText(pen, LABEL_FONT, theme.soft);
    const labels = [];
    for (const pair of this.pairs) {
      const [ux, uy, length] = this.direction(pair[0]);
      if (length < 40) continue;
      for (const short of [false, true]) {
        const wide = Math.max(...this.widestLabel(pair, short).map((line) => pen.measureText(line).width)) / 2 + 3;
        const high = short ? 7 : 14;
        // Packets pass on both sides of the line.
        const off = wide * Math.abs(uy) + high * Math.abs(ux) + SIDE + 6;
        const from = this.run.facts.links[pair[0]][0];
        const at = (way, side, more = 0) => {
          const far = (off + more) * side;
          return [this.x[from] + this.dx[pair[0]] * way + uy * far, this.y[from] + this.dy[pair[0]] * way - ux * far];
        };
        // Outside comes first, where there are fewer links, and above where both sides are alike.
        const out = (side) => {
          const [x, y] = at(0.5, side);
          return Math.hypot(x - this.width / 2, y - this.height / 2) - y / 1000;
        };
        const sides = out(1) > out(-1) ? [1, -1] : [-1, 1];
        // Short links have room only beyond the numbers of their queues.
        const ways = [0.5, 0.42, 0.58, 0.34, 0.66].flatMap((way) => sides.map((side) => [way, side]));
        const places = [0, 18].flatMap((more) => ways.map(([way, side]) => around(...at(way, side, more), wide, high)));
        const box = room.take(places, true);
        if (!box) continue;
        labels.push({ pair, short, box });
        break;
      }
    }
    return labels;
  }

  /** The lines of a label at a time. */
  labelLines([forth, back], short, time) {
    const arrow = (link) => {
      if (Math.abs(this.dy[link]) > 3 * Math.abs(this.dx[link])) return this.dy[link] > 0 ? "↓" : "↑";
      return this.dx[link] >= 0 ? "→" : "←";
    };
    const ways = back < 0 ? [forth] : [forth, back];
    const share = (link) => `${percent(this.utilisation(link, time))} ${arrow(link)}`;
    if (short) return [ways.map(share).join("  ")];
    const can = ways.map((link) => this.ability(link, time));
    if (can[0] === (can[1] ?? can[0])) return [can[0], ways.map(share).join("  ")];
    return ways.map((link, i) => `${can[i]}, ${share(link)}`);
  }

  /**
   * The rate of a link at a time and, of a cable, its delay: that of a radio is a matter of the
   * distance.
   */
  ability(link, time) {
    const [, , over, , delay] = this.run.facts.links[link];
    return rate(this.run.rateAt(link, time)) + (over === 0 ? `, ${span(delay)}` : "");
  }

  /** The lines of a label at their longest, so that its place has room for them at every time. */
  widestLabel(pair, short) {
    const times = [this.run.start, ...pair.flatMap((link) => this.run.rates.get(link) ?? []).map(([at]) => at + 1)];
    const lines = times.flatMap((time) => this.labelLines(pair, short, time));
    return lines.map((line) => line.replace(/\d+ %/g, "100 %"));
  }

  /** The share of the window of a time in which a link transmits. */
  utilisation(link, time) {
    const [from, to] = this.window(time).map((at) => Math.max(this.run.start, Math.min(this.run.end, at)));
    const { run } = this;
    return to > from ? (run.busy(link, to) - run.busy(link, from)) / (to - from) : 0;
  }

  drawLabels(pen, time) {
    setText(pen, LABEL_FONT, theme.soft);
    for (const { pair, short, box } of this.labels) {
      const x = (box[0] + box[2]) / 2;
      this.labelLines(pair, short, time).forEach((line, i) => writeText(pen, line, x, box[1] + 11 + i * 14));
    }
  }

  drawScale(pen) {
    if (!this.scale) return;
    const metres = 10 ** Math.floor(Math.log10(this.width / 3 / this.scale));
    const length = metres * this.scale;
    const [x, y] = [10, this.height - 8];
    pen.strokeStyle = theme.soft;
    pen.fillStyle = theme.soft;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x, y - 4);
    pen.lineTo(x, y);
    pen.lineTo(x + length, y);
    pen.lineTo(x + length, y - 4);
    pen.stroke();
    pen.textAlign = "left";
    pen.font = "11px system-ui, sans-serif";
    pen.fillText(`${metres} m`, x + length + 6, y);
  }

  /** Draws the network at a time; what was there since `since` is drawn too, or it would be seen only by chance. */
  draw(time, since = time) {
    const { pen } = fit(this.canvas);
    this.time = time;
    this.move(time);
    pen.clearRect(0, 0, this.width, this.height);
    pen.drawImage(this.ground, 0, 0, this.width, this.height);
    this.drawLabels(pen, time);
    this.drawDead(pen, time);
    this.drawFlights(pen, time, since);
    if (this.framesShown) this.drawFrames(pen, time, since);
    this.drawQueues(pen);
    this.drawLosses(pen, time, since);
  }

  drawFlights(pen, time, since) {
    const { flight, packet, facts } = this.run;
    this.queued.fill(0);
    this.filled.fill(0);
    let seen = 0;
    this.run.flights.each(time, (i) => {
      const link = flight.link[i];
      if (flight.leaves[i] > time) {
        if (flight.end[i] > time) this.queued[link] += 1;
        return;
      }
      // Packets over the air are in their frames.
      if (facts.links[link][2] > 0) return;
      const kind = kindOf(packet, flight.packet[i]);
      seen += 1;
      if (this.filled[kind] < MOST_DRAWN) {
        this.buckets[kind][this.filled[kind]] = i;
        this.filled[kind] += 1;
      }
    }, since);
    const r = seen > 400 ? 2.2 : 4;
    PACKETS.forEach((look, kind) => {
      pen.beginPath();
      pen.fillStyle = theme[look.colour];
      for (let n = 0; n < this.filled[kind]; n += 1) {
        const i = this.buckets[kind][n];
        const link = flight.link[i];
        const end = flight.end[i] === Infinity ? facts.end : flight.end[i];
        const way = Math.min(1, (time - flight.leaves[i]) / Math.max(1, end - flight.leaves[i]));
        shape(pen, look.shape, this.x0[link] + this.dx[link] * way, this.y0[link] + this.dy[link] * way, r);
      }
      pen.fill();
    });
  }

  drawFrames(pen, time, since) {
    const { frame, packet } = this.run;
    let drawn = 0;
    this.run.frames.each(time, (i) => {
      drawn += 1;
      if (drawn > MOST_DRAWN) return;
      const look = frame.kind[i] === 0 && frame.packet[i] > 0 ? PACKETS[kindOf(packet, frame.packet[i] - 1)] : PACKETS[1];
      const from = frame.from[i];
      const way = Math.min(1, (time - frame.start[i]) / Math.max(1, frame.took[i]));
      pen.strokeStyle = theme[look.colour];
      pen.fillStyle = theme[look.colour];
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.arc(this.x[from], this.y[from], this.radius + 3 + 9 * way, 0, 2 * Math.PI);
      if (frame.to[i] > 0) {
        const to = frame.to[i] - 1;
        pen.moveTo(this.x[from], this.y[from]);
        pen.lineTo(this.x[to], this.y[to]);
        pen.stroke();
        pen.beginPath();
        const [dx, dy] = [this.x[to] - this.x[from], this.y[to] - this.y[from]];
        shape(pen, look.shape, this.x[from] + dx * way, this.y[from] + dy * way, frame.kind[i] === 0 ? 5 : 3.5);
        pen.fill();
      } else {
        pen.stroke();
      }
    }, since);
  }

  /** A link's direction, and its length in pixels. */
  direction(link) {
    const length = Math.hypot(this.dx[link], this.dy[link]) || 1;
    return [this.dx[link] / length, this.dy[link] / length, length];
  }

  /** Where the bar of a queue begins. */
  queueStart(link) {
    const [ux, uy] = this.direction(link);
    const start = this.radius + 5;
    return [this.x0[link] - uy * 3 + ux * start, this.y0[link] + ux * 3 + uy * start];
  }

  /** The middle of the number beside a bar of so many pixels. */
  queueNumber(link, bar) {
    const [ux, uy] = this.direction(link);
    const [x, y] = this.queueStart(link);
    return [x + (ux * bar) / 2 - uy * 10, y + (uy * bar) / 2 + ux * 10];
  }

  /** What waits stands beside the beginning of its link, as a bar and a number. */
  drawQueues(pen) {
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    for (let link = 0; link < this.queued.length; link += 1) {
      const count = this.queued[link];
      if (count === 0) continue;
      const [ux, uy, length] = this.direction(link);
      const bar = Math.min(length / 3, 4 + 2 * Math.sqrt(count) * 3);
      const [x, y] = this.queueStart(link);
      pen.strokeStyle = theme.ink;
      pen.lineWidth = 4;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(x + ux * bar, y + uy * bar);
      pen.stroke();
      pen.fillStyle = theme.ink;
      const [numberX, numberY] = this.queueNumber(link, bar);
      pen.fillText(count, numberX, numberY + 4);
    }
  }

  /** Losses leave a cross for a while. */
  drawLosses(pen, time, since) {
    const { loss, facts } = this.run;
    const until = after(loss.at, time);
    const shown = Math.max(time - since, 0) * 12;
    pen.beginPath();
    pen.strokeStyle = theme.lost;
    pen.lineWidth = 2.5;
    for (let i = until - 1; i >= 0 && loss.at[i] >= time - shown && until - i < 200; i -= 1) {
      const where = loss.where[i];
      if (loss.place[i] === 0) {
        const air = facts.links[where][2] > 0;
        const way = loss.reason[i] === 1 ? 0.12 : air ? 0.5 : 0.9;
        shape(pen, "cross", this.x0[where] + this.dx[where] * way, this.y0[where] + this.dy[where] * way, 5);
      } else if (loss.place[i] === 1) {
        shape(pen, "cross", this.x[where], this.y[where], 6);
      }
    }
    pen.stroke();
  }

  /** What is dead or down at a time. */
  drawDead(pen, time) {
    const { change, facts } = this.run;
    const [nodes, links] = [new Set(), new Set()];
    for (let i = 0; i < change.rows && change.at[i] <= time; i += 1) {
      const { what, index } = change;
      if (what[i] === 0) nodes.add(index[i]);
      else if (what[i] === 1) nodes.delete(index[i]);
      else if (what[i] === 2) links.add(index[i]);
      else if (what[i] === 3) links.delete(index[i]);
    }
    if (nodes.size + links.size === 0) return;
    pen.strokeStyle = theme.lost;
    pen.lineWidth = 2.5;
    pen.beginPath();
    for (const node of nodes) shape(pen, "cross", this.x[node], this.y[node], this.radius * 1.3);
    for (const link of links) {
      const [from, to] = facts.links[link];
      shape(pen, "cross", (this.x[from] + this.x[to]) / 2, (this.y[from] + this.y[to]) / 2, 6);
    }
    pen.stroke();
  }

  /** What is under the pointer. */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const { nodes, links } = this.run.facts;
    for (let i = 0; i < nodes.length; i += 1) {
      if (Math.hypot(this.x[i] - x, this.y[i] - y) < this.radius + 5) return `${nodes[i].name}\n${nodes[i].kind}`;
    }
    let [nearest, distance] = [-1, 9];
    for (let link = 0; link < links.length; link += 1) {
      if (!this.isDrawn(link)) continue;
      const length = this.dx[link] ** 2 + this.dy[link] ** 2 || 1;
      const way = ((x - this.x0[link]) * this.dx[link] + (y - this.y0[link]) * this.dy[link]) / length;
      const off = Math.hypot(this.x0[link] + way * this.dx[link] - x, this.y0[link] + way * this.dy[link] - y);
      if (way > 0 && way < 1 && off < distance) [nearest, distance] = [link, off];
    }
    return nearest < 0 ? "" : this.explainLink(nearest);
  }

  /** What a link is, and how it does at the time that is shown. */
  explainLink(link) {
    const { time } = this;
    const kind = ["cable", "IEEE 802.15.4", "IEEE 802.11"][this.run.facts.links[link][2]];
    const share = `transmits ${percent(this.utilisation(link, time))} of ${this.windowName}`;
    return `${this.names.link(link)}\n${kind}, ${this.ability(link, time)}\n${share}\n${this.queued[link]} packets wait`;
  }
}
