//! What the parameters mean.

use anabranch_core::mptcp::SchedulerKind;
use anabranch_core::sockbuf::{self, Excess, Gains, PidConfig, PolicyConfig, SetPoint};
use anabranch_core::time::Duration;
use anabranch_sim::buffers::{Reports, Sampling};
use anabranch_sim::loss::LossModel;
use anabranch_sim::scenario::units::{Rate, Size, Span};
use serde::{Deserialize, Serialize};

use super::parameters::PARAMETERS;
use crate::experiment::values::{
    Aliases, Understood, alias, aliased, count, named, plain, probability, quantity, word, word_or,
};
use crate::experiment::{ParameterError, Settings};

/// Who divides the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tuner {
    /// The paper's controller, agent and manager.
    Pid,
    /// ATBT as Figures 1 and 2 print it.
    Atbt,
    /// ATBT as its authors have it.
    AtbtOriginal,
    /// Dynamic right-sizing.
    #[serde(rename = "drs")]
    RightSizing,
    /// Twice the bandwidth-delay product by what link layers report.
    Product,
    /// The same for each connection, always.
    Fixed,
}

/// What link layers report of their rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reporting {
    /// Their rate at each moment.
    #[serde(rename = "on")]
    Exact,
    /// Samples.
    Sampled,
    /// Nothing.
    Off,
}

/// The constants of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constants {
    /// Ours.
    Damped,
    /// Section 3.2's.
    Paper,
}

/// An interface of the mobile host, by its place in the network's list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// 11 Mbit/s, 10 ms.
    Wlan,
    /// 2 Mbit/s, 120 ms.
    Geo,
    /// 7 Mbit/s, 70 ms.
    Hsupa,
}

/// A point of the experiment. The names are those of the parameters.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the parameters' own descriptions are the one home of these facts")]
pub struct Config {
    pub tuner: Tuner,
    pub connections: usize,
    /// Octets.
    pub memory: u64,
    pub duration: Duration,
    pub loss: f64,
    pub burst: f64,
    pub bandwidth_step: Option<Duration>,
    pub depth: f64,
    pub single_at: Duration,
    pub gains: Constants,
    pub gain_factor: f64,
    pub set_point: SetPoint,
    pub products: f64,
    pub excess: Excess,
    pub guarantee: f64,
    pub period: Duration,
    pub reports: Reporting,
    pub report_period: Duration,
    pub report_delay: Duration,
    pub report_noise: f64,
    pub report_loss: f64,
    /// Octets.
    pub fixed: u64,
    pub scheduler: SchedulerKind,
    pub queue: u32,
    /// Bit/s.
    pub background: Option<u64>,
    pub churn: Option<Duration>,
    pub stalled: usize,
    pub handoff: Option<Interface>,
    pub handoff_at: Duration,
    pub handoff_for: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self::understand(&Settings::defaults(&super::Sockbuf)).expect("the defaults can be")
    }
}

