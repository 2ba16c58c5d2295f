//! Rows: the results of runs, and their encoding in logs and between machines.

use std::sync::Arc;

use anabranch_scenario::record::Metrics;

use crate::address::Address;

/// Names and units of metrics, sorted by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Schema(pub Vec<(String, String)>);

/// The result of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Identity of the run.
    pub address: Address,
    /// Metrics of `values`.
    pub schema: Arc<Schema>,
    /// A value for each metric; `None` if there is none, as for a transfer that did not finish.
    pub values: Box<[Option<f64>]>,
}

impl Row {
    /// Creates a row from the metrics of a run. If they match `like`, the row shares that schema.
    pub fn new(address: Address, metrics: &Metrics, like: Option<&Arc<Schema>>) -> Self {
        let same = |schema: &&Arc<Schema>| {
            let known = schema.0.iter().map(|(name, unit)| (name.as_str(), unit.as_str()));
            known.eq(metrics.iter().map(|(name, metric)| (name.as_str(), metric.unit)))
        };
        let schema = like.filter(same).cloned().unwrap_or_else(|| {
            let named = metrics.iter().map(|(name, metric)| (name.clone(), metric.unit.to_owned()));
            Arc::new(Schema(named.collect()))
        });
        Self { address, schema, values: metrics.values().map(|metric| metric.value).collect() }
    }

    /// The value of a metric; `None` if the run has none.
    pub fn get(&self, metric: &str) -> Option<f64> {
        let place = self.schema.0.binary_search_by(|(name, _)| name.as_str().cmp(metric)).ok()?;
        self.values.get(place).copied().flatten()
    }
}

/// Encodes rows, to send them to another process.
pub fn to_bytes(rows: &[Row]) -> Vec<u8> {
    let (mut octets, mut writer) = (Vec::new(), Writer::default());
    rows.iter().for_each(|row| writer.put(row, &mut octets));
    octets
}

/// Decodes rows; `None` if the bytes are damaged or incomplete.
pub fn from_bytes(octets: &[u8]) -> Option<Vec<Row>> {
    let (mut rows, mut reader, mut rest) = (Vec::new(), Reader::default(), octets);
    while !rest.is_empty() {
        let (row, used) = reader.take(rest)?;
        rows.extend(row);
        rest = &rest[used..];
    }
    Some(rows)
}

/// Bytes before the content of a record: its length, little-endian.
const HEAD: usize = 4;
/// Bytes after the content of a record: the beginning of its SHA-256.
const TAIL: usize = 8;
/// Upper limit of a record's content in bytes; a larger length means damage.
const MOST: usize = 1 << 26;

/// Writes records. A schema precedes the first row that uses it.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    schemas: Vec<Arc<Schema>>,
    build: Option<String>,
}

impl Writer {
    /// Records that the following rows come from this build, unless the previous rows do too.
    pub(crate) fn build(&mut self, build: &str, out: &mut Vec<u8>) {
        if self.build.as_deref() != Some(build) {
            record(out, |out| {
                out.push(b'B');
                out.extend_from_slice(build.as_bytes());
            });
            self.build = Some(build.to_owned());
        }
    }

    pub(crate) fn put(&mut self, row: &Row, out: &mut Vec<u8>) {
        // Most rows have the schema of the previous row, so search from the end.
        let known = self.schemas.iter().rposition(|s| Arc::ptr_eq(s, &row.schema) || **s == *row.schema);
        let place = known.unwrap_or_else(|| {
            self.schemas.push(row.schema.clone());
            record(out, |out| {
                out.push(b'S');
                for text in row.schema.0.iter().flat_map(|(name, unit)| [name, unit]) {
                    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    out.extend_from_slice(text.as_bytes());
                }
            });
            self.schemas.len() - 1
        });
        record(out, |out| {
            out.push(b'R');
            out.extend_from_slice(&(place as u32).to_le_bytes());
            out.extend_from_slice(&row.address.0);
            for eight in row.values.chunks(8) {
                // One presence bit per value; missing values take no further space.
                let there = eight.iter().enumerate().map(|(bit, value)| u8::from(value.is_some()) << bit);
                out.push(there.sum());
            }
            row.values
                .iter()
                .flatten()
                .for_each(|value| out.extend_from_slice(&value.to_bits().to_le_bytes()));
        });
    }
}

fn record(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    content(out);
    let length = (out.len() - start - HEAD) as u32;
    out[start..start + HEAD].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(&out[start..]);
    out.extend_from_slice(&sum);
}

