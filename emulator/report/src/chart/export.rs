//! Pictures as PDF and PNG.

use resvg::{tiny_skia, usvg};

use super::svg::{Letters, Picture};

/// The reason why a picture could not be converted.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The picture cannot be parsed.
    #[error("the figure cannot be read: {0}")]
    Parse(#[from] usvg::Error),
    /// The PDF cannot be made.
    #[error("the figure cannot be converted to PDF: {0}")]
    Pdf(String),
    /// The picture has too many pixels for the memory.
    #[error("a picture of {0} × {1} pixels is too large: show fewer cells or policies, or write an SVG")]
    Size(u32, u32),
    /// The PNG cannot be made.
    #[error("the figure cannot be converted to PNG: {0}")]
    Png(String),
}

/// Pixels per inch of a PNG, as publishers require for colour figures.
const PNG_DPI: f32 = 300.0;
/// Units of an SVG per inch.
const CSS_DPI: f32 = 96.0;

/// The picture as a PDF of one page, `inches` wide.
///
/// # Errors
/// When the converter cannot parse the picture.
pub fn pdf(picture: &Picture, inches: f64) -> Result<Vec<u8>, ExportError> {
    let (conversion, page) = (svg2pdf::ConversionOptions::default(), svg2pdf::PageOptions { dpi: CSS_DPI });
    let tree = tree(picture, inches)?;
    let bytes =
        svg2pdf::to_pdf(&tree, conversion, page).map_err(|error| ExportError::Pdf(error.to_string()))?;
    Ok(in_order(&bytes))
}

/// The PDF with adjacent references of a dictionary in sorted order: the converter writes them in the order of a hash
/// table, which differs between runs. Object offsets do not change.
fn in_order(pdf: &[u8]) -> Vec<u8> {
    let is_reference = |line: &[u8]| line.trim_ascii_start().starts_with(b"/") && line.ends_with(b" 0 R");
    let mut lines: Vec<&[u8]> = pdf.split(|byte| *byte == b'\n').collect();
    let runs = lines.chunk_by_mut(|a, b| is_reference(a) && is_reference(b));
    runs.for_each(<[&[u8]]>::sort_unstable);
    lines.join(&b'\n')
}

/// The picture as a PNG of 300 pixels an inch, `inches` wide.
///
/// # Errors
/// When the converter cannot parse the picture, or the picture is too large.
pub fn png(picture: &Picture, inches: f64) -> Result<Vec<u8>, ExportError> {
    let tree = tree(picture, inches)?;
    let scale = PNG_DPI / CSS_DPI;
    let pixels = |size: f32| (size * scale).round() as u32;
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    let mut canvas = tiny_skia::Pixmap::new(width, height).ok_or(ExportError::Size(width, height))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut canvas.as_mut());
    let bytes = canvas.encode_png().map_err(|error| ExportError::Png(error.to_string()))?;
    Ok(sized(&bytes))
}

/// Bytes of a PNG before its second chunk: the signature and the header.
const PNG_HEAD: usize = 33;

/// The PNG with a chunk pHYs after its header, which states the width in print.
fn sized(png: &[u8]) -> Vec<u8> {
    let per_metre = (f64::from(PNG_DPI) / 0.0254).round() as u32;
    let [a, b, c, d] = per_metre.to_be_bytes();
    let chunk = [b'p', b'H', b'Y', b's', a, b, c, d, a, b, c, d, 1];
    let (head, rest) = png.split_at(PNG_HEAD.min(png.len()));
    [head, &9_u32.to_be_bytes(), &chunk, &crc32fast::hash(&chunk).to_be_bytes(), rest].concat()
}

fn tree(picture: &Picture, inches: f64) -> Result<usvg::Tree, usvg::Error> {
    let options = usvg::Options { dpi: CSS_DPI, ..usvg::Options::default() };
    usvg::Tree::from_str(&picture.file(inches, Letters::Outlines), &options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::svg::{Anchor, text};

    #[test]
    fn references_of_a_dictionary_are_in_order() {
        assert_eq!(in_order(b"<<\n  /b 2 0 R\n  /a 10 0 R\n>>\n/0"), b"<<\n  /a 10 0 R\n  /b 2 0 R\n>>\n/0");
    }

    #[test]
    fn pdf_and_png_files_draw_the_letters_of_a_text() {
        let of = |words: &str| Picture {
            size: (96.0, 24.0),
            label: "t".into(),
            marks: vec![text("head", (4.0, 18.0), Anchor::Start, words)],
            legend: Vec::new(),
        };
        let bytes = |words: &str| png(&of(words), 1.0).unwrap();
        assert!(bytes("words").starts_with(b"\x89PNG") && bytes("words") != bytes(""));
        assert_ne!(bytes("a"), bytes("b"));
        let (with, without) = (pdf(&of("words"), 1.0).unwrap(), pdf(&of(""), 1.0).unwrap());
        assert!(with.starts_with(b"%PDF-") && with.len() > without.len() + 100);
    }
}