impl Config {
    /// Understands a text for each parameter.
    ///
    /// # Errors
    ///
    /// The first that cannot be.
    pub fn understand(settings: &Settings) -> Understood<Self> {
        let text = |key| settings.text(key);
        let span = |key| Ok::<_, ParameterError>(quantity::<Span>(key, settings.text(key))?.0);
        let within = |key, least, most| real(key, settings.text(key), least, most);
        let this = Self {
            tuner: word("tuner", text("tuner"))?,
            connections: count("connections", text("connections"), FLOWS, 64)?,
            memory: quantity::<Size>("memory", text("memory"))?.0,
            duration: span("duration")?,
            loss: probability("loss", text("loss"))?,
            burst: within("burst", 1.0, 100.0)?,
            bandwidth_step: Some(span("bandwidth_step")?).filter(|step| !step.is_zero()),
            depth: within("depth", 0.05, 1.0)?,
            single_at: span("single_at")?,
            gains: word("gains", text("gains"))?,
            gain_factor: within("gain_factor", 0.01, 100.0)?,
            set_point: word("set_point", text("set_point"))?,
            products: within("products", 0.1, 100.0)?,
            excess: word("excess", text("excess"))?,
            guarantee: within("guarantee", 0.0, 1.0)?,
            period: span("period")?,
            reports: word("reports", text("reports"))?,
            report_period: span("report_period")?,
            report_delay: span("report_delay")?,
            report_noise: within("report_noise", 0.0, 1.0)?,
            report_loss: within("report_loss", 0.0, 1.0)?,
            fixed: quantity::<Size>("fixed", text("fixed"))?.0,
            scheduler: alias("scheduler", text("scheduler"), SCHEDULERS)?,
            queue: count("queue", text("queue"), 1, 10_000)? as u32,
            background: Some(quantity::<RateOrNone>("background", text("background"))?.0)
                .filter(|rate| *rate > 0),
            churn: Some(span("churn")?).filter(|churn| !churn.is_zero()),
            stalled: count("stalled", text("stalled"), 0, 64)?,
            handoff: match text("handoff") {
                "none" => None,
                text => Some(word_or("handoff", text, &["none"])?),
            },
            handoff_at: span("handoff_at")?,
            handoff_for: span("handoff_for")?,
        };
        this.check(settings)?;
        Ok(this)
    }

    fn check(&self, settings: &Settings) -> Understood<()> {
        let against = |key, message: String| Err(ParameterError::bad(key, settings.text(key), message, None));
        let end = plain(&Span(self.duration));
        if self.single_at >= self.duration {
            return against("single_at", format!("expected before the end, {end}"));
        }
        if self.bandwidth_step.is_some_and(|step| step < Duration::from_secs(1)) {
            return against("bandwidth_step", "expected at least 1 s, or 0s for none".to_owned());
        }
        if self.period < Duration::from_millis(10) {
            return against("period", "expected at least 10 ms".to_owned());
        }
        if self.report_period < Duration::from_millis(1) {
            return against("report_period", "expected at least 1 ms".to_owned());
        }
        if self.churn.is_some_and(|churn| churn < Duration::from_secs(1)) {
            return against("churn", "expected at least 1 s, or 0s for none".to_owned());
        }
        if self.stalled > self.singles() {
            let message = format!("expected at most the number of single connections, {}", self.singles());
            return against("stalled", message);
        }
        if self.handoff.is_some() && self.handoff_at + self.handoff_for >= self.duration {
            let message = format!("expected that the interface returns before the end, {end}");
            return against("handoff_at", message);
        }
        // One segment for each connection, or nothing could be sent.
        let least = (1 + self.singles()) as u64 * u64::from(SEGMENT);
        if !(least..=1 << 40).contains(&self.memory) {
            let message = format!(
                "expected at least one segment for each connection, {least} B for {} of them, and at most 1 TB",
                1 + self.singles()
            );
            return against("memory", message);
        }
        Ok(())
    }

    /// Single connections: those beyond the striped one's flows.
    pub fn singles(&self) -> usize {
        self.connections - FLOWS
    }

    /// The pool and who divides it.
    pub fn pool(&self) -> sockbuf::Config {
        let gains = match self.gains {
            Constants::Damped => Gains::DAMPED,
            Constants::Paper => Gains::PAPER,
        };
        let policy = match self.tuner {
            Tuner::Pid => PolicyConfig::Pid(PidConfig {
                gains: gains.times(self.gain_factor),
                set_point: self.set_point,
                products: self.products,
                excess: self.excess,
                guarantee: self.guarantee,
                ..PidConfig::paper()
            }),
            Tuner::Atbt => PolicyConfig::Atbt,
            Tuner::AtbtOriginal => PolicyConfig::AtbtOriginal,
            Tuner::RightSizing => PolicyConfig::RightSizing,
            Tuner::Product => PolicyConfig::Product,
            Tuner::Fixed => PolicyConfig::Fixed(self.fixed),
        };
        sockbuf::Config { threshold: self.memory, period: self.period, initial: self.fixed, policy }
    }

