//! Points of time in traces: dates with a zone as nanoseconds of the Unix clock; and the units of columns of times,
//! by the names of the columns.

/// Seconds of a day.
const DAY: i64 = 86_400;

/// A date and time, such as `2016-02-02 06:53:00-07:00`, as the Unix time in nanoseconds and its zone in seconds east
/// of Greenwich; `T` may separate date and time, `Z` and `UTC` are zone zero.
///
/// # Errors
/// When the text is not a valid date; the error has the reason and the remedy.
pub(super) fn instant(text: &str) -> Result<(u64, i64), String> {
    const FORM: &str = "write times such as 2016-02-02 06:53:00-07:00";
    let wrong = || format!("is not a time; {FORM}");
    let (date, rest) = text.split_once(['T', 't', ' ']).ok_or_else(wrong)?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (Some(Some(year)), Some(Some(month)), Some(Some(day))) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    if !(1970..2500).contains(&year) || !(1..=12).contains(&month) {
        return Err(format!("is no date from 1970 to 2500; {FORM}"));
    }
    if !(1..=length(year, month)).contains(&day) {
        return Err(format!("is no date: month {month} of {year} has {} days", length(year, month)));
    }
    let at = rest.find(|c: char| c.is_ascii_alphabetic() || c == '+' || c == '-').ok_or_else(|| {
        format!("has no time zone, so hours that a change of clocks repeats are ambiguous; add one: {FORM}")
    })?;
    let (clock, zone) = rest.split_at(at);
    let clock = nanoseconds(clock.trim_end()).ok_or_else(wrong)?;
    let zone = offset(zone.trim_end()).ok_or_else(|| format!("has an invalid time zone; {FORM}"))?;
    let seconds = days(year, month, day) * DAY - zone;
    let start = u64::try_from(seconds).map_err(|_| format!("lies before 1970; {FORM}"))?;
    Ok((start * 1_000_000_000 + clock, zone))
}

