(()=>{const root=document.documentElement,each=(all,act)=>[...all].forEach(act);
each(document.querySelectorAll('[data-policy]'),box=>{const set=()=>root.classList.toggle('hide-p'+box.dataset.policy,!box.checked);
box.addEventListener('change',set);set()});
each(document.querySelectorAll('[data-open]'),b=>b.addEventListener('click',()=>
each(document.querySelectorAll('details.cell'),d=>d.open=b.dataset.open==='1')));
document.getElementById('theme').addEventListener('click',()=>{
const dark=root.dataset.theme?root.dataset.theme==='dark':matchMedia('(prefers-color-scheme: dark)').matches;
root.dataset.theme=dark?'light':'dark'});
// Cells are compressed in the page, or in scripts beside it: a page opened from disk can load no other files.
let stored={};const files={};
window.packed=cells=>Object.assign(stored,cells);
const fetched=file=>files[file]??=new Promise((done,fail)=>{
const script=Object.assign(document.createElement('script'),{onload:done,onerror:()=>{delete files[file];fail()}});
script.setAttribute('src',file);document.head.append(script)});
const inPage=document.getElementById('packed');
const load=async cell=>{const file=cell.dataset.file,line=cell.querySelector('[role=status]');
if(file===undefined)return;delete cell.dataset.file;
try{if(file)await fetched(file);else if(inPage.textContent){packed(JSON.parse(inPage.textContent));inPage.textContent=''}
const bytes=Uint8Array.from(atob(stored[cell.id]),c=>c.charCodeAt(0));delete stored[cell.id];
const text=await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
line.insertAdjacentHTML('afterend',text);line.remove();sortable(cell)}
catch(error){cell.dataset.file=file;line.textContent=window.DecompressionStream?file+' cannot be read: keep the folder beside this page.':
'This browser cannot decompress the cell: a newer one can.'}};
document.addEventListener('toggle',event=>{if(event.target.open)load(event.target)},true);
each(document.querySelectorAll('details.cell[open]'),load);
// Clicks sort a column: ascending, descending, original order.
const UNITS={ns:1e-9,'µs':1e-6,ms:1e-3,min:60,h:3600,d:86400,kB:1e3,MB:1e6,GB:1e9};
const number=text=>{const found=text.match(/^[×+±]?(-?[\d.]+(?:e-?\d+)?)(ns|µs|ms|min|[smhd%]|[kMG]?B)?/);
return found&&found[1]*(UNITS[found[2]]||1)};
const sort=button=>{const th=button.parentNode,table=th.closest('table'),body=table.tBodies[0];
const way={none:'ascending',ascending:'descending',descending:'none'}[th.getAttribute('aria-sort')];
each(table.querySelectorAll('[aria-sort]'),other=>other.setAttribute('aria-sort','none'));th.setAttribute('aria-sort',way);
const written=table.written??=[...body.rows],sign=way==='descending'?-1:1;
const keys=written.map(row=>row.cells[th.cellIndex].textContent.replace(/\s/g,'').replace('\u2212','-'));
const known=keys.map(text=>text!==''&&text!=='–'),numbers=keys.map(number);
const numeric=numbers.every((value,i)=>value!==null||!known[i]);
const compare=(a,b)=>known[b]-known[a]||sign*(numeric?numbers[a]-numbers[b]:keys[a].localeCompare(keys[b],'en',{numeric:true}));
const order=written.map((_,i)=>i);if(way!=='none')order.sort(compare);
const rows=document.createDocumentFragment();order.forEach(i=>rows.append(written[i]));body.append(rows)};
const sortable=part=>each(part.querySelectorAll('table'),table=>{if(!table.tHead||table.tBodies[0].rows.length<2)return;
each(table.tHead.rows[table.tHead.rows.length-1].cells,th=>{if(th.tagName!=='TH')return;
const button=Object.assign(document.createElement('button'),{type:'button',className:'sort'});
button.append(...th.childNodes);th.append(button);th.setAttribute('aria-sort','none')})});
sortable(document);
document.addEventListener('click',event=>{const button=event.target.closest('.sort');if(button)sort(button)});
const show=()=>{const at=location.hash&&document.getElementById(location.hash.slice(1));if(at&&at.tagName==='DETAILS'){at.open=true;at.scrollIntoView()}};
addEventListener('hashchange',show);show();
let closed=[];
addEventListener('beforeprint',()=>{closed=[...document.querySelectorAll('details:not([open])')];
closed=closed.filter(d=>d.dataset.file===undefined&&!d.closest('#run')&&!d.querySelector('pre'));
closed.forEach(d=>d.open=true)});
addEventListener('afterprint',()=>closed.forEach(d=>d.open=false))})()
