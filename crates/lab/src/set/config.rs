//! Parameters of the experiment, their defaults, and how they change its scenario.

use std::str::FromStr;

use anabranch_core::set::MAX_GATEWAYS;
use anabranch_core::tcp;
use anabranch_core::time::Duration;
use anabranch_scenario::units::{QueueSize, Size, Span, UnitError};
use anabranch_sim::link::QueueLimit;
use anabranch_sim::world::Failure;

use super::radio;
use crate::experiment::template::{Assignment, Template};
use crate::experiment::values::{
    self, Takes, Understood, count, is_radio, meant, plain, probability, quantity,
};
use crate::experiment::{Parameter, ParameterError, Settings, parameter as p};

/// The scenario and how the parameters change it.
pub const TEMPLATE: Template = Template {
    file: "scenarios/papers/set.toml",
    text: include_str!("../../../../scenarios/papers/set.toml"),
    parameters: PARAMETERS,
    derived,
};

/// Transport of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// SET over all gateways.
    Set,
    /// Split TCP through the first gateway.
    Split,
    /// End-to-end TCP; the first gateway routes and fragments.
    EndToEnd,
}

impl Scheme {
    /// The value of the parameter `scheme`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Split => "split",
            Self::EndToEnd => "end-to-end",
        }
    }

    pub(super) fn of(settings: &Settings) -> Understood<Self> {
        let all = [Self::Set, Self::Split, Self::EndToEnd].map(|scheme| (scheme.word(), scheme));
        values::meant("scheme", settings.text("scheme"), &all)
    }
}

const RATE: &str = "a rate such as 256kbit/s; one for all, or one each joined by +";
const DELAY: &str = "a span such as 25ms; one for all, or one each joined by +";

/// Defaults from section 6.1 where the paper gives a number (100 Mbit/s and 10 ms wired, 256 kbit/s
/// and 25 ms wireless, 100 packets at a gateway), 64 kB at the node from section 6.2, and the
/// largest file of Table 2.
const PARAMETERS: &[Parameter] = &[
    p("scheme", "set", "set, split or end-to-end", "how the file is carried; the baselines use gateway 1")
        .alias(),
    p("gateways", "3", "1 to 15", "gateways of the network, and SET's sessions"),
    p("file", "129kB", "a size such as 129kB", "the file").alias(),
    p("wired_rate", "100Mbit/s", RATE, "rate of the wired links").alias(),
    p("wired_delay", "10ms", DELAY, "one-way delay of the wired links").alias(),
    p("wireless_rate", "256kbit/s", RATE, "medium=links: rate of the wireless links").alias(),
    p("wireless_delay", "25ms", DELAY, "medium=links: one-way delay of each wireless link").alias(),
    p(
        "wireless_loss",
        "0",
        "a probability such as 0.02 or 2%; one for all, or one each joined by +",
        "loss of each packet on each wireless link, both ways; on a radio, of each frame and its acknowledgement",
    )
    .alias(),
    p(
        "hops",
        "1",
        "1 to 32; one for all, or one each joined by +",
        "wireless links in a row behind a gateway",
    ),
    p(
        "gateway_buffer",
        "100packets",
        "packets or a size such as 640kB; one for all, or one each joined by +",
        "drop-tail queue of a gateway's wireless link; on a radio, packets of each node",
    )
    .alias(),
    p("node_buffer", "64kB", "a size such as 64kB", "receive buffer of the node"),
    p(
        "background",
        "0",
        "0 to 200",
        "other transfers of the same kind and size to other nodes through the same gateways, begun together",
    ),
    p(
        "fail",
        "none",
        "none, or gw2@1.5s (silent) or gw2@1.5s:reset; several joined by +",
        "gateways that die, and when",
    ),
    p("tcp", "paper", "paper or modern", "TCP everywhere: that of the paper, or a present-day host's"),
    p("start", "after-setack", "after-setack or early", "when data may follow a SETSYN").alias(),
    p("open", "staggered", "staggered, one-by-one or at-once", "when the next session is opened").alias(),
    p("striping", "predictive", "predictive or window", "how sessions share the file").alias(),
    p("open_wait", "round-trip", "round-trip or none", "how long a gateway waits before its SETACK").alias(),
    p("layout", "compact", "compact or paper", "layout of the header of a data chunk").alias(),
    p("ip", "6", "6 or 4", "IP version").alias(),
    p(
        "medium",
        "links",
        "links or radio",
        "wireless links of their own, or one 802.15.4 channel (O-QPSK) for gateways, relays and node",
    ),
    p("retries", "3", "0 to 15", "medium=radio: how often the MAC repeats a frame that is not acknowledged"),
];

