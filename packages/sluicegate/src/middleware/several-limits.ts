import { type Awaitable, isPromise } from '../awaitable.js'
import { nameOf } from '../key-name.js'
import type { Key } from '../limiter.js'
import type { Delay, SlowDown } from '../slow-down.js'
import type { LimitRule } from './limit.js'
import { Asked } from './limit-result.js'

/** What a rule is to be asked. */
export interface Question<Request> {
  readonly rule: LimitRule<Request>
  readonly key: Key
  readonly cost: number
}

/**
 * Takes of several limits for one request: of all, or of none.
 *
 * First those are looked at that say at once what they would decide. Where some deny, these are asked, as by any take, so that the denial is told
 * and counted there, and nobody else is. Otherwise one after another is taken from: first those that were not to be looked at, as they ask
 * elsewhere, up to the first that denies, and then those of this process. Should one deny after all, because another thread or process was
 * quicker, or fail, what was taken goes back.
 */
export class SeveralTakes<Request> {
  private readonly questions: readonly Question<Request>[]
  private readonly request: Request
  /** What each said last, as far as it was asked. */
  private readonly asked: (Asked | undefined)[]
  /** Which is asked when. */
  private readonly order: readonly number[]
  /** How many of these are foreseen to deny: all of them are asked. */
  private readonly foreseen: number
  private isDenied = false

  constructor(questions: readonly Question<Request>[], request: Request) {
    this.questions = questions
    this.request = request
    this.asked = questions.map(({ rule, key, cost }) => rule.foresee(key, cost))
    const those = (is: (asked: Asked | undefined) => boolean): number[] => [...questions.keys()].filter((i) => is(this.asked[i]))
    const denying = those((asked) => asked?.denies === true)
    this.order = [...denying, ...those((asked) => asked === undefined), ...those((asked) => asked?.denies === false)]
    this.foreseen = denying.length
  }

  /** What those said that were asked, in the order of the questions. */
  take(): Awaitable<readonly Asked[]> {
    return this.from(0)
  }

  private from(first: number): Awaitable<readonly Asked[]> {
    for (let i = first; i < this.order.length; i++) {
      if (this.isDenied && i >= this.foreseen) break
      const asked = this.next(i)
      if (isPromise(asked)) return this.later(asked, i)
      this.note(asked, i)
    }
    if (this.isDenied) this.undo()
    return this.asked.filter((asked) => asked !== undefined)
  }

  private next(i: number): Awaitable<Asked> {
    const { rule, key, cost } = this.questions[this.order[i] as number] as Question<Request>
    try {
      return rule.take(key, cost, this.request)
    } catch (error) {
      throw this.failed(error)
    }
  }

  private later(asked: Promise<Asked>, i: number): Promise<readonly Asked[]> {
    return asked.then(
      (answered) => {
        this.note(answered, i)
        return this.from(i + 1)
      },
      (error) => {
        throw this.failed(error)
      },
    )
  }

  private note(asked: Asked, i: number): void {
    this.asked[this.order[i] as number] = asked
    if (asked.denies) this.isDenied = true
  }

  private failed(error: unknown): unknown {
    this.undo()
    return error
  }

  private undo(): void {
    for (const asked of this.asked) asked?.undo()
  }
}

/**
 * The longest delay that limits ask for one request that they let pass, with a place among the delayed of that limit; undefined for none. Where
 * there is no place: the limit's denial.
 */
export function longestDelay<Request>(all: readonly Asked[], request: Request): Delay | Asked | undefined {
  let longest: Asked | undefined
  let ms = 0
  for (const asked of all) {
    const slowDown = slowDownOf<Request>(asked)
    if (slowDown === undefined) continue
    const own = slowDown.delayMs(asked.decision, asked.policy, request)
    if (own <= ms) continue
    ms = own
    longest = asked
  }
  if (longest === undefined) return undefined
  const leave = slowDownOf<Request>(longest)?.enter(nameOf(longest.key))
  return leave === undefined ? refused(longest, ms) : { ms, leave }
}

function slowDownOf<Request>({ rule }: Asked): SlowDown<Request> | undefined {
  // Clients hear nothing of what is in the shadow.
  return rule.shadow ? undefined : (rule.slowDown as SlowDown<Request> | undefined)
}

function refused({ rule, key, cost, policy, decision }: Asked, ms: number): Asked {
  return new Asked(rule, key, cost, policy, { ...decision, allowed: false, retryAfterMs: Math.max(1, Math.ceil(ms)) })
}
