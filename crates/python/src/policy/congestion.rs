//! Congestion controls written in Python.

use std::sync::Arc;

use anabranch_core::tcp::ByteCounting;
use anabranch_core::tcp::congestion::{self as core, Controller, LostSegment, RateSample, Repair, Usage};
use anabranch_core::time::{Duration, Instant};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::told::told;
use super::{Call, Object, read};

/// Creates the controller of a connection.
pub(super) fn make(number: usize, start: core::Start) -> Box<dyn Controller> {
    let call = Call::here();
    let (cwnd, ssthresh) = (start.cwnd, start.ssthresh);
    let mut stands = Stands { cwnd, ssthresh, ..Stands::default() };
    // Without the class the run ends, so any controller will do until then.
    let class = call.python(
        || "a new connection".to_owned(),
        |py| {
            let object = Object::make(py, number, "Controller", (Start(start),))?;
            let class = Class::of(py, object)?;
            stands = class.look(py, "__init__")?;
            Ok(class)
        },
    );
    Box::new(Written { call, stands, class })
}

/// Methods that are passed to Python. The names are those of [`Controller`]; the order is that of
/// `NAMES`.
#[derive(Clone, Copy, Debug)]
enum Method {
    Ack,
    Delivery,
    Rtt,
    SlowStartEnd,
    Loss,
    Mark,
    Recovered,
    Timeout,
    Spurious,
    Idle,
    Sample,
    Lost,
    Restart,
}

const NAMES: [&str; 13] = [
    "on_ack",
    "on_delivery",
    "on_rtt",
    "on_slow_start_end",
    "on_loss",
    "on_mark",
    "on_recovered",
    "on_timeout",
    "on_spurious",
    "on_idle",
    "on_sample",
    "on_lost",
    "on_restart",
];

/// State that the simulator may ask for at any time, as of the last method call.
#[derive(Clone, Copy, Debug, Default)]
struct Stands {
    cwnd: u32,
    ssthresh: u32,
    pacing_rate: Option<u64>,
    limits_itself: bool,
}

/// A class and those of its methods that override the base class, whose methods do nothing.
#[derive(Debug)]
struct Class {
    object: Object,
    methods: [Option<Py<PyAny>>; NAMES.len()],
    names: Names,
    answers_marks: bool,
    wants_samples: bool,
}

/// Interned attribute names.
#[derive(Debug)]
struct Names {
    cwnd: Py<PyString>,
    ssthresh: Py<PyString>,
    pacing_rate: Py<PyString>,
    limits_itself: Py<PyString>,
}

impl Class {
    fn of(py: Python<'_>, object: Object) -> PyResult<Self> {
        let base = py.import("anabranch.policy")?.getattr("Controller")?;
        let bound = object.object.bind(py);
        let class = bound.get_type();
        let mut methods = [const { None }; NAMES.len()];
        for (method, name) in methods.iter_mut().zip(NAMES) {
            if !class.getattr(name)?.is(&base.getattr(name)?) {
                *method = Some(bound.getattr(name)?.unbind());
            }
        }
        let name = |name| PyString::intern(py, name).unbind();
        let names = Names {
            cwnd: name("cwnd"),
            ssthresh: name("ssthresh"),
            pacing_rate: name("pacing_rate"),
            limits_itself: name("limits_itself"),
        };
        let answers_marks = bound.getattr("answers_marks")?.is_truthy()?;
        let wants_samples = bound.getattr("wants_samples")?.is_truthy()?;
        Ok(Self { object, methods, names, answers_marks, wants_samples })
    }

    /// Reads the object's state after a method call.
    fn look(&self, py: Python<'_>, place: &str) -> PyResult<Stands> {
        let object = self.object.object.bind(py);
        let octets = |name: &Py<PyString>| {
            let name = name.bind(py);
            let value = read::attribute(object, name, place)?;
            read::octets(&value).ok_or_else(|| {
                let expected = "a number of bytes from 0 to 4294967295";
                read::refused(object, place, &name.to_string_lossy(), &value, expected)
            })
        };
        let (cwnd, ssthresh) = (octets(&self.names.cwnd)?, octets(&self.names.ssthresh)?);
        let rate = read::attribute(object, self.names.pacing_rate.bind(py), place)?;
        let pacing_rate = if rate.is_none() {
            None
        } else {
            let number = rate.extract::<f64>().ok().filter(|rate| (1.0..1e18).contains(rate));
            let expected = "bytes per second, at least 1, or None";
            let refused = || read::refused(object, place, "pacing_rate", &rate, expected);
            Some(number.ok_or_else(refused)? as u64)
        };
        let limits_itself = object.getattr(self.names.limits_itself.bind(py))?.is_truthy()?;
        Ok(Stands { cwnd, ssthresh, pacing_rate, limits_itself })
    }
}

/// A controller written in Python.
#[derive(Debug)]
struct Written {
    call: Arc<Call>,
    stands: Stands,
    class: Option<Class>,
}

impl Written {
    fn has(&self, method: Method) -> bool {
        self.class.as_ref().is_some_and(|class| class.methods[method as usize].is_some())
    }

    /// Calls a method, if the class overrides it, and reads the state afterwards.
    fn tell<A: for<'py> PyCallArgs<'py>>(&mut self, method: Method, now: Instant, arguments: A) {
        let Some(class) = &self.class else { return };
        let Some(bound) = &class.methods[method as usize] else { return };
        let name = NAMES[method as usize];
        let place = || format!("{}.{name} at {} s of the run", class.object.class, seconds_at(now));
        let said = self.call.python(place, |py| {
            bound.bind(py).call1(arguments)?;
            class.look(py, name)
        });
        self.stands = said.unwrap_or(self.stands);
    }
}

