import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { Random } from 'sluicegate-testkit/random.js'
import type { Awaitable } from '../awaitable.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, type Hold, manualClock, type Policy, type SharedLimiter, tokenBucket } from '../index.js'
import { memoryStore } from '../store-testing/index.js'
import { casStore } from './index.js'
import { StoredHolds } from './stored-holds.js'

type Work = Hold<Awaitable<boolean>, 'later'>

const HISTORIES = shortOrLong(20, 150)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 100
const STEPS = 80
const LIMIT = 120
const PROCESSES = 3
/** The beginning of an hour, which no history outlasts. */
const START_MS = 1_789_002_000_000
const POLICIES: readonly Policy[] = [fixedWindow({ limit: LIMIT, window: '1h' }), tokenBucket({ limit: LIMIT, window: '1m' })]

/** A budget in whole numbers, which counts what was spent when it was. */
class Budget {
  spent = 0
  private level = LIMIT
  private atMs = START_MS
  private readonly refills: boolean

  constructor({ algorithm }: Policy) {
    this.refills = algorithm === 'token-bucket'
  }

  /** What is left after it; below zero it was too much. */
  spend(tokens: number, nowMs: number): number {
    this.spent += tokens
    this.level = this.leftAt(nowMs) - tokens
    this.atMs = nowMs
    return this.level
  }

  leftAt(nowMs: number): number {
    return this.refills ? Math.min(LIMIT, this.level + ((nowMs - this.atMs) * LIMIT) / 60_000) : this.level
  }
}

/** What is wrong with a random history of processes that open, add, close and are lost; undefined when all is well. */
async function mismatch(seed: number): Promise<string | undefined> {
  const random = new Random(seed)
  const policy = random.pick(POLICIES)
  const clock = manualClock(START_MS)
  const store = memoryStore({ clock })
  const process = (): SharedLimiter =>
    createLimiter(policy, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 60_000 })
  const processes = Array.from({ length: PROCESSES }, process)
  const works: (Work[] | undefined)[] = processes.map(() => [])
  const budget = new Budget(policy)
  /** The value of a promise, for which time goes by where others were first at the store. */
  const passing = async <Value>(answer: Awaitable<Value> | undefined): Promise<Value | undefined> => {
    let isOver = false
    const ended = Promise.resolve(answer).finally(() => {
      isOver = true
    })
    for (await turns(); !isOver; await turns()) clock.advance(1)
    return ended
  }
  /** No process stands still for long: what it reports too late has been charged. */
  const later = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 40) {
      clock.advance(Math.min(left, 40))
      await turns()
    }
  }
  /** Tokens that were beyond the policy, and those that lost processes may have spent. */
  let over = 0
  let lost = 0
  const spend = (tokens: number, what: string): string | undefined => {
    const left = budget.spend(tokens, clock.nowMs())
    return left < -over - 1e-6 ? `seed ${seed}: ${what} leaves ${left}, ${over} over` : undefined
  }
  for (let step = 0; step < STEPS; step++) {
    const i = random.integer(0, PROCESSES - 1)
    const limiter = processes[i] as SharedLimiter
    const own = works[i] as Work[]
    const work = own[random.integer(0, Math.max(1, own.length) - 1)]
    let wrong: string | undefined
    switch (random.integer(0, 7)) {
      case 0:
      case 1: {
        const over = random.chance(0.25) ? 'finish' : 'cut'
        const opened = await passing(limiter.open('k', { expect: random.integer(1, 40), ttl: '1s', over }))
        if (opened?.allowed) own.push(opened)
        break
      }
      case 2:
      case 3:
      case 4: {
        const [cost, before] = [random.integer(0, 11), work?.over ?? 0]
        if (!(await passing(work?.add(cost)))) break
        over += (work?.over ?? 0) - before
        wrong = spend(cost, `an add of ${cost}`)
        break
      }
      case 5: {
        if (work === undefined) break
        const [used, before] = [work.used, work.over]
        await passing(work.close(random.chance(0.3) ? used + random.integer(0, 9) : undefined))
        over += work.over - before
        wrong = spend(work.used - used, 'a close')
        own.splice(own.indexOf(work), 1)
        break
      }
      case 6: {
        const cost = random.integer(1, 20)
        if ((await passing(limiter.take('k', cost)))?.allowed) wrong = spend(cost, `a take of ${cost}`)
        break
      }
      case 7:
        if (random.chance(0.75)) {
          await later(random.integer(0, 499))
          break
        }
        for (const each of own) lost += each.held
        limiter.close()
        processes[i] = process()
        works[i] = []
        break
    }
    if (wrong !== undefined) return wrong
  }
  for (const work of works.flatMap((own) => own ?? [])) await passing(work.close())
  // All that lost processes held has ended.
  await later(3_000)
  const { remaining = 0 } = (await passing((processes[0] as SharedLimiter).peek('k'))) ?? {}
  const left = Math.floor(budget.leftAt(clock.nowMs()) + 1e-6)
  for (const limiter of processes) limiter.close()
  if (remaining > Math.max(0, left)) return `seed ${seed}: ${remaining} are left of ${left}`
  return remaining < left - lost - 1 ? `seed ${seed}: ${remaining} are left of ${left}, though only ${lost} were lost` : undefined
}

/** What was asked has been answered. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve))
}

test(`processes that share a store spend no more than the policy, and what lost ones held is free again, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed), undefined)
})

type Move = typeof StoredHolds.prototype.move

const FAULTS: Readonly<Record<string, () => PropertyDescriptorMap>> = {
  'what is held counts nowhere': () => ({ total: { get: () => 0 } }),
  'what was granted to a lost process is free': () => {
    const { ended } = StoredHolds.prototype
    return {
      ended: {
        value(this: StoredHolds, nowUs: number) {
          ended.call(this, nowUs)
          return []
        },
      },
    }
  },
  'a report leaves the grant that it is of': () => {
    const move: Move = StoredHolds.prototype.move
    return {
      move: {
        value(this: StoredHolds, us: number, held: number, granted: number) {
          move.call(this, us, held, Math.max(0, granted))
        },
      },
    }
  },
}

for (const [fault, descriptors] of Object.entries(FAULTS)) {
  test(`a store where ${fault} would be found`, async () => {
    const before = Object.getOwnPropertyDescriptors(StoredHolds.prototype)
    const made = descriptors()
    for (const [name, descriptor] of Object.entries(made))
      Object.defineProperty(StoredHolds.prototype, name, { ...descriptor, configurable: true })
    let found: string | undefined
    try {
      for (const seed of seedsFrom(1, UNTIL_FOUND)) {
        found = await mismatch(seed)
        if (found !== undefined) break
      }
    } finally {
      Object.defineProperties(StoredHolds.prototype, before)
    }
    assert.notEqual(found, undefined)
  })
}
