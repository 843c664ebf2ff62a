//! Drafted tokens.

use sim::Speculation;

use crate::watched::{mean_and_margin_99, request, roomy, serve, steady};

/// Each drafted token is taken with probability a when those before it were, so
/// a step of a sequence gives 1 + a + … + a^k = (1 − a^(k+1)) ÷ (1 − a) tokens
/// on average (Leviathan, Kalman and Matias 2023, equation 1).
#[test]
fn a_step_gives_as_many_tokens_as_the_formula_says() {
    for (drafted, acceptance) in [(1, 0.6), (3, 0.7), (5, 0.85), (4, 0.2)] {
        let mut limits = roomy();
        limits.speculation = Some(Speculation { drafted, acceptance });
        let requests = (0..400).map(|id| request(id, 0, 8, 400)).collect();
        let log = serve(steady(limits, 1_000), requests, &[]);
        let mut told: Vec<Vec<u32>> = vec![Vec::new(); 400];
        for (id, _, tokens) in &log.tokens {
            told[*id as usize].push(*tokens);
        }
        // The first token comes of the prompt, and an answer's limit cuts its
        // last step: the thirty between them are whole whatever they gave.
        let mean = |steps: &Vec<u32>| f64::from(steps[1..=30].iter().sum::<u32>()) / 30.0;
        let means: Vec<f64> = told.iter().map(mean).collect();
        let (mean, margin) = mean_and_margin_99(&means);
        let expected = (1.0 - acceptance.powi(drafted as i32 + 1)) / (1.0 - acceptance);
        assert!((mean - expected).abs() < margin, "{mean} ± {margin}, not {expected}");
        assert!(margin < 0.03 * expected, "the interval says something: ± {margin}");
    }
}

/// An answer's tokens are those of its seed: whoever else runs, a step that
/// begins at a token gives as many.
#[test]
fn what_is_taken_does_not_depend_on_others() {
    let mut limits = roomy();
    limits.speculation = Some(Speculation { drafted: 4, acceptance: 0.7 });
    let alone = serve(steady(limits, 1_000), vec![request(3, 0, 40, 100)], &[]);
    let crowd = (0..8).map(|id| request(id, 0, 40, 100)).collect();
    let crowd = serve(steady(limits, 1_000), crowd, &[]);
    let of_it = |tokens: &[(u64, u64, u32)]| -> Vec<u32> {
        tokens.iter().filter(|one| one.0 == 3).map(|one| one.2).collect()
    };
    assert_eq!(of_it(&alone.tokens), of_it(&crowd.tokens));
}

/// What is drafted is computed and paid for whether it is taken or not.
#[test]
fn drafted_tokens_count_as_work() {
    let mut limits = roomy();
    limits.speculation = Some(Speculation { drafted: 3, acceptance: 0.0 });
    let log = serve(steady(limits, 1_000), vec![request(0, 0, 10, 5)], &[]);
    let works: Vec<(u32, u32)> =
        log.steps.iter().map(|step| (step.work.tokens, step.work.sampled)).collect();
    assert_eq!(works, [(10, 1), (4, 4), (4, 4), (4, 4), (4, 4)]);
    assert_eq!(log.ended[0].computed_tokens, 26);
}

/// A step's budget cuts drafts as it cuts prompts, and so does the end of the
/// model's context.
#[test]
fn drafts_fit_the_budget_and_the_context() {
    let mut limits = roomy();
    limits.speculation = Some(Speculation { drafted: 3, acceptance: 1.0 });
    limits.max_num_batched_tokens = 3;
    let log = serve(steady(limits, 1_000), vec![request(0, 0, 3, 9)], &[]);
    let tokens: Vec<u32> = log.tokens.iter().map(|one| one.2).collect();
    assert_eq!(tokens, [1, 3, 3, 2]);
    limits.max_num_batched_tokens = 64;
    limits.max_model_len = 16;
    let log = serve(steady(limits, 1_000), vec![request(0, 0, 8, 8)], &[]);
    // Tokens 9, 10 to 13 and, of the context's last three, all.
    let tokens: Vec<u32> = log.tokens.iter().map(|one| one.2).collect();
    assert_eq!(tokens, [1, 4, 3]);
    assert_eq!(log.steps[2].work.tokens, 3, "no place beyond the context is computed");
}
