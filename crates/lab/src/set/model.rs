//! The same transfer for the closed form: section 5, with the parts that assumption (3) leaves out.

use anabranch_core::set::{OpenWait, OpenWhen, StripingPolicy};
use anabranch_model::set::{self as model, Path, Reading, Transfer, Window};
use anabranch_scenario::advice::{REQUEST, answer, overhead, probing, reading};
use anabranch_scenario::units::{Rate, Size, Span};

use super::config::{self, Scheme};
use crate::experiment::Settings;
use crate::experiment::values::{Understood, is_radio, quantity, word};

/// Payload of a wired segment in bytes: sixteen wireless ones (errata S14).
const WIRED_MSS: u16 = 1296;
/// Payload of a wireless segment in bytes: what an 802.15.4 frame leaves for IPv6 in the worst case
/// (errata S14).
const WIRELESS_MSS: u16 = 81;

/// Form of the equations of section 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Equations {
    /// Corrected, with headers, control segments and our order of opening, as in the simulation.
    Protocol,
    /// As printed: no headers, no request, all errata kept.
    Printed,
}

/// The transfer in the form of the model, through all gateways.
///
/// # Errors
///
/// The first invalid value.
pub fn transfer(settings: &Settings, equations: Equations) -> Understood<Transfer> {
    let ip = if settings.text("ip") == "4" { 4 } else { 6 };
    let paths = paths(settings, equations, ip)?;
    let (gateways, size) = (paths.len(), |key| Ok(quantity::<Size>(key, settings.text(key))?.0));
    let plain = Transfer::new(size("file")?, paths);
    let node_buffer = Some(size("node_buffer")? as f64);
    if equations == Equations::Printed {
        return Ok(Transfer { node_buffer, reading: Reading::printed(), ..plain });
    }
    let (initial, max) = match settings.text("tcp") {
        "modern" => (11.0, 4096.0),
        // SETSYN and JOIN were the first window; their acknowledgement opened the second.
        _ => (2.0, 64.0),
    };
    let striping: StripingPolicy = word("striping", settings.text("striping"))?;
    let open: OpenWhen = word("open", settings.text("open"))?;
    let open_wait: OpenWait = word("open_wait", settings.text("open_wait"))?;
    Ok(Transfer {
        window: Window { initial, max, ..Window::default() },
        request: plain.gateways[0]
            .request_time_of(overhead(ip) + REQUEST, overhead(ip) + answer(ip, gateways)),
        node_buffer,
        probing: probing(striping, WIRED_MSS),
        reading: reading(open, open_wait),
        ..plain
    })
}

/// Latency by the closed form; `None` for end-to-end TCP and for a channel that paths share, which
/// section 5 does not treat.
pub(super) fn latency(settings: &Settings) -> Understood<Option<f64>> {
    if is_radio(settings)? {
        return Ok(None);
    }
    let gateways = match Scheme::of(settings)? {
        Scheme::Set => config::gateways(settings)?,
        Scheme::Split => 1,
        Scheme::EndToEnd => return Ok(None),
    };
    Ok(model::latency(&transfer(settings, Equations::Protocol)?, gateways).ok().map(|l| l.total))
}

fn paths(settings: &Settings, equations: Equations, ip: u8) -> Understood<Vec<Path>> {
    let seconds = |key| -> Understood<Vec<f64>> {
        Ok(config::quantities::<Span>(settings, key)?.into_iter().map(|span| span.0.as_secs_f64()).collect())
    };
    let rates = |key| config::quantities::<Rate>(settings, key);
    let (wired_rate, wired_delay) = (rates("wired_rate")?, seconds("wired_delay")?);
    let (wireless_rate, wireless_delay) = (rates("wireless_rate")?, seconds("wireless_delay")?);
    // Other transfers of the same kind share the gateway's link in turn.
    let share = (config::background(settings)? + 1) as f64;
    let path = |(i, hops): (usize, usize)| {
        let mut path =
            Path::new(wired_delay[i], wireless_delay[i] * hops as f64, wireless_rate[i].0 as f64 / share);
        path.wired_rate = wired_rate[i].0 as f64;
        path.wired_mss = WIRED_MSS.into();
        path.wireless_mss = WIRELESS_MSS.into();
        if equations == Equations::Protocol {
            path.hops = hops as u32;
            path.wired_overhead = overhead(ip);
            path.wireless_overhead = overhead(ip);
            path.wireless_control = overhead(ip);
        }
        path
    };
    Ok(config::hops(settings)?.into_iter().enumerate().map(path).collect())
}
