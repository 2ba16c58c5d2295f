// What the charts show of a path: octets over time, windows, round trips, and a link's queue.

const SHAPES = ["disc", "triangle", "square", "diamond"];
const LOOKS = ["data", "again", "other", "ack"];

class Charts {
  constructor(run, names, parent, onpick) {
    this.run = run;
    this.names = names;
    this.sequence = new Chart(parent, "Octets sent and acknowledged", "octets (kB)", 1000);
    this.windows = new Chart(parent, "Windows", "octets (kB)", 1000);
    this.trips = new Chart(parent, "Smoothed round trip", "time (ms)", 1000);
    this.queue = new Chart(parent, "Queue", "packets", 1);
    this.all = [this.sequence, this.windows, this.trips, this.queue];
    for (const chart of this.all) chart.onpick = onpick;
  }

  /** Paths worth choosing: files by gateway, then flows that carry octets, the largest first. */
  paths() {
    const { facts, packet, chunk } = this.run;
    const carried = new Float64Array(facts.flows.length);
    for (let i = 0; i < packet.rows; i += 1) carried[packet.flow[i]] += packet.len[i];
    const flows = [...carried.keys()].filter((flow) => carried[flow] > 0);
    flows.sort((a, b) => carried[b] - carried[a] || a - b);
    const paths = flows.slice(0, 300).map((flow) => ({ value: String(flow), name: this.names.flow(flow) }));
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

  choosePath(value) {
    if (value === "files") {
      this.showFiles();
      this.windows.show([]);
      this.trips.show([]);
      return;
    }
    const flow = Number(value);
    this.showSequence(flow);
    this.showStates(flow);
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
    this.sequence.title = "Octets sent and acknowledged";
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

  showStates(flow) {
    const { state, statesOf } = this.run;
    const rows = statesOf.rows.subarray(statesOf.first[flow], statesOf.first[flow + 1]);
    const times = Float64Array.from(rows, (i) => state.at[i]);
    // 0 stands for unbounded or not measured.
    const column = (name) => new Series(times, Float64Array.from(rows, (i) => (name === "ssthresh" || name === "srtt") && state[name][i] === 0 ? NaN : state[name][i]));
    this.windows.show([
      { name: "window of the peer", colour: "soft", dash: 2, aside: true, series: column("peer") },
      { name: "slow-start threshold", colour: "other", dash: 1, aside: true, series: column("ssthresh") },
      { name: "on the way", colour: "again", dash: 3, series: column("flying") },
      { name: "congestion window", colour: "data", dash: 0, series: column("cwnd") },
    ]);
    this.trips.show([{ name: "smoothed round trip", colour: "data", series: column("srtt") }]);
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
    for (const chart of this.all) chart.draw(from, to);
  }

  point(time) {
    for (const chart of this.all) chart.point(time);
  }
}
