//! The project's own scripts, and robustness of the runner.

mod host;
mod robust;
mod scripts;

use std::path::{Path, PathBuf};

/// The project's own scripts, sorted by name.
fn own_scripts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/packetdrill");
    let mut all = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of scripts") {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "pkt") {
                let text = std::fs::read_to_string(&path).expect("a script");
                all.push((path.strip_prefix(&root).expect("a path below the folder").to_owned(), text));
            }
        }
    }
    all.sort();
    all
}
