//! Numbers for people: the only place that rounds.

/// Three significant digits, thousands apart, no exponent: 0.123, 12.3,
/// 12 345. What is not zero never reads as zero: a value too small to show
/// reads "<0.0001".
pub fn short(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        return "n/a".to_owned();
    }
    if size.is_infinite() {
        return if value > 0.0 { "∞".to_owned() } else { "−∞".to_owned() };
    }
    if size > 0.0 && size < 0.00005 {
        return if value > 0.0 { "<0.0001".to_owned() } else { ">-0.0001".to_owned() };
    }
    let digits = match size {
        _ if size == 0.0 => 0,
        _ if size < 0.01 => 4,
        _ if size < 1.0 => 3,
        _ if size < 10.0 => 2,
        _ if size < 100.0 => 1,
        _ => 0,
    };
    // Taken from the size: minus zero is zero.
    let text = format!("{size:.digits$}");
    let text =
        if text.parse::<f64>().is_ok_and(|shown| shown < 1e4) { text } else { grouped(&text) };
    if value < 0.0 { format!("-{text}") } else { text }
}

/// A count with thousands apart.
pub fn count(value: u64) -> String {
    let text = value.to_string();
    if value < 10_000 { text } else { grouped(&text) }
}

/// A figure of a data sheet, as it is stated: at most three decimals, and none
/// that are zero.
pub fn stated(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share as percent. Only a whole reads 100 % and only nothing reads 0 %:
/// one bad request in ten thousand must not round away.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if (99.95..100.0).contains(&percent) {
        ">99.9 %".to_owned()
    } else if percent > 0.0 && percent < 0.05 {
        "<0.1 %".to_owned()
    } else if (percent - percent.round()).abs() < 1e-9 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Milliseconds with a unit that fits: 850 µs, 12.3 ms, 2.35 s.
pub fn duration_ms(ms: f64) -> String {
    let size = ms.abs();
    if size >= 1_000.0 {
        format!("{} s", short(ms / 1e3))
    } else if ms != 0.0 && size < 1.0 {
        format!("{} µs", short(ms * 1e3))
    } else {
        format!("{} ms", short(ms))
    }
}

/// The same of a round length of time, as on an axis: 20 ms, 2 s.
pub fn round_ms(ms: f64) -> String {
    let (value, unit) = match ms {
        _ if ms >= 1_000.0 => (ms / 1e3, "s"),
        _ if ms < 1.0 => (ms * 1e3, "µs"),
        _ => (ms, "ms"),
    };
    format!("{} {unit}", count(value.round() as u64))
}

/// Digits with a gap before every third, up to the decimal point.
fn grouped(digits: &str) -> String {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut text = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            // A thin gap that no locale reads as a decimal mark.
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if fraction.is_empty() { text } else { format!("{text}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_figures_keep_their_digits_and_lose_empty_ones() {
        let shown = [1871.2, 131_072.0, 0.3, 2.039, 100.0, 0.1 + 0.2].map(stated);
        assert_eq!(shown, ["1871.2", "131072", "0.3", "2.039", "100", "0.3"]);
    }

    #[test]
    fn three_digits_are_enough_for_people() {
        for (value, text) in [
            (0.0, "0"),
            (0.001234, "0.0012"),
            (0.1234, "0.123"),
            (9.681, "9.68"),
            (12.345, "12.3"),
            (1234.5, "1234"),
            (1_234_567.0, "1\u{202f}234\u{202f}567"),
            (9_999.6, "10\u{202f}000"),
            (-12_345.6, "-12\u{202f}346"),
            (-0.0, "0"),
            (0.00001, "<0.0001"),
            (-0.00001, ">-0.0001"),
            (f64::INFINITY, "∞"),
            (f64::NEG_INFINITY, "−∞"),
            (f64::NAN, "n/a"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(percent(2.0 / 3.0), "66.7 %");
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(round_ms(0.5), "500 µs");
        assert_eq!(round_ms(20.0), "20 ms");
        assert_eq!(round_ms(2_000.0), "2 s");
        assert_eq!(round_ms(1e7), "10\u{202f}000 s");
        assert_eq!(duration_ms(0.05), "50.0 µs");
        assert_eq!(duration_ms(0.85), "850 µs");
        assert_eq!(duration_ms(2_350.0), "2.35 s");
        assert_eq!(duration_ms(0.0), "0 ms");
        assert_eq!(duration_ms(12_345.0), "12.3 s");
        assert_eq!(count(1_000_000), "1\u{202f}000\u{202f}000");
    }

    #[test]
    fn a_share_that_is_not_whole_never_reads_100_percent_nor_nothing_0() {
        assert_eq!(percent(9_999.0 / 10_000.0), ">99.9 %");
        assert_eq!(percent(0.9994), "99.9 %");
        assert_eq!(percent(1.0 / 10_000.0), "<0.1 %");
        assert_eq!(percent(0.0005), "0.1 %");
    }
}
