// The checks of .ci/live, with playwright.
'use strict';
const { spawn, execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { chromium } = require('playwright-core');
const { violations } = require('./axe.cjs');

const { VOLARY, CHROMIUM, SHOTS } = process.env;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'volary-live-'));
const children = [];
const began = Date.now();

const ok = (text) => console.log(`   ${text} (at ${((Date.now() - began) / 1000).toFixed(1)} s)`);
const check = (fact, text) => {
  if (!fact) throw new Error(text);
};

// Two policies in real time, with a crash, caches and interference.
const COMMON = `seed = 5
[cluster]
nodes = 24
schedulers = 2
[workload.synthetic]
jobs = 300
tasks = 4
interarrival = { exponential = { mean = "50ms" } }
[service]
demand = { exponential = { mean = "150ms" } }
[network]
one_way = "2ms"
[interference]
bernoulli = { slot = "500ms", probability = 0.2, slowdown = 8 }
`;
const REAL = `title = "Two policies <img src=x onerror=alert(1)>"
${COMMON}[[network.fault]]
pause = { who = ["node:3"], at = "3s", for = "2s" }
[[policy]]
sparrow = {}
[[policy]]
murmuration = {}
`;
// Eight policies side by side, for some seconds.
const RACE = `title = "A race"
${COMMON}${['sparrow', 'random', 'murmuration', 'round-robin', 'hopper', 'eagle', 'pigeon', 'latin-square']
    .map((policy) => `[[policy]]\n${policy} = {}\n`).join('')}`;
const SWEEP = `title = "A sweep"
${COMMON}[[policy]]
sparrow = {}
[[policy]]
random = {}
[sweep]
"service.correlated" = [true, false]
`;
// One run that does not end by itself within the test.
const LONG = `title = "A host is lost"
${COMMON.replace('jobs = 300', 'jobs = 20_000')}[[policy]]
sparrow = {}
`;

// Starts a command with a page; resolves with the process and the page's address.
const start = (args) =>
  new Promise((resolve, reject) => {
    const child = spawn(VOLARY, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
    children.push(child);
    let text = '';
    const done = new Promise((over) => child.on('exit', (code) => over(code)));
    child.stderr.on('data', (data) => {
      text += data;
      const found = text.match(/^live: (http:\S+)$/m);
      if (found) resolve({ child, done, url: found[1], said: () => text });
    });
    child.on('exit', (code) => reject(new Error(`volary ${args.join(' ')} ended with ${code}: ${text}`)));
  });

// Opens a page and records its errors in page.wrong.
const open = async (browser, url, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.wrong = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) page.wrong.push(message.text());
  });
  page.on('pageerror', (error) => page.wrong.push(String(error)));
  page.on('dialog', (dialog) => page.wrong.push(`a dialog: ${dialog.message()}`));
  page.on('requestfailed', (request) => {
    const why = request.failure().errorText;
    // The page closes its stream when the server reports the end.
    if (why !== 'net::ERR_ABORTED') page.wrong.push(`${request.url()} failed: ${why}`);
  });
  await page.goto(url);
  return page;
};

const shot = (page, name) => page.screenshot({ path: path.join(SHOTS, `${name}.png`), fullPage: true });
const text = (page, id) => page.locator(`#${id}`).innerText();
const until = (page, fact, arg, timeout = 60_000) => page.waitForFunction(fact, arg, { timeout });

// Height of the curve of a run in progress, px: it grows with the share of jobs that have finished.
const height = (page) =>
  page.evaluate(() => {
    const curve = document.querySelector('#responses svg path.running');
    return curve ? curve.getBBox().height : 0;
  });

