//! Little's law: the mean number in the system is the throughput times the mean
//! time in it. Over a run that begins and ends empty it is an identity (Little
//! 1961; Stidham 1974, "A last word on L = λW"), so it holds to the nanosecond
//! between what requests say of themselves and what gauges say of the engine.

use measure::{PerSecond, Record, Span};
use proptest::prelude::*;
use sim::client::{self, Observer};
use sim::{Cluster, Settings, StepReport};
use workload::arrival::Pace;
use workload::load::{Load, Stop};
use workload::prompt::RunNonce;
use workload::schedule::Schedule;

use crate::cases::{STEP_NS, case, config};
use crate::watched::{serve, steady};
use crate::whole::{around, spec};

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn gauges_and_instants_count_the_same_requests(case in case(12)) {
        let log = serve(steady(case.limits, STEP_NS), case.requests.clone(), &[]);
        let in_system: u64 = log.ended.iter().map(|one| one.ended_ns - one.arrived_ns).sum();
        // Gauges are read after each step; until the next one only arrivals
        // change the count.
        let mut arrivals: Vec<u64> = case.requests.iter().map(|one| one.arrived_ns).collect();
        arrivals.sort_unstable();
        let (mut at_ns, mut present, mut sampled) = (0, 0, 0);
        let mut coming = arrivals.into_iter().peekable();
        for step in &log.steps {
            while let Some(arrived_ns) = coming.next_if(|arrived| *arrived <= step.ends_ns) {
                sampled += present * (arrived_ns - at_ns);
                (at_ns, present) = (arrived_ns, present + 1);
            }
            sampled += present * (step.ends_ns - at_ns);
            at_ns = step.ends_ns;
            present = (step.after.running + step.after.waiting) as u64;
        }
        prop_assert_eq!(present, 0);
        prop_assert_eq!(sampled, in_system);
    }
}

#[derive(Default)]
struct Run {
    records: Vec<Record>,
    /// End of a step, and those at the engine after it.
    gauges: Vec<(u64, usize)>,
}

impl Observer for Run {
    fn ended(&mut self, record: Record) {
        self.records.push(record);
    }

    fn step(&mut self, _replica: usize, report: &StepReport) {
        self.gauges.push((report.ends_ns, report.after.running + report.after.waiting));
    }
}

/// The same between a client's records and the engine's gauges, where the count
/// is sampled at the ends of steps and the front end and the way out take time
/// that no gauge sees.
#[test]
fn a_clients_records_and_gauges_agree() {
    let load = Load::Open { pace: Pace::flat(PerSecond::new(30.0), 1.0) };
    let schedule = Schedule::draw(spec(load, Stop::Count(1_500))).unwrap().0;
    let settings = Settings::default();
    let mut run = Run::default();
    let cluster = Cluster::new(&settings, 1).unwrap();
    client::run(&schedule, RunNonce::new(5), cluster, around(), &mut run);
    let span = |record: &Record| {
        let ended_at = record.stamps.ended_at.expect("all end");
        (ended_at - record.stamps.sent_at.expect("all were sent")).s()
    };
    let whole_s: f64 = run.records.iter().map(span).sum();
    let last_s = run.records.iter().filter_map(|record| record.stamps.ended_at).max().unwrap();
    let makespan_s = (last_s - measure::At::ZERO).s();
    let throughput = run.records.len() as f64 / makespan_s;
    let by_law = throughput * whole_s / run.records.len() as f64;
    let mut sampled_s = 0.0;
    for pair in run.gauges.windows(2) {
        sampled_s += pair[0].1 as f64 * (pair[1].0 - pair[0].0) as f64 * 1e-9;
    }
    let outside = Span::from_us(
        (settings.frontend_overhead_us + 512.0 * settings.frontend_token_us) as i64
            + settings.output_overhead_us as i64,
    );
    let expected = by_law - throughput * outside.s();
    let sampled = sampled_s / makespan_s;
    assert!((sampled / expected - 1.0).abs() < 0.03, "{sampled} sampled, {expected} by the law");
}
