import type { Policy } from 'sluicegate'

/** What a worker of a crew is started with. */
export interface WorkerStart {
  /** What `limiter.handle()` gave. */
  readonly handle: unknown
  /** The function that attaches to the handle, and its module's address; default `attachLimiter`. */
  readonly attach?: { readonly module: string; readonly name: string }
  /** Microseconds since the Unix epoch, for a limiter whose clock is the crew's own. */
  readonly clockUs?: BigInt64Array
}

/** What a worker can be asked to do with its end of the limiter. */
export type WorkerJob =
  /** `rounds` takes of 1 on each key in turn; answers how many passed, by key. */
  | { readonly kind: 'take'; readonly keys: readonly string[]; readonly rounds: number }
  /**
   * Takes on one key until `flags[0]` is set and a take was denied after that; counts its takes in `flags[1]` and answers the
   * reading of each one that passed.
   */
  | { readonly kind: 'always-ask'; readonly key: string; readonly flags: Int32Array }
  /** Any verb on any of the keys, for ever; counts the calls at 0 of `counts`, the passed takes of key i at i + 1. */
  | {
      readonly kind: 'for-ever'
      readonly keys: readonly string[]
      readonly seed: number
      readonly counts: Int32Array
      readonly takesOnly: boolean
    }
  | { readonly kind: 'update'; readonly policy: Policy }
  /** Answers the decision and the policy in force. */
  | { readonly kind: 'look'; readonly key: string }
