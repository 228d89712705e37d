//! Pictures as PDF and PNG.
//!
//! Text is drawn as outlines, so that a figure is the same on every machine and needs no font there.

use resvg::{tiny_skia, usvg};

use super::svg::{Letters, Picture};

/// Why a picture could not be converted.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The picture is not understood.
    #[error("the figure cannot be read: {0}")]
    Parse(#[from] usvg::Error),
    /// The PDF cannot be made.
    #[error("the figure cannot be converted to PDF: {0}")]
    Pdf(String),
    /// There is no memory for so many pixels.
    #[error("a picture of {0} × {1} pixels is too large: show fewer cells or policies, or write an SVG")]
    Size(u32, u32),
    /// The PNG cannot be made.
    #[error("the figure cannot be converted to PNG: {0}")]
    Png(String),
}

/// Pixels per inch of a PNG: what publishers ask of colour figures.
const PNG_DPI: f32 = 300.0;
/// Units of an SVG per inch.
const CSS_DPI: f32 = 96.0;

/// The picture as a PDF of one page, `inches` wide.
///
/// # Errors
/// When the converter does not understand the picture.
pub fn pdf(picture: &Picture, inches: f64) -> Result<Vec<u8>, ExportError> {
    let (conversion, page) = (svg2pdf::ConversionOptions::default(), svg2pdf::PageOptions { dpi: CSS_DPI });
    let tree = tree(picture, inches)?;
    svg2pdf::to_pdf(&tree, conversion, page).map_err(|error| ExportError::Pdf(error.to_string()))
}

/// The picture as a PNG of 300 pixels an inch, `inches` wide.
///
/// # Errors
/// When the converter does not understand the picture, or it is too large.
pub fn png(picture: &Picture, inches: f64) -> Result<Vec<u8>, ExportError> {
    let tree = tree(picture, inches)?;
    let scale = PNG_DPI / CSS_DPI;
    let pixels = |size: f32| (size * scale).round() as u32;
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    let mut canvas = tiny_skia::Pixmap::new(width, height).ok_or(ExportError::Size(width, height))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut canvas.as_mut());
    canvas.encode_png().map_err(|error| ExportError::Png(error.to_string()))
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
    fn letters_are_drawn() {
        let of = |words: &str| Picture {
            size: (96.0, 24.0),
            label: "t".into(),
            marks: vec![text("head", (4.0, 18.0), Anchor::Start, words)],
        };
        let bytes = |words: &str| png(&of(words), 1.0).unwrap();
        assert!(bytes("words").starts_with(b"\x89PNG") && bytes("words") != bytes(""));
        assert_ne!(bytes("a"), bytes("b"));
        let (with, without) = (pdf(&of("words"), 1.0).unwrap(), pdf(&of(""), 1.0).unwrap());
        assert!(with.starts_with(b"%PDF-") && with.len() > without.len() + 100);
    }
}
