//! The tables of `docs/reference/sockbuf.md`:
//! `cargo run -p anabranch-model --example sockbuf_loop`.

use std::io::{self, Write};

use anabranch_model::sockbuf::{Begin, Complex, Gains, ModelError, Plant, Response, margin, roots, step};

const SETS: [(&str, Gains); 2] = [("the paper's", Gains::PAPER), ("ours", Gains::DAMPED)];
const FACTORS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Sizes in bytes: the pool of Table 1 at low memory, one segment, and 2 BDP of the links of
/// section 4.1 with and without HSUPA.
const POOL: Plant = Plant { lag: 0.0, least: 1460.0, most: 2e6 };
const ALL: f64 = 420_000.0;
const WITHOUT: f64 = 175_000.0;
const CYCLES: usize = 5000;

fn main() -> io::Result<()> {
    let out = &mut io::stdout().lock();
    constants(out).and_then(|()| factors(out)).and_then(|()| steps(out)).and_then(|()| lags(out))
}

fn constants(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n| constants | kp | ki | kd | roots | stable up to, times |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    for (name, gains) in SETS {
        let Gains { kp, ki, kd } = gains;
        let roots = roots(gains).map_err(io::Error::other)?.map(root).join(", ");
        let margin = margin(gains).map_err(io::Error::other)?.unwrap_or(0.0);
        writeln!(out, "| {name} | {kp} | {ki} | {kd} | {roots} | {margin:.1} |")?;
    }
    Ok(())
}

fn factors(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n| constants | times | farthest root | overshoot | cycles to 90 % | cycles until 2 % |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    for (name, gains) in SETS {
        for factor in FACTORS {
            let gains = gains.times(factor);
            let farthest = roots(gains).map_err(io::Error::other)?[0].abs();
            let response = run(step(gains, Plant::FREE, Begin::New, (0.0, 1.0), CYCLES))?;
            let shown = shown(&response);
            writeln!(out, "| {name} | {factor} | {farthest:.4} | {shown} |")?;
        }
    }
    Ok(())
}

fn steps(out: &mut impl Write) -> io::Result<()> {
    const AT: [usize; 11] = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
    writeln!(out, "\n| cycle | the paper's, up | ours, up | the paper's, down | ours, down |")?;
    writeln!(out, "| --- | --- | --- | --- | --- |")?;
    let mut responses = Vec::new();
    for ends in [(WITHOUT, ALL), (ALL, WITHOUT)] {
        for (_, gains) in SETS {
            responses.push(run(step(gains, POOL, Begin::Running, ends, CYCLES))?);
        }
    }
    for cycle in AT {
        let sizes: Vec<String> = responses.iter().map(|r| format!("{:.0}", r.sizes[cycle] / 1e3)).collect();
        writeln!(out, "| {cycle} | {} |", sizes.join(" | "))?;
    }
    Ok(())
}

fn lags(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n| constants | lag, cycles | overshoot | cycles to 90 % | cycles until 2 % |")?;
    writeln!(out, "| --- | --- | --- | --- | --- |")?;
    for (name, gains) in SETS {
        for lag in [0.0, 2.0, 10.0, 40.0] {
            let plant = Plant { lag, ..POOL };
            let response = run(step(gains, plant, Begin::Running, (WITHOUT, ALL), CYCLES))?;
            writeln!(out, "| {name} | {lag} | {} |", shown(&response))?;
        }
    }
    Ok(())
}

fn run(response: Result<Response, ModelError>) -> io::Result<Response> {
    response.map_err(io::Error::other)
}

/// Overshoot, rise time and settling time.
fn shown(response: &Response) -> String {
    let cycles = |cycles: Option<usize>| cycles.map_or("never".to_owned(), |cycles| cycles.to_string());
    let (rise, settling) = (cycles(response.rise()), cycles(response.settling(0.02)));
    format!("{:.1} % | {rise} | {settling}", response.overshoot() * 100.0)
}

fn root(Complex { re, im }: Complex) -> String {
    // Avoids printing a root at 0 as -0.
    let re = if re == 0.0 { 0.0 } else { re };
    if im == 0.0 {
        format!("{re:.4}")
    } else {
        format!("{re:.4} {} {:.4}j", if im < 0.0 { '-' } else { '+' }, im.abs())
    }
}