    /// What link layers report.
    pub(super) fn reporting(&self) -> Reports {
        match self.reports {
            Reporting::Exact => Reports::Rate,
            Reporting::Sampled => Reports::Sampled(Sampling {
                period: self.report_period,
                delay: self.report_delay,
                noise: self.report_noise,
                loss: self.report_loss,
            }),
            Reporting::Off => Reports::Nothing,
        }
    }

    /// How wireless links lose packets: on average `loss` of them, `burst` in a row.
    pub(super) fn channel(&self) -> LossModel {
        let (loss, burst) = (self.loss, self.burst);
        if loss == 0.0 {
            LossModel::None
        } else if burst == 1.0 {
            LossModel::Bernoulli { p: loss }
        } else {
            let bad_to_good = 1.0 / burst;
            // Of the stationary law, the share of the bad state is the loss.
            let good_to_bad = (loss * bad_to_good / (1.0 - loss)).min(1.0);
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_good: 0.0, loss_bad: 1.0 }
        }
    }

    /// Every parameter as it can be given again.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let span = |time: Duration| plain(&Span(time));
        let text = |name: &str| match name {
            "tuner" => named(self.tuner),
            "connections" => self.connections.to_string(),
            "memory" => plain(&Size(self.memory)),
            "duration" => span(self.duration),
            "loss" => self.loss.to_string(),
            "burst" => self.burst.to_string(),
            "bandwidth_step" => span(self.bandwidth_step.unwrap_or_default()),
            "depth" => self.depth.to_string(),
            "single_at" => span(self.single_at),
            "gains" => named(self.gains),
            "gain_factor" => self.gain_factor.to_string(),
            "set_point" => named(self.set_point),
            "products" => self.products.to_string(),
            "excess" => named(self.excess),
            "guarantee" => self.guarantee.to_string(),
            "period" => span(self.period),
            "reports" => named(self.reports),
            "report_period" => span(self.report_period),
            "report_delay" => span(self.report_delay),
            "report_noise" => self.report_noise.to_string(),
            "report_loss" => self.report_loss.to_string(),
            "fixed" => plain(&Size(self.fixed)),
            "scheduler" => aliased(self.scheduler, SCHEDULERS),
            "queue" => self.queue.to_string(),
            "background" => self.background.map_or("0bit/s".to_owned(), |rate| plain(&Rate(rate))),
            "churn" => span(self.churn.unwrap_or_default()),
            "stalled" => self.stalled.to_string(),
            "handoff" => self.handoff.map_or("none".to_owned(), named),
            "handoff_at" => span(self.handoff_at),
            "handoff_for" => span(self.handoff_for),
            other => unreachable!("`{other}` is a parameter without a text"),
        };
        PARAMETERS.iter().map(|p| (p.name, text(p.name))).collect()
    }
}

/// Flows of the striped connection: one over each interface.
pub(super) const FLOWS: usize = 3;
/// Octets of payload in a segment (Table 1).
pub(super) const SEGMENT: u16 = 1460;

/// A rate of which 0 is one.
struct RateOrNone(u64);

impl std::str::FromStr for RateOrNone {
    type Err = anabranch_sim::scenario::units::UnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "0" | "0bit/s" | "0 bit/s" => Ok(Self(0)),
            other => other.parse::<Rate>().map(|rate| Self(rate.0)),
        }
    }
}

fn real(key: &'static str, text: &str, least: f64, most: f64) -> Understood<f64> {
    text.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        ParameterError::bad(key, text, format!("expected a number from {least} to {most}"), None)
    })
}

const SCHEDULERS: Aliases = &[("fastest", "fastest-rtt")];
