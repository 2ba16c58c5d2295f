//! What the parameters mean.

use std::str::FromStr;

use anabranch_core::set::buffers::Sharing;
use anabranch_core::set::{
    Layout, MAX_GATEWAYS, OpenWait, OpenWhen, Recovery, Reinjection, Start, StripingPolicy,
};
use anabranch_core::time::Duration;
use anabranch_sim::link::QueueLimit;
use anabranch_sim::scenario::policies::Named;
use anabranch_sim::scenario::set::SetSection;
use anabranch_sim::scenario::units::{QueueSize, Rate, Size, Span, UnitError};
use anabranch_sim::world::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::parameters::PARAMETERS;
use crate::experiment::values::{self, Understood, count, named, plain, probability, quantity};
use crate::experiment::{ParameterError, Settings};

/// How the file is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// SET over all gateways.
    Set,
    /// Split TCP through the first gateway.
    Split,
    /// TCP from end to end; the first gateway routes and fragments.
    EndToEnd,
}

/// Which TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tcp {
    /// The paper's: initial window 1, window limit 64, no options.
    Paper,
    /// A present-day host's.
    Modern,
}

/// What joins gateways and node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// Wireless links, each for itself.
    Links,
    /// One radio channel that all share.
    Radio,
}

/// One value for all gateways, or one for each.
#[derive(Clone, PartialEq, Debug)]
pub struct PerGateway<T> {
    values: Vec<T>,
}

impl<T: Copy> PerGateway<T> {
    /// One for all.
    pub fn same(value: T) -> Self {
        Self { values: vec![value] }
    }

    /// One for each; must not be empty.
    pub fn each(values: Vec<T>) -> Self {
        Self { values }
    }

    /// That of gateway `i`, from 0.
    pub fn of(&self, i: usize) -> T {
        self.values[if self.values.len() == 1 { 0 } else { i }]
    }

    /// As they were given.
    pub fn all(&self) -> &[T] {
        &self.values
    }

    fn text(&self, show: impl Fn(&T) -> String) -> String {
        self.values.iter().map(show).collect::<Vec<_>>().join("+")
    }
}

/// Rows of relays around the node, at most, that do not hear each other.
const MAX_ROWS: usize = 5;

/// A gateway that dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failing {
    /// Which, from 0.
    pub gateway: usize,
    /// When, from the request.
    pub at: Duration,
    /// How.
    pub how: Failure,
}

/// A point of the experiment. The names are those of the parameters.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the parameters' own descriptions are the one home of these facts")]
pub struct Config {
    pub scheme: Scheme,
    pub gateways: usize,
    pub file: Size,
    pub wired_rate: PerGateway<Rate>,
    pub wired_delay: PerGateway<Span>,
    pub wireless_rate: PerGateway<Rate>,
    pub wireless_delay: PerGateway<Span>,
    pub wireless_loss: PerGateway<f64>,
    pub hops: PerGateway<usize>,
    pub gateway_buffer: PerGateway<QueueSize>,
    pub node_buffer: Size,
    pub background: usize,
    pub fail: Vec<Failing>,
    pub tcp: Tcp,
    pub start: Start,
    pub open: OpenWhen,
    pub striping: StripingPolicy,
    pub open_wait: OpenWait,
    pub layout: Layout,
    pub ip: u8,
    pub medium: Medium,
    pub retries: u8,
    /// The only gateway that the node knows, from 0, in the network of all; no parameter.
    pub through: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self::understand(&Settings::defaults(&super::Set)).expect("the defaults can be")
    }
}

