//! Tests of a store in memory.

use std::path::Path;

use anabranch_scenario::Source;
use anabranch_sweep::{Options, Spec, Store, Sweep, Table, Watch, execute};

const NETWORK: &str = r#"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "cable", from = "a", to = "b", rate = "1 Mbit/s", delay = "5 ms", loss = 0.05 }]
transfer = [{ name = "file", kind = "tcp", from = "a", to = "b", bytes = "5 kB" }]
"#;

#[test]
fn rows_in_memory_are_those_of_a_folder() {
    let spec = "runs = 5\n[grid]\n\"link.cable.loss\" = [0.0, 0.1]\n";
    let spec = Spec::parse_for("spec", spec, Source::new("network", NETWORK), Path::new(""));
    let sweep = Sweep::new(spec.expect("a good spec")).expect("a good spec");
    let points = sweep.all_points().expect("good points");
    let folder = tempfile::tempdir().expect("a folder");
    let table = |mut store: Store| {
        execute(&sweep, &points, &mut store, Options::default(), &Watch::default()).expect("it runs");
        store.refresh().expect("nothing else is there");
        let (mut whole, mut apart) = (Vec::new(), Vec::new());
        let table = Table::new(&sweep, &points, &store).expect("a table");
        assert_eq!((table.len(), table.missing()), (10, 0));
        table.write_parquet(&mut whole).expect("memory");
        table.frame().expect("a table").write_parquet(&mut apart).expect("memory");
        assert_eq!(whole, apart, "a table that stands by itself is the same");
        (whole, store.folder().to_owned())
    };
    let (kept, place) = table(Store::open(folder.path()).expect("a folder"));
    assert_eq!(place, folder.path());
    let (fleeting, place) = table(Store::in_memory());
    assert_eq!(place, Path::new(""));
    assert_eq!(kept, fleeting);
}
