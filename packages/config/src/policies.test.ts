import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Policy } from 'sluicegate'
import { faultsOf, onePolicy } from 'sluicegate-testkit/service/running-service.js'
import type { PolicyConfig } from './policy-config.js'
import { parseConfig } from './read-config.js'

function read(options: string): PolicyConfig {
  return parseConfig(onePolicy(options)).policies[0] ?? assert.fail()
}

const READ: readonly [what: string, options: string, policy: Partial<Policy>][] = [
  ['a fixed window', 'algorithm: fixed-window, limit: 5, window: 1m', { algorithm: 'fixed-window', limit: 5, windowMs: 60_000 }],
  [
    'a window of the calendar, in UTC by default',
    'algorithm: fixed-window, limit: 5, window: day',
    { algorithm: 'fixed-window', calendar: { unit: 'day', timeZone: 'UTC' } },
  ],
  [
    'a window of the calendar in a time zone',
    'algorithm: fixed-window, limit: 5, window: month, time-zone: Europe/Rome',
    { calendar: { unit: 'month', timeZone: 'Europe/Rome' } },
  ],
  ['a sliding window', 'algorithm: sliding-window, limit: 5, window: 1m', { algorithm: 'sliding-window', limit: 5, windowMs: 60_000 }],
  ['a sliding log', 'algorithm: sliding-log, limit: 5, window: 10s', { algorithm: 'sliding-log', limit: 5 }],
]

for (const [what, options, policy] of READ) {
  test(`${what} is read`, () => {
    const made = read(options).policy
    assert.deepEqual(Object.fromEntries(Object.keys(policy).map((field) => [field, made[field as keyof Policy]])), policy)
    assert.equal(made.name, 'api')
  })
}

const BUCKET = 'algorithm: token-bucket, limit: 10, window: 1s'
const QUOTA = 'algorithm: fixed-window, limit: 100, window: day'

test('the parts of an all-of are a list, each with a given name or its default name', () => {
  const { policy, maxKeys, onFull } = read(`all-of: [{ ${BUCKET} }, { ${QUOTA}, name: quota }], max-keys: 7, on-full: deny`)
  assert.deepEqual([policy.name, policy.algorithm, maxKeys, onFull], ['api', 'all-of', 7, 'deny'])
  assert.deepEqual(
    policy.policies?.map(({ name }) => name),
    ['token-bucket-10-1s', 'quota'],
  )
})

test('a table grows to a number of keys, not below the number that it begins with', () => {
  assert.equal(read(`${BUCKET}, max-keys: 7`).maxKeys, 7)
})

test('the algorithm all-of may be written, since the list says it already', () => {
  assert.deepEqual(read(`algorithm: all-of, all-of: [{ ${BUCKET} }]`).policy, read(`all-of: [{ ${BUCKET} }]`).policy)
})

test('an all-of has at most eight parts', () => {
  const list = (n: number): string => Array.from({ length: n }, (_, i) => `{ ${BUCKET}, name: part ${i} }`).join(', ')
  assert.equal(read(`all-of: [${list(8)}]`).policy.policies?.length, 8)
  assert.deepEqual(faultsOf(onePolicy(`all-of: [${list(9)}]`)), ['gate.yaml:2:18: policies.api.all-of: must have 1 to 8 policies, not 9'])
})

/** The mistake, the options of the file's one policy, and the only fault expected. */
test('levels are policies under their names, in the order of the file', () => {
  const { policy } = read(
    'levels: { org: { algorithm: fixed-window, limit: 50, window: month }, user: { algorithm: gcra, limit: 5, window: 1s } }',
  )
  assert.deepEqual(
    policy.policies?.map(({ name, algorithm }) => [name, algorithm]),
    [
      ['org', 'fixed-window'],
      ['user', 'gcra'],
    ],
  )
})

