import { createLimiter, fixedWindow, type Hold, manualClock, type OpenOptions, type Policy, type SharedLimiter } from 'sluicegate'
import { Random } from 'sluicegate-testkit'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { redisOver } from '../../../packages/sluicegate/dist/redis/redis.js'
import { again, counted, type Metered } from './metering.js'
import { answerLength, Spent, START_MS, type StreamsRow } from './streams.js'

const PIECE_MS = 20
const KEY = 'acme'
const IDLE_TURNS = 6

/** What a way of metering did over Redis. */
export interface RedisRow extends StreamsRow {
  /** Calls to the store for 1,000 pieces. */
  readonly calls: number
  /** Nanoseconds of a piece, calls included. */
  readonly ns: number
}

/** A way to keep answers within a budget over a store. A number: milliseconds until it is worth trying again. */
export interface StoreMetering {
  readonly name: string
  begin(limiter: SharedLimiter): Promise<Metered | number>
}

export function holdingOverRedis(name: string, options: OpenOptions): StoreMetering {
  return {
    name,
    async begin(limiter) {
      const work: Hold<boolean | Promise<boolean>, 'later'> = await limiter.open(KEY, options)
      if (!work.allowed) return again(work.retryAfterMs)
      return { piece: () => work.add(1), end: () => work.close() }
    },
  }
}

/** What the budget pays is charged before, and corrected afterwards. */
export function reservingOverRedis(tokens: number): StoreMetering {
  return {
    name: `reserve ${tokens.toLocaleString('en')}, settle`,
    async begin(limiter) {
      const reservation = await limiter.reserve(KEY, tokens, { maxWait: 0 })
      return reservation.allowed ? counted((sent) => reservation.settle(sent)) : again(reservation.waitMs)
    },
  }
}

/** As most gateways do. */
export const CHECKING_OVER_REDIS: StoreMetering = {
  name: 'check, charge at the end',
  async begin(limiter) {
    const { allowed, retryAfterMs } = await limiter.peek(KEY, 1)
    return allowed ? counted((sent) => (sent > 0 ? limiter.penalize(KEY, sent) : undefined)) : again(retryAfterMs)
  },
}

/** A call for each piece, and nothing held. */
export const METER_OVER_REDIS: StoreMetering = {
  name: 'a take for each piece',
  async begin(limiter) {
    const { allowed, retryAfterMs } = await limiter.peek(KEY, 1)
    if (!allowed) return again(retryAfterMs)
    return { piece: async () => (await limiter.take(KEY, 1)).allowed, end: () => undefined }
  },
}

/** `streams` clients of one process over a Redis of its own, whose scripts run at the times of the clock. */
export async function streamedOverRedis(policy: Policy, metering: StoreMetering, streams: number, minutes: number): Promise<RedisRow> {
  const redis = await ownRedis()
  const clock = manualClock(START_MS)
  const time = new GivenTime(redis.runner, clock)
  const limiter = createLimiter(policy, {
    store: redisOver(time, { prefix: 'bench' }),
    mode: 'exact',
    outage: 'closed',
    timeout: 60_000,
    clock,
  })
  const random = new Random(47)
  const spent = new Spent(policy)
  const warmMs = 60_000
  const endMs = warmMs + minutes * 60_000
  let [begun, cut, sent, wasted, ns, callsBefore] = [0, 0, 0, 0, 0, 0]
  const client = { work: undefined as Metered | undefined, length: 0, sent: 0, nextMs: 0, isBusy: false }
  const all = Array.from({ length: streams }, (_, i) => ({ ...client, nextMs: i }))
  const settled = async (): Promise<void> => {
    for (let idle = 0; idle < IDLE_TURNS; idle = time.underway > 0 ? 0 : idle + 1) await new Promise((resolve) => setImmediate(resolve))
  }
  const step = async (stream: typeof client): Promise<void> => {
    if (stream.work === undefined) {
      const work = await metering.begin(limiter)
      if (typeof work === 'number') {
        stream.nextMs += work
        return
      }
      Object.assign(stream, { work, length: answerLength(random), sent: 0 })
    }
    const work = stream.work as unknown as Metered
    const from = process.hrtime.bigint()
    const may = await work.piece()
    ns += Number(process.hrtime.bigint() - from)
    stream.nextMs = clock.nowMs() - START_MS + PIECE_MS
    if (may) {
      stream.sent++
      sent++
      spent.add(clock.nowMs())
      if (stream.sent < stream.length) return
    }
    begun++
    if (!may) {
      cut++
      wasted += stream.sent
    }
    stream.work = undefined
    await work.end()
  }
  for (let ms = 0; ms < endMs; ms += PIECE_MS) {
    if (ms === warmMs) {
      ;[begun, cut, sent, wasted, ns] = [0, 0, 0, 0, 0]
      callsBefore = limiter.stats().storeCalls
    }
    for (const stream of all) {
      if (stream.isBusy || stream.nextMs > ms) continue
      stream.isBusy = true
      void step(stream).finally(() => {
        stream.isBusy = false
      })
    }
    await settled()
    clock.advance(PIECE_MS)
    await settled()
  }
  const storeCalls = limiter.stats().storeCalls - callsBefore
  limiter.close()
  await redis.stop()
  return {
    name: metering.name,
    used: (100 * sent) / (policy.limit * minutes),
    over: spent.over,
    cut: (100 * cut) / Math.max(1, begun),
    wasted: sent === 0 ? 0 : (100 * wasted) / sent,
    calls: (1000 * storeCalls) / Math.max(1, sent),
    ns: ns / Math.max(1, sent),
  }
}

/** A thousand opens of 0.10 dollars at once against 5.00, in micro-dollars. */
export async function opensAtOnce(): Promise<{ readonly passed: number; readonly ms: number }> {
  const redis = await ownRedis()
  const policy = fixedWindow({ limit: 5_000_000, window: '1d' })
  const limiter = createLimiter(policy, {
    store: redisOver(redis.runner, { prefix: 'bench' }),
    mode: 'exact',
    outage: 'closed',
    timeout: 60_000,
  })
  // The script is known, and compiled.
  await Promise.all(Array.from({ length: 200 }, async (_, i) => (await limiter.open(`warm ${i % 20}`, { expect: 1 })).close()))
  const from = performance.now()
  const works = await Promise.all(Array.from({ length: 1000 }, () => limiter.open(KEY, { expect: 100_000 })))
  const ms = performance.now() - from
  limiter.close()
  await redis.stop()
  return { passed: works.filter(({ allowed }) => allowed).length, ms }
}
