//! Checks links and their ends.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use anabranch_core::time::Duration;

use super::super::file::{
    ArqSection, FactorsSection, FileConfig, GilbertElliottSection, JitterSection, LinkSection, Loss,
    ParetoSection, TraceSection, fifty_ms,
};
use super::super::options::WordOrTable;
use super::super::source::Step;
use super::super::source::traces::TraceKind;
use super::super::units::{QueueSize, Size, Span};
use super::super::{GroupLinkSpec, LinkSpec};
use super::deployment::Named;
use super::{Checked, Checker, at};
use anabranch_sim::jitter::{Distribution, JitterConfig};
use anabranch_sim::link::course::{Course, RateCourse};
use anabranch_sim::link::discipline::DisciplineConfig;
use anabranch_sim::link::{ArqConfig, LinkConfig, QueueLimit};
use anabranch_sim::loss::{Disturbance, LossFactors, LossModel};
use anabranch_sim::packet::NodeId;

/// Smallest MTU in bytes: every IPv4 module must forward packets of this size (RFC 791 section
/// 3.2), and it leaves room for a fragment with IPv6.
const SMALLEST_MTU: u32 = 68;

/// Largest number of retransmissions by a link layer.
const MOST_REPEATS: u32 = 10_000;
/// Shortest mean duration of the good and bad states of a channel. Each state is drawn, also on a
/// silent link, so shorter states would only cost time.
const SHORTEST_MEAN: Duration = Duration::from_micros(100);

