use proptest::prelude::*;

use super::*;

#[test]
fn a_number_of_turns_is_one_or_a_range() {
    assert_eq!("4".parse(), TurnCount::fixed(4));
    assert_eq!(" 2 - 6 ".parse(), TurnCount::range(2, 6));
    for text in ["", "0", "-3", "6-2", "1025", "2-", "x", "1.5", "2-6-8"] {
        assert_eq!(text.parse::<TurnCount>(), Err(TurnCountError(text.to_owned())), "{text}");
    }
    assert_eq!(TurnCount::range(2, 6).unwrap().to_string(), "2 to 6");
}

#[test]
fn every_number_of_turns_of_a_range_is_drawn() {
    let count = TurnCount::range(2, 5).unwrap();
    let mut seen = [0u32; 8];
    for session in 0..4_000 {
        seen[count.draw(9, session) as usize] += 1;
    }
    assert_eq!((&seen[..2], &seen[6..]), (&[0, 0][..], &[0, 0][..]));
    // 1000 each expected; five standard deviations of a binomial are 137.
    assert!(seen[2..6].iter().all(|n| (863..1137).contains(n)), "{seen:?}");
    assert_eq!(TurnCount::fixed(3).unwrap().draw(1, 77), 3);
}

fn listed(parents: &[&[u16]], fresh: &[usize]) -> Conversations {
    let turns = parents.iter().enumerate().map(|(place, parents)| Turn {
        parents: parents.to_vec(),
        fresh: fresh.contains(&place),
        ..Turn::default()
    });
    let conversation = Conversation::new(0, turns.collect());
    Conversations {
        script: Script::Listed(vec![conversation]),
        think: Think::NONE,
        history: History::Real,
    }
}

#[test]
fn a_turn_goes_on_from_the_first_that_it_waits_for() {
    // A fan-out of two from the first turn, of which one starts afresh, and a
    // join.
    let graph = listed(&[&[], &[0], &[0], &[1, 2]], &[2]);
    assert_eq!(graph.chain(0, 3), [0, 1, 3]);
    assert_eq!(graph.chain(0, 2), [2]);
    assert_eq!([0, 1, 2, 3].map(|place| graph.depth(0, place)), [0, 1, 1, 2]);
    assert_eq!([0, 1, 2, 3].map(|place| graph.is_awaited(0, place, 4)), [true, true, true, false]);
}

proptest! {
    #[test]
    fn requests_are_found_in_their_conversations(
        turns in prop::collection::vec(1u32..9, 1..20),
        sessions in 1u32..70,
    ) {
        let starts = Starts::of(turns.iter().copied()).unwrap();
        let mut index = 0;
        for session in 0..sessions {
            let expected = turns[session as usize % turns.len()];
            prop_assert_eq!(starts.of_session(session), Some((index, expected)));
            for place in 0..expected {
                prop_assert_eq!(starts.locate(index), (session, place as u16));
                index += 1;
            }
        }
        prop_assert_eq!(starts.requests(sessions), Ok(index));
    }

    #[test]
    fn any_text_is_a_number_of_turns_or_an_error(text in ".{0,12}") {
        let _ = text.parse::<TurnCount>();
    }
}
