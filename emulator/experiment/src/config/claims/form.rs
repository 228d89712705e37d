//! The forms of a check, the expressions they compare, and their grammar, parsed by recursive descent.

use std::ops::Range;

use volary_actors::base::Span;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Form {
    Compare {
        left: Side,
        op: Op,
        right: Side,
    },
    Trend {
        side: Side,
        rises: bool,
        key: String,
    },
    /// Every percentile of the left distribution is smaller than the same percentile of the right one.
    Below {
        left: MetricName,
        right: MetricName,
    },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Op {
    /// `<`, `<=`, `>`, `>=` or `==`.
    Sign(&'static str),
    /// The largest difference, in percent of the right side.
    Within(f64),
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Side {
    Number(f64),
    /// Seconds, written with a unit.
    Duration(f64),
    Metric(MetricName),
    /// Two operands of `+`, `-`, `*` or `/`.
    Binary(Box<Self>, &'static str, Box<Self>),
}

/// A number in the results.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MetricName {
    pub(super) label: String,
    pub(super) path: Vec<String>,
    /// Bracketed keys and values of other cells, as written.
    pub(super) at: Vec<(String, String)>,
    /// Position of the number in the check.
    pub(super) span: Range<usize>,
}

impl Side {
    pub(super) fn collect<'a>(&'a self, found: &mut Vec<&'a MetricName>) {
        match self {
            Self::Number(_) | Self::Duration(_) => {}
            Self::Metric(metric) => found.push(metric),
            Self::Binary(left, _, right) => {
                left.collect(found);
                right.collect(found);
            }
        }
    }

    /// The metric, if this side is a metric that is multiplied or divided by a constant; otherwise `None`.
    pub(super) fn scaled(&self) -> Option<&MetricName> {
        let Self::Binary(left, op, right) = self else { return None };
        match (left.as_ref(), *op, right.as_ref()) {
            (Self::Number(_), "*", Self::Metric(metric)) => Some(metric),
            (Self::Metric(metric), "*" | "/", Self::Number(_)) => Some(metric),
            (Self::Number(_) | Self::Duration(_) | Self::Metric(_) | Self::Binary(..), ..) => None,
        }
    }

    pub(super) fn value(&self, of: &impl Fn(&MetricName) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Self::Number(number) | Self::Duration(number) => *number,
            Self::Metric(metric) => of(metric)?,
            Self::Binary(left, op, right) => {
                let (left, right) = (left.value(of)?, right.value(of)?);
                match *op {
                    "+" => left + right,
                    "-" => left - right,
                    "*" => left * right,
                    _ => left / right,
                }
            }
        };
        value.is_finite().then_some(value)
    }
}

impl Op {
    pub(super) fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Sign("<") => left < right,
            Self::Sign("<=") => left <= right,
            Self::Sign(">") => left > right,
            Self::Sign(">=") => left >= right,
            Self::Sign(_) => left == right,
            Self::Within(_) => (left - right).abs() <= self.band(right),
        }
    }

    /// The largest accepted difference from the right side.
    pub(super) fn band(self, right: f64) -> f64 {
        match self {
            Self::Sign(_) => 0.0,
            Self::Within(percent) => percent / 100.0 * right.abs(),
        }
    }
}

/// A syntax error in a check.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}; {help}")]
pub struct ParseError {
    /// The range of bytes in the check.
    pub at: Range<usize>,
    pub message: String,
    pub help: String,
}

const EXAMPLE: &str = "write for example \"a.response_s.p50 < 0.8 * b.response_s.p50\"";
/// Limit on nested parentheses, which bounds the recursion and thus the stack.
const DEEPEST: usize = 32;
/// Limit on the operands of a check, and thus on the depth of nested operators.
const MOST_OPERANDS: usize = 1000;

