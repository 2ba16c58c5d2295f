//! An image in the layout of the OCI image specification, in one archive: `podman load`,
//! `docker load` and `skopeo copy oci-archive:` read it. No daemon takes part.

use serde_json::{Value, json};

use crate::manifest::{Entry, Image, Places, gzip, located};
use crate::{Error, Release, archive, elf, read, sha256};

/// The bytes of the archive: one layer with the program and the libraries that it needs.
pub(crate) fn write(image: &Image, places: &Places, release: &Release) -> Result<Vec<u8>, Error> {
    let program = located(&image.program, places);
    let entrypoint = format!("/usr/bin/{}", image.name);
    let mut entries = vec![Entry::new(entrypoint.clone(), 0o755, read(&program)?)];
    for library in elf::libraries(&program)? {
        entries.push(Entry::new(library.display().to_string(), 0o755, read(&library)?));
    }
    for volume in &image.volumes {
        let owner = image.user;
        entries.push(Entry { owner, ..Entry::new(format!("{volume}/"), 0o700, Vec::new()) });
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let layer = archive::tar("", &entries, release.date)?;
    let compressed = gzip(&layer, release.level)?;
    let empty = |names: &[String]| names.iter().map(|name| (name.clone(), json!({}))).collect::<Value>();
    let config = json!({
        "architecture": release.debian_arch(),
        "os": "linux",
        "config": {
            "Entrypoint": [entrypoint],
            "Env": image.environment,
            "ExposedPorts": empty(&image.ports),
            "Volumes": empty(&image.volumes),
            "User": format!("{0}:{0}", image.user),
            "Labels": {
                "org.opencontainers.image.title": image.name,
                "org.opencontainers.image.description": image.description,
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))] },
        "history": [{ "created_by": "cargo xtask dist" }],
    });
    let mut blobs = Vec::new();
    let mut blob = |kind: &str, bytes: Vec<u8>| {
        let digest = sha256(&bytes);
        let size = bytes.len();
        blobs.push(Entry::new(format!("/blobs/sha256/{digest}"), 0o644, bytes));
        json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{digest}"),
            "size": size,
        })
    };
    let layer = blob("layer.v1.tar+gzip", compressed);
    let config = blob("config.v1+json", config.to_string().into_bytes());
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    });
    let mut manifest = blob("manifest.v1+json", manifest.to_string().into_bytes());
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": format!("{}:{}", image.name, release.version),
        // What `podman load` and `docker load` name the image.
        "io.containerd.image.name": format!("localhost/{}:{}", image.name, release.version),
    });
    manifest["platform"] = json!({ "architecture": release.debian_arch(), "os": "linux" });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    let head = [("/oci-layout", json!({ "imageLayoutVersion": "1.0.0" })), ("/index.json", index)];
    let head = head.map(|(name, value)| Entry::new(name, 0o644, value.to_string()));
    archive::tar("", &[&head[..], &blobs].concat(), release.date)
}