const followed = async (browser) => {
  const run = await start(['run', 'real.toml', '--runtime', 'local', '--quiet', '--out', 'real', '--live']);
  const page = await open(browser, run.url);
  check((await page.title()).startsWith('Two policies <img'), 'the whole title is there');
  await until(page, () => document.querySelector('#responses svg path.running'));
  ok('the curve of the running policy appears');
  const low = await height(page);
  await until(page, () => document.querySelector('#disturbances li'));
  const told = await text(page, 'disturbances');
  check(/pause at 3/.test(told), `the pause of a node is told: ${told}`);
  const high = await height(page);
  check(high > low * 1.2, `the curve grows: ${low} to ${high} px`);
  ok(`the curve grows, from ${low.toFixed()} to ${high.toFixed()} px, and the fault appears`);
  for (const id of ['progress', 'grid', 'cores', 'load', 'shards']) {
    check(await page.locator(`#${id}`).isVisible(), `${id} is shown`);
  }
  check((await page.locator('#cores .burst').count()) > 1, 'some cores are slowed down');
  check((await page.locator('h1 img').count()) === 0, 'the title is text');
  await shot(page, 'real-1280');
  await accessible(page);
  await keyboard(page);
  await narrow(browser, run.url);
  await until(page, () => document.querySelector('#staleness svg'));
  ok('the second policy shows the staleness of its caches');
  await shot(page, 'staleness-1280');
  check((await run.done) === 0, 'the run ends well');
  await until(page, () => /finished; the report is/.test(document.getElementById('link').textContent));
  check((await page.locator('#grid td.done').count()) === 2, 'both runs have ended on the page');
  check(page.wrong.length === 0, `nothing is wrong on the page: ${page.wrong}`);
  ok('the page shows the end, without an error on the console');
  await shot(page, 'ended-1280');
};

const accessible = async (page) => {
  const wrong = await violations(page);
  check(wrong.length === 0, `everybody can use it: ${wrong.join('\n')}`);
};

// Everything that works with a mouse also works without one.
const keyboard = async (page) => {
  await page.locator('body').press('Tab');
  const focused = () => page.evaluate(() => document.activeElement.id);
  check((await focused()) === 'pause', `the first stop is pause, not ${await focused()}`);
  const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  check(ring === 'solid', 'the focus can be seen');
  await page.keyboard.press('Enter');
  const before = await text(page, 'progress');
  await page.waitForTimeout(2_500);
  check((await text(page, 'progress')) === before, 'nothing moves while it is paused');
  await page.keyboard.press('Enter');
  await until(page, (was) => document.getElementById('progress').innerText !== was, before);
  await page.keyboard.press('Tab');
  check((await focused()) === 'theme', 'the next stop is the theme');
  await page.keyboard.press('Space');
  check((await page.evaluate(() => document.documentElement.dataset.theme)) === 'dark', 'it is dark');
  await page.keyboard.press('Space');
  ok('pause and theme work from the keyboard');
};

const narrow = async (browser, url) => {
  for (const width of [360, 390]) {
    const viewport = { width, height: 740 };
    const page = await open(browser, url, { viewport, colorScheme: 'dark', isMobile: true });
    await until(page, () => document.querySelector('#cores svg') && document.querySelector('#responses svg'));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    check(wide <= width, `the page is ${wide} px wide on a screen of ${width}`);
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    check(paper === 'rgb(18, 22, 28)', `dark is dark, not ${paper}`);
    check(page.wrong.length === 0, `nothing is wrong on it: ${page.wrong}`);
    await shot(page, `dark-${width}`);
    await accessible(page);
    await page.context().close();
  }
  ok('it fits 360 px, and is dark if the browser prefers dark');
};

