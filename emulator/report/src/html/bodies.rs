//! Bodies of cells: in the page as they are; where that is too much, compressed, and shown when a cell is opened.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use volary_experiment::parallel;
use volary_experiment::storage::REPORT_CELLS;

use super::view::anchor;

/// Limit on the bytes of the bodies in a page as they are: the page is readable without its script then.
const PLAIN: usize = 3_500_000;
/// Limit on the bytes of compressed bodies in a page; more are in files beside it.
const PACKED: usize = 3_500_000;
/// Limit on the files beside a page.
const FILES: usize = 100;
/// Least number of cells in a file beside a page, if it has that many.
const CELLS_OF_FILE: usize = 16;

/// The bodies of the cells of a page.
pub(super) struct Bodies {
    /// Bodies in the page as they are: of all cells, or of the first alone.
    plain: Vec<String>,
    /// The compressed bodies in the page, as a JSON object from the id of a section to its body in base64; empty if
    /// there are none.
    packed: String,
    /// The same of cells for each file beside the page.
    files: Vec<String>,
    /// Number of cells of each file; 0 if there is none.
    of_file: usize,
}

/// The place of the body of a cell.
pub(super) enum BodyPlace<'a> {
    /// In the page.
    Plain(&'a str),
    /// In the page, compressed.
    Packed,
    /// In a file beside the page, compressed.
    File(String),
}

impl Bodies {
    /// The bodies of `count` cells, and that of another section which is compressed in any case, with its id.
    pub(super) fn new(
        count: usize,
        body: impl Fn(usize) -> String + Sync,
        other: Option<(&str, String)>,
    ) -> Self {
        let (mut plain, mut bytes): (Vec<String>, usize) = Default::default();
        while plain.len() < count && bytes <= PLAIN {
            let body = body(plain.len());
            bytes += body.len();
            plain.push(body);
        }
        let mut packed = Vec::new();
        if bytes > PLAIN {
            let made = plain.len();
            packed.extend(plain.drain(1..).map(|body| compressed(&body)));
            packed.extend(parallel::map(made..count, |number| compressed(&body(number))));
        }
        let bytes: usize = packed.iter().map(String::len).sum();
        let of_file = if bytes > PACKED { CELLS_OF_FILE.max(packed.len().div_ceil(FILES)) } else { 0 };
        // The first cell is in the page.
        let named = packed.into_iter().enumerate().map(|(i, body)| (anchor(i + 1), body));
        let mut in_page: Vec<(String, String)> = named.collect();
        let beside = if of_file > 0 { std::mem::take(&mut in_page) } else { Vec::new() };
        in_page.extend(other.map(|(id, body)| (id.to_owned(), compressed(&body))));
        let packed = if in_page.is_empty() { String::new() } else { object(&in_page) };
        Self { plain, packed, files: beside.chunks(of_file.max(1)).map(object).collect(), of_file }
    }

    pub(super) fn place(&self, number: usize) -> BodyPlace<'_> {
        match self.plain.get(number) {
            Some(body) => BodyPlace::Plain(body),
            None if self.of_file == 0 => BodyPlace::Packed,
            None => BodyPlace::File(format!("{REPORT_CELLS}/{}.js", (number - 1) / self.of_file)),
        }
    }

    /// The compressed bodies in the page.
    pub(super) fn in_page(&self) -> Option<&str> {
        Some(self.packed.as_str()).filter(|packed| !packed.is_empty())
    }

    /// The files beside the page, by their numbers: scripts, since a page that is a file itself may read nothing else.
    pub(super) fn files(&self) -> Vec<String> {
        self.files.iter().map(|cells| format!("packed({cells})\n")).collect()
    }
}

/// A body as gzip in base64.
fn compressed(body: &str) -> String {
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    // Memory takes every byte.
    let bytes = gz.write_all(body.as_bytes()).and_then(|()| gz.finish()).unwrap_or_default();
    base64(&bytes)
}