const FAULTS: readonly [what: string, options: string, fault: RegExp][] = [
  [
    'an option of another algorithm',
    'algorithm: fixed-window, limit: 5, window: 1m, burst: 9',
    /^gate\.yaml:2:57: policies\.api\.burst: is for token-bucket and gcra, not for fixed-window$/,
  ],
  [
    'a misspelt option',
    'algorithm: fixed-window, limit: 5, window: day, timezone: UTC',
    /timezone: unknown option; did you mean "time-zone"\?$/,
  ],
  [
    'a misspelt unit of the calendar',
    'algorithm: fixed-window, limit: 5, window: moth',
    /window: must be a number with a unit.*; or day, week, month or year, not "moth"; did you mean "month"\?$/,
  ],
  [
    'a window of the calendar elsewhere',
    'algorithm: sliding-log, limit: 5, window: day',
    /window: .* day are for fixed-window; give a length/,
  ],
  [
    'a window without a unit in quotes',
    'algorithm: gcra, limit: 5, window: "60"',
    /window: must be a number with a unit: 250ms.*, not "60"$/,
  ],
  [
    'a time zone that is none',
    'algorithm: fixed-window, limit: 5, window: day, time-zone: Europe/Roma',
    /^gate\.yaml:2:69: policies\.api\.time-zone: must be the name of a time zone.*; did you mean "Europe\/Rome"\?$/,
  ],
  [
    'a time zone without a calendar',
    'algorithm: fixed-window, limit: 5, window: 24h, time-zone: UTC',
    /time-zone: is for windows of the calendar: 'day', 'week', 'month' or 'year' \(got "UTC"\)$/,
  ],
  [
    'a log beyond its limit',
    'algorithm: sliding-log, limit: 100001, window: 1m',
    /limit: must be an integer from 1 to 100000 \(got 100001\)$/,
  ],
  ['concurrency with a window', 'algorithm: concurrency, limit: 5, window: 30s', /api\.window: is for .*, not for concurrency$/],
  ['concurrency without a limit', 'algorithm: concurrency, ttl: 30s', /api\.limit: is missing$/],
  ['concurrency for no time', 'algorithm: concurrency, limit: 5, ttl: soon', /api\.ttl: must be .*'10s'/],
  ['a mapping of several', `all-of: { a: { ${BUCKET} } }`, /all-of: must be a list of policies, not a mapping$/],
  ['none of several', 'all-of: []', /all-of: must have 1 to 8 policies, not 0$/],
  [
    'all-of without its list',
    'algorithm: all-of',
    /^gate\.yaml:2:3: policies\.api\.all-of: is missing: list the policies that all have to agree$/,
  ],
  ['another algorithm beside the list', `algorithm: gcra, all-of: [{ ${BUCKET} }]`, /api\.algorithm: must be all-of, not "gcra"$/],
  ['one of several that is a number', 'all-of: [5]', /all-of\[0\]: must be a mapping of options, not 5$/],
  [
    'several within several',
    `all-of: [{ all-of: [{ ${BUCKET} }] }]`,
    /all-of\[0\]\.all-of: cannot stand in another all-of: list all policies in one$/,
  ],
  ['a limit beside the list', `all-of: [{ ${BUCKET} }], limit: 5`, /api\.limit: is for a policy in all-of or levels: write it there$/],
  ['a list of levels', `levels: [{ ${BUCKET} }]`, /levels: must be a mapping of options, not a list$/],
  ['no levels', 'levels: {}', /levels: must have 1 to 8 policies, not 0$/],
  [
    'levels beside a list',
    `all-of: [{ ${BUCKET} }], levels: { a: { ${BUCKET} } }`,
    /all-of: cannot stand beside levels: name all policies there$/,
  ],
  [
    'a level with a number as its name',
    `levels: { 1: { ${BUCKET} } }`,
    /levels\.1: must not be a number, as an object would have it first$/,
  ],
  ['a level with a name of its own', `levels: { a: { ${BUCKET}, name: b } }`, /levels\.a\.name: unknown option/],
  ['keys of a level', `levels: { a: { ${BUCKET}, max-keys: 5 } }`, /levels\.a\.max-keys: is for the whole policy: write it beside levels$/],
  [
    'levels within a level',
    `levels: { a: { levels: { b: { ${BUCKET} } } } }`,
    /levels\.a\.levels: cannot stand in a level: name all policies beside each other$/,
  ],
  [
    'keys of one of several',
    `all-of: [{ ${BUCKET}, max-keys: 5 }]`,
    /all-of\[0\]\.max-keys: is for the whole policy: write it beside all-of$/,
  ],
  [
    'more memory than there can be to grow to',
    'algorithm: sliding-log, limit: 100000, window: 1m, max-keys: 1000000',
    /policies\.api\.max-keys: keys up to this number take 1080\.\d GiB, and 4 GiB is the most/,
  ],
  [
    'two of one name',
    `all-of: [{ ${BUCKET} }, { ${BUCKET}, burst: 20 }]`,
    /all-of\[1\]\.name: "token-bucket-10-1s" is the name of policies\.api\.all-of\[0\] already: give this one another$/,
  ],
  ['a name beyond ASCII', `all-of: [{ ${BUCKET}, name: größe }]`, /all-of\[0\]\.name: must be 1 to 120 printable ASCII characters/],
  [
    'a fault in one of several',
    `all-of: [{ ${BUCKET} }, { algorithm: gcra, limit: 0, window: 1s }]`,
    /all-of\[1\]\.limit: must be an integer from 1/,
  ],
  [
    'more memory than there can be',
    'algorithm: sliding-log, limit: 100000, window: 1m, max-keys: 1000000',
    /^gate\.yaml:2:71: policies\.api\.max-keys: keys up to this number take 1080\.\d GiB, and 4 GiB is the most: lower it, or the limit of a sliding-log$/,
  ],
]

