//! What the cache has done: JSON and metrics.

use std::time::Duration;

use anabranch_deploy::error::Error;
use anabranch_deploy::metrics::{Kind, Page};
use anabranch_deploy::output;
use serde_json::json;

use super::serve::Serving;

/// Prints the counters each second, if `print`.
pub(super) async fn each_second(serving: &Serving, print: bool) -> Error {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.tick().await;
    loop {
        second.tick().await;
        if print && let Err(error) = self::print(serving) {
            return error;
        }
    }
}

pub(super) fn print(serving: &Serving) -> Result<(), Error> {
    let cache = serving.cache.borrow();
    let (segments, packets) = (cache.segments(), cache.packets());
    output::json(&json!({
        "connections": cache.connections(),
        "debug": format!("{segments:?} {packets:?} unsent {} overruns {}", serving.counters.unsent.get(), serving.counters.overruns.get()),
    }))
}

pub(super) fn page(serving: &Serving) -> Page {
    let mut page = Page::of_process();
    let cache = serving.cache.borrow();
    page.value("anabranch_cache_connections", Kind::Gauge, "Connections with state.", cache.connections());
    page
}
