//! Objects of a DAG metric container (RFC 6551): metrics of a path.
//!
//! An object has a header of four bytes (section 2.1): type; five reserved bits with P, C and O; R
//! with the aggregation type and the precedence; and the length of the body. [`parse_metrics`]
//! reads only aggregated metrics. It skips recorded metrics (R), which have a value for each link,
//! and constraints (C), which are not measurements.

use alloc::vec::Vec;

use crate::reader::Reader;

/// A metric of a path, aggregated over its links.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Metric {
    /// Link throughput (section 4.1): bytes per second, minimum over all links.
    Throughput(u32),
    /// Link latency (section 4.2): microseconds, summed.
    Latency(u32),
    /// Expected transmission count (section 4.3.2) in units of 1/128, summed.
    Etx(u16),
}

/// Appends the objects.
pub fn emit_metrics(metrics: &[Metric], out: &mut Vec<u8>) {
    for metric in metrics {
        let (kind, aggregation) = match metric {
            Metric::Throughput(_) => (kind::THROUGHPUT, MINIMUM),
            Metric::Latency(_) => (kind::LATENCY, ADDITIVE),
            Metric::Etx(_) => (kind::ETX, ADDITIVE),
        };
        match *metric {
            Metric::Throughput(value) | Metric::Latency(value) => {
                out.extend_from_slice(&[kind, 0, aggregation, 4]);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Metric::Etx(value) => {
                out.extend_from_slice(&[kind, 0, aggregation, 2]);
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
    }
}

/// Parses the known objects. Returns `None` if an object is truncated, or has an invalid length or
/// aggregation type.
pub fn parse_metrics(octets: &[u8]) -> Option<Vec<Metric>> {
    let mut reader = Reader::new(octets);
    let mut metrics = Vec::new();
    while !reader.rest().is_empty() {
        let [kind, flags, how, len] = reader.take()?;
        let content = reader.slice(len.into())?;
        if flags & CONSTRAINT != 0 || how & RECORDED != 0 {
            continue;
        }
        let value = || content.as_array().copied().map(u32::from_be_bytes);
        match (kind, how & AGGREGATION) {
            (kind::THROUGHPUT, MINIMUM) => metrics.push(Metric::Throughput(value()?)),
            (kind::LATENCY, ADDITIVE) => metrics.push(Metric::Latency(value()?)),
            (kind::ETX, ADDITIVE) => {
                metrics.push(Metric::Etx(content.as_array().copied().map(u16::from_be_bytes)?));
            }
            (kind::THROUGHPUT | kind::LATENCY | kind::ETX, _) => return None,
            _ => {}
        }
    }
    Some(metrics)
}

/// Flag C (constraint), in the second byte.
const CONSTRAINT: u8 = 1 << 1;
/// Flag R (recorded), in the third byte.
const RECORDED: u8 = 1 << 7;
/// Field A, the aggregation type, in the third byte.
const AGGREGATION: u8 = 7 << 4;
const ADDITIVE: u8 = 0;
const MINIMUM: u8 = 2 << 4;

/// Types of objects (section 6.1).
mod kind {
    pub(super) const THROUGHPUT: u8 = 4;
    pub(super) const LATENCY: u8 = 5;
    pub(super) const ETX: u8 = 7;
}