impl Checker<'_> {
    /// The links of every run, in both directions, and the links of drawn groups.
    pub(super) fn links(&mut self, file: &FileConfig) -> Checked<(Vec<LinkSpec>, Vec<GroupLinkSpec>)> {
        let (mut links, mut of_groups, mut pairs) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (i, section) in file.link.iter().enumerate() {
            self.first_links.push(links.len());
            let from = self.end(at!["link", i, "from"], &section.from, file)?;
            let to = self.end(at!["link", i, "to"], &section.to, file)?;
            let [there, back] = self.link(i, section)?;
            let (from, to) = match (from, to) {
                (Named::Nodes(from), Named::Nodes(to)) => (from, to),
                (Named::Group(group), Named::Nodes(to)) if to.len() < 2 => {
                    let spec = |to| GroupLinkSpec {
                        group,
                        from: None,
                        to: Some(to),
                        there: there.clone(),
                        back: back.clone(),
                    };
                    of_groups.extend(to.into_iter().map(spec));
                    continue;
                }
                (Named::Nodes(from), Named::Group(group)) if from.len() < 2 => {
                    let spec = |from| GroupLinkSpec {
                        group,
                        from: Some(from),
                        to: None,
                        there: there.clone(),
                        back: back.clone(),
                    };
                    of_groups.extend(from.into_iter().map(spec));
                    continue;
                }
                (Named::Group(_), _) | (_, Named::Group(_)) => return self.several_ends(i, section),
            };
            if from.len() > 1 && to.len() > 1 {
                return self.several_ends(i, section);
            }
            if from == to && from.len() == 1 {
                return self.fault(at!["link", i, "to"], "a link joins two different nodes", None);
            }
            for (from, to) in from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to))) {
                // One of several nodes may be the other end.
                if from == to {
                    continue;
                }
                self.is_first(i, (from, to), &mut pairs, file)?;
                for (from, to, (config, course)) in [(from, to, &there), (to, from, &back)] {
                    links.push(LinkSpec { from, to, config: *config, course: course.clone() });
                }
            }
        }
        self.first_links.push(links.len());
        self.names_differ(file)?;
        Ok((links, of_groups))
    }

    /// Removes the ECN threshold of a link whose discipline was chosen from outside: a threshold in
    /// the file applies only to "drop-tail".
    pub(super) fn leave_thresholds_aside(&self, file: &mut FileConfig) {
        for (i, section) in file.link.iter_mut().enumerate() {
            let is_managed = section.discipline.0 != DisciplineConfig::DropTail;
            if is_managed
                && section.ecn_threshold.is_some()
                && self.is_chosen(at!["link", i, "discipline"])
                && self.source.is_of_file(self.tree(), at!["link", i, "ecn_threshold"])
            {
                section.ecn_threshold = None;
            }
        }
    }

    /// The node or nodes at an end of a link.
    fn end(&self, path: &[Step], name: &String, file: &FileConfig) -> Checked<Named> {
        let several = name.contains('*')
            || file.group.contains_key(name)
            || file.nodes.iter().any(|nodes| nodes.name == *name);
        if several {
            return self.nodes_named(path, std::slice::from_ref(name), file);
        }
        Ok(Named::Nodes(vec![self.node(path, name)?]))
    }

    fn several_ends<T>(&self, i: usize, section: &LinkSection) -> Checked<T> {
        let message = format!("`{}` and `{}` both mean several nodes", section.from, section.to);
        self.fault(at!["link", i, "to"], message, Some("name a single node at one end"))
    }

    /// Checks that a pair of nodes has only one link: routes, events and metrics identify a link by
    /// its ends.
    fn is_first(
        &self,
        i: usize,
        (from, to): (NodeId, NodeId),
        pairs: &mut BTreeSet<(NodeId, NodeId)>,
        file: &FileConfig,
    ) -> Checked<()> {
        if pairs.insert((from.min(to), from.max(to))) {
            return Ok(());
        }
        let [from, to] = [from, to].map(|node| &file.node[node.index()].name);
        let hint = "for a second path put a router in between: a `[[node]]` with `kind = \"router\"`, and \
                    a link on each side of it";
        self.fault(at!["link", i], format!("there are two links between `{from}` and `{to}`"), Some(hint))
    }

    /// Checks that names of links are unique, since `--set` refers to them.
    fn names_differ(&self, file: &FileConfig) -> Checked<()> {
        let mut names = BTreeSet::new();
        for (i, section) in file.link.iter().enumerate() {
            let Some(name) = &section.name else { continue };
            if !names.insert(name) {
                let message = format!("there are two links of the name `{name}`");
                let hint = "names must differ, since `--set` and `[sweep]` use them";
                return self.fault(at!["link", i, "name"], message, Some(hint));
            }
        }
        Ok(())
    }

    /// Configuration and course of both directions of a link.
    fn link(&self, i: usize, section: &LinkSection) -> Checked<[(LinkConfig, Course); 2]> {
        let course = self.course(at!["link", i], section.trace.as_deref())?;
        let (rate, delay) = nominal(&course);
        let (Some(rate), Some(delay)) = (section.rate.map(|rate| rate.0).or(rate), section.delay.or(delay))
        else {
            let key = if section.rate.is_none() && rate.is_none() { "rate" } else { "delay" };
            let hint = format!("set it, or name a file as in `trace = {{ {key} = \"{key}.csv\" }}`");
            return self.fault(at!["link", i], format!("missing key `{key}`"), Some(&hint));
        };
        let there = LinkConfig {
            rate,
            delay: delay.0,
            queue: section.queue.0,
            discipline: section.discipline.0,
            ecn_threshold: section.ecn_threshold.map(|size| size.0),
            mtu: section.mtu,
            loss: self.loss(at!["link", i, "loss"], section.loss)?,
            loss_factors: self.factors(at!["link", i, "loss_factors"], section.loss_factors)?,
            disturbance: Disturbance {
                reordering: section.reordering.0,
                lateness: section.lateness.unwrap_or_else(fifty_ms).0,
                duplication: section.duplication.0,
            },
            link_ack_timeout: section.link_ack_timeout.map(|span| span.0),
            arq: self.arq(at!["link", i, "arq"], section.arq)?,
            jitter: self.jitter(at!["link", i, "jitter"], section.jitter.as_deref().copied())?,
            spacing: section.spacing.0,
        };
        let is_never = section.reordering.0 == 0.0;
        if section.lateness.is_some() && is_never && !self.is_given(at!["link", i, "reordering"]) {
            let message = "no packet is late: the link has no `reordering`";
            let hint = "give their share, as in `reordering = \"1 %\"`, or remove `lateness`";
            return self.fault(at!["link", i, "lateness"], message, Some(hint));
        }
        let back_arq = section.back.as_ref().and_then(|back| back.arq).and_then(|arq| arq.0);
        if section.link_ack_timeout.is_some() && (section.arq.is_some() || back_arq.is_some()) {
            let message =
                "`link_ack_timeout` is for a link layer that repeats nothing, and `arq` for one that does";
            let hint = Some("remove one of them; a caching node (`dtc`) works above either");
            return self.fault(at!["link", i, "link_ack_timeout"], message, hint);
        }
        self.mtu(at!["link", i, "mtu"], there.mtu)?;
        self.queue(at!["link", i], &there)?;
        self.paced(at!["link", i], &there, &course)?;
        let (mut back, mut back_course) = (there, course.clone());
        if let Some(other) = &section.back {
            // A rate or delay of `back` replaces the trace of the other direction.
            back_course.rate = back_course.rate.filter(|_| other.rate.is_none());
            back_course.delay = back_course.delay.filter(|_| other.delay.is_none());
            let own = self.course(at!["link", i, "back"], other.trace.as_ref())?;
            let (rate, delay) = nominal(&own);
            back.rate = other.rate.map(|rate| rate.0).or(rate).unwrap_or(back.rate);
            back.delay = other.delay.or(delay).map_or(back.delay, |span| span.0);
            back_course.rate = own.rate.or(back_course.rate);
            back_course.delay = own.delay.or(back_course.delay);
            back.queue = other.queue.map_or(back.queue, |queue| queue.0);
            if let Some(WordOrTable(discipline)) = other.discipline {
                back.discipline = discipline;
                if discipline != DisciplineConfig::DropTail {
                    // The threshold was inherited from the other direction.
                    back.ecn_threshold = None;
                }
            }
            back.ecn_threshold = other.ecn_threshold.map_or(back.ecn_threshold, |size| Some(size.0));
            back.spacing = other.spacing.map_or(back.spacing, |span| span.0);
            back.mtu = other.mtu.unwrap_or(back.mtu);
            if let Some(loss) = other.loss {
                back.loss = self.loss(at!["link", i, "back", "loss"], loss)?;
            }
            if let Some(arq) = other.arq {
                back.arq = self.arq(at!["link", i, "back", "arq"], arq.0)?;
            }
            if let Some(jitter) = other.jitter {
                back.jitter = self.jitter(at!["link", i, "back", "jitter"], jitter.0)?;
            }
            if let Some(factors) = other.loss_factors {
                back.loss_factors = self.factors(at!["link", i, "back", "loss_factors"], factors)?;
            }
            self.mtu(at!["link", i, "back", "mtu"], back.mtu)?;
            self.queue(at!["link", i, "back"], &back)?;
            self.paced(at!["link", i, "back"], &back, &back_course)?;
        }
        Ok([(there, course), (back, back_course)])
    }

    /// The course of a direction; `path` leads to the section that has the trace.
    fn course(&self, path: &[Step], section: Option<&TraceSection>) -> Checked<Course> {
        let Some(section) = section else { return Ok(Course::default()) };
        let at = |key: &str| [path, at!["trace", key]].concat();
        let TraceSection { mahimahi, rate, delay, repeat } = section;
        if let (Some(_), Some(_)) = (mahimahi, rate) {
            let message = "`mahimahi` and `rate` both say when packets may leave";
            return self.fault(&at("rate"), message, Some("remove one of them"));
        }
        if mahimahi.is_none() && rate.is_none() && delay.is_none() {
            let hint = "set `mahimahi`, `rate` or `delay`, each with the name of a file";
            return self.fault(&[path, at!["trace"]].concat(), "a trace without a file", Some(hint));
        }
        if *repeat && rate.is_none() && delay.is_none() {
            let hint = "remove `repeat`";
            return self.fault(&at("repeat"), "a mahimahi trace always repeats", Some(hint));
        }
        let read = |key: &str, name: &Option<String>, kind: TraceKind| match name {
            None => Ok(None),
            Some(name) => {
                let course = self.source.trace(name, kind, *repeat);
                self.of_file(&at(key), &format!("the trace `{name}`"), course).map(Some)
            }
        };
        let packets = read("mahimahi", mahimahi, TraceKind::Mahimahi)?.and_then(|course| course.rate);
        let rates = read("rate", rate, TraceKind::Rate)?.and_then(|course| course.rate);
        let delay = read("delay", delay, TraceKind::Delay)?.and_then(|course| course.delay);
        Ok(Course { rate: packets.or(rates), delay })
    }

    /// Checks that the link can follow its course.
    fn paced(&self, path: &[Step], link: &LinkConfig, course: &Course) -> Checked<()> {
        if !matches!(course.rate, Some(RateCourse::Opportunities(_))) {
            return Ok(());
        }
        let at = |key: &str| [path, &[Step::from(key)]].concat();
        if !link.spacing.is_zero() {
            let message = "a mahimahi trace says when packets leave, and `spacing` says another thing";
            return self.fault(&at("spacing"), message, Some("remove `spacing`"));
        }
        if link.queue.is_exceeded(1, 1) {
            let message = "no packet can wait for an opportunity of the mahimahi trace";
            return self.fault(&at("queue"), message, Some("set a queue that holds a packet, or more"));
        }
        Ok(())
    }

    /// Checks that the queue has room for a packet and can exceed its ECN threshold.
    fn queue(&self, path: &[Step], link: &LinkConfig) -> Checked<()> {
        let at = |key: &str| [path, &[Step::from(key)]].concat();
        if let QueueLimit::Bytes(bytes @ 1..) = link.queue
            && bytes < link.mtu.into()
        {
            let message =
                format!("a queue of {} holds no packet of the link's `mtu`, {} B", Size(bytes), link.mtu);
            let hint = "set as many bytes as the `mtu` or more, a number of packets, or a smaller `mtu`";
            return self.fault(&at("queue"), message, Some(hint));
        }
        if let Err([key, message, hint]) = link.discipline.check(link.queue) {
            return self.fault(&at("discipline"), format!("`{key}`: {message}"), Some(hint));
        }
        if link.ecn_threshold.is_some() && link.discipline != DisciplineConfig::DropTail {
            let message =
                "`ecn_threshold` beside a `discipline` that decides itself which packets are marked";
            let hint = "remove the threshold, or set `discipline = \"drop-tail\"`";
            return self.fault(&at("ecn_threshold"), message, Some(hint));
        }
        match link.ecn_threshold {
            Some(threshold) if threshold.compare(link.queue).is_some_and(Ordering::is_gt) => {
                let (threshold, most) = (QueueSize(threshold), QueueSize(link.queue));
                let message = format!("no packet is ever marked: the queue holds {most}, not {threshold}");
                self.fault(&at("ecn_threshold"), message, Some("set less than the `queue`"))
            }
            _ => Ok(()),
        }
    }

    fn mtu(&self, path: &[Step], mtu: u32) -> Checked<()> {
        if mtu >= SMALLEST_MTU {
            return Ok(());
        }
        let message =
            format!("an MTU of {mtu} bytes has no room for a packet; expected {SMALLEST_MTU} or more");
        self.fault(path, message, None)
    }

    fn arq(&self, path: &[Step], section: Option<ArqSection>) -> Checked<Option<ArqConfig>> {
        match section {
            Some(ArqSection { limit, .. }) if limit > MOST_REPEATS => {
                let message = format!("expected 0 to {MOST_REPEATS} repetitions, found {limit}");
                self.fault(&[path, at!["limit"]].concat(), message, None)
            }
            Some(ArqSection { limit, delay }) => Ok(Some(ArqConfig { limit, delay: delay.0 })),
            None => Ok(None),
        }
    }

    fn jitter(&self, path: &[Step], section: Option<JitterSection>) -> Checked<Option<JitterConfig>> {
        let Some(JitterSection { uniform, normal, exponential, pareto, overtaking }) = section else {
            return Ok(None);
        };
        let distribution = match (uniform, normal, exponential, pareto) {
            (Some(most), None, None, None) => Distribution::Uniform { most: most.0 },
            (None, Some(normal), None, None) => {
                Distribution::Normal { mean: normal.mean.0, deviation: normal.deviation.0 }
            }
            (None, None, Some(mean), None) => Distribution::Exponential { mean: mean.0 },
            (None, None, None, Some(ParetoSection { least, shape, most })) => {
                let at = |key: &str| [path, at!["pareto", key]].concat();
                if !(shape > 0.0 && shape <= 100.0) {
                    return self.fault(&at("shape"), "expected more than 0 and at most 100", None);
                }
                if least.0.is_zero() || least >= most {
                    let message = format!("expected more than 0 and less than `most`, {most}");
                    return self.fault(&at("least"), message, None);
                }
                Distribution::Pareto { least: least.0, shape, most: most.0 }
            }
            _ => {
                let message = "expected exactly one of `uniform`, `normal`, `exponential` and `pareto`";
                let hint = Some("as in `jitter = { exponential = \"5 ms\" }`; \"off\" is none");
                return self.fault(path, message, hint);
            }
        };
        Ok(Some(JitterConfig { distribution, overtaking }))
    }

    /// The loss model of a value at `path`.
    pub(super) fn loss(&self, path: &[Step], loss: Loss) -> Checked<LossModel> {
        let section = match loss {
            Loss::Bernoulli(p) if p.0 == 0.0 => return Ok(LossModel::None),
            Loss::Bernoulli(p) => return Ok(LossModel::Bernoulli { p: p.0 }),
            Loss::GilbertElliott(section) => section,
        };
        let GilbertElliottSection { good_to_bad, bad_to_good, mean_good, mean_bad, .. } = section;
        let (loss_good, loss_bad) = (section.loss_good.0, section.loss_bad.0);
        match (good_to_bad, bad_to_good, mean_good, mean_bad) {
            (Some(good_to_bad), Some(bad_to_good), None, None) => Ok(LossModel::GilbertElliott {
                good_to_bad: good_to_bad.0,
                bad_to_good: bad_to_good.0,
                loss_good,
                loss_bad,
            }),
            (None, None, Some(Span(mean_good)), Some(Span(mean_bad))) => {
                for (key, mean) in [("mean_good", mean_good), ("mean_bad", mean_bad)] {
                    if mean < SHORTEST_MEAN {
                        let message = format!("expected {} or more", Span(SHORTEST_MEAN));
                        return self.fault(&[path, at![key]].concat(), message, None);
                    }
                }
                Ok(LossModel::GilbertElliottInTime { mean_good, mean_bad, loss_good, loss_bad })
            }
            _ => {
                let message = "a Gilbert-Elliott channel needs `good_to_bad` and `bad_to_good`, or `mean_good` and `mean_bad`";
                let hint = Some("the first two are probabilities per packet, the others spans of time");
                self.fault(path, message, hint)
            }
        }
    }

    fn factors(&self, path: &[Step], section: FactorsSection) -> Checked<LossFactors> {
        let legal = |factor: f64| factor.is_finite() && factor >= 0.0;
        let FactorsSection { data, ack, link_ack } = section;
        if legal(data) && legal(ack) && legal(link_ack) {
            return Ok(LossFactors { data, ack, link_ack });
        }
        self.fault(path, "a factor is a number from 0 on", None)
    }
}

/// Rate and delay of a course where a single value is needed: the means.
fn nominal(course: &Course) -> (Option<u64>, Option<Span>) {
    let delay = course.delay.as_ref().map(|delay| Span(Duration::from_nanos(delay.mean())));
    (course.rate.as_ref().map(RateCourse::mean_rate), delay)
}
