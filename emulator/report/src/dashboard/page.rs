//! The page around the sections: one HTML file with its style and script, which loads nothing else.

use maud::{DOCTYPE, PreEscaped, html};
use volary_experiment::sanitize;

use super::sections::SECTIONS;
use super::snapshot::PageHeader;
use crate::chart::theme;

/// The page of an experiment. Its sections are empty: they come as events.
pub(super) fn html(header: &PageHeader, nonce: &str) -> String {
    let title = if header.title.is_empty() { &header.experiment } else { &header.title };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) " – volary" }
                // Without it browsers ask for /favicon.ico.
                link rel="icon" href="data:,";
                style nonce=(nonce) { (PreEscaped(theme::css())) (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 { (title) }
                    div.tools {
                        button type="button" id="pause" aria-pressed="false" { "pause" }
                        button type="button" id="theme" aria-label="dark or light" { "◐" }
                    }
                    p.about {
                        (header.experiment) ", runtime " (header.runtime)
                        @if !header.folder.is_empty() { ", results in " (header.folder) }
                    }
                    p id="link" role="status" { "connecting" }
                }
                main {
                    @for (id, heading) in SECTIONS {
                        section id=(id) hidden aria-labelledby={ "of-" (id) } {
                            h2 id={ "of-" (id) } { (heading) }
                            div {}
                        }
                    }
                    noscript { p { "The page needs JavaScript to follow the run." } }
                }
                footer { "volary " (env!("CARGO_PKG_VERSION")) "; the same as JSON: " a href="snapshot.json" { "snapshot.json" } }
                script nonce=(nonce) { (PreEscaped(include_str!("page.js"))) }
            }
        }
    };
    sanitize::document(page.into_string())
}

/// What an answer may load and do. A page: its own style and script, which carry its nonce, and events of this server.
/// Other answers: nothing.
pub(super) fn policy(nonce: Option<&str>) -> String {
    let page = nonce.map_or_else(String::new, |nonce| {
        format!("script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; ")
    });
    format!("default-src 'none'; {page}base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        let name = "</title><script>alert(1)</script>\u{0}\u{2067}";
        let header = PageHeader { title: name.to_owned(), folder: name.to_owned(), ..PageHeader::default() };
        let page = html(&header, "77");
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert!(page.contains("&lt;/title&gt;") && !page.contains(['\u{0}', '\u{2067}']));
        assert!(
            page.contains("<script nonce=\"77\">") && policy(Some("77")).contains("script-src 'nonce-77'")
        );
        assert!(
            !policy(None).contains("-src 'nonce") && policy(None).starts_with("default-src 'none'; base-uri")
        );
    }
}
