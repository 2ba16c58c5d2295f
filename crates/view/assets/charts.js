// What the charts show: the goodput of all flows; of a path, bytes over time, windows and round
// trips; and a link's queue.

const SHAPES = ["disc", "triangle", "square", "diamond"];
const LOOKS = ["data", "again", "other", "ack"];
// Lines of flows: each colour once as a line and once dashed. Further flows are grey.
const FLOW_COLOURS = ["data", "again", "ack", "other", "mark", "ink"];
const FLOWS_COLOURED = 2 * FLOW_COLOURS.length;
const MOST_FLOWS = 300;
// ICMP and ICMPv6, which also carries RPL, and the UDP ports of AODV and OLSR.
const CONTROL = [1, 58];
const ROUTING = [654, 698];
// Values of the goodput of all flows together: shorter spans would take more memory than the run
// itself.
const MOST_BINS = 2e6;

// What the chart of windows has, the last on top. What a selective acknowledgement names counts as
// unacknowledged: a log does not have these acknowledgements, and its figure is the FlightSize of
// RFC 5681.
const UNACKNOWLEDGED = "Sent and not acknowledged cumulatively: bytes of selective acknowledgements are included";
const WINDOWS = [
  { name: "window of the peer", figure: "peer", colour: "soft", dash: 2, aside: true },
  { name: "slow-start threshold", figure: "ssthresh", colour: "other", dash: 1, aside: true },
  { name: "send buffer", figure: "buffer", colour: "ack", dash: 1, aside: true },
  { name: "unacknowledged", figure: "flying", colour: "again", dash: 3, note: UNACKNOWLEDGED },
  { name: "congestion window", figure: "cwnd", colour: "data", dash: 0 },
];
/** Figures of which 0 stands for unbounded, not measured or not in the log. */
const ZERO_IS_UNKNOWN = ["ssthresh", "srtt", "buffer"];
const ROUND_TRIP = "Smoothed round-trip time";
const SEQUENCE = "Bytes sent and acknowledged";

class Charts {
  constructor(run, fold, names, parent, onpick) {
    this.run = run;
    this.fold = fold;
    this.names = names;
    const page = { run, fold, parent };
    this.phases = new PhasesChart(page);
    this.goodput = new Chart(page, "goodput", "Goodput", "rate (bit/s)");
    this.sequence = new Chart(page, "bytes", SEQUENCE, "bytes (kB)", 1000);
    this.windows = new Chart(page, "windows", "Windows", "bytes (kB)", 1000);
    this.trips = new Chart(page, "round-trip", ROUND_TRIP, "time (ms)", 1000);
    this.queue = new Chart(page, "queue", "Queue", "packets", 1);
    this.all = [this.phases, this.goodput, this.sequence, this.windows, this.trips, this.queue];
    this.brought = this.bytesBrought();
    for (const chart of this.all) chart.onpick = onpick;
  }

  /** Paths worth choosing: files by gateway, then flows that carry data, the largest first. */
  paths() {
    const { facts, packet, chunk } = this.run;
    const carried = new Float64Array(facts.flows.length);
    for (let i = 0; i < packet.rows; i += 1) carried[packet.flow[i]] += packet.len[i];
    // A log of sockets has no packets.
    const { first } = this.run.statesOf;
    const worth = (flow) => carried[flow] > 0 || (packet.rows === 0 && first[flow + 1] > first[flow]);
    const flows = [...carried.keys()].filter(worth);
    flows.sort((a, b) => carried[b] - carried[a] || a - b);
    const paths = flows.slice(0, MOST_FLOWS).map((flow) => ({ value: String(flow), name: this.names.flow(flow) }));
    if (chunk.rows > 0) paths.unshift({ value: "files", name: "parts of the file, by gateway" });
    return paths;
  }

  /** Links worth choosing, those with the most packets first. */
  links() {
    const { first } = this.run.ofLink;
    const count = (link) => first[link + 1] - first[link];
    const links = [...this.run.facts.links.keys()].filter((link) => count(link) > 0);
    links.sort((a, b) => count(b) - count(a) || a - b);
    return links.slice(0, 500).map((link) => ({ value: String(link), name: this.names.link(link) }));
  }

  /** Bytes that each flow has brought to its destination. */
  bytesBrought() {
    const { packet, facts } = this.run;
    const brought = new Float64Array(facts.flows.length);
    for (let i = 0; i < packet.rows; i += 1) brought[packet.flow[i]] += packet.fresh[i];
    return brought;
  }

