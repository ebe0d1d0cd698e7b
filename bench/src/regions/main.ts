import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createLimiter, type SharedLimiter, tokenBucket } from 'sluicegate'
import { redis } from 'sluicegate/redis'
import { region as regionOf } from 'sluicegate/regions'
import { measuredWhere } from 'sluicegate-commands/load/load-result.js'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { RAW } from '../committed-form.js'
import { printReport, writeResults } from '../report.js'
import { type RegionsResults, regionsReport, type WarmFigure } from '../small-tables.js'

const USAGE = `npm run bench:regions -- [--rounds N]

Takes of warm keys over one Redis, leased: with that Redis alone, and with a home in another one, in turn. Prints the processor time of
a take, and how many calls the servers counted; with the default number of rounds (9) it also writes bench/results/local/regions.json, from which npm run plots fills docs/regions.md.`

const ROUNDS = 9
const ROUND_MS = 2_000
/** At first, and before each round: the keys were idle while the other way was measured. */
const [WARM_UP_MS, WARM_AGAIN_MS] = [4_000, 2_000]
const KEYS = [1, 100]
const TAKES_PER_SECOND = 40_000
/** All takes of a turn of the event loop, as requests that came together. */
const TURN_MS = 5

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: String(ROUNDS) }, help: { type: 'boolean', default: false } },
})
const rounds = Number(values.rounds)

if (values.help || !(rounds >= 1)) {
  console.error(USAGE)
  process.exitCode = values.help ? 0 : 2
} else {
  await measure()
}

async function measure(): Promise<void> {
  const [region, home] = [await ownRedis(), await ownRedis()]
  const where = measuredWhere()
  try {
    const policy = tokenBucket({ limit: 1_000_000, window: '1s', burst: 8_000_000, name: 'warm' })
    const local = redis(region.client)
    const alone = createLimiter(policy, { store: local, timeout: 1_000 })
    const store = regionOf({ name: 'here', local, home: redis(home.client) })
    const split = createLimiter(policy, { store, timeout: 1_000 })
    const figures: WarmFigure[] = []
    for (const keys of KEYS) figures.push(await figureOf(alone, split, keys, [region, home]))
    const results: RegionsResults = { kind: 'regions', where, takesPerSecond: TAKES_PER_SECOND, figures }
    printReport(regionsReport(results))
    alone.close()
    split.close()
    if (rounds === ROUNDS) writeResults(`${RAW}regions.json`, results)
  } finally {
    await Promise.all([region.stop(), home.stop()])
  }
}

async function figureOf(alone: SharedLimiter, split: SharedLimiter, keys: number, servers: readonly OwnRedis[]): Promise<WarmFigure> {
  const names = Array.from({ length: keys }, (_, i) => `key ${i}`)
  for (const limiter of [alone, split]) await takesFor(limiter, names, WARM_UP_MS)
  const [withoutHome, withHome]: [Round[], Round[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    console.error(`${keys} keys: round ${round + 1} of ${rounds}`)
    withoutHome.push(await roundOf(alone, names, servers))
    withHome.push(await roundOf(split, names, servers))
  }
  const times = (of: readonly Round[]): number[] => of.map(({ us }) => us)
  const calls = (of: readonly Round[]): number[] => of.map(({ callsAThousand }) => callsAThousand)
  return {
    keys,
    withoutHome: times(withoutHome),
    withHome: times(withHome),
    calls: { withoutHome: calls(withoutHome), withHome: calls(withHome) },
  }
}

interface Round {
  /** Microseconds of this process for each take, with all that is done in the background for it. */
  readonly us: number
  /** Scripts that the servers ran for 1,000 takes. */
  readonly callsAThousand: number
}

async function roundOf(limiter: SharedLimiter, names: readonly string[], servers: readonly OwnRedis[]): Promise<Round> {
  await takesFor(limiter, names, WARM_AGAIN_MS)
  const callsBefore = await callsOf(servers)
  const before = process.cpuUsage()
  const takes = await takesFor(limiter, names, ROUND_MS)
  const { user, system } = process.cpuUsage(before)
  return { us: (user + system) / takes, callsAThousand: (1_000 * ((await callsOf(servers)) - callsBefore)) / takes }
}

async function takesFor(limiter: SharedLimiter, names: readonly string[], ms: number): Promise<number> {
  const startMs = performance.now()
  let takes = 0
  let denied = 0
  const count = ({ allowed }: { readonly allowed: boolean }): void => void (allowed || denied++)
  for (let nowMs = startMs; nowMs < startMs + ms; nowMs = performance.now()) {
    const due = ((nowMs - startMs) * TAKES_PER_SECOND) / 1_000
    const waiting: Promise<void>[] = []
    for (; takes < due; takes++) {
      const decision = limiter.take(names[takes % names.length] as string)
      if (decision instanceof Promise) waiting.push(decision.then(count))
      else count(decision)
    }
    await Promise.all(waiting)
    await pause(TURN_MS)
  }
  if (denied > 0) throw new Error(`${denied} of ${takes} takes were denied, far below the limit`)
  return takes
}

/** Scripts that the servers ran so far. */
async function callsOf(servers: readonly OwnRedis[]): Promise<number> {
  let calls = 0
  for (const { send } of servers) {
    const text = String(await send('INFO', 'commandstats'))
    for (const [, count] of text.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)) calls += Number(count)
  }
  return calls
}