impl Config {
    /// Understands a text for each parameter.
    ///
    /// # Errors
    ///
    /// The first that cannot be.
    pub fn understand(settings: &Settings) -> Understood<Self> {
        let read = Reader { settings, gateways: 1 };
        let gateways = read.count("gateways", 1, MAX_GATEWAYS)?;
        let read = Reader { gateways, ..read };
        let this = Self {
            scheme: read.word("scheme")?,
            gateways,
            file: read.quantity("file")?,
            wired_rate: read.each("wired_rate", quantity)?,
            wired_delay: read.each("wired_delay", quantity)?,
            wireless_rate: read.each("wireless_rate", quantity)?,
            wireless_delay: read.each("wireless_delay", quantity)?,
            wireless_loss: read.each("wireless_loss", probability)?,
            hops: read.each("hops", |key, text| count(key, text, 1, 32))?,
            gateway_buffer: read.each("gateway_buffer", quantity)?,
            node_buffer: read.node_buffer()?,
            background: read.count("background", 0, 200)?,
            fail: read.fail()?,
            tcp: read.word("tcp")?,
            start: read.word("start")?,
            open: read.word("open")?,
            striping: read.word("striping")?,
            open_wait: read.word("open_wait")?,
            layout: read.word("layout")?,
            through: None,
            ip: read.ip()?,
            medium: read.word("medium")?,
            retries: read.count("retries", 0, 15)? as u8,
        };
        match this.medium {
            Medium::Links => Ok(this),
            Medium::Radio => this.fits_radio(settings),
        }
    }

    /// One channel has one loss, a node on it one queue, and what it carries is IPv6.
    fn fits_radio(self, settings: &Settings) -> Understood<Self> {
        let bad = |key, message: &str| Err(ParameterError::bad(key, settings.text(key), message, None));
        let rows = self.hops.all().iter().any(|hops| *hops > 1);
        let packets = matches!(self.gateway_buffer.all(), [QueueSize(QueueLimit::Packets(1..))]);
        if self.ip != 6 {
            bad("ip", "the radio carries IPv6")
        } else if self.wireless_loss.all().len() > 1 {
            bad("wireless_loss", "one radio channel has one loss")
        } else if !packets {
            bad("gateway_buffer", "on a radio: one number of packets for all, such as 100packets")
        } else if rows && self.gateways > MAX_ROWS {
            bad(
                "gateways",
                "on a radio at most 5 with more than one hop: the relays of more would hear each other",
            )
        } else {
            Ok(self)
        }
    }

    /// Every parameter as it can be given again.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let text = |name: &str| match name {
            "scheme" => named(self.scheme),
            "gateways" => self.gateways.to_string(),
            "file" => plain(&self.file),
            "wired_rate" => self.wired_rate.text(plain),
            "wired_delay" => self.wired_delay.text(plain),
            "wireless_rate" => self.wireless_rate.text(plain),
            "wireless_delay" => self.wireless_delay.text(plain),
            "wireless_loss" => self.wireless_loss.text(plain),
            "hops" => self.hops.text(plain),
            "gateway_buffer" => self.gateway_buffer.text(plain),
            "node_buffer" => plain(&self.node_buffer),
            "background" => self.background.to_string(),
            "fail" => self.fail_text(),
            "tcp" => named(self.tcp),
            "start" => named(self.start),
            "open" => named(self.open),
            "striping" => named(self.striping),
            "open_wait" => named(self.open_wait),
            "layout" => named(self.layout),
            "ip" => self.ip.to_string(),
            "medium" => named(self.medium),
            "retries" => self.retries.to_string(),
            other => unreachable!("`{other}` is a parameter without a text"),
        };
        PARAMETERS.iter().map(|p| (p.name, text(p.name))).collect()
    }

    /// What the scenario format says of SET.
    pub(super) fn section(&self) -> SetSection {
        SetSection {
            layout: self.layout,
            start: self.start,
            open: self.open,
            open_wait: self.open_wait,
            striping: Named::of(self.striping),
            node_buffer: self.node_buffer,
            // The window striping is the paper's, and the paper copies nothing, calls no lost gateway and divides the buffer.
            reinjection: match self.striping {
                StripingPolicy::Predictive => Reinjection::On,
                StripingPolicy::Window | StripingPolicy::Custom(_) => Reinjection::Off,
            },
            recovery: match self.striping {
                StripingPolicy::Predictive => Recovery::Always,
                StripingPolicy::Window | StripingPolicy::Custom(_) => Recovery::NoneLeft,
            },
            sharing: match self.striping {
                StripingPolicy::Predictive => Sharing::Overcommitted,
                StripingPolicy::Window | StripingPolicy::Custom(_) => Sharing::Divided,
            },
            ..SetSection::default()
        }
    }

    fn fail_text(&self) -> String {
        let one = |f: &Failing| {
            let how = match f.how {
                Failure::Silent => "",
                Failure::Reset => ":reset",
            };
            format!("gw{}@{}{how}", f.gateway + 1, plain(&Span(f.at)))
        };
        if self.fail.is_empty() {
            return "none".to_owned();
        }
        self.fail.iter().map(one).collect::<Vec<_>>().join("+")
    }
}

