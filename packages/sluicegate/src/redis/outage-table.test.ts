import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { everyNth, type Fault, until } from 'sluicegate-testkit'
import { proxiedServerOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision/decision.js'
import { tokenBucket } from '../policy/single-policy.js'
import type { OutageMode } from '../shared/outage/local-share.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { redis } from './redis.js'

const PAGE = new URL('../../../../docs/outages.md', import.meta.url)
const TIMEOUT_MS = 300
/** Far above what a call may take: this machine may have other things to do. */
const MOST_MS = 5_000
const AT_ONCE = 8
/** Decisions checked after the fault has taken effect. */
const LOOKED_AT = 400
const SHARE = 0.1
const BURST = 1000
const POLICY = tokenBucket({ limit: 500, window: '1s', burst: BURST, name: 'p' })

const FAULTS: Readonly<Record<string, Fault>> = {
  'latency below the time-out': { kind: 'latency', delayMs: 15 },
  'jitter below the time-out': { kind: 'latency', delayMs: 5, jitterMs: 30 },
  'latency above the time-out': { kind: 'latency', delayMs: TIMEOUT_MS },
  'jitter above the time-out': { kind: 'latency', delayMs: TIMEOUT_MS, jitterMs: TIMEOUT_MS },
  'connections cut': { kind: 'cut' },
  'half-open: requests arrive, answers do not': { kind: 'half-open' },
  'black hole: nothing arrives': { kind: 'black-hole' },
  'slow close: each request ends its connection': { kind: 'slow-close', afterMs: 20 },
}
const MODES: readonly OutageMode[] = ['local', 'open', 'closed']
const COLUMNS = (['exact', 'leased'] as const).flatMap((mode) => MODES.map((outage) => ({ mode, outage })))
const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name, library }) => name === library))

const { proxy } = await proxiedServerOfFile()

/** The cells of the table in the documentation: by fault, in the order of the columns. */
function documented(): ReadonlyMap<string, readonly string[]> {
  const rows = readFileSync(PAGE, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
  const cells = rows.map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  )
  return new Map(cells.map(([fault = '', ...rest]) => [fault, rest]))
}

/** One limiter under one fault. */
class Cell {
  private readonly limiter: SharedLimiter
  private readonly outage: OutageMode
  slowestMs = 0

  constructor(limiter: SharedLimiter, outage: OutageMode) {
    this.limiter = limiter
    this.outage = outage
  }

  async isServed(): Promise<boolean> {
    const { source } = await this.limiter.take('k')
    return source !== 'outage'
  }

  /** Who decides, in the words of the table. */
  async observed(): Promise<string> {
    const beganMs = performance.now()
    const first: Decision[] = []
    // The first ones may still be of what was at hand before, or of a time in which the fault had not been noticed.
    while (
      first.length < LOOKED_AT ||
      (first.some(isOut) && !first.slice(-LOOKED_AT).every(isOut) && performance.now() - beganMs < MOST_MS)
    ) {
      first.push(...(await this.asked()))
    }
    const decisions = first.slice(-LOOKED_AT)
    const out = decisions.filter(isOut)
    if (out.length < decisions.length / 2)
      return decisions.every(({ source }) => source === 'store' || source === 'outage') ? 'the store' : 'a lease'
    return this.withoutStore(first, performance.now() - beganMs)
  }

  /** What is decided without the store is one of three things. */
  private withoutStore(decisions: readonly Decision[], tookMs: number): string {
    const out = decisions.filter(isOut)
    const admitted = out.filter(({ allowed }) => allowed).length
    for (const { allowed, retryAfterMs } of out) assert.ok(allowed ? retryAfterMs === 0 : Number.isFinite(retryAfterMs) && retryAfterMs > 0)
    if (this.outage === 'open') assert.equal(admitted, out.length)
    else if (this.outage === 'closed') assert.equal(admitted, 0)
    else assert.ok(admitted > 0 && admitted <= SHARE * (BURST + (500 * (tookMs + 1)) / 1000))
    return { local: 'its share', open: 'all pass', closed: 'none pass' }[this.outage]
  }

  private async asked(): Promise<Decision[]> {
    const take = async (): Promise<Decision> => {
      const sinceMs = performance.now()
      const decision = await this.limiter.take('k')
      this.slowestMs = Math.max(this.slowestMs, performance.now() - sinceMs)
      return decision
    }
    const decisions = await Promise.all(Array.from({ length: AT_ONCE }, take))
    await new Promise((resolve) => setTimeout(resolve, 1))
    return decisions
  }
}

function isOut({ source }: Decision): boolean {
  return source === 'outage'
}

for (const kind of KINDS) {
  for (const [i, [name, fault]] of Object.entries(FAULTS).entries()) {
    everyNth(i, 3)(`${kind.name}, ${name}: each cell of the table is as documented`, async () => {
      await using open = await kind.open([proxy])
      const cells = COLUMNS.map(({ mode, outage }) => {
        const prefix = `${kind.name} ${name} ${mode} ${outage}`
        const options = {
          store: redis(open.client, { prefix }),
          mode,
          outage,
          share: SHARE,
          timeout: TIMEOUT_MS,
          lease: 200,
        }
        return new Cell(createLimiter(POLICY, options), outage)
      })
      try {
        for (const cell of cells) await until('the store decides', () => cell.isServed())
        proxy.set(fault)
        const observed = await Promise.all(cells.map((cell) => cell.observed()))
        assert.deepEqual(observed, documented().get(name))
        for (const { slowestMs } of cells) assert.ok(slowestMs < TIMEOUT_MS + MOST_MS, `an answer after ${slowestMs} ms`)
      } finally {
        proxy.set({ kind: 'none' })
      }
      // However it ended, the store decides again.
      await Promise.all(cells.map((cell) => until('the store decides again', () => cell.isServed())))
    })
  }
}