/// Parses a whole check.
pub(super) fn check(text: &str) -> Result<Form, ParseError> {
    let mut parser = Parser::new(text, false);
    let left = parser.side()?;
    let form = if let Some(sign) = parser.sign(&["<=", ">=", "==", "<", ">"]) {
        Form::Compare { left, op: Op::Sign(sign), right: parser.side()? }
    } else if parser.word("within") {
        let Some(Side::Number(percent)) = parser.number()? else {
            return Err(parser.error("a percentage is missing"));
        };
        if parser.sign(&["%"]).is_none() || !parser.word("of") {
            return Err(parser
                .error("`within` needs a percentage and `of`")
                .help("write \"a.x within 5% of b.x\""));
        }
        Form::Compare { left, op: Op::Within(percent), right: parser.side()? }
    } else if parser.word("below") {
        match (left, parser.side()?) {
            (Side::Metric(left), Side::Metric(right)) => Form::Below { left, right },
            _ => {
                return Err(parser
                    .error("`below` compares two distributions")
                    .help("write \"a.response_s below b.response_s\""));
            }
        }
    } else if let Some(rises) =
        [true, false].into_iter().find(|&rises| parser.word(if rises { "rises" } else { "falls" }))
    {
        Form::Trend { side: left, rises, key: parser.swept_key()? }
    } else {
        return Err(
            parser.error("a comparison is missing: <, <=, >, >=, ==, `within 5% of`, `below`, `rises with`")
        );
    };
    parser.end("the check should end here")?;
    Ok(form)
}

/// Parses an expression whose metric names have no policy label.
pub(super) fn expression(text: &str) -> Result<Side, ParseError> {
    let mut parser = Parser::new(text, true);
    let side = parser.side()?;
    parser.end("the expression should end here")?;
    Ok(side)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    operands: usize,
    /// Whether metric names have no policy label.
    bare: bool,
}

impl ParseError {
    pub(super) fn new(at: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: help.into() }
    }

    fn help(mut self, help: &str) -> Self {
        help.clone_into(&mut self.help);
        self
    }
}

impl<'a> Parser<'a> {
    const fn new(text: &'a str, bare: bool) -> Self {
        Self { text, at: 0, depth: 0, operands: 0, bare }
    }

    /// Checks that the text has ended; otherwise the error says `what`.
    fn end(&mut self, what: &str) -> Result<(), ParseError> {
        self.skip();
        if self.at == self.text.len() {
            return Ok(());
        }
        let error = self.error(what);
        let word = self.rest().split_whitespace().next().unwrap_or_default();
        let is_unit = format!("1{word}").parse::<Span>().is_ok();
        Err(if is_unit {
            error.help("write a unit behind its number, as in 250ms")
        } else if word.starts_with('%') {
            error.help("write shares as numbers from 0 to 1, such as 0.95; percentages follow `within`")
        } else {
            error
        })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        let width = self.rest().chars().next().map_or(0, char::len_utf8);
        let help = if self.bare { "write for example response_s.p99 / response_s.p50" } else { EXAMPLE };
        ParseError::new(self.at..self.at + width, message, help)
    }

