//! What the parameters mean.

use anabranch_sim::scenario::units::Size;
use serde::{Deserialize, Serialize};

use super::parameters::PARAMETERS;
use crate::experiment::values::{self, Understood, count, named, on_off, plain, probability, quantity, real};
use crate::experiment::{ParameterError, Settings};

/// What the nodes between the ends do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They forward.
    Tcp,
    /// They follow section IV of the paper.
    #[serde(rename = "dtc-paper")]
    Paper,
    /// They follow our own algorithm.
    #[serde(rename = "dtc")]
    Improved,
}

impl Mode {
    /// The chance of the cache, unless told otherwise.
    pub const fn cache_probability(self) -> f64 {
        match self {
            Self::Tcp | Self::Paper => 0.5,
            Self::Improved => 1.0,
        }
    }
}

/// What joins the nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// A link of its own between each two neighbours.
    Links,
    /// One radio channel that all share.
    Radio,
}

/// A point of the experiment. The names are those of the parameters.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the parameters' own descriptions are the one home of these facts")]
pub struct Config {
    pub hops: usize,
    pub loss: f64,
    pub mode: Mode,
    pub segments: usize,
    pub payload: u16,
    pub window: usize,
    pub ack_loss_factor: f64,
    pub link_ack_loss_factor: f64,
    pub cache_segments: usize,
    pub cache_probability: f64,
    pub duplicate_acks: bool,
    pub flying_start: bool,
    pub medium: Medium,
    pub retries: u8,
    pub sender_sack: bool,
    /// Whether round trips are recorded, for the figures; no parameter.
    pub samples: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self::understand(&Settings::defaults(&super::Dtc)).expect("the defaults can be")
    }
}

impl Config {
    /// Understands a text for each parameter.
    ///
    /// # Errors
    ///
    /// The first that cannot be.
    pub fn understand(settings: &Settings) -> Understood<Self> {
        let number = |key, least, most| count(key, settings.text(key), least, most);
        let fraction = |key| real(key, settings.text(key), 0.0, 1.0);
        let switch = |key| values::switch(key, settings.text(key));
        let mode = values::word("mode", settings.text("mode"))?;
        Ok(Self {
            hops: number("hops", 2, 32)?,
            loss: probability("loss", settings.text("loss"))?,
            mode,
            segments: number("segments", 1, 1_000_000)?,
            payload: payload(settings.text("payload"))?,
            window: number("window", 1, 100)?,
            ack_loss_factor: fraction("ack_loss_factor")?,
            link_ack_loss_factor: fraction("link_ack_loss_factor")?,
            cache_segments: number("cache_segments", 0, 64)?,
            cache_probability: match settings.text("cache_probability") {
                "auto" => mode.cache_probability(),
                _ => fraction("cache_probability")?,
            },
            duplicate_acks: switch("duplicate_acks")?,
            flying_start: switch("flying_start")?,
            medium: values::word("medium", settings.text("medium"))?,
            retries: number("retries", 0, 15)? as u8,
            sender_sack: switch("sender_sack")?,
            samples: false,
        })
    }

    /// Every parameter as it can be given again.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let text = |name: &str| match name {
            "hops" => self.hops.to_string(),
            "loss" => self.loss.to_string(),
            "mode" => named(self.mode),
            "segments" => self.segments.to_string(),
            "payload" => plain(&Size(self.payload.into())),
            "window" => self.window.to_string(),
            "ack_loss_factor" => self.ack_loss_factor.to_string(),
            "link_ack_loss_factor" => self.link_ack_loss_factor.to_string(),
            "cache_segments" => self.cache_segments.to_string(),
            "cache_probability" => self.cache_probability.to_string(),
            "duplicate_acks" => on_off(self.duplicate_acks),
            "flying_start" => on_off(self.flying_start),
            "medium" => named(self.medium),
            "retries" => self.retries.to_string(),
            "sender_sack" => on_off(self.sender_sack),
            other => unreachable!("`{other}` is a parameter without a text"),
        };
        PARAMETERS.iter().map(|p| (p.name, text(p.name))).collect()
    }
}

fn payload(text: &str) -> Understood<u16> {
    let size: Size = quantity("payload", text)?;
    u16::try_from(size.0)
        .ok()
        .filter(|n| (1..=1400).contains(n))
        .ok_or_else(|| ParameterError::bad("payload", text, "expected 1 B to 1400 B", None))
}
