import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quoted, readQuery, splitTarget } from './query.js'

test('a query string is read as browsers write it', () => {
  assert.deepEqual(
    [...readQuery('key=a%20b+c%2Bd&cost=2&&policy=%E2%82%AC')],
    [
      ['key', 'a b c+d'],
      ['cost', '2'],
      ['policy', '€'],
    ],
  )
})

const REFUSED: readonly [what: string, query: string, why: RegExp][] = [
  ['a parameter given twice', 'key=a&cost=1&key=b', /"key" is given more than once/],
  ['a parameter given twice in two spellings', 'key=a&k%65y=b', /"key" is given more than once/],
  ['a percent sign that encodes nothing', 'key=100%', /not percent-encoded UTF-8/],
  ['an encoding that is not UTF-8', 'key=%ff', /not percent-encoded UTF-8/],
  ['an encoded lone surrogate', 'key=%ED%A0%80', /not percent-encoded UTF-8/],
  ['an overlong encoding', 'key=%C0%AF', /not percent-encoded UTF-8/],
  ['raw bytes beyond ASCII', 'key=\u00e4', /must be percent-encoded/],
  ['a name without a value', 'key', /write name=value/],
]

for (const [what, query, why] of REFUSED) {
  test(`${what} is refused`, () => assert.throws(() => readQuery(query), why))
}

test('__proto__ is a name like any other', () => {
  const parameters = readQuery('__proto__=1&constructor=2')
  assert.equal(parameters.get('__proto__'), '1')
  assert.equal(parameters.get('toString'), undefined)
})

test('a target is a path or a whole URL', () => {
  assert.deepEqual(splitTarget('/v1/take?a=1?b'), { path: '/v1/take', query: 'a=1?b' })
  assert.deepEqual(splitTarget('http://host:80/livez'), { path: '/livez', query: '' })
  assert.deepEqual(splitTarget('/?'), { path: '/', query: '' })
  assert.equal(splitTarget('*').path, '*')
})

test('a name from outside is short and on one line when it is quoted', () => {
  assert.equal(quoted('a\nb'), '"a\\nb"')
  assert.ok(quoted('x'.repeat(10_000)).length < 80)
})
