import assert from 'node:assert/strict'
import { createLimiter, manualClock, type Policy } from 'sluicegate'
import { type RateLimitOptions, rateLimit, SluicegateStore } from 'sluicegate/express-rate-limit'
import { Random } from 'sluicegate-testkit'
import { requireRival } from '../rivals.js'
import { type DrawnCall, drawnCall, drawnSite } from './express-drawn.js'
import { type Middleware, type RivalSite, siteWith } from './rival-express.js'
import { assertSameReplies } from './same-replies.js'

type Limit = Middleware & { getKey(key: string): Promise<{ totalHits: number } | undefined>; resetKey(key: string): Promise<void> }

const theirs = requireRival('express-rate-limit') as { readonly rateLimit: (options: object) => Limit }

/** How often a site is asked before there is another one. */
const CALLS = 100
/** For the times of resets: the clock of ours stands still. */
const MOST_SECONDS_APART = 600
const silent = { error: () => undefined, warn: () => undefined }
/** The beginning of a window of any length here: theirs begins with the first request. */
const clock = manualClock(0)
const create = (policy: Policy) => createLimiter(policy, { clock })

interface Side {
  readonly limit: Limit
  readonly site: RivalSite
}

/**
 * Random requests of both libraries over HTTP under random options, until each was asked so often: by turns our middleware beside theirs, and
 * theirs over our store beside theirs. Seeds count up from `seed`; those that were saved come first.
 *
 * @returns the seed after the last one.
 */
export async function compareRequests(requests: number, seed: number, saved: readonly number[] = []): Promise<number> {
  for (const each of saved) await compareSites(each)
  let next = seed
  for (; (next - seed + saved.length) * CALLS < requests; next++) await compareSites(next)
  return next
}

async function compareSites(seed: number): Promise<void> {
  const random = new Random(seed)
  const isStore = seed % 2 === 0
  const { options, settings } = drawnSite(random, isStore)
  const ours = isStore
    ? theirs.rateLimit({ ...options, logger: silent, store: new SluicegateStore({ create }) })
    : (rateLimit({ ...options, logger: silent, create } as RateLimitOptions) as unknown as Limit)
  const mostCounted = isStore ? Number.POSITIVE_INFINITY : Number(options.limit ?? options.max)
  const sides: Side[] = []
  try {
    for (const limit of [theirs.rateLimit({ ...options, logger: silent }), ours])
      sides.push({ limit, site: await siteWith(settings, limit) })
    for (let i = 0; i < CALLS; i++) await compareCall(sides, drawnCall(random), mostCounted, `call ${i + 1}`)
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error })
  } finally {
    for (const { site } of sides) await site.close()
  }
}

async function compareCall([a, b]: readonly Side[], call: DrawnCall, mostCounted: number, name: string): Promise<void> {
  const [expected, actual] = [a as Side, b as Side]
  if ('path' in call) {
    await assertSameReplies(expected.site, actual.site, [call.path], { headers: call.headers, mostSecondsApart: MOST_SECONDS_APART })
    return
  }
  if (call.verb === 'resetKey') {
    for (const { limit } of [expected, actual]) await limit.resetKey(call.key)
    return
  }
  const [hits = 0, own = 0] = [await expected.limit.getKey(call.key), await actual.limit.getKey(call.key)].map((known) => known?.totalHits)
  // What is denied is not counted by our middleware: above the limit it says only that.
  if (own <= mostCounted) assert.equal(own, hits, `${name}: getKey of ${call.key}`)
}
