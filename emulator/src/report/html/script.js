(()=>{const root=document.documentElement;
document.querySelectorAll('[data-policy]').forEach(box=>{const set=()=>root.classList.toggle('hide-p'+box.dataset.policy,!box.checked);
box.addEventListener('change',set);set()});
document.querySelectorAll('[data-open]').forEach(b=>b.addEventListener('click',()=>
document.querySelectorAll('details.cell').forEach(d=>d.open=b.dataset.open==='1')));
document.getElementById('theme').addEventListener('click',()=>{
const dark=root.dataset.theme?root.dataset.theme==='dark':matchMedia('(prefers-color-scheme: dark)').matches;
root.dataset.theme=dark?'light':'dark'});
const show=()=>{const at=location.hash&&document.getElementById(location.hash.slice(1));if(at&&at.tagName==='DETAILS'){at.open=true;at.scrollIntoView()}};
addEventListener('hashchange',show);show();
let closed=[];
addEventListener('beforeprint',()=>{closed=[...document.querySelectorAll('details:not([open])')].filter(d=>!d.closest('#run')&&!d.querySelector('pre'));
closed.forEach(d=>d.open=true)});
addEventListener('afterprint',()=>closed.forEach(d=>d.open=false))})()
