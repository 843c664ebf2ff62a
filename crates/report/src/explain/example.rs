//! The first question of seed text 000, worked: what a request of a known TTFT
//! and TPOT takes from end to end, and how much of it is decode.

use measure::metric::Text;

use crate::lang::Lang;
use crate::number::{count, duration_ms};

/// The seed's request: prompt and output tokens, TTFT and TPOT in ms.
const INPUT: u64 = 2_000;
const OUTPUT: u64 = 300;
const TTFT_MS: f64 = 300.0;
const TPOT_MS: f64 = 30.0;

/// The example where it belongs to a metric.
pub(super) fn of_metric(key: &str, lang: Lang) -> Option<String> {
    ["e2el_ms", "tpot_ms", "generation_ms"].contains(&key).then(|| of_the_seed(lang))
}

/// E2EL = TTFT + (OSL − 1) × TPOT: the first token is TTFT's, and each of the
/// others takes one TPOT.
pub(super) fn of_the_seed(lang: Lang) -> String {
    let decode_ms = (OUTPUT - 1) as f64 * TPOT_MS;
    let e2el_ms = TTFT_MS + decode_ms;
    let share = format!("{:.0} %", 100.0 * decode_ms / e2el_ms);
    lang.fill(
        EXAMPLE,
        &[
            ("input", &count(INPUT)),
            ("output", &count(OUTPUT)),
            ("ttft", &duration_ms(TTFT_MS)),
            ("tpot", &duration_ms(TPOT_MS)),
            ("gaps", &count(OUTPUT - 1)),
            ("e2el", &duration_ms(e2el_ms)),
            ("decode", &duration_ms(decode_ms)),
            ("share", &share),
        ],
    )
}

const EXAMPLE: Text = Text {
    en: "{input} prompt tokens, {output} output tokens, TTFT {ttft}, TPOT {tpot}: E2EL = {ttft} + \
         {gaps} × {tpot} = {e2el}, of which decode is {decode}, {share}. A faster first token hardly \
         helps such a request; shorter answers and a lower TPOT do.",
    zh: "输入 {input} 个 token，输出 {output} 个 token，TTFT {ttft}，TPOT {tpot}：E2EL = {ttft} + {gaps} × \
         {tpot} = {e2el}，其中解码 {decode}，占 {share}。对这样的请求，首 token 再快也帮助不大；缩短回答、\
         降低 TPOT 才有效。",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_question_of_seed_000_is_worked_as_there() {
        // E2E ≈ 0.3 + 299 × 0.03 ≈ 9.3 s, decode 97 %.
        let english = of_the_seed(Lang::En);
        assert!(english.contains("300 ms + 299 × 30.0 ms = 9.27 s"), "{english}");
        assert!(english.contains("decode is 8.97 s, 97 %"), "{english}");
        let chinese = of_the_seed(Lang::Zh);
        assert!(chinese.contains("9.27 s") && chinese.contains("97 %"), "{chinese}");
    }
}
