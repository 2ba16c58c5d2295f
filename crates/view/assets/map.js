// The network's map. Links and nodes are drawn once on a canvas of their own and copied; packets are drawn anew for each picture.

const MOST_DRAWN = 3000;
const SIDE = 4;

/** The items of one and then of the other. */
function* both(first, second) {
  yield* first;
  yield* second;
}

class NetworkMap {
  constructor(run, names, canvas) {
    this.run = run;
    this.names = names;
    this.canvas = canvas;
    this.ground = document.createElement("canvas");
    const { facts, frame } = run;
    // Frames find their link, and the place of a link, by its two ends.
    this.linkOf = new Map(facts.links.map(([from, to], link) => [from * 65536 + to, link]));
    this.queued = new Uint32Array(facts.links.length);
    this.used = new Uint8Array(facts.links.length);
    // Rows to draw, by kind, and how many there are.
    this.buckets = PACKETS.map(() => new Uint32Array(MOST_DRAWN + 1));
    this.filled = new Uint32Array(PACKETS.length);
    this.framesShown = frame.rows > 0;
    this.legs = new Legs(run.leg, facts.nodes);
    this.moves = new Uint8Array(facts.nodes.length);
    for (const node of this.legs.movers) this.moves[node] = 1;
    canvas.addEventListener("pointermove", (event) => explain(event, this.at(event)));
    canvas.addEventListener("pointerleave", (event) => explain(event, ""));
  }

  /** Puts nodes and links in their places; after a change of size or colours. */
  arrange() {
    const { pen, width, height } = fit(this.canvas);
    this.width = width;
    this.height = height;
    const { nodes, links, metres } = this.run.facts;
    const pad = width < 480 ? 34 : 52;
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    const places = nodes.map(({ x, y }) => [x, y]);
    for (const [x, y] of both(places, this.legs.places())) {
      left = Math.min(left, x);
      right = Math.max(right, x);
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
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
      for (const [from, to, medium] of links) {
        if ((medium > 0 ? 1 : 0) !== over) continue;
        // A node that moves has a link to every other, near or far.
        if (over && (this.moves[from] || this.moves[to])) continue;
        pen.moveTo(this.x[from], this.y[from]);
        pen.lineTo(this.x[to], this.y[to]);
      }
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
    // Names where there is room: those that would lie on others are left to the pointer.
    const size = this.width < 480 ? 11 : 12;
    pen.font = `600 ${size}px system-ui, sans-serif`;
    pen.fillStyle = theme.ink;
    pen.strokeStyle = theme.panel;
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    pen.textAlign = "center";
    const around = (x, y, reach) => [x - reach, y - reach, x + reach, y + reach];
    const apart = (a, b) => a[0] > b[2] || a[2] < b[0] || a[1] > b[3] || a[3] < b[1];
    const taken = nodes.map((_, i) => around(this.x[i], this.y[i], r));
    const queues = Array.from(this.dx, (_, link) => this.queuePlace(link));
    nodes.forEach((node, i) => {
      const wide = pen.measureText(node.name).width;
      const x = Math.max(wide / 2 + 2, Math.min(this.width - wide / 2 - 2, this.x[i]));
      const places = [this.y[i] + r + size + 2, this.y[i] - r - 5].filter((y) => y <= this.height - 2 && y >= size);
      const boxes = places.map((y) => [x - wide / 2 - 2, y - size, x + wide / 2 + 2, y + 3]);
      const free = boxes.filter((box) => taken.every((other, j) => j === i || apart(other, box)));
      // Rather where no queue will stand.
      const box = free.find((box) => queues.every(([x, y]) => apart(around(x, y, 9), box))) ?? free[0];
      if (!box) return;
      const y = places[boxes.indexOf(box)];
      pen.strokeText(node.name, x, y);
      pen.fillText(node.name, x, y);
      taken.push(box);
    });
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
    this.move(time);
    pen.clearRect(0, 0, this.width, this.height);
    pen.drawImage(this.ground, 0, 0, this.width, this.height);
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

  /** The middle of what stands there if a few packets wait for a link. */
  queuePlace(link) {
    const [ux, uy] = this.direction(link);
    const along = this.radius + 11;
    return [this.x0[link] - uy * 7 + ux * along, this.y0[link] + ux * 7 + uy * along];
  }

  /** What waits stands beside the beginning of its link, as a bar and a number. */
  drawQueues(pen) {
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    for (let link = 0; link < this.queued.length; link += 1) {
      const count = this.queued[link];
      if (count === 0) continue;
      const [ux, uy, length] = this.direction(link);
      const start = this.radius + 5;
      const bar = Math.min(length / 3, 4 + 2 * Math.sqrt(count) * 3);
      const [x, y] = [this.x0[link] - uy * 3 + ux * start, this.y0[link] + ux * 3 + uy * start];
      pen.strokeStyle = theme.ink;
      pen.lineWidth = 4;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(x + ux * bar, y + uy * bar);
      pen.stroke();
      pen.fillStyle = theme.ink;
      pen.fillText(count, x + (ux * bar) / 2 - uy * 10, y + (uy * bar) / 2 + ux * 10 + 4);
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
      const length = this.dx[link] ** 2 + this.dy[link] ** 2 || 1;
      const way = ((x - this.x0[link]) * this.dx[link] + (y - this.y0[link]) * this.dy[link]) / length;
      const off = Math.hypot(this.x0[link] + way * this.dx[link] - x, this.y0[link] + way * this.dy[link] - y);
      if (way > 0 && way < 1 && off < distance) [nearest, distance] = [link, off];
    }
    if (nearest < 0) return "";
    const [, , over, bits, delay] = links[nearest];
    const kind = ["cable", "IEEE 802.15.4", "IEEE 802.11"][over];
    const wait = over === 0 ? `, ${span(delay)}` : "";
    return `${this.names.link(nearest)}\n${kind}, ${rate(bits)}${wait}\n${this.queued[nearest]} packets wait`;
  }
}
