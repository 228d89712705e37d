// The violations that axe-core finds on a page, as one text for each rule.
'use strict';
const fs = require('node:fs');

const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

exports.violations = async (page) => {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run());
  const nodes = (rule) => rule.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)}: ${node.failureSummary}`);
  return found.violations.map((rule) => `${rule.id}, ${rule.nodes.length} times: ${nodes(rule).join('\n  ')}`);
};
