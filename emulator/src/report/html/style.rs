//! The page's style sheet and script.

/// Layout, tables and boxes; colours are the chart theme's variables.
pub(super) const CSS: &str = "\
*{box-sizing:border-box}html{scroll-behavior:smooth;scroll-padding-top:12px}\
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;\
display:grid;grid-template-columns:248px minmax(0,1fr)}\
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}\
nav{position:sticky;top:0;align-self:start;height:100vh;overflow:auto;padding:20px 16px;background:var(--card);\
border-right:1px solid var(--rule);font-size:13px}\
nav .brand{display:inline-block;font-weight:700;font-size:17px;letter-spacing:.02em}\
nav h2{font-size:11px;text-transform:uppercase;letter-spacing:.08em;color:var(--soft);margin:20px 0 6px}\
nav ul{list-style:none;margin:0;padding:0}nav li{margin:3px 0;overflow-wrap:anywhere}nav #theme{float:right}\
button{font:inherit;font-size:12px;color:var(--ink);background:var(--paper);border:1px solid var(--rule);border-radius:6px;\
padding:3px 9px;margin-top:10px;cursor:pointer}nav #theme{margin:0}\
.picks label{cursor:pointer;display:flex;align-items:center;gap:6px}.picks input{margin:0;accent-color:var(--accent)}\
.swatch{display:inline-block;width:11px;height:11px;border-radius:3px;background:var(--c);flex:none}\
main{padding:28px clamp(16px,3vw,44px) 60px;max-width:1500px;width:100%}\
h1{font-size:27px;line-height:1.25;margin:0;letter-spacing:-.01em}h2{font-size:19px;margin:0 0 10px}\
h3{font-size:14px;margin:22px 0 8px}.source{color:var(--soft);margin:4px 0 0}\
.facts{display:flex;flex-wrap:wrap;gap:8px 26px;margin:18px 0 0;padding:12px 0;border-top:1px solid var(--rule);\
border-bottom:1px solid var(--rule)}.facts dt{font-size:11px;color:var(--soft)}.facts dd{margin:0;font-weight:600}\
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}\
section{margin-top:34px}\
.box{border-radius:10px;padding:12px 16px;margin-top:16px;border:1px solid var(--rule);background:var(--card)}\
.box.warns{background:var(--warn-bg);border-color:transparent}.box ul{margin:4px 0;padding-left:20px}\
.claim{display:grid;grid-template-columns:108px minmax(0,1fr);gap:4px 14px;padding:9px 0;border-top:1px solid var(--rule)}\
.claim:first-of-type{border-top:0}.claim details{grid-column:2;font-size:13px;overflow-x:auto}\
.badge{justify-self:start;align-self:start;border-radius:99px;padding:1px 11px;font-size:13px;font-weight:600;white-space:nowrap}\
.badge.good{background:var(--good-bg)}.badge.bad{background:var(--bad-bg)}.badge.warn{background:var(--warn-bg)}\
details.cell{border:1px solid var(--rule);border-radius:12px;margin-top:18px;padding:0 18px;background:var(--paper)}\
details.cell>summary{padding:13px 0;font-size:17px;font-weight:650;cursor:pointer}details.cell[open]{padding-bottom:20px}\
details>summary{cursor:pointer}details>summary:hover{color:var(--accent)}\
details.more{margin-top:14px}details.more>summary{font-size:14px;font-weight:600}\
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:14px;margin-top:14px}\
.card{border:1px solid var(--rule);border-radius:10px;padding:10px 12px;background:var(--card);overflow:auto}\
.wide{overflow-x:auto}\
table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums}\
caption{text-align:left;font-weight:600;padding:2px 0 6px}\
th{font-weight:600;text-align:right;padding:4px 9px;color:var(--soft);white-space:nowrap;font-size:12.5px}\
th[scope=row]{text-align:left;color:var(--ink);font-size:13.5px}td{text-align:right;padding:4px 9px;white-space:nowrap}\
tbody tr{border-top:1px solid var(--rule)}tbody tr:hover{background:var(--card)}\
thead th:first-child{text-align:left}\
td.best{font-weight:700;color:var(--good)}td small{color:var(--soft);font-size:11.5px;font-weight:400}.stack td{vertical-align:top}.stack th[scope=col]{white-space:normal;vertical-align:bottom}.stack td small{display:block;line-height:1.2}td.left{text-align:left}\
table.heat td{text-align:center;min-width:76px}table.heat thead th{text-align:center}\
th.left,table.heat thead th.left{text-align:left}table.heat .group{color:var(--ink);border-bottom:1px solid var(--rule)}\
table.heat tbody th{font-weight:500}table.heat td small{color:inherit;opacity:.75}.card svg+svg{margin-top:14px}\
.hint{color:var(--soft);font-size:12.5px;margin:6px 0 0}\
dl.json{margin:0;font-size:13px}dl.json div{display:flex;gap:10px}dl.json dt{color:var(--soft)}dl.json dd{margin:0}\
pre{overflow:auto;background:var(--card);border-radius:8px;padding:12px;font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere}\
code{background:var(--card);border-radius:4px;padding:1px 5px;font-size:13px;overflow-wrap:anywhere}\
@media(max-width:860px){body{display:block}nav{position:static;height:auto;border-right:0;border-bottom:1px solid var(--rule)}}\
@media print{nav{display:none}body{display:block}details.cell{break-inside:avoid}}";

/// Rules that hide a policy everywhere when the page's root has its class.
pub(super) fn hiding(policies: usize) -> String {
    (0..policies).map(|i| format!(".hide-p{i} .p{i}{{display:none}}")).collect()
}

/// The script that shows and hides policies and sections, and switches between dark and light. The page is readable
/// without it.
pub(super) const SCRIPT: &str = "\
(()=>{const root=document.documentElement;\
document.querySelectorAll('[data-policy]').forEach(box=>{const set=()=>root.classList.toggle('hide-p'+box.dataset.policy,!box.checked);\
box.addEventListener('change',set);set()});\
document.querySelectorAll('[data-open]').forEach(b=>b.addEventListener('click',()=>\
document.querySelectorAll('details.cell').forEach(d=>d.open=b.dataset.open==='1')));\
document.getElementById('theme').addEventListener('click',()=>{\
const dark=root.dataset.theme?root.dataset.theme==='dark':matchMedia('(prefers-color-scheme: dark)').matches;\
root.dataset.theme=dark?'light':'dark'});\
const show=()=>{const at=location.hash&&document.getElementById(location.hash.slice(1));if(at&&at.tagName==='DETAILS'){at.open=true;at.scrollIntoView()}};\
addEventListener('hashchange',show);show();\
addEventListener('beforeprint',()=>document.querySelectorAll('details.cell').forEach(d=>d.open=true))})()";
