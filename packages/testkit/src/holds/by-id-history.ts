import { fixedWindow, type HoldsById, type ManualClock, manualClock, type Policy, type SharedLimiter } from 'sluicegate'
import { Random } from '../random.js'

const STEPS = 60
/** The beginning of an hour, which no history outlasts. */
const START_MS = 1_789_002_000_000
const LIMIT = 100
const TTL_US = 1_000_000
/** The largest power of two of microseconds in an eighth of it. */
const SLOT_US = 65_536
const KEYS = ['ada', 'eve'] as const
const IDS = Array.from({ length: 4 }, (_, i) => String(i).padStart(32, '0'))

interface KnownWork {
  call: number
  isDone: boolean
  isClosed: boolean
  rest: number
  endUs: number
  used: number
  over: number
  readonly most: number
  readonly finishes: boolean
}

type Answer = Pick<Awaited<ReturnType<HoldsById['open']>>, 'isDone' | 'used' | 'over' | 'spent' | 'fault'>

/** Work by id of one key under a window, in whole numbers. */
class KeyOfIds {
  readonly works = new Map<string, KnownWork>()
  private spent = 0

  /** What a take has. */
  leftAt(nowUs: number): number {
    return Math.max(0, LIMIT - this.spent - this.heldAt(nowUs))
  }

  take(cost: number, nowUs: number): boolean {
    const passes = cost <= LIMIT - this.spent - this.heldAt(nowUs)
    if (passes) this.spent += cost
    return passes
  }

  open(id: string, expect: number, most: number, finishes: boolean, nowUs: number): Answer {
    const known = this.known(id, nowUs)
    if (known !== undefined) return known.call === 0 ? again(known) : faulty(known, known.isClosed ? 'closed' : 'passed')
    const rest = Math.min(expect, most)
    if (rest > LIMIT - this.spent - this.heldAt(nowUs)) return { isDone: false, used: 0, over: 0, spent: 0, fault: undefined }
    const work = { call: 0, isDone: true, isClosed: false, rest, endUs: endOf(nowUs), used: 0, over: 0, most, finishes }
    this.works.set(id, work)
    return again(work)
  }

  add(id: string, cost: number, call: number | undefined, nowUs: number): Answer {
    return this.step(id, call ?? (this.known(id, nowUs)?.call ?? 0) + 1, nowUs, (work) => {
      if (work.used + cost > work.most) return 'beyond'
      const own = restAt(work, nowUs)
      const free = this.freeFor(own, nowUs)
      const kept = Math.max(0, own - cost)
      if (!work.finishes && cost + kept > free) return undefined
      return this.spend(work, cost, kept, free, nowUs)
    })
  }

  close(id: string, total: number | undefined, call: number | undefined, nowUs: number): Answer {
    const known = this.known(id, nowUs)
    return this.step(id, call ?? (known?.call ?? 0) + (known?.isClosed ? 0 : 1), nowUs, (work) => {
      const free = this.freeFor(restAt(work, nowUs), nowUs)
      work.isClosed = true
      return this.spend(work, Math.max(0, (total ?? work.used) - work.used), 0, free, nowUs)
    })
  }

  private step(id: string, call: number, nowUs: number, step: (work: KnownWork) => number | 'beyond' | undefined): Answer {
    const known = this.known(id, nowUs)
    if (known === undefined) return { isDone: false, used: 0, over: 0, spent: 0, fault: 'unknown' }
    if (call === known.call) return again(known)
    if (known.isClosed) return faulty(known, 'closed')
    if (call < known.call) return faulty(known, 'passed')
    const spent = step(known)
    known.call = call
    known.isDone = typeof spent === 'number'
    return typeof spent === 'number' ? { ...again(known), spent } : faulty(known, spent)
  }

  private spend(work: KnownWork, cost: number, kept: number, free: number, nowUs: number): number {
    this.spent += cost
    work.used += cost
    work.over += Math.max(0, cost - free)
    work.rest = kept
    work.endUs = kept > 0 ? endOf(nowUs) : nowUs
    return cost
  }

  /** What work may have that holds so much itself. */
  private freeFor(own: number, nowUs: number): number {
    return Math.max(own, Math.max(0, LIMIT - this.spent) - this.heldAt(nowUs) + own)
  }

