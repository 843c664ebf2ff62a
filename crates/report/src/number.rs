//! Numbers for people: the only place that rounds.

/// Three significant digits, thousands apart, no exponent: 0.123, 12.3, 1 234.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return if value > 0.0 { "∞".to_owned() } else { "n/a".to_owned() };
    }
    let digits = match size {
        _ if size == 0.0 => 0,
        _ if size < 0.01 => 4,
        _ if size < 1.0 => 3,
        _ if size < 10.0 => 2,
        _ if size < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    if size < 1e4 { text } else { grouped(&text) }
}

/// A count with thousands apart.
pub fn count(value: u64) -> String {
    let text = value.to_string();
    if value < 10_000 { text } else { grouped(&text) }
}

/// A share as percent.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 99.95 || (percent - percent.round()).abs() < 1e-9 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Milliseconds with a unit that fits: 850 µs, 12.3 ms, 2.35 s.
pub fn duration_ms(ms: f64) -> String {
    if ms.abs() >= 10_000.0 {
        format!("{} s", short(ms / 1e3))
    } else if ms != 0.0 && ms.abs() < 0.1 {
        format!("{} µs", short(ms * 1e3))
    } else {
        format!("{} ms", short(ms))
    }
}

fn grouped(digits: &str) -> String {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |rest| ("-", rest));
    let mut text = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            // A thin gap that no locale reads as a decimal mark.
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if fraction.is_empty() { format!("{sign}{text}") } else { format!("{sign}{text}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(percent(2.0 / 3.0), "66.7 %");
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(duration_ms(0.05), "50.0 µs");
        assert_eq!(duration_ms(12_345.0), "12.3 s");
        assert_eq!(count(1_000_000), "1\u{202f}000\u{202f}000");
    }
}
