import { nameOf } from '../../key.js'
import type { Answer, HoldOperation } from '../backend.js'

/** An open that waits for its answer. */
interface Caller {
  readonly resolve: (answer: Answer | undefined) => void
  readonly reject: (error: unknown) => void
}

/**
 * Opens of one turn that are alike, of one key and with one expectation, as one step of the store: as many begin as find room, the first ones first. The next step
 * says why the others do not.
 */
export class OpensTogether {
  private readonly execute: (operation: HoldOperation) => Promise<Answer | undefined>
  private alike = new Map<string, { readonly operation: HoldOperation; readonly waiting: Caller[] }>()

  /** @param execute the answer of the store; undefined in an outage. */
  constructor(execute: (operation: HoldOperation) => Promise<Answer | undefined>) {
    this.execute = execute
  }

  open(operation: HoldOperation): Promise<Answer | undefined> {
    const { key, hold, want, ttlUs } = operation
    const name = `${hold} ${want} ${ttlUs} ${nameOf(key)}`
    if (this.alike.size === 0) queueMicrotask(() => this.send())
    return new Promise((resolve, reject) => {
      const waiting = { resolve, reject }
      const known = this.alike.get(name)
      if (known === undefined) this.alike.set(name, { operation, waiting: [waiting] })
      else known.waiting.push(waiting)
    })
  }

  private send(): void {
    const all = [...this.alike.values()]
    this.alike = new Map()
    for (const { operation, waiting } of all) void this.answer(operation, waiting)
  }

  private async answer(operation: HoldOperation, waiting: readonly Caller[]): Promise<void> {
    const count = waiting.length
    try {
      const answer = await this.execute(count === 1 ? operation : { ...operation, count })
      // Where not even one has begun, nobody else does.
      const begun = answer?.done ? (answer.hold?.count ?? 1) : count
      for (const { resolve } of waiting.slice(0, begun)) resolve(answer?.done ? shareOf(answer, operation) : answer)
      const left = waiting.slice(begun)
      if (left.length === 0) return
      if (answer?.hold?.count !== undefined) return await this.answer(operation, left)
      // This backend opens one at a time.
      await Promise.all(left.map((one) => this.answer(operation, [one])))
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    }
  }
}

/** Of an answer to several opens that of one. */
function shareOf(answer: Answer, { hold, want }: HoldOperation): Answer {
  const { count, ...sum } = answer.hold ?? { rest: 0, granted: 0, forUs: 0, over: 0 }
  return count === undefined ? answer : { ...answer, hold: { ...sum, rest: (hold as number) - want, granted: want } }
}
