use measure::Span;

use super::*;
use crate::conversation::{Conversations, History, Script, TurnCount, Turns};
use crate::load::{Load, Stop};
use crate::prompt::{CacheRegime, Order};
use crate::routing::Routing;
use crate::schedule::{OutputLength, Spec};
use crate::think::Think;
use crate::{Lengths, Prefixes};

const NONCE: RunNonce = RunNonce::new(0x1234_5678_9abc_def0);

fn spec(cache: CacheRegime) -> Spec {
    Spec {
        seed: 3,
        load: Load::Burst,
        stop: Stop::Count(8),
        prompts: PromptSource::Synthetic { input: Lengths::fixed(30).unwrap() },
        pictures: None,
        batch: Batch::One,
        prefixes: Prefixes { shared_tokens: 20, groups: 2, group_tokens: 12, session_tokens: 0 },
        output: OutputLength::Drawn(Lengths::fixed(8).unwrap()),
        output_forced: true,
        cache,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    }
}

/// Words and marks: what a written prompt's length counts.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        let stem = word.trim_end_matches(['.', ',']);
        all.push(stem.to_owned());
        all.extend(word[stem.len()..].chars().map(String::from));
    }
    all
}

/// Each token by itself.
fn spelt(stretches: &[Stretch]) -> Vec<(u64, u32)> {
    let one = |stretch: &Stretch| {
        let source = stretch.source;
        (stretch.from..stretch.from + stretch.tokens).map(move |number| (source, number))
    };
    stretches.iter().flat_map(one).collect()
}

fn alike<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[test]
fn written_prompts_begin_alike_as_far_as_their_texts_do() {
    for regime in CacheRegime::ALL {
        let schedule = Schedule::draw(spec(*regime)).unwrap().0;
        let requests: Vec<Request> = schedule.requests().collect();
        let text = |request: &Request| match schedule.prompt(request, NONCE).content {
            Content::Text(text) => words(&text),
            other => panic!("a text, not {other:?}"),
        };
        let own = |request: &Request| spelt(&schedule.stretches(request, NONCE, &|_| 0));
        for a in &requests {
            assert_eq!(own(a).len(), text(a).len(), "{regime:?}");
            for b in requests.iter().filter(|b| b.index > a.index) {
                let (texts, stretches) = (alike(&text(a), &text(b)), alike(&own(a), &own(b)));
                assert_eq!(texts, stretches, "{regime:?}: {} and {}", a.index, b.index);
            }
        }
    }
}

#[test]
fn a_turn_begins_with_the_turns_before_it_and_their_answers() {
    let turns = Turns { count: TurnCount::fixed(3).unwrap(), input: None };
    let conversations = Conversations {
        script: Script::Written(turns),
        think: Think::from(Span::ZERO),
        history: History::Real,
    };
    let spec = Spec { conversations: Some(conversations), ..spec(CacheRegime::Cold) };
    let schedule = Schedule::draw(spec).unwrap().0;
    let unit = schedule.unit(1).unwrap();
    let answered = |index: u32| 5 + index;
    let all: Vec<_> =
        unit.iter().map(|turn| spelt(&schedule.stretches(turn, NONCE, &answered))).collect();
    for (place, turn) in unit.iter().enumerate().take(2) {
        let (before, after) = (&all[place], &all[place + 1]);
        assert_eq!(alike(before, after), before.len());
        let answer = Stretch::of_answer(turn.index, answered(turn.index));
        assert_eq!(&after[before.len()..before.len() + answer.tokens as usize], spelt(&[answer]));
    }
}

#[test]
fn a_listed_prompt_is_as_long_as_its_source_says() {
    let messages = vec![Message::new("system", "Be brief."), Message::new("user", "Why? Why not?")];
    let prompt = Prompt {
        content: Content::Messages(messages),
        input_tokens: Some(Tokens::new(23)),
        ..Prompt::text("")
    };
    let other = Prompt { input_tokens: Some(Tokens::new(5)), ..Prompt::text("Be brief.") };
    let prompts = PromptSource::List { prompts: vec![prompt, other], order: Order::AsIs };
    let spec = Spec { prompts, stop: Stop::Count(2), ..spec(CacheRegime::AsIs) };
    let schedule = Schedule::draw(spec).unwrap().0;
    let lengths: Vec<u32> = schedule
        .requests()
        .map(|request| schedule.stretches(&request, NONCE, &|_| 0))
        .map(|stretches| stretches.iter().map(|stretch| stretch.tokens).sum())
        .collect();
    assert_eq!(lengths, [23, 5]);
}