for (const [what, options, fault] of FAULTS) {
  test(`${what} is refused with its place and what would be right`, () => {
    const found = faultsOf(onePolicy(options))
    assert.match(found[0] ?? '', fault)
    assert.equal(found.length, 1, found.join('\n'))
  })
}

test('without an algorithm a policy is checked by the options that all algorithms have', () => {
  const [algorithm, limit, ...rest] = faultsOf(onePolicy('algorithm: leaky, limit: 0, window: month, burst: 9, ttl: 4s'))
  assert.match(
    algorithm ?? '',
    /algorithm: must be token-bucket, gcra, fixed-window, sliding-window, sliding-log, concurrency or all-of, not "leaky"$/,
  )
  assert.match(limit ?? '', /limit: must be an integer/)
  assert.deepEqual(rest, [])
})

test('a misspelt algorithm counts as the nearest one, and the other options are checked by that', () => {
  const [algorithm, burst, ...rest] = faultsOf(onePolicy('algorithm: fixedWindow, limit: 5, window: month, burst: 9'))
  assert.match(algorithm ?? '', /did you mean "fixed-window"\?$/)
  assert.match(burst ?? '', /burst: is for token-bucket and gcra/)
  assert.deepEqual(rest, [])
})

test('a faulty window causes no fault for its time zone', () => {
  const found = faultsOf(onePolicy('algorithm: fixed-window, limit: 5, window: daily, time-zone: Europe/Rome'))
  assert.equal(found.length, 1, found.join('\n'))
})

test('logs that need too much memory for the default number of keys require max-keys', () => {
  const logs = [1, 2, 3, 4, 5].map((i) => `{ algorithm: sliding-log, limit: 100000, window: ${i}s }`).join(', ')
  assert.deepEqual(faultsOf(onePolicy(`all-of: [${logs}]`)), [
    'gate.yaml:2:3: policies.api.max-keys: is needed here: as many keys as usual take 5.0 GiB, and 4 GiB is the most',
  ])
  assert.equal(read(`all-of: [${logs}], max-keys: 500`).maxKeys, 500)
})