  /**
   * The goodput of all flows, as means of spans of which the time shown, of so many nanoseconds,
   * has about a hundred.
   */
  showGoodput(shown) {
    const { run, brought } = this;
    // Control messages of routing protocols and neighbour discovery are no goodput.
    const carries = ([, , protocol, , port]) => !CONTROL.includes(protocol) && !(protocol === 17 && ROUTING.includes(port));
    const flows = [...brought.keys()].filter((flow) => brought[flow] > 0 && carries(run.facts.flows[flow]));
    flows.sort((a, b) => brought[b] - brought[a] || a - b);
    flows.length = Math.min(flows.length, MOST_FLOWS);
    const length = run.end - run.start;
    const finest = (length * Math.max(1, flows.length)) / MOST_BINS;
    const bin = stepFor(Math.max(shown / 1e9, 1e-9), 100) * 1e9;
    const step = Math.max(bin, stepFor(Math.max(finest / 1e9, 1e-9), 1) * 1e9);
    if (step === this.step) return;
    this.step = step;
    const bins = Math.ceil(length / step);
    const places = new Map(flows.map((flow, place) => [flow, place]));
    const rates = flows.map(() => new Float64Array(bins));
    const { packet } = run;
    for (let i = 0; i < packet.rows; i += 1) {
      const place = packet.fresh[i] > 0 ? places.get(packet.flow[i]) : undefined;
      if (place === undefined) continue;
      const at = packet.made[i] + packet.took[i] - 1;
      rates[place][Math.min(bins - 1, Math.floor((at - run.start) / step))] += packet.fresh[i];
    }
    // The last span may be shorter.
    const took = (n) => Math.min(step, length - n * step) / 1e9;
    let highest = 0;
    for (const rate of rates) {
      for (let n = 0; n < bins; n += 1) {
        rate[n] = (rate[n] * 8) / took(n);
        highest = Math.max(highest, rate[n]);
      }
    }
    const times = Float64Array.from({ length: bins }, (_, n) => Math.min(run.end, run.start + (n + 0.5) * step));
    const [unit, scale] = highest >= 2e6 ? ["Mbit/s", 1e6] : highest >= 2e3 ? ["kbit/s", 1e3] : ["bit/s", 1];
    Object.assign(this.goodput, { title: `Goodput, means of ${span(step)}`, unit: `rate (${unit})`, scale });
    const others = flows.length - FLOWS_COLOURED;
    const lines = flows.map((flow, place) => {
      const series = new Series(times, rates[place]);
      const name = this.names.flow(flow);
      const colours = FLOW_COLOURS.length;
      if (place < FLOWS_COLOURED) return { name, colour: FLOW_COLOURS[place % colours], dash: place < colours ? 0 : 1, joined: true, series };
      // One entry stands for all of the others, which keep their names in the CSV file.
      const first = place === FLOWS_COLOURED;
      return { name, label: first ? `${others} more` : name, colour: "line", quiet: !first, joined: true, series };
    });
    this.goodput.show(lines);
  }

  /** Shows a path, and of a second one the windows and round-trip times in the same axes. */
  choosePath(value, second) {
    if (value === "files") {
      this.showFiles();
      this.windows.show([]);
      this.trips.show([]);
      return;
    }
    const flow = Number(value);
    this.showSequence(flow);
    if (second === "" || second === value) this.showStates(flow);
    else this.showBoth(flow, Number(second));
  }

  /** Parts of the file as they were written to the connections to gateways, or by these to the node. */
  showFiles() {
    const { chunk, facts } = this.run;
    const flows = [...new Set(chunk.flow)].sort((a, b) => a - b);
    // The sender's connections tell the most; those of gateways say the same later.
    const sender = facts.flows[flows[0]][0];
    const shown = flows.filter((flow) => facts.flows[flow][0] === sender);
    this.sequence.title = "Parts of the file, as the sender gave them to gateways";
    this.sequence.show(shown.map((flow, i) => {
      const rows = [];
      for (let n = 0; n < chunk.rows; n += 1) if (chunk.flow[n] === flow) rows.push(n);
      const series = new Series(Float64Array.from(rows, (n) => chunk.at[n]), Float64Array.from(rows, (n) => chunk.offset[n]));
      const to = this.names.node(facts.flows[flow][1]);
      return { name: `to ${to}`, colour: LOOKS[i % 4], shape: SHAPES[i % 4], series };
    }));
  }