/// Types of parameters whose values are not passed to the scenario as they are.
const TAKES: &[(&str, Takes)] = &[
    ("gateways", Takes::Count(1, MAX_GATEWAYS)),
    ("file", Takes::Size),
    ("node_buffer", Takes::Size),
    ("background", Takes::Count(0, 200)),
    ("retries", Takes::Count(0, 15)),
];

/// Parameters with one value for all gateways, or one per gateway.
const EACH: &[(&str, Takes)] = &[
    ("wired_rate", Takes::Rate),
    ("wired_delay", Takes::Span),
    ("wireless_rate", Takes::Rate),
    ("wireless_delay", Takes::Span),
    ("wireless_loss", Takes::Probability),
    ("hops", Takes::Count(1, 32)),
    ("gateway_buffer", Takes::Queue),
];

/// Limit on the rows of relays around the node that do not hear each other.
const MAX_ROWS: usize = 5;

/// The settings in canonical form, each value as results write it.
///
/// # Errors
///
/// The first invalid value.
pub fn canonical(settings: &Settings) -> Understood<Settings> {
    let mut understood = values::canonical(settings, TAKES)?;
    let gateways = gateways(&understood)?;
    for (key, takes) in EACH {
        let text = settings.text(key);
        let each: Vec<String> =
            text.split('+').map(|part| takes.canonical(key, part.trim())).collect::<Understood<_>>()?;
        if each.len() != 1 && each.len() != gateways {
            let message = format!("{} values for {gateways} gateways", each.len());
            let hint = "give one for all, or one for each gateway, joined by +".to_owned();
            return Err(ParameterError::bad(key, text, message, Some(hint)));
        }
        understood = understood.with(key, each.join("+"));
    }
    let Size(buffer) = quantity("node_buffer", understood.text("node_buffer"))?;
    if buffer == 0 || buffer > u64::from(u32::MAX) {
        let text = settings.text("node_buffer");
        return Err(ParameterError::bad("node_buffer", text, "a buffer has 1 B to 4 GiB", None));
    }
    let fail = Failing::text_of_all(&Failing::all(&understood)?);
    understood = understood.with("fail", fail);
    if is_radio(&understood)? { fits_radio(&understood, settings) } else { Ok(understood) }
}

/// Checks settings for the radio: one channel has one loss, a node on it one queue, and it carries
/// only IPv6.
fn fits_radio(understood: &Settings, given: &Settings) -> Understood<Settings> {
    let bad = |key, message: &str| Err(ParameterError::bad(key, given.text(key), message, None));
    let queues = quantity::<QueueSize>("gateway_buffer", understood.text("gateway_buffer"));
    let rows = hops(understood)?.iter().any(|hops| *hops > 1);
    if understood.text("ip") == "4" {
        bad("ip", "the radio carries IPv6")
    } else if understood.text("wireless_loss").contains('+') {
        bad("wireless_loss", "one radio channel has one loss")
    } else if !matches!(queues, Ok(QueueSize(QueueLimit::Packets(1..)))) {
        bad("gateway_buffer", "on a radio: one number of packets for all, such as 100packets")
    } else if rows && gateways(understood)? > MAX_ROWS {
        bad(
            "gateways",
            "on a radio at most 5 with more than one hop: the relays of more would hear each other",
        )
    } else {
        Ok(understood.clone())
    }
}

/// Number of gateways.
pub(super) fn gateways(settings: &Settings) -> Understood<usize> {
    count("gateways", settings.text("gateways"), 1, MAX_GATEWAYS)
}

