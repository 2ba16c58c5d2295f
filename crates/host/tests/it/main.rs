//! Tests of `anabranch-cache` and `anabranch-multipath` as processes, between hosts that are
//! network namespaces.

mod capture;
mod chain;
mod hostile;
mod links;
mod multipath;
mod program;
mod routes;
mod rules;
mod world;

/// The number in an environment variable, which makes a test long.
fn number<T: std::str::FromStr>(variable: &str, default: T) -> T {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().ok().expect("a number"))
}
