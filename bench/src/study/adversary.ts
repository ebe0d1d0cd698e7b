import { createLimiter, type Limiter } from 'sluicegate'
import { Random } from '../../../packages/testkit/dist/random.js'
import type { Form } from './forms.js'

/** The most that a search got out of a limit in one window, in any position. */
export interface Attack {
  readonly form: string
  /** In requests, a window of one second. */
  readonly limit: number
  readonly most: number
  /** When it asked for all there was, in microseconds from the start of an aligned window, and how many passed; in that window. */
  readonly attempts: readonly { readonly atUs: number; readonly admitted: number }[]
}

type Attempt = Attack['attempts'][number]

interface Try {
  readonly attempts: readonly Attempt[]
  readonly most: number
  /** Those that passed in the window with the most. */
  readonly inWindow: readonly Attempt[]
}

const WINDOW_MS = 1000
const WINDOW_US = WINDOW_MS * 1000
const WINDOWS = 3
const ATTEMPTS = 6
const STEPS = 400

/** Looks for the times at which to ask for everything so that most of it falls into one window: from random ones uphill, many times. */
export function attack(form: Form, limit: number, restarts: number): Attack {
  const target = new Target(form, limit)
  const random = new Random(limit)
  let best: Try = { attempts: [], most: 0, inWindow: [] }
  for (let restart = 0; restart < restarts; restart++) {
    let current = target.try(sorted(Array.from({ length: ATTEMPTS }, () => random.integer(0, WINDOWS * WINDOW_US - 1))))
    for (let step = 0; step < STEPS; step++) {
      const timesUs = current.attempts.map(({ atUs }) => atUs)
      const next = target.try(moved(timesUs, random))
      if (next.most >= current.most) current = next
    }
    if (current.most > best.most) best = current
  }
  return { form: form.name, limit, most: best.most, attempts: best.inWindow }
}

/** One of the times moved by any order of magnitude, or to a new place, or to the edge of a window. */
function moved(timesUs: readonly number[], random: Random): readonly number[] {
  const which = random.integer(0, timesUs.length - 1)
  const from = timesUs[which] as number
  const to = random.pick([
    from + random.magnitude(1, WINDOW_US) * random.pick([1, -1]),
    random.integer(0, WINDOWS * WINDOW_US - 1),
    random.integer(1, WINDOWS) * WINDOW_US - random.magnitude(1, WINDOW_US),
  ])
  return sorted(timesUs.with(which, Math.min(WINDOWS * WINDOW_US - 1, Math.max(0, to))))
}

function sorted(timesUs: readonly number[]): readonly number[] {
  return timesUs.toSorted((a, b) => a - b)
}

/** A limit with one key, which is full before each try: the last one lies far enough back. */
class Target {
  private readonly limiter: Limiter
  private readonly cost: number
  private startUs = Date.UTC(2026, 0, 1) * 1000
  private nowUs = this.startUs

  constructor(form: Form, limit: number) {
    this.limiter = createLimiter(form.policy(limit, WINDOW_MS), { maxKeys: 1, clock: { nowMs: () => this.nowUs / 1000 } })
    this.cost = form.tokensPerRequest
  }

  try(timesUs: readonly number[]): Try {
    this.startUs += (WINDOWS + 2) * WINDOW_US
    const attempts = timesUs.map((atUs) => ({ atUs, admitted: this.everything(atUs) }))
    let best: Attempt[] = []
    for (const { atUs: endUs } of attempts) {
      const window = attempts.filter(({ atUs, admitted }) => atUs > endUs - WINDOW_US && atUs <= endUs && admitted > 0)
      if (total(window) > total(best)) best = window
    }
    return { attempts, most: total(best), inWindow: best }
  }

  /** Takes all that is there; answers how many requests that is. */
  private everything(atUs: number): number {
    this.nowUs = this.startUs + atUs
    const requests = Math.floor(this.limiter.peek('key').remaining / this.cost)
    return requests > 0 && this.limiter.take('key', requests * this.cost).allowed ? requests : 0
  }
}

function total(attempts: readonly Attempt[]): number {
  return attempts.reduce((sum, { admitted }) => sum + admitted, 0)
}
