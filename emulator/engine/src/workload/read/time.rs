//! Points of time in traces: dates with a zone as nanoseconds of the Unix clock.

/// Seconds of a day.
const DAY: i64 = 86_400;

/// A date and time, such as `2016-02-02 06:53:00-07:00`, as the Unix time in nanoseconds and its zone in seconds east
/// of Greenwich; `T` may separate date and time, `Z` is zone zero.
///
/// # Errors
/// What is wrong with it, and the remedy.
pub(super) fn instant(text: &str) -> Result<(u64, i64), String> {
    const FORM: &str = "write times such as 2016-02-02 06:53:00-07:00";
    let wrong = || format!("is no time; {FORM}");
    let (date, rest) = text.split_once(['T', ' ']).ok_or_else(wrong)?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (Some(Some(year)), Some(Some(month)), Some(Some(day))) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    if !(1970..2500).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(format!("is no date from 1970 to 2500; {FORM}"));
    }
    let at = rest.find(['Z', '+', '-']).ok_or_else(|| {
        format!("has no time zone, so hours that a change of clocks repeats are ambiguous; add one: {FORM}")
    })?;
    let (clock, zone) = rest.split_at(at);
    let clock = nanoseconds(clock.trim_end()).ok_or_else(wrong)?;
    let zone = offset(zone).ok_or_else(|| format!("has a time zone that is none; {FORM}"))?;
    let seconds = days(year, month, day) * DAY - zone;
    let start = u64::try_from(seconds).map_err(|_| format!("lies before 1970; {FORM}"))?;
    Ok((start * 1_000_000_000 + clock, zone))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is their last.
    let year = if month > 2 { year } else { year - 1 };
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

/// Nanoseconds since midnight of `06:53` or `06:53:00.25`.
fn nanoseconds(clock: &str) -> Option<u64> {
    let (whole, part) = clock.split_once('.').unwrap_or((clock, ""));
    let mut units = whole.split(':').map(|unit| unit.parse::<u64>().ok());
    let (hour, minute, second) = (units.next()??, units.next()??, units.next().unwrap_or(Some(0))?);
    // A leap second counts as the first of the next minute.
    if hour > 23 || minute > 59 || second > 60 || units.next().is_some() {
        return None;
    }
    let digits: String = part.chars().chain("000000000".chars()).take(9).collect();
    let part = digits.parse::<u64>().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + part)
}

/// Seconds east of Greenwich of `Z`, `-07:00`, `-0700` or `-07`.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, digits) = zone.split_at_checked(1)?;
    let digits = digits.replace(':', "");
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || ![2, 4].contains(&digits.len()) {
        return None;
    }
    let hours: i64 = digits[..2].parse().ok()?;
    let minutes: i64 = digits[2..].parse().unwrap_or(0);
    let sign = if sign == "-" { -1 } else { 1 };
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_unix_times() {
        for (text, seconds, zone) in [
            ("1970-01-01 00:00:00Z", 0, 0),
            ("2016-02-02 06:53:00-07:00", 1_454_421_180, -25_200),
            ("2016-02-29T23:59:60+0000", 1_456_790_400, 0),
            ("2000-03-01 05:30+05:30", 951_868_800, 19_800),
            ("2011-10-24 12:00:00 -06", 1_319_479_200, -21_600),
        ] {
            assert_eq!(instant(text), Ok((seconds * 1_000_000_000, zone)), "{text}");
        }
        assert_eq!(instant("1970-01-01 00:00:00.25Z"), Ok((250_000_000, 0)));
    }

    #[test]
    fn what_is_no_instant_is_refused_with_the_remedy() {
        for (text, part) in [
            ("2016-02-02 06:53:00", "no time zone"),
            ("2016-02-02", "is no time"),
            ("2016-13-02 06:53:00Z", "1970 to 2500"),
            ("1969-12-31 06:53:00Z", "1970 to 2500"),
            ("1970-01-01 00:00:00+01:00", "before 1970"),
            ("2016-02-02 25:53:00Z", "is no time"),
            ("2016-02-02 06:53:00.xZ", "is no time"),
            ("2016-02-02 06:53:00+7", "zone that is none"),
            ("2016-02-02 06:53:00-é9", "zone that is none"),
            ("soon", "is no time"),
        ] {
            let why = instant(text).unwrap_err();
            assert!(why.contains(part) && why.contains("2016-02-02 06:53:00-07:00"), "{text}: {why}");
        }
    }
}