struct Reader<'s> {
    settings: &'s Settings,
    gateways: usize,
}

impl Reader<'_> {
    fn word<T: DeserializeOwned>(&self, key: &'static str) -> Understood<T> {
        values::word(key, self.settings.text(key))
    }

    fn ip(&self) -> Understood<u8> {
        match self.settings.text("ip") {
            "6" => Ok(6),
            "4" => Ok(4),
            text => Err(ParameterError::bad("ip", text, "expected one of 6, 4", None)),
        }
    }

    fn count(&self, key: &'static str, least: usize, most: usize) -> Understood<usize> {
        count(key, self.settings.text(key), least, most)
    }

    fn quantity<T: FromStr<Err = UnitError>>(&self, key: &'static str) -> Understood<T> {
        quantity(key, self.settings.text(key))
    }

    fn each<T: Copy>(
        &self,
        key: &'static str,
        read: impl Fn(&'static str, &str) -> Understood<T>,
    ) -> Understood<PerGateway<T>> {
        let text = self.settings.text(key);
        let values: Vec<T> = text.split('+').map(|part| read(key, part.trim())).collect::<Understood<_>>()?;
        if values.len() != 1 && values.len() != self.gateways {
            let message = format!("{} values for {} gateways", values.len(), self.gateways);
            let hint = "give one for all, or one for each gateway, joined by +".to_owned();
            return Err(ParameterError::bad(key, text, message, Some(hint)));
        }
        Ok(PerGateway::each(values))
    }

    fn node_buffer(&self) -> Understood<Size> {
        let (key, size) = ("node_buffer", self.quantity::<Size>("node_buffer")?);
        if size.0 == 0 || size.0 > u64::from(u32::MAX) {
            let text = self.settings.text(key);
            return Err(ParameterError::bad(key, text, "a buffer has 1 B to 4 GiB", None));
        }
        Ok(size)
    }

    fn fail(&self) -> Understood<Vec<Failing>> {
        let text = self.settings.text("fail");
        if text == "none" {
            return Ok(Vec::new());
        }
        text.split('+').map(|part| self.failing(part.trim())).collect()
    }

    fn failing(&self, text: &str) -> Understood<Failing> {
        let bad = |message: String| {
            let hint = "write `gw2@1.5s`, `gw2@1.5s:reset`, several joined by +, or `none`".to_owned();
            ParameterError::bad("fail", text, message, Some(hint))
        };
        let Some((name, rest)) = text.split_once('@') else {
            return Err(bad("expected a gateway and a time".to_owned()));
        };
        let (at, how) = match rest.split_once(':') {
            None => (rest, Failure::Silent),
            Some((at, "silent")) => (at, Failure::Silent),
            Some((at, "reset")) => (at, Failure::Reset),
            Some((_, other)) => return Err(bad(format!("`{other}` is neither silent nor reset"))),
        };
        let number = name.strip_prefix("gw").and_then(|n| n.parse::<usize>().ok());
        let Some(gateway) = number.filter(|n| (1..=self.gateways).contains(n)) else {
            return Err(bad(format!("there is no gateway `{name}`, only gw1 to gw{}", self.gateways)));
        };
        let at: Span = at.parse().map_err(|e: UnitError| bad(e.to_string()))?;
        Ok(Failing { gateway: gateway - 1, at: at.0, how })
    }
}
