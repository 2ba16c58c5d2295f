//! RPL messages: parses them, encodes the result, and parses it again.

use std::mem;
use std::net::Ipv6Addr;

use anabranch_wire::icmpv6::{self, Header, Kind};
use anabranch_wire::rpl::{self, ALL_RPL_NODES, Parsed};

use crate::probe::Probe;

const ENDS: [Ipv6Addr; 2] = [Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 7), ALL_RPL_NODES];

/// Below 128, the first byte is the code of an otherwise valid message, and the rest its body. From
/// 128 on, the rest is the whole message.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let mut octets = rest.to_vec();
    if *choice < 128 {
        octets.clear();
        icmpv6::emit(&Header { kind: Kind::RPL, code: choice % 5 }, rest, ENDS, &mut octets);
    }
    let parsed = match rpl::parse(&octets, ENDS) {
        Ok(parsed) => parsed,
        Err(error) => {
            probe.say(|| error);
            assert!(error.offset <= octets.len(), "{error} in {} octets", octets.len());
            return probe.feature((error.field, error.offset.min(64)));
        }
    };
    probe.say(|| format!("{parsed:?}"));
    probe.feature((mem::discriminant(&parsed.message), parsed.unknown_options.min(4)));
    for option in parsed.message.options() {
        probe.feature(mem::discriminant(option));
        if let rpl::ControlOption::DagMetricContainer(objects) = option {
            metrics(objects, probe);
        }
    }
    probe.feature(("options", parsed.message.options().len().min(16)));
    let mut written = Vec::new();
    rpl::emit(&parsed.message, ENDS, &mut written).unwrap_or_else(|error| panic!("{parsed:?}: {error}"));
    assert!(written.len() <= octets.len(), "{written:02x?}");
    assert_eq!(rpl::parse(&written, ENDS), Ok(Parsed { unknown_options: 0, ..parsed }), "{written:02x?}");
}

/// Parses the contents of a metric container, and encodes them again.
fn metrics(objects: &[u8], probe: &mut Probe) {
    let metrics = rpl::parse_metrics(objects);
    probe.feature(("metrics", metrics.as_ref().map(Vec::len)));
    let Some(metrics) = metrics else { return };
    let mut written = Vec::new();
    rpl::emit_metrics(&metrics, &mut written);
    assert_eq!(rpl::parse_metrics(&written), Some(metrics));
}
