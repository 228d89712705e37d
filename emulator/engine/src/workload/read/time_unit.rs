//! The units of columns of times, by the names of the columns.

/// A unit of the times of a column.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct TimeUnit {
    /// Nanoseconds of one.
    pub(super) ns: u64,
    /// Its name in messages.
    pub(super) plural: &'static str,
    /// The last words of the names of columns that have it, in small letters.
    words: &'static [&'static str],
}

/// The unit of columns whose names have none.
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

/// Last words of names that describe a time without its unit, which is then seconds.
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
    /// The unit that the last word of a column's name states, such as `run_ms`, `run (min)` or `runHours`; seconds if
    /// it is a name of one word, or ends in one that states no unit.
    ///
    /// # Errors The last word, if it may be an unknown unit.
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