  private heldAt(nowUs: number): number {
    let held = 0
    for (const work of this.works.values()) held += restAt(work, nowUs)
    return held
  }

  private known(id: string, nowUs: number): KnownWork | undefined {
    const work = this.works.get(id)
    if (work === undefined || work.endUs + TTL_US > nowUs) return work
    this.works.delete(id)
    return undefined
  }
}

function again({ isDone, used, over }: KnownWork): Answer {
  return { isDone, used, over, spent: 0, fault: undefined }
}

function faulty({ used, over }: KnownWork, fault: Answer['fault']): Answer {
  return { isDone: false, used, over, spent: 0, fault }
}

function restAt({ rest, endUs }: KnownWork, nowUs: number): number {
  return endUs > nowUs ? rest : 0
}

function endOf(nowUs: number): number {
  return Math.ceil((nowUs + TTL_US) / SLOT_US) * SLOT_US
}

/**
 * What is wrong with a random history of work by id, of which steps are said twice, too late, of another key or for nothing. Undefined when each
 * answer, and what is left of each key, are those of a model.
 */
export async function byIdMismatch(seed: number, open: (policy: Policy, clock: ManualClock) => SharedLimiter): Promise<string | undefined> {
  const random = new Random(seed)
  const clock = manualClock(START_MS)
  const limiter = open(fixedWindow({ limit: LIMIT, window: '1h', name: 'by id' }), clock)
  const models = new Map(KEYS.map((key) => [key, new KeyOfIds()]))
  try {
    for (let step = 0; step < STEPS; step++) {
      const wrong = await stepped(random, clock, limiter, models)
      if (wrong !== undefined) return `seed ${seed}, step ${step}: ${wrong}`
    }
    return undefined
  } finally {
    limiter.close()
  }
}

async function stepped(
  random: Random,
  clock: ManualClock,
  limiter: SharedLimiter,
  models: ReadonlyMap<string, KeyOfIds>,
): Promise<string | undefined> {
  const [key, id] = [random.chance(0.9) ? KEYS[0] : KEYS[1], random.pick(IDS)]
  const model = models.get(key) as KeyOfIds
  const nowUs = clock.nowMs() * 1000
  const byId = limiter.byId as HoldsById
  const known = model.works.get(id)?.call ?? 0
  const call = random.chance(0.4) ? undefined : Math.max(1, known + random.pick([-1, 0, 0, 1, 1, 1, 2]))
  switch (random.integer(0, 9)) {
    case 0:
    case 1: {
      const [expect, most] = [random.integer(1, 40), random.chance(0.3) ? random.integer(1, 40) : Number.POSITIVE_INFINITY]
      const finishes = random.chance(0.3)
      const over = finishes ? 'finish' : 'cut'
      const answer = await byId.open(key, id, { expect, ttl: '1s', over, ...(most < Number.POSITIVE_INFINITY && { most }) })
      return differing('open', answer, model.open(id, expect, most, finishes, nowUs))
    }
    case 2:
    case 3:
    case 4:
    case 5: {
      const cost = random.integer(0, 20)
      return differing(`add ${cost} as ${call}`, await byId.add(key, id, cost, call), model.add(id, cost, call, nowUs))
    }
    case 6: {
      const total = random.chance(0.5) ? undefined : random.integer(0, 60)
      return differing(`close ${total} as ${call}`, await byId.close(key, id, total, call), model.close(id, total, call, nowUs))
    }
    case 7: {
      const cost = random.integer(1, 10)
      const { allowed } = await limiter.take(key, cost)
      return allowed === model.take(cost, nowUs) ? undefined : `a take of ${cost} was ${allowed ? 'allowed' : 'denied'}`
    }
    case 8:
      clock.advance(random.pick([1, 100, 400, 1_200]))
      return undefined
    default: {
      const { remaining } = await limiter.peek(key)
      const left = model.leftAt(nowUs)
      return remaining === left ? undefined : `${remaining} are left of ${left}`
    }
  }
}

function differing(what: string, { isDone, used, over, spent, fault }: Answer, model: Answer): string | undefined {
  const answer = JSON.stringify({ isDone, used, over, spent, fault })
  return answer === JSON.stringify(model) ? undefined : `${what}: ${answer}, and not ${JSON.stringify(model)}`
}
