//! The split of TTFT, held against delays that are known.

use measure::record::Events;
use measure::signal::{Reading, Signal};
use measure::stage::Stages;
use measure::{Record, Span};
use workload::Stream;

use crate::model::{self, Ran, at_rate, of_users, spec, with};

fn mean_of(stages: &Stages, id: &str) -> f64 {
    let stage = stages.stages.iter().find(|stage| stage.id == id);
    stage.unwrap_or_else(|| panic!("no stage {id} in {stages:#?}")).mean_ms
}

/// Between 10 and 300 ms, in whole microseconds.
fn delay(draws: &mut Stream) -> Span {
    Span::from_us(10_000 + draws.below(290_000) as i64)
}

/// What the generator adds before a send, what a gateway adds before the engine,
/// and what a handshake would have seen of the network.
fn hold_up(records: &mut [Record], wait: Span, gateway: Span, round_trip: Span) {
    for record in records {
        let stamps = &mut record.stamps;
        let sent_at = stamps.sent_at.unwrap();
        // Of a connection that was opened for it, before the send.
        stamps.resolved_at = Some(sent_at - round_trip);
        stamps.connected_at = Some(sent_at);
        stamps.intended_at = sent_at - wait;
        for at in [&mut stamps.first_byte_at, &mut stamps.headers_at, &mut stamps.ended_at] {
            *at = at.map(|at| at + gateway);
        }
        let late = gateway.us() as u32;
        let events: &mut Events = &mut record.events;
        events.at_us.iter_mut().for_each(|at_us| *at_us += late);
    }
}

/// Six stages of drawn lengths, 50 times: each comes out within 5 % or 2 ms.
#[test]
fn six_known_delays_are_found_again() {
    for number in 0..50 {
        let mut draws = Stream::numbered(6, "delays", number);
        let [wait, gateway, front_end] = [(); 3].map(|()| delay(&mut draws));
        let round_trip = delay(&mut draws);
        let one_way = Span::from_us(round_trip.us() / 2);
        let round_trip = one_way + one_way;
        // A prompt of a thousand tokens takes 27 ms, a token of an answer 8 ms;
        // with one seat and two users one waits for the other's answer.
        let input = (delay(&mut draws).ms() / 0.027) as u32;
        let output = (delay(&mut draws).ms() / 8.0).max(2.0) as u32;
        let settings = with(&[
            "max_num_seqs=1",
            "max_num_batched_tokens=16384",
            "output_overhead_us=0",
            &format!("frontend_overhead_us={}", front_end.us()),
            "frontend_token_us=0",
        ]);
        let mut ran = model::play(spec(of_users(2), 40, (input, output)), &settings, one_way);
        hold_up(&mut ran.records, wait, gateway, round_trip);
        ran.records.iter_mut().for_each(|record| record.answer.server_timings.clear());
        let stages = ran.examined().inside.stages;
        assert_eq!(stages.refused, None, "{number}");
        let known = [
            ("client_wait", wait.ms()),
            ("network", round_trip.ms()),
            ("gateway", gateway.ms()),
            ("front_end", ran.truth.front_end_ms),
            ("queue", ran.truth.queue_ms),
            ("prefill", ran.truth.prefill_ms),
        ];
        for (id, truth_ms) in known {
            let found_ms = mean_of(&stages, id);
            let off = (found_ms - truth_ms).abs();
            assert!(
                off <= (0.05 * truth_ms).max(2.0),
                "{number}: {id} is {truth_ms:.2} ms and was found as {found_ms:.2} ms"
            );
        }
        let sum: f64 = stages.stages.iter().map(|stage| stage.mean_ms).sum();
        assert!((sum - stages.ttft_mean_ms.unwrap()).abs() < 1e-6, "{number}");
        assert_eq!(stages.stages.iter().filter(|stage| stage.is_residual).count(), 1);
    }
}

fn usual() -> Ran {
    model::play(spec(at_rate(4.0), 60, (800, 40)), &with(&[]), Span::from_us(300))
}

#[test]
fn the_timings_of_answers_split_as_metrics_do() {
    let mut ran = usual();
    let by_timings = ran.examined().inside.stages;
    ran.records.iter_mut().for_each(|record| record.answer.server_timings.clear());
    let by_metrics = ran.examined().inside.stages;
    for id in ["queue", "prefill", "front_end", "network"] {
        let (a, b) = (mean_of(&by_timings, id), mean_of(&by_metrics, id));
        assert!((a - b).abs() < 0.01, "{id}: {a} and {b}");
    }
}

