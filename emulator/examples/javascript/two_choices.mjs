#!/usr/bin/env node
// Power of two choices in JavaScript, without a library: each task goes to the less loaded of two random nodes.
import { createInterface } from 'node:readline';

const state = { loads: [], up: [], waiting: [], places: new Map(), random: 0n };

// SplitMix64, from the state that volary hands out: runs of one seed make the same choices.
function below(bound) {
  const word = (number) => BigInt.asUintN(64, number);
  state.random = word(state.random + 0x9e3779b97f4a7c15n);
  let z = state.random;
  z = word((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
  z = word((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
  return Number(((z ^ (z >> 31n)) >> 32n) * BigInt(bound) >> 32n);
}

function leave(job, task) {
  const key = `${job},${task}`;
  if (state.places.has(key)) state.loads[state.places.get(key)] -= 1;
  state.places.delete(key);
}

const on = {
  start: ({ seed }) => Object.assign(state, {
    loads: state.loads.fill(0), waiting: [], places: new Map(), random: BigInt(seed) }),
  job: ({ job, tasks }) => { for (let task = 0; task < tasks; task += 1) state.waiting.push([job, task]); },
  ready: ({ job, task }) => { leave(job, task); state.waiting.push([job, task]); },
  ended: ({ job, task }) => leave(job, task),
  left: ({ job, task }) => leave(job, task),
  down: ({ actor }) => { state.up = state.up.filter((node) => `node:${node}` !== actor); },
  up: ({ actor }) => { if (actor.startsWith('node:')) state.up.push(Number(actor.slice(5))); },
  killed: ({ job }) => { state.waiting = state.waiting.filter(([other]) => other !== job); },
};

function decide() {
  const { up } = state;
  const actions = [];
  while (up.length > 0 && state.waiting.length > 0) {
    const [job, task] = state.waiting.shift();
    const [one, other] = [up[below(up.length)], up[below(up.length)]];
    const node = state.loads[other] < state.loads[one] ? other : one;
    state.loads[node] += 1;
    state.places.set(`${job},${task}`, node);
    actions.push({ do: 'launch', job, task, node });
  }
  return { do: actions };
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { hello, events } = JSON.parse(line);
  if (hello) {
    state.loads = Array(hello.nodes).fill(0);
    state.up = [...state.loads.keys()];
    console.log(JSON.stringify({ hello: { protocol: 1, level: 'central' } }));
    return;
  }
  for (const event of events) on[event.event]?.(event);
  console.log(JSON.stringify(decide()));
});