    /// Reads the next sign if it is one of `signs`.
    fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        self.skip();
        let sign = signs.iter().find(|sign| self.rest().starts_with(**sign))?;
        self.at += sign.len();
        Some(sign)
    }

    fn word(&mut self, word: &str) -> bool {
        self.skip();
        let Some(after) = self.rest().strip_prefix(word) else { return false };
        let whole = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if whole {
            self.at += word.len();
        }
        whole
    }

    fn side(&mut self) -> Result<Side, ParseError> {
        self.chain(&["+", "-"], |parser| parser.chain(&["*", "/"], Self::factor))
    }

    /// Operands joined by operators of one precedence, from left to right.
    fn chain(
        &mut self,
        signs: &[&'static str],
        operand: impl Fn(&mut Self) -> Result<Side, ParseError>,
    ) -> Result<Side, ParseError> {
        let mut left = operand(self)?;
        while let Some(sign) = self.sign(signs) {
            left = Side::Binary(Box::new(left), sign, Box::new(operand(self)?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Side, ParseError> {
        self.operands += 1;
        if self.operands > MOST_OPERANDS {
            return Err(self.error(format!("the check has more than {MOST_OPERANDS} operands")));
        }
        if self.sign(&["("]).is_some() {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.error("too many parentheses"));
            }
            let side = self.side()?;
            if self.sign(&[")"]).is_none() {
                return Err(self.error("a closing parenthesis is missing"));
            }
            self.depth -= 1;
            return Ok(side);
        }
        if let Some(number) = self.number()? {
            return Ok(number);
        }
        self.metric().map(Side::Metric)
    }

    /// Reads a number with or without a unit of time. `None` if there is no digit, or if the digits begin the label of
    /// a policy.
    fn number(&mut self) -> Result<Option<Side>, ParseError> {
        self.skip();
        let rest = self.rest();
        if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Ok(None);
        }
        let label = rest.find(|c| !is_part_of_name(c)).unwrap_or(rest.len());
        if rest[label..].starts_with('.') && is_label(&rest[..label]) {
            return Ok(None);
        }
        let bytes = rest.as_bytes();
        let part = |&i: &usize| match bytes[i] {
            b'+' | b'-' => i > 0 && matches!(bytes[i - 1], b'e' | b'E'),
            other => other.is_ascii_alphanumeric() || matches!(other, b'.' | b'_') || !other.is_ascii(),
        };
        let end = (0..bytes.len()).take_while(part).count();
        let word = &rest[..end];
        let value = word.replace('_', "").parse::<f64>().ok().filter(|value| value.is_finite());
        let duration = || word.parse::<Span>().ok().map(|span| Side::Duration(span.as_secs_f64()));
        let value = value.map(Side::Number).or_else(duration);
        let at = self.at..self.at + end;
        self.at += end;
        let message = || format!("`{word}` is neither a number nor a duration");
        value.map(Some).ok_or_else(|| ParseError::new(at, message(), "write for example 0.8 or 250ms"))
    }

    /// Reads a name: letters, digits, `_` and `-`, beginning with a letter or `_`.
    fn name(&mut self, what: &str) -> Result<&'a str, ParseError> {
        let rest = self.rest();
        let end = rest.find(|c| !is_part_of_name(c)).unwrap_or(rest.len());
        if end == 0 || !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return Err(self.error(format!("{what} is missing")));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn metric(&mut self) -> Result<MetricName, ParseError> {
        self.skip();
        let start = self.at;
        let mut label = self.name("a number or the label of a policy")?.to_owned();
        let mut path = Vec::new();
        if self.bare {
            path.push(std::mem::take(&mut label));
        }
        while self.rest().starts_with('.') {
            self.at += 1;
            path.push(self.name("the name of a number in the results")?.to_owned());
        }
        if path.is_empty() {
            let message = format!("`{label}` needs the name of a number");
            let help = format!("write for example {label}.response_s.p50");
            return Err(ParseError::new(start..self.at, message, help));
        }
        let span = start..self.at;
        let at = if self.rest().starts_with('[') { self.values()? } else { Vec::new() };
        Ok(MetricName { label, path, at, span })
    }

    /// Reads the values of other cells, `[key=value, key=value]`.
    fn values(&mut self) -> Result<Vec<(String, String)>, ParseError> {
        let close = closing(self.rest()).ok_or_else(|| {
            self.error("a closing bracket is missing").help("write [service.correlated=true]")
        })?;
        let inner = &self.rest()[1..close];
        let pairs = inner.split(',').map(|pair| {
            let (key, value) = pair.split_once('=')?;
            let (key, value) = (key.trim().trim_matches('"'), value.trim().trim_matches('"'));
            (!key.is_empty() && !value.is_empty()).then(|| (key.to_owned(), value.to_owned()))
        });
        let pairs = pairs.collect::<Option<Vec<_>>>().ok_or_else(|| {
            self.error("values of swept keys are written key=value").help("write [service.correlated=true]")
        })?;
        self.at += close + 1;
        Ok(pairs)
    }

    fn swept_key(&mut self) -> Result<String, ParseError> {
        let missing =
            |parser: &Self, what| Err(parser.error(what).help("write \"a.x rises with network.loss\""));
        if !self.word("with") {
            return missing(self, "`with` and a swept key are missing");
        }
        self.skip();
        let Some(key) = self.rest().split_whitespace().next() else {
            return missing(self, "the swept key is missing");
        };
        self.at += key.len();
        Ok(key.trim_matches('"').to_owned())
    }
}

/// The position of the bracket that closes the first bracket of a text. Brackets may nest, since a swept value may be a
/// list.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.find(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth == 0
    })
}