const injected = async (browser) => {
  const run = await start(
    ['run', 'long.toml', '--runtime', 'hosts', '--spawn', '2', '--out', 'lost', '--live', '-v']);
  const page = await open(browser, run.url);
  await until(page, () => document.querySelector('#cores svg'));
  const hosts = run.said().match(/hosts file of these agents is (\S+)/)[1];
  fs.writeFileSync(path.join(folder, 'p.toml'),
    'bernoulli = { slot = "100ms", probability = 1.0, slowdown = 16.0 }\n');
  const before = await page.locator('#cores .burst').count();
  const inject = spawn(VOLARY, ['inject', 'p.toml', '--hosts', hosts, '--node', '0-19', '--for', '60s'], { cwd: folder });
  children.push(inject);
  await until(page, () => /injection at .*: cores .* on local1, cores .* on local2, bernoulli = /
    .test(document.getElementById('disturbances').innerText));
  await until(page, (was) => document.querySelectorAll('#cores .burst').length > was + 5, before);
  ok('an injection appears, and the cores change their shade');
  check((await page.locator('#shards tbody tr').count()) === 2, 'both hosts report');
  await shot(page, 'injected-1280');
  // The agents are children of the run. Without any of them it cannot begin again.
  const agents = execFileSync('pgrep', ['-P', String(run.child.pid)], { encoding: 'utf8' }).trim().split('\n');
  agents.forEach((agent) => process.kill(Number(agent), 'SIGKILL'));
  check((await run.done) === 3, 'the run fails');
  await until(page, () => /was lost/.test(document.getElementById('failures').innerText));
  check((await page.locator('#grid td.bad').count()) === 1, 'the grid shows the failure');
  check((await page.locator('#disturbances li').count()) === 1, 'the injection stays, one entry for both hosts');
  await until(page, () => /failed in part; the report is/.test(document.getElementById('link').textContent));
  check(page.wrong.length === 0, `nothing is wrong on the page: ${page.wrong}`);
  ok(`a failed run shows its reason: ${(await text(page, 'failures')).split('\n').pop()}`);
  await shot(page, 'failed-1280');
  await accessible(page);
};

// All policies of a race are shown at the same time, on a wide and on a narrow screen.
const raced = async (browser) => {
  const run = await start(['run', 'race.toml', '--quiet', '--out', 'race', '--live', '--pace', '1']);
  for (const width of [1280, 390]) {
    const page = await open(browser, run.url, { viewport: { width, height: 900 } });
    const drawn = (part) => page.locator(`#${part} .pair svg`).count();
    await until(page, () => document.querySelectorAll('#cores .burst').length > 8);
    await until(page, () => document.querySelectorAll('#load .pair svg').length === 16);
    check((await drawn('cores')) === 8, `every policy has cores, not ${await drawn('cores')}`);
    check((await page.locator('#progress tbody tr').count()) === 8, 'and its counts');
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    check(wide <= width, `the page is ${wide} px wide on a screen of ${width}`);
    check(page.wrong.length === 0, `nothing is wrong on it: ${page.wrong}`);
    await shot(page, `race-${width}`);
    await accessible(page);
    await page.context().close();
  }
  run.child.kill('SIGINT');
  await run.done;
  ok('eight policies race side by side');
};

const watched = async (browser) => {
  execFileSync(VOLARY, ['run', 'sweep.toml', '--quiet', '--out', 'swept'], { cwd: folder });
  const watch = await start(['watch', 'swept']);
  const page = await open(browser, watch.url);
  await until(page, () => document.querySelectorAll('#grid td.done').length === 4);
  check((await page.locator('#responses path.curve').count()) >= 2, 'both policies have a curve');
  check(page.wrong.length === 0, `nothing is wrong on the page: ${page.wrong}`);
  await shot(page, 'watched-1280');
  ok('a study directory is shown the same way');
  watch.child.kill('SIGINT');
  check((await watch.done) === 0, 'Ctrl-C ends it');
  await until(page, () => /has ended/.test(document.getElementById('link').textContent));
};

const main = async () => {
  for (const [name, content] of Object.entries({ real: REAL, race: RACE, sweep: SWEEP, long: LONG })) {
    fs.writeFileSync(path.join(folder, `${name}.toml`), content);
  }
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args });
  try {
    await watched(browser);
    await raced(browser);
    await followed(browser);
    await injected(browser);
  } finally {
    await browser.close();
    children.forEach((child) => child.kill('SIGKILL'));
    fs.rmSync(folder, { recursive: true, force: true });
  }
};

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