fn checksum(octets: &[u8]) -> [u8; TAIL] {
    use sha2::{Digest, Sha256};
    let digest: [u8; 32] = Sha256::digest(octets).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    [a, b, c, d, e, f, g, h]
}

/// Reads records.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    schemas: Vec<Arc<Schema>>,
    /// The build of the following rows; `None` for rows from before builds were recorded.
    build: Option<String>,
}

impl Reader {
    /// Reads the first record. Returns the row (`None` for a schema or a build) and the length of
    /// the record; `None` if the record is incomplete.
    pub(crate) fn take(&mut self, octets: &[u8]) -> Option<(Option<Row>, usize)> {
        let length = u32::from_le_bytes(octets.get(..HEAD)?.try_into().ok()?) as usize;
        let whole = (length <= MOST).then_some(HEAD + length)?;
        let sum = octets.get(whole..whole + TAIL)?;
        if checksum(&octets[..whole]) != sum {
            return None;
        }
        let (kind, content) = octets[HEAD..whole].split_first()?;
        let row = match kind {
            b'S' => {
                self.schemas.push(Arc::new(schema(content)?));
                None
            }
            b'B' => {
                self.build = Some(String::from_utf8(content.to_vec()).ok()?);
                None
            }
            b'R' => Some(self.row(content)?),
            _ => return None,
        };
        Some((row, whole + TAIL))
    }

    /// A writer that knows the schemas read so far.
    pub(crate) fn into_writer(self) -> Writer {
        Writer { schemas: self.schemas, build: self.build }
    }

    /// The build of the last row read.
    pub(crate) fn build(&self) -> Option<&str> {
        self.build.as_deref()
    }

    fn row(&self, content: &[u8]) -> Option<Row> {
        let (place, rest) = content.split_at_checked(4)?;
        let schema = self.schemas.get(u32::from_le_bytes(place.try_into().ok()?) as usize)?;
        let (address, rest) = rest.split_at_checked(32)?;
        let count = schema.0.len();
        let (there, values) = rest.split_at_checked(count.div_ceil(8))?;
        let mut values = values.chunks(8);
        let value = |i: usize| match there[i / 8] >> (i % 8) & 1 {
            0 => Some(None),
            _ => Some(Some(f64::from_bits(u64::from_le_bytes(values.next()?.try_into().ok()?)))),
        };
        let row = (0..count).map(value).collect::<Option<Box<_>>>()?;
        let over = values.next().is_some();
        (!over).then(|| Row {
            address: Address(address.try_into().expect("32 octets were split off")),
            schema: schema.clone(),
            values: row,
        })
    }
}

fn schema(mut content: &[u8]) -> Option<Schema> {
    let mut text = || {
        let (length, rest) = content.split_at_checked(4)?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(length.try_into().ok()?) as usize)?;
        content = rest;
        String::from_utf8(text.to_vec()).ok()
    };
    let mut pairs = Vec::new();
    while let Some(name) = text() {
        pairs.push((name, text()?));
    }
    content.is_empty().then_some(Schema(pairs))
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::record::Metric;
    use proptest::prelude::*;

    use super::*;

    fn row(number: u8, values: &[Option<f64>]) -> Row {
        let metric =
            |(i, value): (usize, &Option<f64>)| (format!("metric {i}"), Metric { value: *value, unit: "s" });
        Row::new(Address([number; 32]), &values.iter().enumerate().map(metric).collect(), None)
    }

    proptest! {
        #[test]
        fn rows_come_back(values in prop::collection::vec(prop::collection::vec(prop::option::of(any::<f64>()), 0..20), 0..6)) {
            let rows: Vec<Row> = values.iter().zip(0..).map(|(values, number)| row(number, values)).collect();
            let again = from_bytes(&to_bytes(&rows)).expect("they are whole");
            // Compared as text, since NaN does not equal itself.
            prop_assert_eq!(format!("{rows:?}"), format!("{again:?}"));
        }

        #[test]
        fn octets_of_a_stranger_are_refused_or_read(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_bytes(&octets);
        }
    }

    #[test]
    fn every_damage_is_found() {
        let whole = to_bytes(&[row(1, &[Some(1.5), None]), row(2, &[None, Some(-0.0)])]);
        for i in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[i] ^= 0x10;
            assert_eq!(from_bytes(&damaged), None, "octet {i}");
        }
        assert_eq!(row(1, &[Some(1.5), None]).get("metric 0"), Some(1.5));
        assert_eq!(row(1, &[Some(1.5), None]).get("metric 1"), None);
        assert_eq!(row(1, &[Some(1.5), None]).get("metric"), None);
    }
}
