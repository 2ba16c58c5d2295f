//! The image, as skopeo reads it, and its program in nothing but its own files.

use std::fs;
use std::process::Command;

use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns;
use serde_json::Value;

use crate::{Release, said};

#[test]
fn skopeo_reads_the_image_and_its_program_runs() {
    let release = Release::new("1.2.3", "oci");
    let image = release.file("anabranch-gateway-1.2.3", ".oci.tar");
    let folder = tempfile::tempdir().expect("a folder");
    let (layout, layer) = (folder.path().join("layout"), folder.path().join("layer"));
    for folder in [&layout, &layer] {
        fs::create_dir(folder).expect("a folder");
    }
    said(Command::new("tar").arg("-xf").arg(&image).arg("-C").arg(&layout));
    // Every blob has the digest that is its name.
    let json = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(layout.join(path)).expect(path)).expect("JSON")
    };
    let blob = |value: &Value| {
        let digest =
            value["digest"].as_str().expect("a digest").strip_prefix("sha256:").expect("SHA-256").to_owned();
        let path = format!("blobs/sha256/{digest}");
        let summed = said(Command::new("sha256sum").arg(layout.join(&path)));
        assert!(summed.starts_with(&digest), "{summed}");
        assert_eq!(
            fs::metadata(layout.join(&path)).expect("it is there").len(),
            value["size"].as_u64().expect("a size")
        );
        path
    };
    let manifest = json(&blob(&json("index.json")["manifests"][0]));
    let config = json(&blob(&manifest["config"]));
    assert_eq!(config["config"]["User"], "65534:65534");
    said(
        Command::new("tar").arg("-xzf").arg(layout.join(blob(&manifest["layers"][0]))).arg("-C").arg(&layer),
    );
    if !netns::skipped() {
        let program = config["config"]["Entrypoint"][0].as_str().expect("a program").to_owned();
        let mut alone = Command::new("chroot");
        alone.arg("--userspec=65534:65534").arg(&layer).arg(&program);
        assert!(said(alone.arg("--version")).starts_with("anabranch-gateway "));
        let mut check = Command::new("chroot");
        check.arg("--userspec=65534:65534").arg(&layer).arg(program);
        said(check.args(["--check", "--insecure", "--allow", "10.1.0.0/16"]));
    }
    let Some(skopeo) = find_or_install("skopeo", "skopeo") else { return };
    let inspect = ["inspect", &format!("oci-archive:{}", image.display())];
    let inspected: Value = serde_json::from_str(&said(Command::new(skopeo).args(inspect))).expect("JSON");
    assert_eq!(inspected["Os"], "linux");
    assert_eq!(inspected["Labels"]["org.opencontainers.image.version"], "1.2.3");
}