/// Days of a month of the Gregorian calendar.
const fn length(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days(next_year, next, 1) - days(year, month, 1)
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

/// Seconds east of Greenwich of `Z`, `UTC`, `-07:00`, `-0700` or `-07`.
fn offset(zone: &str) -> Option<i64> {
    if ["Z", "UTC", "GMT"].iter().any(|zero| zone.eq_ignore_ascii_case(zero)) {
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

/// A unit of the times of a column.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct TimeUnit {
    /// Length of the unit, ns.
    pub(super) ns: u64,
    /// Name of the unit in messages.
    pub(super) plural: &'static str,
    /// Last words of column names that state the unit, in small letters.
    words: &'static [&'static str],
}

/// The unit of columns whose names state no unit.
pub(super) const SECONDS: &TimeUnit = &UNITS[0];

const UNITS: [TimeUnit; 7] = [
    TimeUnit { ns: 1_000_000_000, plural: "seconds", words: &["s", "sec", "secs", "second", "seconds"] },
    TimeUnit {
        ns: 1_000_000,
        plural: "milliseconds",
        words: &["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"],
    },
    TimeUnit {
        ns: 1_000,
        plural: "microseconds",
        words: &["us", "µs", "μs", "usec", "usecs", "micros", "microsecond", "microseconds"],
    },
    TimeUnit {
        ns: 1,
        plural: "nanoseconds",
        words: &["ns", "nsec", "nsecs", "nanos", "nanosecond", "nanoseconds"],
    },
    TimeUnit { ns: 60_000_000_000, plural: "minutes", words: &["min", "mins", "minute", "minutes"] },
    TimeUnit { ns: 3_600_000_000_000, plural: "hours", words: &["h", "hr", "hrs", "hour", "hours"] },
    TimeUnit { ns: 86_400_000_000_000, plural: "days", words: &["d", "day", "days"] },
];

/// Last words of names that describe a time without its unit. The unit is then seconds.
const NO_UNIT: [&str; 24] = [
    "time",
    "times",
    "timestamp",
    "stamp",
    "date",
    "at",
    "on",
    "submit",
    "submitted",
    "submission",
    "arrival",
    "start",
    "started",
    "end",
    "ended",
    "finish",
    "finished",
    "run",
    "runtime",
    "duration",
    "elapsed",
    "wait",
    "walltime",
    "limit",
];

impl TimeUnit {
    /// The unit that the last word of a column's name states, such as `run_ms`, `run (min)` or `runHours`. It is
    /// seconds if the name has one word, or ends in a word that states no unit.
    ///
    /// # Errors
    /// The last word, if it may be an unknown unit.
    pub(super) fn of(name: &str) -> Result<&'static Self, String> {
        let mut words: Vec<String> = Vec::new();
        let mut is_inside = false;
        let mut was_small = false;
        for c in name.chars() {
            // A capital after a small letter begins a word.
            let begins = !is_inside || was_small && c.is_uppercase();
            if c.is_alphanumeric() {
                if begins {
                    words.push(String::new());
                }
                if let Some(word) = words.last_mut() {
                    word.extend(c.to_lowercase());
                }
            }
            (is_inside, was_small) = (c.is_alphanumeric(), c.is_lowercase());
        }
        let Some(last) = words.pop() else { return Ok(SECONDS) };
        match Self::called(&last) {
            Some(unit) => Ok(unit),
            None if words.is_empty() || NO_UNIT.contains(&last.as_str()) => Ok(SECONDS),
            None => Err(last),
        }
    }

    pub(super) fn called(word: &str) -> Option<&'static Self> {
        UNITS.iter().find(|unit| unit.words.contains(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_converted_to_unix_times() {
        for (text, seconds, zone) in [
            ("1970-01-01 00:00:00Z", 0, 0),
            ("2016-02-02 06:53:00-07:00", 1_454_421_180, -25_200),
            ("2016-02-29T23:59:60+0000", 1_456_790_400, 0),
            ("2000-03-01 05:30+05:30", 951_868_800, 19_800),
            ("2011-10-24 12:00:00 -06", 1_319_479_200, -21_600),
            ("2016-02-29 23:59:60z", 1_456_790_400, 0),
            ("2016-02-29t23:59:60 UTC", 1_456_790_400, 0),
            ("2016-02-29 23:59:60 gmt", 1_456_790_400, 0),
            ("2000-02-29 00:00Z", 951_782_400, 0),
        ] {
            assert_eq!(instant(text), Ok((seconds * 1_000_000_000, zone)), "{text}");
        }
        assert_eq!(instant("1970-01-01 00:00:00.25Z"), Ok((250_000_000, 0)));
    }

    #[test]
    fn invalid_times_are_refused_with_the_remedy() {
        for (text, part) in [
            ("2016-02-02 06:53:00", "no time zone"),
            ("2016-02-02", "is not a time"),
            ("2016-13-02 06:53:00Z", "1970 to 2500"),
            ("1969-12-31 06:53:00Z", "1970 to 2500"),
            ("2016-06-31 06:53:00Z", "month 6 of 2016 has 30 days"),
            ("2021-02-29 06:53:00Z", "month 2 of 2021 has 28 days"),
            ("2100-02-29 06:53:00Z", "month 2 of 2100 has 28 days"),
            ("2016-12-32 06:53:00Z", "month 12 of 2016 has 31 days"),
            ("2016-01-00 06:53:00Z", "month 1 of 2016 has 31 days"),
            ("2016-01-01 06:53:00 CET", "invalid time zone"),
            ("1970-01-01 00:00:00+01:00", "before 1970"),
            ("2016-02-02 25:53:00Z", "is not a time"),
            ("2016-02-02 06:53:00.xZ", "invalid time zone"),
            ("2016-02-02 06:53:00+7", "invalid time zone"),
            ("2016-02-02 06:53:00-é9", "invalid time zone"),
            ("soon", "is not a time"),
        ] {
            let why = instant(text).unwrap_err();
            let remedy = if part.starts_with("month") { part } else { "2016-02-02 06:53:00-07:00" };
            assert!(why.contains(part) && why.contains(remedy), "{text}: {why}");
        }
    }
}
