import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longTest } from 'sluicegate-testkit'
import { ManualAuthority } from 'sluicegate-testkit/leases/manual-authority.js'
import { type Policy, tokenBucket } from '../index.js'

// Many processes on one key, a network of a fifth of a millisecond each way, and time that only the test moves.

const STEP_MS = 0.2

interface Shares {
  readonly spent: readonly number[]
  readonly sum: number
  /** Jain's index of fairness: 1 when all got the same, 1/n when one got all. */
  readonly jain: number
  readonly callsPerToken: number
}

/** Each process asks evenly, `perSecond` times a second. */
async function shared(policy: Policy, perSecond: readonly number[], seconds: number): Promise<Shares> {
  const authority = new ManualAuthority({ policy, processes: perSecond.length, delayMs: STEP_MS })
  const { clock, fleet } = authority
  const startMs = clock.nowMs()
  const spent = perSecond.map(() => 0)
  const asked = perSecond.map((_, i) => i / perSecond.length)
  for (let ms = 0; ms < seconds * 1000; ms += STEP_MS) {
    clock.set(startMs + ms)
    await new Promise((resolve) => setImmediate(resolve))
    for (const [i, takes] of fleet.entries()) {
      for (; ((asked[i] as number) * 1000) / (perSecond[i] as number) <= ms; (asked[i] as number)++) {
        const decision = takes.take('k', 1)
        const count = (allowed: boolean): void => {
          spent[i] = (spent[i] as number) + Number(allowed)
        }
        if (decision instanceof Promise) void decision.then(({ allowed }) => count(allowed))
        else count(decision.allowed)
      }
    }
  }
  const sum = spent.reduce((total, each) => total + each, 0)
  const squares = spent.reduce((total, each) => total + each * each, 0)
  return { spent, sum, jain: (sum * sum) / (spent.length * squares), callsPerToken: (authority.leases + authority.atOnce) / sum }
}

test('eight processes of equal demand above the budget get equal shares, of nearly all of it, with few calls', async (t) => {
  const shares = await shared(tokenBucket({ limit: 500, window: '1s', burst: 100 }), Array(8).fill(125), 10)
  t.diagnostic(JSON.stringify(shares))
  assert.ok(shares.jain >= 0.95)
  assert.ok(shares.sum >= 0.97 * 5050 && shares.sum <= 5100)
  assert.ok(shares.callsPerToken <= 0.4, '0.2 calls a request')
})

longTest('where a horizon holds many tokens for each process, calls a token are far below one', async (t) => {
  const shares = await shared(tokenBucket({ limit: 5000, window: '1s', burst: 1000 }), Array(8).fill(1000), 3)
  t.diagnostic(JSON.stringify(shares))
  assert.ok(shares.jain >= 0.95)
  assert.ok(shares.callsPerToken <= 0.05)
  assert.ok(shares.sum >= 0.97 * 15_500)
})

test('one process that asks all the time gets 99 % of what is lent, with at most 0.06 calls a token', async (t) => {
  const shares = await shared(tokenBucket({ limit: 500, window: '1s', burst: 1000 }), [20_000], 3)
  t.diagnostic(JSON.stringify(shares))
  assert.ok(shares.sum >= 0.99 * (950 + 1500))
  assert.ok(shares.callsPerToken <= 0.06)
})

test('one that asks for far more than its share leaves the others something', async (t) => {
  const shares = await shared(tokenBucket({ limit: 500, window: '1s', burst: 100 }), [10_000, 100, 100, 100], 5)
  t.diagnostic(JSON.stringify(shares))
  for (const spent of shares.spent.slice(1)) assert.ok(spent >= 100, 'a fifth of its demand at least')
})

longTest('demand below the budget is met in full', async (t) => {
  const shares = await shared(tokenBucket({ limit: 500, window: '1s', burst: 1000 }), Array(8).fill(50), 5)
  t.diagnostic(JSON.stringify(shares))
  assert.ok(shares.sum >= 1992 && shares.jain > 0.999)
})
