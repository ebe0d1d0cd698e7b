import { fullAfterMs, numbersOfDecision } from '../cluster/message.js'
import { OwnedPolicy, type PrimaryLimiter } from '../cluster/owned-policy.js'
import { makeLimiter, restoreLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import type { Key, LimiterOptions } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Clock } from '../time/clock.js'
import { emitWarning } from '../warn-once.js'

/** The time at which all keys are full is stored whenever it changes: in whole seconds it seldom does. */
const WHOLE_MS = 1000

/** How an object holds a policy. */
export interface HeldOptions extends Pick<LimiterOptions, 'onFull'> {
  readonly maxKeys: number
  /** 0 for no leases. */
  readonly longestMs: number
  readonly clock?: Clock | undefined
}

/** The true state of one policy, in the memory of an object. */
export class HeldPolicy extends OwnedPolicy {
  /** The latest time at which a key that was used is full; Unix milliseconds. */
  newAtMs: number

  /** @param stored a snapshot of the limiter, and what `newAtMs` then was. */
  constructor(policy: Policy, options: HeldOptions, stored?: { readonly snapshot: Uint8Array; readonly newAtMs: number }) {
    const { longestMs, clock, ...room } = options
    const make = (kept: Policy, own: Clock): PrimaryLimiter => {
      const restored = stored === undefined ? undefined : restoredAs(kept, stored.snapshot, own)
      return restored ?? (makeLimiter(kept, { ...room, clock: own }) as PrimaryLimiter)
    }
    super(policy, { longestMs, clock, make })
    this.newAtMs = stored?.newAtMs ?? 0
  }

  /** Notes when the keys of requests that were carried out will be full. */
  note(requests: readonly unknown[], answers: readonly (readonly unknown[])[]): void {
    // Invalid requests have no answers.
    const isEach = answers.length === requests.length
    for (const [i, request] of requests.entries()) {
      if (!Array.isArray(request)) continue
      const [, verb, key, , , part] = request
      const [, ...answer] = isEach ? (answers[i] as readonly unknown[]) : []
      const afterMs = verb === 'take' ? fullAfterMs(answer) : undefined
      if (afterMs !== undefined) this.noteFull(afterMs)
      else this.noteKey(key, verb === 'lease' ? part : undefined)
    }
  }

  private noteKey(key: Key, part: unknown): void {
    try {
      const limiter = part === undefined ? this.limiter : this.parts[part as number]
      if (limiter !== undefined) this.noteFull(fullAfterMs(numbersOfDecision(limiter.peek(key))) ?? 0)
    } catch {
      // The request was refused: it changed nothing.
    }
  }

  private noteFull(afterMs: number): void {
    // A lease still holds tokens when the key is full again.
    const atMs = (this.nowUs() + this.leaseUs) / 1000 + afterMs
    this.newAtMs = Math.max(this.newAtMs, Math.ceil(atMs / WHOLE_MS) * WHOLE_MS)
  }
}

/** Undefined where nothing can be taken over: under another algorithm, and from a version that wrote another form. */
function restoredAs(policy: Policy, snapshot: Uint8Array, clock: Clock): PrimaryLimiter | undefined {
  try {
    const limiter = restoreLimiter(snapshot, { clock }) as PrimaryLimiter
    if (JSON.stringify(limiter.policy) !== JSON.stringify(policy)) limiter.update(policy)
    return limiter
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    emitWarning('SLUICEGATE_POLICY', `what the object stored cannot be taken over, and its keys begin anew: ${error.message}`)
    return undefined
  }
}
