//! Colours that remain distinguishable with colour vision deficiency (after Okabe and Ito), on white and on black.

/// Number of series colours; further series repeat them with another dash.
pub const COLOURS: usize = 8;

/// Class of the `i`-th series: colour and dash.
#[must_use]
pub fn series(i: usize) -> String {
    format!("s{} d{}", i % COLOURS, (i / COLOURS) % 3)
}

/// The style sheet that charts require, with variables that pages may also use.
pub const CSS: &str = "\
:root{--paper:#fff;--card:#f7f8fa;--ink:#1a2230;--soft:#5b6675;--rule:#d9dee6;--accent:#0b63b0;\
--good:#0a7a50;--bad:#b3261e;--warn:#8a5a00;--good-bg:#e3f5ec;--bad-bg:#fdeae8;--warn-bg:#fdf3dd;\
--heat:#d55e00;--burst:#d55e00;\
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b5528a;--c4:#b88200;--c5:#3a9bd5;--c6:#6b5bb0;--c7:#4a4a4a}\
@media(prefers-color-scheme:dark){:root:not([data-theme=light]){\
--paper:#12161c;--card:#1a2028;--ink:#e6eaf0;--soft:#9aa6b5;--rule:#313a46;--accent:#6cb6f5;\
--good:#5fd0a0;--bad:#ff8a80;--warn:#f0c060;--good-bg:#143024;--bad-bg:#3a1d1b;--warn-bg:#352a12;\
--heat:#ff8a3d;--burst:#ff8a3d;\
--c0:#5ab4f0;--c1:#ff8a3d;--c2:#3fd0a0;--c3:#e79ac6;--c4:#f0c040;--c5:#9ad4ff;--c6:#b0a2f0;--c7:#c8c8c8}}\
:root[data-theme=dark]{\
--paper:#12161c;--card:#1a2028;--ink:#e6eaf0;--soft:#9aa6b5;--rule:#313a46;--accent:#6cb6f5;\
--good:#5fd0a0;--bad:#ff8a80;--warn:#f0c060;--good-bg:#143024;--bad-bg:#3a1d1b;--warn-bg:#352a12;\
--heat:#ff8a3d;--burst:#ff8a3d;\
--c0:#5ab4f0;--c1:#ff8a3d;--c2:#3fd0a0;--c3:#e79ac6;--c4:#f0c040;--c5:#9ad4ff;--c6:#b0a2f0;--c7:#c8c8c8}\
svg.chart{max-width:100%;height:auto;display:block;font:12px system-ui,sans-serif}\
.chart text{fill:var(--soft)}.chart .head{fill:var(--ink);font-weight:600;font-size:13px}.chart .name{fill:var(--ink)}\
.chart .grid{stroke:var(--rule);stroke-width:1}.chart .axis{stroke:var(--soft);stroke-width:1}\
.chart .minor{stroke:var(--rule);stroke-width:.5;opacity:.6}\
.s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}\
.s4{--c:var(--c4)}.s5{--c:var(--c5)}.s6{--c:var(--c6)}.s7{--c:var(--c7)}\
.chart .curve{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
.d1 .curve,.d1.curve{stroke-dasharray:7 4}.d2 .curve,.d2.curve{stroke-dasharray:2 4}\
.chart .band{fill:var(--c);opacity:.16;stroke:none}.chart .fill{fill:var(--c)}\
.chart .dot{fill:var(--c);stroke:var(--paper);stroke-width:1.5}\
.chart .idle{fill:var(--rule)}.chart .waste{fill:var(--c);opacity:.4}\
.chart .shade{fill:var(--heat)}.chart .frame{fill:none;stroke:var(--rule)}\
.chart .burst{fill:var(--burst)}\
.chart .injected{fill:none;stroke:var(--burst);stroke-width:1.2;stroke-dasharray:4 2}\
.chart .first{fill:var(--c0)}.chart .second{fill:var(--c4)}.chart .preempted{fill:var(--c3)}\
.chart .suspended{fill:var(--c2)}.chart .lost{fill:var(--c7)}\
.chart .first,.chart .second,.chart .preempted,.chart .suspended,.chart .lost{stroke:var(--paper);stroke-width:.6}\
.chart g.curveset:hover .curve{stroke-width:3.2}";