/// Bytes as text: base64 of RFC 4648, section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | u32::from(three.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let digit = (bits >> (18 - 6 * i) & 63) as usize;
            out.push(if i <= three.len() { char::from(DIGITS[digit]) } else { '=' });
        }
    }
    out
}

/// The digits of base64.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Compressed bodies as a JSON object. Neither ids nor base64 have characters with a meaning in JSON or HTML.
fn object(bodies: &[(String, String)]) -> String {
    let mut out = String::from("{");
    for (i, (id, body)) in bodies.iter().enumerate() {
        let comma = if i > 0 { ",\n" } else { "" };
        let _ = write!(out, "{comma}\"{id}\":\"{body}\"");
    }
    out + "}"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    /// A body of `size` bytes that compresses to about three quarters of that in gzip.
    fn body(number: usize, size: usize) -> String {
        let mut state = number as u64 + 1;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + (state >> 58) as u8)
        };
        (0..size).map(|_| draw()).collect()
    }

    fn decoded(text: &str) -> Vec<u8> {
        let digits =
            text.trim_end_matches('=').bytes().map(|byte| DIGITS.iter().position(|&d| d == byte).unwrap());
        let digits: Vec<usize> = digits.collect();
        let bytes = digits.chunks(4).flat_map(|four| {
            let bits = (0..4).fold(0, |bits, i| bits << 6 | four.get(i).copied().unwrap_or(0));
            [16, 8, 0].map(|shift| (bits >> shift) as u8).into_iter().take(four.len() - 1)
        });
        bytes.collect()
    }

    #[test]
    fn base64_is_that_of_its_rfc() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(texts.map(|text| base64(text.as_bytes())), expected);
        let bytes: Vec<u8> = (0..=255).collect();
        assert!((0..256).all(|size| decoded(&base64(&bytes[..size])) == bytes[..size]));
    }

    fn opened(bodies: &BTreeMap<String, String>, number: usize) -> String {
        let bytes = decoded(&bodies[&anchor(number)]);
        let mut text = String::new();
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn few_bodies_are_in_the_page_as_they_are() {
        let bodies = Bodies::new(4, |number| body(number, 1_000), None);
        assert!(bodies.in_page().is_none() && bodies.files().is_empty());
        assert!(matches!(bodies.place(3), BodyPlace::Plain(text) if text == body(3, 1_000)));
    }

    #[test]
    fn more_bodies_are_in_the_page_compressed() {
        let bodies = Bodies::new(4, |number| body(number, PLAIN / 10 * 3), None);
        assert!(bodies.files().is_empty() && matches!(bodies.place(0), BodyPlace::Plain(_)));
        assert!((1..4).all(|number| matches!(bodies.place(number), BodyPlace::Packed)));
        let packed: BTreeMap<String, String> = serde_json::from_str(bodies.in_page().unwrap()).unwrap();
        assert_eq!(packed.len(), 3);
        assert!((1..4).all(|number| opened(&packed, number) == body(number, PLAIN / 10 * 3)));
    }

    #[test]
    fn many_bodies_are_in_files_beside_the_page() {
        let other = Some(("other", "of the page".to_owned()));
        let bodies = Bodies::new(40, |number| body(number, PACKED / 20), other);
        let files = bodies.files();
        let packed: BTreeMap<String, String> = serde_json::from_str(bodies.in_page().unwrap()).unwrap();
        assert_eq!((packed.len(), decoded(&packed["other"]).is_empty()), (1, false));
        assert!(files.len() == 39usize.div_ceil(CELLS_OF_FILE));
        for number in 1..40 {
            let BodyPlace::File(name) = bodies.place(number) else { panic!("{number} is in the page") };
            let file: usize = name.trim_start_matches("report/").trim_end_matches(".js").parse().unwrap();
            let packed = files[file].trim_start_matches("packed(").trim_end_matches(")\n");
            assert_eq!(opened(&serde_json::from_str(packed).unwrap(), number), body(number, PACKED / 20));
        }
    }
}
