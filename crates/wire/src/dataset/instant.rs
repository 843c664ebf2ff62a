//! Times of day and numbers of seconds in files of traces, in microseconds.

use measure::Span;

/// The most seconds that an instant may be from its zero: 30 000 years.
const MAX_SECONDS: f64 = 1e12;

/// A number of seconds.
pub(super) fn from_seconds(seconds: f64) -> Option<i64> {
    (seconds.abs() <= MAX_SECONDS).then(|| (seconds * 1e6).round() as i64)
}

/// Each instant as the time from the earliest, in the order given.
pub(super) fn from_earliest(us: &[i64]) -> Vec<Span> {
    let first = us.iter().min().copied().unwrap_or(0);
    us.iter().map(|us| Span::from_us(us.saturating_sub(first))).collect()
}

/// Seconds, or a date and time of day in any number of fraction digits, in
/// microseconds.
pub(super) fn parse(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return from_seconds(seconds);
    }
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    // Offsets from UTC are the same in every row, so they are left out.
    let time = time.split(['+', 'Z']).next()?;
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (time.next()?.parse::<i64>().ok()?, time.next()?.parse::<i64>().ok()?);
    let seconds = time.next()?.parse::<f64>().ok()?;
    let in_range = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..61.0).contains(&seconds);
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute;
    in_range.then(|| minutes * 60_000_000 + (seconds * 1e6).round() as i64)
}

/// Days since 1970-01-01 in the Gregorian calendar (Hinnant, "chrono-compatible
/// low-level date algorithms", `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (date, day) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2023, 11, 16), 19_677),
            ((2100, 3, 1), 47_541),
        ] {
            assert_eq!(days(date.0, date.1, date.2), day, "{date:?}");
        }
        assert_eq!(parse("1970-01-02T00:00:01.5+00:00"), Some(86_401_500_000));
        for wrong in ["", "nan", "1e99", "2023-13-01 00:00:00", "2023-01-01", "1-1-1 1:1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