/// Whether a character can be part of the name of a policy or a number.
const fn is_part_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Whether claims can refer to a policy by this word: the word begins with a letter, or begins with a digit and is
/// neither a number nor a duration.
pub fn is_label(word: &str) -> bool {
    let begins = word.starts_with(|c: char| c.is_ascii_alphanumeric());
    let starts_with_letter = word.starts_with(|c: char| c.is_ascii_alphabetic());
    let has_letter = word.contains(|c: char| c.is_ascii_alphabetic());
    let is_number = word.replace('_', "").parse::<f64>().is_ok() || word.parse::<Span>().is_ok();
    begins && word.chars().all(is_part_of_name) && (starts_with_letter || has_letter && !is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(label: &str, path: &[&str]) -> Side {
        let path = path.iter().map(|s| (*s).to_owned()).collect();
        Side::Metric(MetricName { label: label.into(), path, at: Vec::new(), span: 0..0 })
    }

    /// The side without positions, for comparisons.
    fn plain(side: Side) -> Side {
        match side {
            Side::Metric(m) => Side::Metric(MetricName { span: 0..0, ..m }),
            Side::Binary(l, op, r) => Side::Binary(Box::new(plain(*l)), op, Box::new(plain(*r))),
            Side::Number(x) => Side::Number(x),
            Side::Duration(x) => Side::Duration(x),
        }
    }

    #[test]
    fn operators_have_precedence_and_names_are_parsed() {
        let Form::Compare { left, op, right } =
            check("latin-square.response_s.p50 <= 0.8*(b.wait_s.mean - 250ms) / 2 + 1").unwrap()
        else {
            panic!()
        };
        assert_eq!((plain(left), op), (metric("latin-square", &["response_s", "p50"]), Op::Sign("<=")));
        let bracket =
            Side::Binary(Box::new(metric("b", &["wait_s", "mean"])), "-", Box::new(Side::Duration(0.25)));
        let product = Side::Binary(Box::new(Side::Number(0.8)), "*", Box::new(bracket));
        let half = Side::Binary(Box::new(product), "/", Box::new(Side::Number(2.0)));
        let whole = Side::Binary(Box::new(half), "+", Box::new(Side::Number(1.0)));
        assert_eq!(plain(right), whole);
    }

    #[test]
    fn labels_may_begin_with_digits() {
        let Form::Compare { left, right, .. } = check("3sigma-b.x.y < 2.5e-1 * 0.5s").unwrap() else {
            panic!()
        };
        assert_eq!(plain(left), metric("3sigma-b", &["x", "y"]));
        let product = Side::Binary(Box::new(Side::Number(0.25)), "*", Box::new(Side::Duration(0.5)));
        assert_eq!(plain(right), product);
        assert!(["3sigma", "a", "2nd-try", "inf"].iter().all(|word| is_label(word)));
        assert!(["", "3", "1e5", "3s", "5ms", "1_000", "-a", "_a", "a.b"].iter().all(|word| !is_label(word)));
    }

    #[test]
    fn tolerances_trends_and_brackets_are_parsed() {
        assert!(matches!(
            check("a.x within 5 % of 1e-3").unwrap(),
            Form::Compare { op: Op::Within(5.0), .. }
        ));
        let Form::Trend { rises, key, .. } = check("a.x falls with policy.a.order").unwrap() else {
            panic!()
        };
        assert_eq!((rises, key.as_str()), (false, "policy.a.order"));
        let Form::Compare { left: Side::Metric(m), .. } = check("a.x[k.l=true, m=\"2 s\"] > 1").unwrap()
        else {
            panic!()
        };
        assert_eq!(m.at, [("k.l".to_owned(), "true".to_owned()), ("m".to_owned(), "2 s".to_owned())]);
        let Form::Compare { left: Side::Metric(m), .. } = check("a.x[k.l=[]] > 1").unwrap() else { panic!() };
        assert_eq!(m.at, [("k.l".to_owned(), "[]".to_owned())]);
    }

    #[test]
    fn errors_point_at_the_position_of_the_mistake() {
        for (text, at, words) in [
            ("a.x", 3, "a comparison is missing"),
            ("a < 1", 0, "needs the name"),
            ("a.x = 1", 4, "a comparison is missing"),
            ("a.x < ", 6, "a number or the label"),
            ("a.x < 1 2", 8, "should end here"),
            ("a.x < (1", 8, "closing parenthesis"),
            ("a.x < 1parsec", 6, "neither a number nor a duration"),
            ("a.x within 5 of 2", 13, "percentage and `of`"),
            ("a.x[k] < 1", 3, "key=value"),
            ("a.x[k=1 < 1", 3, "closing bracket"),
            ("a.x rises by 2", 10, "`with`"),
            ("a.x below 2", 11, "two distributions"),
            ("a..x < 1", 2, "name of a number"),
            ("", 0, "a number or the label"),
            ("ä.x < 1", 0, "a number or the label"),
        ] {
            let error = check(text).unwrap_err();
            assert!(error.at.start == at && error.message.contains(words), "{text}: {error:?}");
        }
        assert!(check("a.x < 2 s").unwrap_err().help.contains("behind its number"));
        assert!(check(&"(".repeat(100_000)).unwrap_err().message.contains("too many"));
        let sum = |operands: usize| check(&format!("a.x < 1{}", " + 1".repeat(operands - 2)));
        assert!(sum(MOST_OPERANDS).is_ok());
        assert!(sum(200_000).unwrap_err().message.contains("1000 operands"));
    }
}
