import assert from 'node:assert/strict'
import { test } from 'node:test'
import { committedForm } from './committed-form.js'

test('of repeated runs medians and quartiles are committed, with the machine and the command, a row a line', () => {
  const results = {
    kind: 'server',
    machine: { cpu: 'a', cores: 2 },
    http: [
      {
        subject: 'take',
        runs: [1, 3, 2].map((n) => ({
          startedAt: 'now',
          perSecond: n,
          latencyMs: { p50: n / 3 },
          over: 0,
          denied: n > 1 ? { p50: n } : null,
        })),
      },
      { subject: 'rows', runs: [{ name: 'x', ns: [1, 2, 3, 4] }] },
    ],
    answers: [
      { measurements: [{ subject: 'one', ns: { min: 0, lowerQuartile: 1, median: 2, upperQuartile: 3, max: 9 }, samples: [1, 2, 3] }] },
    ],
  }
  assert.equal(
    committedForm(results, 'npm run bench:server'),
    `{
 "command": "npm run bench:server",
 "kind": "server",
 "machine": {"cpu":"a","cores":2},
 "http": [
  {"subject":"take","runs":{"perSecond":[1.5,2,2.5],"latencyMs":{"p50":[0.5,0.6667,0.8333]},"over":0,"denied":{"p50":[2.25,2.5,2.75]}}},
  {"subject":"rows","runs":[{"name":"x","ns":[1.75,2.5,3.25]}]}
 ],
 "answers": [
  {"measurements":[{"subject":"one","ns":[1,2,3]}]}
 ]
}
`,
  )
})