  showSequence(flow) {
    const { packet, loss } = this.run;
    const rows = (keep) => {
      const { first, rows: all } = this.run.ofFlow;
      return all.subarray(first[flow], first[flow + 1]).filter(keep);
    };
    const series = (which, time, value) => new Series(Float64Array.from(which, time), Float64Array.from(which, value));
    const made = (i) => packet.made[i];
    const sent = rows((i) => kindOf(packet, i) === 0);
    const again = rows((i) => kindOf(packet, i) === 2);
    const end = (i) => packet.seq[i] + packet.len[i];
    const back = this.run.back(flow);
    const acks = back < 0 ? new Uint32Array(0) : this.acks(back);
    const { first, rows: lost } = this.run.lossesOf;
    const losses = lost.subarray(first[flow], first[flow + 1]).filter((i) => loss.reason[i] > 0);
    this.sequence.title = SEQUENCE;
    this.sequence.show([
      { name: "acknowledged", colour: "ack", dash: 0, series: series(acks, (i) => packet.made[i] + packet.took[i] - 1, (i) => packet.ack[i]) },
      { name: "lost", colour: "lost", shape: "cross", series: series(losses, (i) => loss.at[i], (i) => end(loss.packet[i])) },
      { name: "sent", colour: "data", shape: "disc", series: series(sent, made, end) },
      { name: "sent again, or from a cache", colour: "again", shape: "triangle", series: series(again, made, end) },
    ]);
  }

  /** Acknowledgements that have arrived, in order of that, and only those that say more than the ones before. */
  acks(back) {
    const { packet, ofFlow } = this.run;
    const all = ofFlow.rows.subarray(ofFlow.first[back], ofFlow.first[back + 1]);
    const arrived = all.filter((i) => packet.took[i] > 0 && packet.flags[i] & ACK);
    arrived.sort((a, b) => packet.made[a] + packet.took[a] - packet.made[b] - packet.took[b]);
    let highest = -1;
    return arrived.filter((i) => {
      const more = packet.ack[i] > highest;
      if (more) highest = packet.ack[i];
      return more;
    });
  }

  /** Figures of a flow's connection over time. */
  states(flow) {
    const { state, statesOf } = this.run;
    const rows = statesOf.rows.subarray(statesOf.first[flow], statesOf.first[flow + 1]);
    const times = Float64Array.from(rows, (i) => state.at[i]);
    return (name) => new Series(times, Float64Array.from(rows, (i) => ZERO_IS_UNKNOWN.includes(name) && state[name][i] === 0 ? NaN : state[name][i]));
  }

  /** Simulated logs have no send buffers. */
  windowsIn() {
    const { buffer } = this.run.state;
    return WINDOWS.filter(({ figure }) => figure !== "buffer" || buffer.some((size) => size > 0));
  }

  showStates(flow) {
    const column = this.states(flow);
    this.windows.title = "Windows";
    this.windows.show(this.windowsIn().map(({ name, figure, ...look }) => ({ name, ...look, series: column(figure) })));
    this.trips.title = ROUND_TRIP;
    this.trips.show([{ name: "smoothed round-trip time", colour: "data", series: column("srtt") }]);
  }

  /** Two flows in the same axes: a colour says which flow, and a dash which figure. */
  showBoth(first, second) {
    const flows = [[first, "data", 1], [second, "again", 2]];
    const which = flows.map(([flow, , number]) => `${number}: ${this.names.flow(flow)}`).join("; ");
    this.windows.title = `Windows (${which})`;
    this.windows.show(flows.flatMap(([flow, colour, number]) => {
      const column = this.states(flow);
      return this.windowsIn().map(({ name, figure, dash, aside, note }) => ({ name: `${number}: ${name}`, colour, dash, aside, note, series: column(figure) }));
    }));
    this.trips.title = `${ROUND_TRIP} (${which})`;
    this.trips.show(flows.map(([flow, colour, number]) => ({ name: `${number}: smoothed round-trip time`, colour, dash: number - 1, series: this.states(flow)("srtt") })));
  }

  chooseLink(value) {
    const link = Number(value);
    const { flight, ofLink, facts } = this.run;
    const rows = ofLink.rows.subarray(ofLink.first[link], ofLink.first[link + 1]);
    const waited = rows.filter((i) => flight.waited[i] > 0);
    // One more when a packet comes, one less when its transmission begins or it is thrown away.
    const come = Float64Array.from(waited, (i) => flight.sent[i]);
    const gone = Float64Array.from(waited, (i) => Math.min(flight.leaves[i], flight.end[i])).sort();
    const times = new Float64Array(come.length * 2 + 1);
    const values = new Float64Array(come.length * 2 + 1);
    times[0] = facts.start;
    let [i, j, count] = [0, 0, 0];
    for (let n = 1; n < times.length; n += 1) {
      const coming = i < come.length && come[i] < gone[j];
      count += coming ? 1 : -1;
      times[n] = coming ? come[i++] : gone[j++];
      values[n] = count;
    }
    this.queue.title = `Queue, ${this.names.link(link)}`;
    this.queue.show([{ name: "packets that wait", colour: "data", series: new Series(times, values) }]);
  }

  draw(from, to) {
    this.showGoodput(this.fold.to(to) - this.fold.to(from));
    for (const chart of this.all) chart.draw(from, to);
  }

  point(time) {
    for (const chart of this.all) chart.point(time);
  }
}