#[test]
fn requests_of_others_refuse_the_split() {
    let mut ran = usual();
    ran.records.iter_mut().for_each(|record| record.answer.server_timings.clear());
    for signal in [Signal::ServerTtft, Signal::QueueTime, Signal::PrefillTime] {
        let Some(Reading::Histogram(taken)) = ran.signals.readings.get_mut(&signal) else {
            panic!("{signal:?}");
        };
        (taken.count, taken.sum) = (taken.count * 1.2, taken.sum * 3.0);
    }
    let stages = ran.examined().inside.stages;
    assert!((stages.foreign_share.unwrap() - 1.0 / 6.0).abs() < 1e-9);
    assert!(stages.refused.unwrap().en.contains("17 % of the requests"));
    let ids: Vec<&str> = stages.stages.iter().map(|stage| stage.id).collect();
    assert_eq!(ids, ["client_wait", "server"], "what the client knows is left");
}

/// A token that is no text makes an answer empty for its client, and is counted
/// by the server.
#[test]
fn an_empty_answer_is_no_request_of_others() {
    let mut ran = usual();
    for record in ran.records.iter_mut().take(6) {
        record.outcome = measure::Outcome::Empty;
        record.events = Events::default();
    }
    ran.records.iter_mut().for_each(|record| record.answer.server_timings.clear());
    let stages = ran.examined().inside.stages;
    assert_eq!((stages.foreign_share, stages.refused), (Some(0.0), None));
}

/// Requests over connections that were opened ahead have no handshakes.
#[test]
fn the_network_is_known_by_connections_that_were_opened_ahead() {
    let mut ran = usual();
    for record in &mut ran.records {
        (record.stamps.resolved_at, record.stamps.connected_at) = (None, None);
    }
    let ids = |stages: &Stages| stages.stages.iter().map(|stage| stage.id).collect::<Vec<_>>();
    assert!(!ids(&ran.examined().inside.stages).contains(&"gateway"));
    ran.facts.instrument.round_trip = Some(Span::from_us(600));
    let stages = ran.examined().inside.stages;
    assert!(ids(&stages).contains(&"gateway"), "{stages:#?}");
    assert!((mean_of(&stages, "network") - 0.6).abs() < 0.1, "{stages:#?}");
}

#[test]
fn a_stage_below_nothing_refuses_the_split() {
    let mut ran = usual();
    ran.records.iter_mut().for_each(|record| record.answer.server_timings.clear());
    let Some(Reading::Histogram(taken)) = ran.signals.readings.get_mut(&Signal::QueueTime) else {
        panic!("no queue time");
    };
    taken.sum += 10.0;
    let stages = ran.examined().inside.stages;
    assert!(stages.stages.is_empty());
    assert!(stages.refused.unwrap().en.contains("not of the same requests"));
}

#[test]
fn without_the_server_only_the_clients_own_wait_is_told() {
    let stages = usual().by_client().inside.stages;
    assert!(stages.refused.unwrap().en.contains("were not read"));
    let residual = stages.stages.iter().find(|stage| stage.is_residual).unwrap();
    assert_eq!(residual.id, "server");
}

#[test]
fn llama_cpps_timings_leave_the_queue_in_the_rest() {
    let mut ran = usual();
    for record in &mut ran.records {
        record.answer.server_timings =
            vec![("prompt_ms".to_owned(), 20.0), ("predicted_ms".to_owned(), 300.0)];
    }
    let stages = ran.by_timings_alone();
    assert_eq!(mean_of(&stages, "prefill"), 20.0);
    assert!(stages.stages.iter().any(|stage| stage.id == "server" && stage.is_residual));
}

#[test]
fn ollamas_durations_are_nanoseconds() {
    let mut ran = usual();
    for record in &mut ran.records {
        record.answer.server_timings =
            vec![("load_duration".to_owned(), 5e6), ("prompt_eval_duration".to_owned(), 12e6)];
    }
    let stages = ran.by_timings_alone();
    assert_eq!((mean_of(&stages, "model_load"), mean_of(&stages, "prefill")), (5.0, 12.0));
}
