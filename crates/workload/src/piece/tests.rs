use super::*;
use crate::estimate_tokens;
use crate::lexicon::Lexicon;
use crate::text;
use proptest::prelude::*;

fn write(pieces: &[Piece]) -> String {
    text::write(pieces, 1, Lexicon::by_words(), None)
}

fn shared(number: u64, tokens: u32) -> Piece {
    Piece { stream: ("prefix", number), tokens }
}

#[test]
fn a_prompt_of_one_piece_has_the_text_that_it_always_had() {
    // From the commit before prompts were made of pieces.
    let nonce = text::Nonce { number: 1, stream: Stream::numbered(7, "nonce", 1 << 32) };
    let piece = [Piece::own(3, 24)];
    let cold = text::write(&piece, 1, Lexicon::by_words(), Some(nonce));
    assert_eq!(
        write(&piece),
        "Another motor well waited some measure before their life without no method, when their \
         act wrote toward one building on her rule."
    );
    let (_, behind_first_word) = cold.split_once(' ').unwrap();
    assert_eq!(
        behind_first_word,
        "cause hall store bed change job. Another motor well waited some measure before their life \
         without no method, when their."
    );
}

#[test]
fn pieces_after_a_shared_one_differ_from_their_first_token_on() {
    let texts: Vec<String> =
        (0..100).map(|index| write(&[shared(0, 20), Piece::own(index, 20)])).collect();
    let prefix = write(&[shared(0, 20)]);
    let mut next: Vec<&str> = Vec::new();
    for text in &texts {
        let rest = text.strip_prefix(&prefix).unwrap();
        next.push(rest.split_whitespace().next().unwrap());
    }
    next.sort_unstable();
    next.dedup();
    assert_eq!(next.len(), 100);
}

#[test]
fn a_prompt_shorter_than_its_prefix_is_the_beginning_of_it() {
    let of = |tokens| Piece::of_prompt(&[shared(0, 8), shared(1, 4)], 5, tokens);
    assert_eq!(of(6), [shared(0, 6)]);
    assert_eq!(of(12), [shared(0, 8), shared(1, 4)]);
    assert_eq!(of(13), [shared(0, 8), shared(1, 4), Piece::own(5, 1)]);
}

proptest! {
    #[test]
    fn pieces_add_up_and_what_begins_alike_reads_alike(
        lengths in prop::collection::vec(0u32..40, 1..6),
        more in prop::collection::vec(0u32..40, 0..4),
    ) {
        let pieces = |lengths: &[u32], from: u64| -> Vec<Piece> {
            (from..).zip(lengths).map(|(number, &tokens)| shared(number, tokens)).collect()
        };
        let head = pieces(&lengths, 0);
        let whole: Vec<Piece> = head.iter().copied().chain(pieces(&more, 100)).collect();
        let tokens = |pieces: &[Piece]| pieces.iter().map(|piece| piece.tokens).sum::<u32>();
        prop_assert_eq!(estimate_tokens(&write(&whole)), tokens(&whole));
        prop_assert_eq!(estimate_tokens(&write(&head)), tokens(&head));
        prop_assert!(write(&whole).starts_with(&write(&head)));
    }
}
