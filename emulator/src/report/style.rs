//! The style of text for people: with colours, or plain.

/// Whether verdicts may use colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Colours and bold for a terminal.
    Terminal,
    /// Without colours.
    Plain,
}
