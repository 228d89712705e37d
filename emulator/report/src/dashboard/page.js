(()=>{'use strict';
const root=document.documentElement,link=document.getElementById('link'),pause=document.getElementById('pause');
const waiting=new Map();let paused=false,over=false;
const say=(text,bad)=>{link.textContent=text;link.className=bad?'bad':''};
// Scroll positions and focus survive the replacement of a section.
const parts=box=>[...box.querySelectorAll('.scroll,.news,.card')];
const put=(id,html)=>{const section=document.getElementById(id);if(!section)return;
const box=section.querySelector('div'),before=parts(box).map(part=>[part.scrollLeft,part.scrollTop]);
const focused=parts(box).indexOf(document.activeElement);box.innerHTML=html;section.hidden=!html;
parts(box).forEach((part,at)=>{if(before[at])[part.scrollLeft,part.scrollTop]=before[at];
if(at===focused)part.focus({preventScroll:true})})};
const source=new EventSource('events');
source.addEventListener('open',()=>say('connected',false));
source.addEventListener('section',event=>{const {id,html}=JSON.parse(event.data);
if(paused)waiting.set(id,html);else put(id,html)});
source.addEventListener('end',event=>{over=true;source.close();say(event.data,false)});
source.addEventListener('error',()=>{if(!over)say(source.readyState===EventSource.CLOSED?
'disconnected: the run has ended, or this page was too slow; load it again to see':
'no connection: the run has ended or is out of reach; trying again',true)});
pause.addEventListener('click',()=>{paused=!paused;pause.setAttribute('aria-pressed',String(paused));
if(!paused){waiting.forEach((html,id)=>put(id,html));waiting.clear()}});
document.getElementById('theme').addEventListener('click',()=>{
const dark=root.dataset.theme?root.dataset.theme==='dark':matchMedia('(prefers-color-scheme: dark)').matches;
root.dataset.theme=dark?'light':'dark'})})()
