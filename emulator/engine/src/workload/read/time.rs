//! Points of time in traces: dates with a zone as nanoseconds of the Unix clock; and the units of columns of times,
//! by the names of the columns.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volary_actors::base::Span;

/// A time zone of the IANA database, such as `Europe/Stockholm`: the zone of dates that state none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(
    with = "String",
    description = "a time zone of the IANA database, such as \"UTC\" or \"Europe/Stockholm\""
)]
pub struct Zone(Tz);

impl FromStr for Zone {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let why = "is not a time zone; write UTC, or a name of the IANA database such as Europe/Stockholm";
        name.parse().map(Self).map_err(|_| format!("`{name}` {why}"))
    }
}

impl TryFrom<String> for Zone {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> Self {
        zone.to_string()
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Zone {
    /// Seconds east of Greenwich at a Unix time in seconds; `None` if there is no such date.
    pub(super) fn offset(self, unix: i64) -> Option<i64> {
        let utc = DateTime::from_timestamp(unix, 0)?.naive_utc();
        Some(i64::from(self.0.offset_from_utc_datetime(&utc).fix().local_minus_utc()))
    }
}

/// A point of time in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Instant {
    /// Nanoseconds since the zero of the file's clock or, for a date, of the Unix clock.
    pub(super) ns: u64,
    /// Seconds east of Greenwich, if the time is a date.
    pub(super) zone: Option<i64>,
    /// Whether a date states no zone.
    pub(super) is_assumed: bool,
    /// The later time with the same date, if the date occurs twice at a change of clocks.
    pub(super) second_ns: Option<u64>,
}

/// The time of a date such as `2016-02-02 06:53:00-07:00`; `T` may separate date and time, `Z` and `UTC` are zone zero.
/// A date without a zone is in `assumed`.
///
/// # Errors
/// When the text is not a valid date; the error has the reason and the remedy.
pub(super) fn instant(text: &str, assumed: Option<Zone>) -> Result<Instant, String> {
    const FORM: &str = "write times such as 2016-02-02 06:53:00-07:00";
    let wrong = || format!("is not a time; {FORM}");
    let (date, rest) = text.split_once(['T', 't', ' ']).ok_or_else(wrong)?;
    let mut parts = date.splitn(3, ['-', '/']).map(|part| part.parse::<u32>().ok());
    let (Some(Some(year)), Some(Some(month)), Some(Some(day))) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    if !(1970..2500).contains(&year) {
        return Err(format!("is not a date from 1970 to 2500; {FORM}"));
    }
    let Some(date) = NaiveDate::from_ymd_opt(year as i32, month, day) else {
        return Err(format!("is not a date, since month {month} of {year} has no day {day}; {FORM}"));
    };
    let at = rest.find(|c: char| c.is_ascii_alphabetic() || c == '+' || c == '-');
    let (clock, zone) = rest.split_at(at.unwrap_or(rest.len()));
    let local = date.and_time(time_of_day(clock.trim()).ok_or_else(wrong)?);
    let (start, zone, second) = match (zone.trim_end(), assumed) {
        ("", None) => {
            return Err("has no time zone; state the zone of such dates with `--zone UTC` or `--zone Europe/Stockholm`, in an \
                        experiment as `workload.trace.zone`"
                .to_owned());
        }
        ("", Some(zone)) => match zone.0.from_local_datetime(&local) {
            LocalResult::None => {
                return Err(format!(
                    "does not exist in {zone}, where clocks are set forward over it; is the zone right?"
                ));
            }
            LocalResult::Single(at) => (at.naive_utc(), at.offset().fix().local_minus_utc().into(), None),
            LocalResult::Ambiguous(at, later) => {
                (at.naive_utc(), at.offset().fix().local_minus_utc().into(), Some(later.naive_utc()))
            }
        },
        (zone, _) => {
            let zone = offset(zone).ok_or_else(|| format!("has an invalid time zone; {FORM}"))?;
            (local - TimeDelta::seconds(zone), zone, None)
        }
    };
    // A leap second is taken as the first second of the next minute.
    let unix_ns = |at: NaiveDateTime| {
        let at = at.and_utc();
        let seconds = u64::try_from(at.timestamp()).map_err(|_| format!("lies before 1970; {FORM}"))?;
        Ok::<_, String>(seconds * 1_000_000_000 + u64::from(at.timestamp_subsec_nanos()))
    };
    let second_ns = second.map(unix_ns).transpose()?;
    Ok(Instant { ns: unix_ns(start)?, zone: Some(zone), is_assumed: at.is_none(), second_ns })
}

/// The time of day of `06:53` or `06:53:00.25`.
fn time_of_day(clock: &str) -> Option<NaiveTime> {
    let form = if clock.matches(':').count() == 1 { "%H:%M" } else { "%H:%M:%S%.f" };
    NaiveTime::parse_from_str(clock, form).ok()
}

/// A length of time such as `06:53:00` or, as SLURM writes it, `2-06:53:00`, in seconds.
pub(super) fn length(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let mut seconds = days.parse::<u64>().ok()?.checked_mul(24)?;
    let clock = clock.split_once('.').map_or(clock, |(whole, _)| whole);
    let mut parts = 0;
    for (part, base) in clock.split(':').zip([1, 60, 60]) {
        seconds = seconds.checked_mul(base)?.checked_add(part.parse().ok()?)?;
        parts += 1;
    }
    (parts == 3 && clock.matches(':').count() == 2).then_some(seconds)
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TimeUnit {
    /// Length of the unit, ns.
    pub(super) ns: u64,
    /// Name of the unit in messages.
    pub(super) plural: Cow<'static, str>,
    /// Last words of column names that state the unit, in small letters.
    words: &'static [&'static str],
}

/// The unit of columns whose names state no unit.
pub(super) static SECONDS: &TimeUnit = &UNITS[0];

static UNITS: [TimeUnit; 7] = [
    TimeUnit {
        ns: 1_000_000_000,
        plural: Cow::Borrowed("seconds"),
        words: &["s", "sec", "secs", "second", "seconds"],
    },
    TimeUnit {
        ns: 1_000_000,
        plural: Cow::Borrowed("milliseconds"),
        words: &["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"],
    },
    TimeUnit {
        ns: 1_000,
        plural: Cow::Borrowed("microseconds"),
        words: &["us", "µs", "μs", "usec", "usecs", "micros", "microsecond", "microseconds"],
    },
    TimeUnit {
        ns: 1,
        plural: Cow::Borrowed("nanoseconds"),
        words: &["ns", "nsec", "nsecs", "nanos", "nanosecond", "nanoseconds"],
    },
    TimeUnit {
        ns: 60_000_000_000,
        plural: Cow::Borrowed("minutes"),
        words: &["min", "mins", "minute", "minutes"],
    },
    TimeUnit {
        ns: 3_600_000_000_000,
        plural: Cow::Borrowed("hours"),
        words: &["h", "hr", "hrs", "hour", "hours"],
    },
    TimeUnit { ns: 86_400_000_000_000, plural: Cow::Borrowed("days"), words: &["d", "day", "days"] },
];

/// Last words of names that describe a time without its unit. The unit is then seconds.
const NO_UNIT: [&str; 25] = [
    "time",
    "times",
    "timestamp",
    "stamp",
    "ts",
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
    pub(super) fn of(name: &str) -> Result<Self, String> {
        let mut words = words(name);
        let Some(last) = words.pop() else { return Ok(SECONDS.clone()) };
        match UNITS.iter().find(|unit| unit.words.contains(&last.as_str())) {
            Some(unit) => Ok(unit.clone()),
            None if words.is_empty() || NO_UNIT.contains(&last.as_str()) => Ok(SECONDS.clone()),
            None => Err(last),
        }
    }

    /// The unit that the user states: its name, or a length of time such as `30ms`.
    pub(super) fn called(word: &str) -> Option<Self> {
        let length = || {
            let ns = word.parse::<Span>().ok().filter(|span| span.0 > 0)?.0;
            Some(Self { ns, plural: format!("units of {word}").into(), words: &[] })
        };
        UNITS.iter().find(|unit| unit.words.contains(&word)).cloned().or_else(length)
    }
}

/// The words of a column's name in small letters; a capital after a small letter begins a word.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut is_inside, mut was_small) = (false, false);
    for c in name.chars() {
        if c.is_alphanumeric() {
            if !is_inside || was_small && c.is_uppercase() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        (is_inside, was_small) = (c.is_alphanumeric(), c.is_lowercase());
    }
    words
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
            let found = instant(text, None).map(|at| (at.ns, at.zone));
            assert_eq!(found, Ok((seconds * 1_000_000_000, Some(zone))), "{text}");
        }
        assert_eq!(instant("1970-01-01 00:00:00.25Z", None).unwrap().ns, 250_000_000);
    }

    #[test]
    fn dates_without_a_zone_are_in_the_assumed_zone() {
        let at = |text, zone: &str| instant(text, Some(zone.parse().unwrap()));
        for (text, zone, seconds, east, is_repeated) in [
            ("2017-10-09 07:01:55", "UTC", 1_507_532_515, 0, false),
            ("2017-10-09T07:01:55", "America/Los_Angeles", 1_507_557_715, -25_200, false),
            ("2017/12/09 07:01:55", "America/Los_Angeles", 1_512_831_715, -28_800, false),
            // Clocks go back from 03:00 to 02:00; the first of both times is used.
            ("2021-10-31 02:30:00", "Europe/Stockholm", 1_635_640_200, 7_200, true),
            ("2021-10-31 02:30:00Z", "Europe/Stockholm", 1_635_647_400, 0, false),
        ] {
            let ns = seconds * 1_000_000_000;
            let is_assumed = !text.ends_with('Z');
            let second_ns = is_repeated.then_some(ns + 3_600_000_000_000);
            assert_eq!(at(text, zone), Ok(Instant { ns, zone: Some(east), is_assumed, second_ns }), "{text}");
        }
        let why = at("2021-03-28 02:30:00", "Europe/Stockholm").unwrap_err();
        assert!(why.contains("does not exist in Europe/Stockholm"), "{why}");
        let why = "CEST".parse::<Zone>().unwrap_err();
        assert!(why.contains("`CEST` is not a time zone") && why.contains("Europe/Stockholm"), "{why}");
    }

    #[test]
    fn lengths_of_time_may_have_days() {
        for (text, seconds) in
            [("00:00:00", Some(0)), ("1-02:03:04", Some(93_784)), ("120:00:01.5", Some(432_001))]
        {
            assert_eq!(length(text), seconds, "{text}");
        }
        for text in ["03:04", "1-2", "x", "1:2:3:4", "-1:00:00", "99999999999999999999-00:00:00"] {
            assert_eq!(length(text), None, "{text}");
        }
    }

    #[test]
    fn invalid_times_are_refused_with_the_remedy() {
        for (text, part) in [
            ("2016-02-02 06:53:00", "--zone UTC"),
            ("2016-02-02", "is not a time"),
            ("2016-13-02 06:53:00Z", "month 13 of 2016 has no day 2"),
            ("1969-12-31 06:53:00Z", "1970 to 2500"),
            ("2016-06-31 06:53:00Z", "month 6 of 2016 has no day 31"),
            ("2021-02-29 06:53:00Z", "month 2 of 2021 has no day 29"),
            ("2100-02-29 06:53:00Z", "month 2 of 2100 has no day 29"),
            ("2016-12-32 06:53:00Z", "month 12 of 2016 has no day 32"),
            ("2016-01-00 06:53:00Z", "month 1 of 2016 has no day 0"),
            ("2016-01-01 06:53:00 CET", "invalid time zone"),
            ("1970-01-01 00:00:00+01:00", "before 1970"),
            ("2016-02-02 25:53:00Z", "is not a time"),
            ("2016-02-02 06:53:00.xZ", "is not a time"),
            ("2016-02-02 06:53:00+7", "invalid time zone"),
            ("2016-02-02 06:53:00-é9", "invalid time zone"),
            ("soon", "is not a time"),
        ] {
            let why = instant(text, None).unwrap_err();
            let remedy = if part.starts_with("--zone") { part } else { "2016-02-02 06:53:00-07:00" };
            assert!(why.contains(part) && why.contains(remedy), "{text}: {why}");
        }
    }
}
