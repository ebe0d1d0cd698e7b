import { createLimiter, fixedWindow, type Limiter, levels, type Policy, tokenBucket } from 'sluicegate'
import { givenOptions, QUICK_RESULTS, RAW } from '../committed-form.js'
import { machine } from '../machine.js'
import { printReport, writeResults } from '../report.js'
import { installRivals } from '../rivals.js'
import { type Table, tableOf, whole } from '../table.js'
import { CHECKING, CHECKING_THERE, holding, METER, type Metering, reserving } from './metering.js'
import {
  CHECKING_OVER_REDIS,
  holdingOverRedis,
  METER_OVER_REDIS,
  opensAtOnce,
  type RedisRow,
  reservingOverRedis,
  streamedOverRedis,
} from './over-redis.js'
import { type StreamsRow, streamed } from './streams.js'

const USAGE = `npm run bench:holds -- [--quick] [--sweep] [--json FILE]

  Answers of a language model within 50,000 tokens a minute: what each way of metering uses of the budget, goes over it, cuts and wastes,
  on a clock of its own; and what a piece costs on this machine.

  --quick      two minutes instead of twenty
  --sweep      also holds of fixed expectations, beside the learned one
  --json FILE  where the results go; default bench/results/local/holds.json, with --quick bench/results/local/quick/holds.json`

const values = givenOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  sweep: { type: 'boolean', default: false },
  json: { type: 'string' },
})

const BUDGET = { limit: 50_000, window: '1m' } as const
const POLICIES: readonly Policy[] = [tokenBucket(BUDGET), fixedWindow(BUDGET)]
const WAYS: readonly Metering[] = [
  holding("open 'learned', wait", { most: 4096, over: 'wait' }),
  holding("open 'learned', cut", { most: 4096, over: 'cut' }),
  reserving(4096),
  reserving(1024),
  reserving(256),
  CHECKING,
  METER,
  CHECKING_THERE,
]
const WAYS_OVER_REDIS = [
  holdingOverRedis("open 'learned', wait", { most: 4096, over: 'wait' }),
  holdingOverRedis("open 'learned', cut", { most: 4096, over: 'cut' }),
  reservingOverRedis(1024),
  CHECKING_OVER_REDIS,
  METER_OVER_REDIS,
]
const STREAMS = [32, 128]
const EXPECTATIONS = [50, 129, 211, 300, 424, 601, 1000]
const SWEEP = (['wait', 'cut'] as const).flatMap((over) =>
  EXPECTATIONS.map((expect) => holding(`open ${expect}, ${over}`, { expect, over })),
)

installRivals()
await run()

async function run(): Promise<void> {
  const ways = values.sweep ? [...WAYS, ...SWEEP] : WAYS
  const rows: (StreamsRow & { readonly policy: string; readonly streams: number })[] = []
  const tables: Table[] = []
  for (const policy of POLICIES) {
    for (const streams of STREAMS) {
      const of: StreamsRow[] = []
      for (const way of ways) if (way.counts(policy)) of.push(await streamed(policy, way, streams, values.quick ? 2 : 20))
      rows.push(...of.map((row) => ({ ...row, policy: policy.algorithm, streams })))
      tables.push(waysTable(`${policy.algorithm}, ${streams} streams`, of, { 'tokens in them': ({ wasted }) => percent(wasted) }))
    }
  }
  const costs = costsOf(values.quick ? 200_000 : 2_000_000)
  tables.push(tableOf({ name: 'a piece, in process' }, Object.entries(costs), { '': ([what]) => what, ns: ([, ns]) => ns.toFixed(0) }))
  const overRedis: (RedisRow & { readonly policy: string; readonly streams: number })[] = []
  for (const policy of POLICIES) {
    for (const streams of STREAMS) {
      const of: RedisRow[] = []
      for (const way of WAYS_OVER_REDIS) of.push(await streamedOverRedis(policy, way, streams, values.quick ? 1 : 2))
      overRedis.push(...of.map((row) => ({ ...row, policy: policy.algorithm, streams })))
      tables.push(
        waysTable(`over Redis, ${policy.algorithm}, ${streams} streams`, of, {
          'calls per 1,000 pieces': ({ calls }) => calls.toFixed(1),
          'ns a piece': ({ ns }) => whole(ns),
        }),
      )
    }
  }
  const atOnce = await opensAtOnce()
  tables.push(
    tableOf({ name: '1,000 opens of 0.10 at once against 5.00, over Redis' }, [atOnce], {
      passed: ({ passed }) => whole(passed),
      milliseconds: ({ ms }) => whole(ms),
    }),
  )
  printReport({ pages: [], tables })
  writeResults(values.json ?? `${values.quick ? QUICK_RESULTS : RAW}holds.json`, {
    kind: 'holds',
    machine: machine(),
    rows,
    costs,
    overRedis,
    atOnce,
  })
}

type Columns<Row> = Readonly<Record<string, (row: Row) => string>>

/** What each way made of the budget, and columns of its own. */
function waysTable<Row extends StreamsRow>(name: string, rows: readonly Row[], own: Columns<Row>): Table {
  const ways: Columns<Row> = {
    '': (row) => row.name,
    'budget used': ({ used }) => percent(used),
    'over, tokens': ({ over }) => whole(over),
    'answers cut': ({ cut }) => percent(cut),
  }
  return tableOf({ name }, rows, { ...ways, ...own })
}

function percent(value: number): string {
  return `${value.toFixed(1)} %`
}

/** Nanoseconds, the median of seven rounds in turns. */
function costsOf(pieces: number): Record<string, number> {
  const vast = { limit: 1_000_000_000, window: '1m' } as const
  const one = (): Limiter => createLimiter(tokenBucket(vast))
  const four = createLimiter(levels({ org: fixedWindow(vast), team: fixedWindow(vast), user: tokenBucket(vast), key: tokenBucket(vast) }))
  const single = one()
  const [plain, beside] = [one(), one()]
  // Holds of another key.
  beside.open('other', { expect: 1_000, ttl: '1d' })
  const held = { expect: 900_000_000, ttl: '1d' } as const
  const ways: Record<string, () => () => unknown> = {
    'take, no hold in the limiter': () => () => plain.take('acme'),
    'take, another key has a hold': () => () => beside.take('acme'),
    'add within the hold, one policy': () => {
      const work = single.open('acme', held)
      return () => work.add(1)
    },
    'add within the hold, four levels': () => {
      const work = four.open({ org: 'o', team: 't', user: 'u', key: 'k' }, held)
      return () => work.add(1)
    },
    'add of free room, one policy': () => {
      const work = single.open('ada', { expect: 1 })
      return () => work.add(1)
    },
    'open and close': () => () => single.open('eve', { expect: 200 }).close(),
  }
  const steps = Object.entries(ways).map(([what, make]) => ({ what, step: make(), rounds: [] as number[] }))
  for (let round = 0; round < 8; round++) {
    for (const { step, rounds } of steps) {
      const begin = process.hrtime.bigint()
      for (let i = 0; i < pieces / 8; i++) step()
      if (round > 0) rounds.push(Number(process.hrtime.bigint() - begin) / (pieces / 8))
    }
  }
  return Object.fromEntries(steps.map(({ what, rounds }) => [what, rounds.sort((a, b) => a - b)[3] as number]))
}
