//! Tests of the memory needed to write a table.

use anabranch_sweep::table::{Column, Frame, Values};
use anabranch_testkit::counting::octets;

/// A network of thousands of nodes has a million metrics, with one row for each of a few runs.
#[test]
fn a_column_of_a_wide_table_takes_a_few_kilobytes_while_it_is_written() {
    const COLUMNS: u64 = 2_000;
    let column = |i| Column {
        name: format!("link.a>n{i}.packets"),
        unit: "1".to_owned(),
        values: Values::Numbers(vec![Some(i as f64), None]),
    };
    let frame = Frame::new((0..COLUMNS).map(column).collect()).expect("equally long");
    let before = octets();
    let mut parquet = Vec::new();
    frame.write_parquet(&mut parquet).expect("memory takes it");
    let each = (octets() - before) / COLUMNS;
    println!("{each} bytes allocated and {} written for each column", parquet.len() as u64 / COLUMNS);
    assert!(each < 16_000, "{each} bytes for each column");
}
