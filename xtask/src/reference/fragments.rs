//! An example for each table of a scenario. The documentation's tests read them.

/// The table's path, without names, and what a file may say there.
pub(super) const ALL: &[(&str, &str)] = &[
    (
        "file",
        r#"
name = "three gateways"
description = "What a reader should know."
seed = 7
stop = "10 min"
"#,
    ),
    (
        "network",
        r#"
[network]
ip = 6
metric = "delay"
convergence = "2 s"
"#,
    ),
    (
        "node",
        r#"
[[node]]
name = "gw1"
kind = "gateway"
energy = "low"

[[node]]
name = "sensor"
kind = "node"
dtc = "caching"
position = [80, 0]

[[node]]
name = "phone"
interfaces = ["wlan", "lte"]
buffers = "small"
"#,
    ),
    (
        "nodes",
        r#"
[[nodes]]
name = "n{i}"
count = 20
place = { random = { width = "400 m", height = "200 m" } }

[[nodes]]
name = "r{i}-{j}"
count = [2, 2, 2]

[[nodes]]
name = "walker{i}"
count = 5
mobility = { random-waypoint = { width = "400 m", height = "200 m", speed = ["1 m/s", "2 m/s"], pause = "10 s" } }
"#,
    ),
    (
        "deployment",
        r#"
[deployment]
placements = 5
"#,
    ),
    (
        "group",
        r#"
[group.event]
nearest = { count = 3, hops = 2, of = "sink" }

[group.cellular]
shorten-paths = { count = 2, to = "sink" }
"#,
    ),
    (
        "topology",
        r#"
[topology]
graphml = "Abilene.graphml"
link = { rate = "1 Gbit/s", delay = "1 ms", queue = "200 packets" }
"#,
    ),
    (
        "link",
        r#"
[[link]]
name = "radio1"
from = "gw1"
to = "sensor"
rate = "256 kbit/s"
delay = "25 ms"
mtu = 141
loss = "2 %"
queue = "20 packets"

[[link]]
from = "cellular"
to = "station"
rate = "10 Mbit/s"
delay = "15 ms"

[[link]]
name = "hop{i}"
from = "source"
via = "n{i}"
to = "sink"
rate = "250 kbit/s"
delay = "11 ms"

[link.only.hop1]
loss = "10 %"

[[link]]
name = "radio{i}-{j}"
from = "gw{i}"
via = "r{i}-{j}"
to = "sensor"
rate = "250 kbit/s"
delay = "11 ms"
"#,
    ),
    (
        "link.back",
        r#"
[[link]]
from = "gw1"
to = "sensor"
rate = "2 Mbit/s"
delay = "25 ms"
back = { rate = "256 kbit/s", loss = 0.05 }
"#,
    ),
    (
        "link.loss_factors",
        r#"
[[link]]
from = "relay1"
to = "relay2"
rate = "250 kbit/s"
delay = "11 ms"
loss = "10 %"
loss_factors = { ack = 0.5, link_ack = 0.25 }
link_ack_timeout = "3 ms"
"#,
    ),
    (
        "link.loss",
        r#"
[[link]]
from = "gw1"
to = "sensor"
rate = "256 kbit/s"
delay = "25 ms"
loss = { good_to_bad = 0.01, bad_to_good = 0.2, loss_bad = 0.5 }

[[link]]
from = "gw2"
to = "sensor"
rate = "256 kbit/s"
delay = "25 ms"
loss = { mean_good = "2 s", mean_bad = "100 ms" }
"#,
    ),
    (
        "link.trace",
        r#"
[[link]]
from = "server"
to = "phone"
trace = { mahimahi = "traces/cellular.down" }
delay = "25 ms"
back = { trace = { mahimahi = "traces/cellular.up" } }

[[link]]
from = "satellite"
to = "ground"
trace = { rate = "rate.csv", delay = "delay.csv", repeat = true }
"#,
    ),
    (
        "link.arq",
        r#"
[[link]]
from = "gw1"
to = "sensor"
rate = "256 kbit/s"
delay = "25 ms"
loss = "10 %"
arq = { limit = 3, delay = "5 ms" }
"#,
    ),
    (
        "link.jitter",
        r#"
[[link]]
from = "cn"
to = "gw1"
rate = "10 Mbit/s"
delay = "20 ms"
jitter = { exponential = "5 ms" }
"#,
    ),
    (
        "link.jitter.normal",
        r#"
[[link]]
from = "cn"
to = "gw1"
rate = "10 Mbit/s"
delay = "20 ms"
jitter = { normal = { mean = "5 ms", deviation = "2 ms" } }
"#,
    ),
    (
        "link.jitter.pareto",
        r#"
[[link]]
from = "cn"
to = "gw1"
rate = "10 Mbit/s"
delay = "20 ms"
jitter = { pareto = { least = "1 ms", shape = 2.5 }, overtaking = true }
"#,
    ),
    (
        "radio",
        r#"
[radio]
phy = "oqpsk-250k"
range = "100 m"
interference_range = "180 m"
max_frame_retries = 7
"#,
    ),
    (
        "radio.log_distance",
        r#"
[radio.log_distance]
exponent = 3.2
shadowing_db = 4.0
"#,
    ),
    (
        "paths",
        r#"
[paths]
root = "border"
max_paths = 3
"#,
    ),
    (
        "wifi",
        r#"
[wifi]
base = "ns2"
range = "100 m"
carrier_sense_range = "220 m"
data_rate = "2 Mbit/s"
"#,
    ),
    (
        "aodv",
        r#"
[aodv]
base = "ns2"
local_repair = "on"
"#,
    ),
    (
        "rdca",
        r#"
[rdca.patient]
algorithm = "ours"
longest_wait = "16 s"
acceleration = "off"
"#,
    ),
    (
        "coap",
        r#"
[coap.quick]
method = "q-block1"
block_size = 512
max_payloads = 20
"#,
    ),
    (
        "buffers",
        r#"
[buffers.small]
policy = "pid"
memory = "2 MB"
reports = "sampled"
"#,
    ),
    (
        "buffers.pid",
        r#"
[buffers.small.pid]
base = "ours"
guarantee = 0.5
"#,
    ),
    (
        "buffers.sampling",
        r#"
[buffers.small.sampling]
period = "200 ms"
noise = 0.2
"#,
    ),
    (
        "traffic",
        r#"
[[traffic]]
name = "readings"
kind = "cbr"
over = "rdca"
from = "n*"
to = "sink"
payload = "100 B"
interval = "200 ms"
start = "5 s"
phase = "random"

[[traffic]]
kind = "poisson"
over = "mptcp"
from = "cellular"
to = "sink"
payload = "100 B"
interval = "100 ms"
mptcp = { scheduler = "predictive", congestion = "adaptive", subflows = 2 }
"#,
    ),
    (
        "tcp",
        r#"
[tcp.default]
congestion = "cubic"

[tcp.wireless]
base = "paper"
mss = 81
window_limit = 4
"#,
    ),
    (
        "dtc",
        r#"
[dtc.caching]
algorithm = "improved"
cache_segments = 1
"#,
    ),
    (
        "transfer",
        r#"
[[transfer]]
name = "update"
kind = "set"
from = "cn"
to = "sensor"
bytes = "129 kB"
gateways = 3
tcp_wireless = "wireless"
"#,
    ),
    (
        "transfer.repeat",
        r#"
[[transfer]]
name = "call {i}"
count = 4
kind = "tcp"
from = "phone"
to = "server"
interfaces = ["wlan", "lte"]
repeat = { on = "5 s", off = "10 s", stagger = "1 s" }
"#,
    ),
    (
        "transfer.set",
        r#"
[[transfer]]
kind = "set"
from = "cn"
to = "sensor"
bytes = "129 kB"

[transfer.set]
striping = "window"
start = "after-setack"
"#,
    ),
    (
        "transfer.mptcp",
        r#"
[[transfer]]
kind = "mptcp"
from = "sensor"
to = "border"
start = "60 s"

[transfer.mptcp]
scheduler = "predictive"
subflows = 3
"#,
    ),
    (
        "probe",
        r#"
[probe.update]
kind = "energy"
nodes = ["n*", "sensor"]
during = "update"

[probe.night]
kind = "energy"
from = "10 min"
until = "8 h"

[probe.air]
kind = "packets"
medium = "air"
during = "update"
"#,
    ),
    (
        "event",
        r#"
[[event]]
at = "70 s"
action = "fail-node"
node = "gw2"
how = "reset"

[[event]]
at = "90 s"
action = "recover-node"
node = "gw2"

[[event]]
at = "2 min"
action = "set-delay"
from = "gw1"
to = "sensor"
delay = "200 ms"

[[event]]
at = "3 min"
action = "set-loss"
from = "gw1"
to = "sensor"
loss = "5 %"
"#,
    ),
    (
        "random-event",
        r#"
[[random-event]]
name = "fading"
action = "set-rate"
links = ["wlan", "lte"]
every = "50 s"
rate_share = [0.5, 1.0]

[[random-event]]
name = "weather"
action = "set-loss"
links = ["wlan"]
every = "10 s"
loss_between = [0, 0.05]

[[random-event]]
name = "outages"
action = "link-down"
links = ["radio*"]
pick = "one"
every = "2 min"
spacing = "poisson"
lasts = "5 s"
"#,
    ),
    (
        "route",
        r#"
[[route]]
at = "cn"
to = "sensor"
via = "gw2"

[[route]]
at = "router"
to = "server"
via = "backbone"
interface = "wlan"
"#,
    ),
    (
        "emulation",
        r#"
[emulation]
lag_limit = "50 ms"
on_lag = "stop"
"#,
    ),
    (
        "sweep",
        r#"
[sweep]
"link.*.loss" = [0.0, 0.02, 0.05]
"transfer.update.gateways" = [1, 2, 3]
"#,
    ),
];
