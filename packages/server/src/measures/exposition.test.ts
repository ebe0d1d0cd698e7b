import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Exposed, exposition } from './exposition.js'

test('thousands of values are written in steps of a few, and each of them once', () => {
  const values = Array.from({ length: 10_000 }, (_, i) => ({ labels: { n: i }, value: i }))
  let read = 0
  function* reading(): Generator<(typeof values)[number]> {
    for (const sample of values) {
      read++
      yield sample
    }
  }
  const metric: Exposed = { name: 'a_total', help: 'A.', type: 'counter', values: reading() }
  const steps = exposition([metric])
  let text: string | undefined
  for (let before = 0; text === undefined; before = read) {
    const { done, value } = steps.next()
    assert.ok(read - before <= 64, `${read - before} in a step`)
    if (done) text = value.toString()
  }
  assert.equal(text.split('\n').length, 2 + values.length + 1)
})

test('signs that would end a label or a line are escaped, and numbers have the names of the format', () => {
  const steps = exposition([
    {
      name: 'a',
      help: 'back\\slash\nline',
      type: 'gauge',
      values: [
        { labels: { x: 'a"b\\c\nd', y: 1 }, value: Number.POSITIVE_INFINITY },
        { labels: {}, metricName: 'a_sum', value: Number.NaN },
      ],
    },
  ])
  let { done, value } = steps.next()
  while (!done) ({ done, value } = steps.next())
  // Bytes: megabytes of a text would be made into them at once.
  assert.ok(Buffer.isBuffer(value))
  assert.equal(String(value), '# HELP a back\\\\slash\\nline\n# TYPE a gauge\na{x="a\\"b\\\\c\\nd",y="1"} +Inf\na_sum NaN\n')
})

test('values of any length and script find room', () => {
  const name = 'ключ名😀'.repeat(20_000)
  const steps = exposition([{ name: 'a', help: 'A.', type: 'gauge', values: [{ labels: { x: name }, value: 1 }] }])
  let { done, value } = steps.next()
  while (!done) ({ done, value } = steps.next())
  assert.equal(String(value), `# HELP a A.\n# TYPE a gauge\na{x="${name}"} 1\n`)
})
