//! A hundred nodes and a million events, for tests and the benchmark.

/// A square of `side` times `side` routers, with `transfers` transfers of `kilobytes` kB between
/// hosts across it.
pub(crate) fn grid(side: usize, transfers: usize, kilobytes: usize) -> String {
    let mut text = format!("name = \"a grid of {}\"\nseed = 3\nstop = \"10 min\"\n", side * side);
    let name = |x: usize, y: usize| format!("n{y}{x}");
    for (y, x) in (0..side * side).map(|i| (i / side, i % side)) {
        text += &format!("[[node]]\nname = \"{}\"\nkind = \"router\"\n", name(x, y));
    }
    let mut link = |a: String, b: String| {
        text += &format!(
            "[[link]]\nfrom = \"{a}\"\nto = \"{b}\"\nrate = \"10 Mbit/s\"\ndelay = \"2 ms\"\nloss = \"0.2 %\"\n"
        );
    };
    for (y, x) in (0..side * side).map(|i| (i / side, i % side)) {
        if x + 1 < side {
            link(name(x, y), name(x + 1, y));
        }
        if y + 1 < side {
            link(name(x, y), name(x, y + 1));
        }
    }
    for i in 0..transfers {
        // From left to right, one row up or down after another.
        let (from, to) = (name(0, i % side), name(side - 1, (i * 7 + 3) % side));
        text += &format!(
            "[[transfer]]\nname = \"t{i}\"\nkind = \"tcp\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = \"{kilobytes} kB\"\n"
        );
    }
    text
}

/// Side, number of transfers, and kB per transfer for about a million events.
pub(crate) const MILLION: (usize, usize, usize) = (10, 40, 830);