/// Number of other receivers.
pub(super) fn background(settings: &Settings) -> Understood<usize> {
    count("background", settings.text("background"), 0, 200)
}

/// One value per gateway.
pub(super) fn each<T: Clone>(
    settings: &Settings,
    key: &'static str,
    read: impl Fn(&'static str, &str) -> Understood<T>,
) -> Understood<Vec<T>> {
    let values: Vec<T> =
        settings.text(key).split('+').map(|text| read(key, text)).collect::<Understood<_>>()?;
    let gateways = gateways(settings)?;
    Ok(if values.len() == 1 { vec![values[0].clone(); gateways] } else { values })
}

/// A quantity for each gateway.
///
/// # Errors
///
/// The text is not such a quantity.
pub fn quantities<T: Clone + FromStr<Err = UnitError>>(
    settings: &Settings,
    key: &'static str,
) -> Understood<Vec<T>> {
    each(settings, key, quantity)
}

/// Loss of each gateway's wireless links.
///
/// # Errors
///
/// The text is not a probability.
pub fn losses(settings: &Settings) -> Understood<Vec<f64>> {
    each(settings, "wireless_loss", probability)
}

/// Number of wireless links behind each gateway.
pub(super) fn hops(settings: &Settings) -> Understood<Vec<usize>> {
    each(settings, "hops", |key, text| count(key, text, 1, 32))
}

/// A failing gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failing {
    /// Index of the gateway, from 0.
    pub gateway: usize,
    /// Time since the request.
    pub at: Duration,
    /// Kind of failure.
    pub how: Failure,
}

impl Failing {
    /// The value of the parameter `fail`.
    pub fn text_of_all(all: &[Self]) -> String {
        let one = |f: &Self| {
            let how = match f.how {
                Failure::Silent => "",
                Failure::Reset => ":reset",
            };
            format!("gw{}@{}{how}", f.gateway + 1, plain(&Span(f.at)))
        };
        match all {
            [] => "none".to_owned(),
            all => all.iter().map(one).collect::<Vec<_>>().join("+"),
        }
    }

    fn all(settings: &Settings) -> Understood<Vec<Self>> {
        let gateways = gateways(settings)?;
        match settings.text("fail") {
            "none" => Ok(Vec::new()),
            text => text.split('+').map(|part| Self::parse(part.trim(), gateways)).collect(),
        }
    }

    fn parse(text: &str, gateways: usize) -> Understood<Self> {
        let bad = |message: String| {
            let hint = "write `gw2@1.5s`, `gw2@1.5s:reset`, several joined by +, or `none`".to_owned();
            ParameterError::bad("fail", text, message, Some(hint))
        };
        let Some((name, rest)) = text.split_once('@') else {
            return Err(bad("expected a gateway and a time".to_owned()));
        };
        let (at, how) = match rest.split_once(':') {
            None => (rest, Failure::Silent),
            Some((at, "silent")) => (at, Failure::Silent),
            Some((at, "reset")) => (at, Failure::Reset),
            Some((_, other)) => return Err(bad(format!("`{other}` is neither silent nor reset"))),
        };
        let number = name.strip_prefix("gw").and_then(|n| n.parse::<usize>().ok());
        let Some(gateway) = number.filter(|n| (1..=gateways).contains(n)) else {
            return Err(bad(format!("there is no gateway `{name}`, only gw1 to gw{gateways}")));
        };
        let at: Span = at.parse().map_err(|e: UnitError| bad(e.to_string()))?;
        Ok(Self { gateway: gateway - 1, at: at.0, how })
    }

    fn event(&self) -> String {
        let how = match self.how {
            Failure::Silent => "silent",
            Failure::Reset => "reset",
        };
        let (at, gateway) = (Span(self.at), self.gateway + 1);
        format!("{{ at = \"{at}\", action = \"fail-node\", node = \"gw{gateway}\", how = \"{how}\" }}")
    }
}