fn seconds_at(now: Instant) -> f64 {
    now.saturating_since(Instant::ZERO).as_secs_f64()
}

impl Controller for Written {
    fn cwnd(&self) -> u32 {
        self.stands.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.stands.ssthresh
    }

    fn on_ack(&mut self, now: Instant, view: &core::View, acked: u32) {
        self.tell(Method::Ack, now, (seconds_at(now), View(*view), acked));
    }

    fn on_delivery(&mut self, now: Instant, mss: u32, acked: u32) {
        self.tell(Method::Delivery, now, (seconds_at(now), mss, acked));
    }

    fn on_rtt(&mut self, now: Instant, view: &core::View, rtt: Duration) {
        self.tell(Method::Rtt, now, (seconds_at(now), View(*view), rtt.as_secs_f64()));
    }

    fn on_slow_start_end(&mut self, now: Instant, view: &core::View) {
        self.tell(Method::SlowStartEnd, now, (seconds_at(now), View(*view)));
    }

    fn on_loss(&mut self, now: Instant, view: &core::View) {
        self.tell(Method::Loss, now, (seconds_at(now), View(*view)));
    }

    fn on_mark(&mut self, now: Instant, view: &core::View) {
        let method = if self.has(Method::Mark) { Method::Mark } else { Method::Loss };
        self.tell(method, now, (seconds_at(now), View(*view)));
    }

    fn answers_marks(&self) -> bool {
        self.class.as_ref().is_none_or(|class| class.answers_marks)
    }

    fn on_recovered(&mut self, now: Instant, view: &core::View) {
        self.tell(Method::Recovered, now, (seconds_at(now), View(*view)));
    }

    fn on_timeout(&mut self, now: Instant, view: &core::View) {
        self.tell(Method::Timeout, now, (seconds_at(now), View(*view)));
    }

    fn on_spurious(&mut self, now: Instant, view: &core::View, prior: core::Windows) {
        self.tell(Method::Spurious, now, (seconds_at(now), View(*view), Windows(prior)));
    }

    fn on_idle(&mut self, now: Instant, view: &core::View) {
        self.tell(Method::Idle, now, (seconds_at(now), View(*view)));
    }

    fn wants_samples(&self) -> bool {
        self.class.as_ref().is_some_and(|class| class.wants_samples)
    }

    fn on_sample(&mut self, now: Instant, view: &core::View, sample: &RateSample) {
        self.tell(Method::Sample, now, (seconds_at(now), View(*view), Sample(*sample)));
    }

    fn on_lost(&mut self, now: Instant, view: &core::View, lost: &LostSegment) {
        self.tell(Method::Lost, now, (seconds_at(now), View(*view), Lost(*lost)));
    }

    fn on_restart(&mut self, now: Instant, view: &core::View) {
        self.tell(Method::Restart, now, (seconds_at(now), View(*view)));
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.stands.pacing_rate
    }

    fn limits_itself(&self) -> bool {
        self.stands.limits_itself
    }
}

told! {
    /// Parameters of a new controller.
    Start(core::Start) {
        cwnd: u32, ssthresh: u32, mss: u32, seed: u32,
    }
}

told! {
    /// What a controller can see of its connection.
    View(core::View) {
        mss: u32, in_flight: u32, limit: u32, initial_window: u32, least_ssthresh: u32, srtt: Option<f64>,
        min_rtt: Option<f64>, slow_start_divisor: u32, abe: bool,
    }

    #[getter]
    fn peak(&self) -> Option<u32> {
        match self.0.usage {
            Usage::Full => None,
            Usage::Partial { peak } => Some(peak),
        }
    }

    #[getter]
    fn byte_counting(&self) -> Option<u8> {
        match self.0.byte_counting {
            ByteCounting::Off => None,
            ByteCounting::On { limit } => Some(limit),
        }
    }

    #[getter]
    fn repair(&self) -> &'static str {
        match self.0.repair {
            Repair::Reno => "reno",
            Repair::NewReno => "newreno",
            Repair::Sack => "sack",
            Repair::FirstTimeout => "first-timeout",
            Repair::RepeatedTimeout => "repeated-timeout",
        }
    }

    fn uses(&self, cwnd: f64, ssthresh: f64) -> bool {
        self.0.uses(cwnd as u32, ssthresh as u32)
    }

    fn slow_start_step(&self, acked: u32) -> u32 {
        self.0.slow_start_step(acked)
    }
}

told! {
    /// Window and threshold at a time.
    Windows(core::Windows) {
        cwnd: u32, ssthresh: u32,
    }
}

told! {
    /// What an acknowledgement shows of the path.
    Sample(RateSample) {
        delivery_rate: u64, interval: f64, delivered: u64, prior_delivered: u64, total_delivered: u64,
        newly_acked: u32, newly_lost: u32, tx_in_flight: u32, lost: u64, rtt: Option<f64>,
        app_limited: bool, cwnd_limited: bool, in_flight: u32, recovering: bool, selective: bool,
    }
}

told! {
    /// A segment found lost.
    Lost(LostSegment) {
        size: u32, tx_in_flight: u32, lost: u64, app_limited: bool, apart: bool, delivered: u64,
        in_flight: u32,
    }
}
