// The checks of .ci/report, with playwright and axe-core.
'use strict';
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { chromium } = require('playwright-core');
const { violations } = require('./axe.cjs');

const { VOLARY, CHROMIUM, SHOTS } = process.env;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'volary-report-'));

const COMMON = `seed = 1
[cluster]
nodes = 100
[workload.synthetic]
jobs = 200
tasks = 10
interarrival = { exponential = { mean = "80ms" } }
[service]
demand = { exponential = { mean = "500ms" } }
[network]
one_way = "1ms"
[interference]
bernoulli = { slot = "5s", probability = 0.05, slowdown = 8 }
`;
// Cells, a map of choices, heat maps, intervals, a claim of each verdict.
const SWEEP = `title = "A sweep of two keys"
repeat = 3
${COMMON}[[policy]]
latin-square = { order = 2 }
[[policy]]
sparrow = {}
[[policy]]
late = { scale = 0.01 }
[[claim]]
says = "Sparrow beats the square at the median"
check = ["sparrow.response_s.p50 < latin-square.response_s.p50"]
[[claim]]
says = "Sparrow takes longer than a day"
check = ["sparrow.response_s.p50 > 86400"]
[[claim]]
says = "nothing is known of deadlines"
check = ["sparrow.deadlines.missed > 1"]
[sweep]
"workload.synthetic.interarrival.exponential.mean" = ["200ms", "100ms", "80ms"]
"interference.bernoulli.slowdown" = [2, 8]
`;
// Caches, the curves of their staleness, decisions.
const STALENESS = `title = "Caches and their staleness"
${COMMON.replace('nodes = 100', 'nodes = 100\nschedulers = 5')}[[policy]]
murmuration = {}
[[policy]]
yaq-d = {}
[[policy]]
eagle = {}
`;

// Runs without jobs, and runs in real time, whose reports have other tables.
const OF_TREE = { quickstart: 'experiments/quickstart.toml', gossip: 'experiments/gossip/alone.toml' };
const REAL = `title = "Fidelity and hosts"
${COMMON.replace('jobs = 200', 'jobs = 20').replace('nodes = 100', 'nodes = 10').replace('tasks = 10', 'tasks = 1')}[[policy]]
sparrow = {}
`;

const run = (name) => {
  const file = OF_TREE[name] ? path.resolve(OF_TREE[name]) : path.join(folder, `${name}.toml`);
  const hosts = name === 'hosts' ? ['--runtime', 'hosts', '--spawn', '2'] : [];
  execFileSync(VOLARY, ['run', file, '--quiet', ...hosts, '--out', path.join(folder, name)], { stdio: ['ignore', 'ignore', 'inherit'] });
  return `file://${path.join(folder, name, 'report.html')}`;
};

// Opens a report with all its details, and returns the problems found.
const look = async (browser, name, url, width, colorScheme) => {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const wrong = [];
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') wrong.push(message.text());
  });
  await page.goto(url);
  await page.evaluate(() => document.querySelectorAll('details').forEach((details) => { details.open = true; }));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  wrong.push(...(await violations(page)));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  if (wide > width) wrong.push(`it is ${wide} px wide on a screen of ${width}`);
  if (width > 1000) {
    const scrolls = await page.evaluate(() => [...document.querySelectorAll('.scroll')]
      .filter((box) => box.scrollWidth > box.clientWidth + 1)
      .map((box) => `${box.getAttribute('aria-label')} is ${box.scrollWidth} px wide in ${box.clientWidth}`));
    wrong.push(...scrolls);
  }
  await page.screenshot({ path: path.join(SHOTS, `${name}-${width}-${colorScheme}.png`) });
  if (width > 1000) {
    await page.emulateMedia({ media: 'print' });
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    if (paper !== 'rgb(255, 255, 255)') wrong.push(`it is printed on ${paper}`);
    await page.pdf({ path: path.join(SHOTS, `${name}-${colorScheme}.pdf`), format: 'A4' });
  }
  await context.close();
  return wrong;
};

const main = async () => {
  fs.writeFileSync(path.join(folder, 'sweep.toml'), SWEEP);
  fs.writeFileSync(path.join(folder, 'staleness.toml'), STALENESS);
  fs.writeFileSync(path.join(folder, 'hosts.toml'), REAL);
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    for (const name of ['quickstart', 'sweep', 'staleness', 'gossip', 'hosts']) {
      const url = run(name);
      for (const width of [1280, 390]) {
        for (const colorScheme of ['light', 'dark']) {
          const wrong = await look(browser, name, url, width, colorScheme);
          console.log(`   ${name}, ${width} px, ${colorScheme}: ${wrong.length ? wrong.join('\n') : 'nothing is wrong'}`);
          if (wrong.length) process.exitCode = 1;
        }
      }
    }
  } finally {
    await browser.close();
    fs.rmSync(folder, { recursive: true, force: true });
  }
};

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