fn derived(settings: &Settings) -> Understood<Vec<Assignment>> {
    let (gateways, background) = (gateways(settings)?, background(settings)?);
    let (hops, is_radio) = (hops(settings)?, is_radio(settings)?);
    let shared = background > 0 && !is_radio;
    // With several receivers, a last relay connects them to the wireless links.
    let relays: Vec<usize> = hops.iter().map(|hops| if shared { *hops } else { hops - 1 }).collect();
    let tcp = meant("tcp", settings.text("tcp"), &[("paper", "paper"), ("modern", "modern")])?;
    let mut all = vec![
        // Not passed to the file as an alias, since `tcp` is a section there.
        ("tcp", format!("tcp.*.base={tcp}")),
        ("gateways", format!("nodes.gw*.count={gateways}")),
        ("background", format!("nodes.sn{{i}}.count={background}")),
        ("hops", format!("nodes.r*.count={relays:?}")),
        ("node_buffer", format!("transfer.*.set.node_buffer={}", settings.text("node_buffer"))),
    ];
    if shared {
        all.push(("background", "link.radio*.to=r{i}-{n}".to_owned()));
        all.push(("background", "link.here*.enabled=true".to_owned()));
    }
    all.extend(receive_buffer(settings)?.into_iter().map(|set| ("node_buffer", set)));
    if Scheme::of(settings)? == Scheme::EndToEnd {
        // End-to-end TCP goes through the first gateway, while a request takes the shortest path.
        // `default_gateway` ensures that at the correspondent node; this route does so at the
        // receivers.
        let last = if relays[0] == 0 { "gw1".to_owned() } else { format!("r1-{}", relays[0]) };
        let receivers =
            (0..=background).map(|j| if j == 0 { "sn".to_owned() } else { format!("sn{}", j + 1) });
        let routes: Vec<String> =
            receivers.map(|at| format!("{{ at = \"{at}\", to = \"cn\", via = \"{last}\" }}")).collect();
        all.push(("hops", format!("route=[{}]", routes.join(", "))));
    }
    let fail = Failing::all(settings)?;
    if !fail.is_empty() {
        let events: Vec<String> = fail.iter().map(Failing::event).collect();
        all.push(("fail", format!("event=[{}]", events.join(", "))));
    }
    all.extend(of_each_gateway(settings));
    if is_radio {
        all.extend(radio::channel(settings, &hops, background));
    }
    Ok(all)
}

/// Values of single gateways, where they differ.
fn of_each_gateway(settings: &Settings) -> Vec<Assignment> {
    const LINKS: [(&str, &str, &str, &str); 6] = [
        ("wired_rate", "wired", "", "rate"),
        ("wired_delay", "wired", "", "delay"),
        ("wireless_rate", "radio", "-*", "rate"),
        ("wireless_delay", "radio", "-*", "delay"),
        ("wireless_loss", "radio", "-*", "loss"),
        ("gateway_buffer", "radio", "-*", "queue"),
    ];
    let of = |(key, link, rest, set): (&'static str, &str, &str, &str)| {
        let text = settings.text(key);
        let each = (1..).zip(text.split('+')).filter(|_| text.contains('+'));
        each.map(|(i, value)| (key, format!("link.{link}{i}{rest}.{set}={value}"))).collect::<Vec<_>>()
    };
    LINKS.into_iter().flat_map(of).collect()
}

/// The node has no more memory than its buffer, so it must not advertise a larger window before the
/// application has set the size.
fn receive_buffer(settings: &Settings) -> Understood<Vec<String>> {
    let Size(buffer) = quantity("node_buffer", settings.text("node_buffer"))?;
    if buffer < 65_535 {
        return Ok(vec![format!("tcp.*.receive_buffer={buffer} B")]);
    }
    let host = if settings.text("tcp") == "modern" { tcp::Config::modern() } else { tcp::Config::paper() };
    let most = match host.auto_tune.map_or(0, |most| most.receive) {
        0 => "none".to_owned(),
        most => format!("{most} B"),
    };
    Ok(vec![
        format!("tcp.*.receive_buffer={} B", host.receive_buffer),
        format!("tcp.*.receive_buffer_max={most}"),
    ])
}
