import type { Call } from './call.js'
import { type Stepwise, TO_THE_END } from './search.js'

/** An instance of the core compiled for exploration. */
export interface ExploredCore {
  create(lines: number, denyWhenFull: boolean): void
  attach(): void
  propose(): number
  update(block: number, unitsPerUs: number, unitsPerToken: number, capacity: number, packed: boolean, nowUs: number): void
  take(low: number, high: number, nowUs: number, tokens: number): number
  peek(low: number, high: number, nowUs: number): number
  refund(low: number, high: number, nowUs: number, tokens: number): number
  penalize(low: number, high: number, nowUs: number, tokens: number): number
  reset(low: number, high: number, nowUs: number): number
  block(low: number, high: number, nowUs: number, us: number): number
  whyUnanswered(): number
  detailOfUnanswered(): number
  forgotten(): number
  grant(steps: number): void
  left(): number
  asyncify_start_unwind(stack: number): void
  asyncify_stop_unwind(): void
  asyncify_start_rewind(stack: number): void
  asyncify_stop_rewind(): void
}

/** The halves of a key's hash. */
export interface ExploredKey {
  readonly low: number
  readonly high: number
}

const STACK_HEADER_BYTES = 8
export const STACK_BYTES = 4096

/** A thread of the exploration: an instance of its own over the shared memory, that runs as many atomic operations as it is told to. */
export class ExploredThread implements Stepwise {
  readonly core: ExploredCore
  /** Of each call of the script; `whys` 0 stands for a plain number. */
  readonly values: Float64Array
  readonly whys: Int32Array
  readonly forgotten: Float64Array
  readonly began: Float64Array
  readonly ended: Float64Array
  private readonly script: readonly (() => number)[]
  private readonly stack: number
  private readonly stackWords: Int32Array
  private at = 0
  private suspended = false
  private unwinding = false
  private untouched = false
  /** The policy block of an update under way. */
  private block = 0

  constructor(module: WebAssembly.Module, memory: WebAssembly.Memory, stack: number, keys: readonly ExploredKey[], calls: readonly Call[]) {
    const ignore = (): void => undefined
    const host = { policyChanged: ignore, pause: ignore, switchThread: () => this.switchThread() }
    this.core = new WebAssembly.Instance(module, { env: { memory }, host }).exports as unknown as ExploredCore
    this.stack = stack
    this.stackWords = new Int32Array(memory.buffer, stack, 2)
    this.script = calls.map((call) => this.bound(call, keys))
    this.values = new Float64Array(calls.length)
    this.whys = new Int32Array(calls.length)
    this.forgotten = new Float64Array(calls.length)
    this.began = new Float64Array(calls.length)
    this.ended = new Float64Array(calls.length)
  }

  reset(): void {
    this.at = 0
    this.block = 0
    this.suspended = false
    this.unwinding = false
    this.ended.fill(Number.POSITIVE_INFINITY)
    this.began.fill(Number.POSITIVE_INFINITY)
  }

  /** Looks at the memory afresh, as a thread that has just been started. */
  attach(): void {
    this.core.grant(TO_THE_END)
    this.core.attach()
  }

  get isDone(): boolean {
    return this.at === this.script.length
  }

  /**
   * Goes on for at most `steps` atomic operations, and stops before the next one.
   *
   * @param stamp position in the schedule.
   * @returns how many there were.
   */
  run(steps: number, stamp: number): number {
    const { core } = this
    // The operation before which it was suspended does not count down again.
    core.grant(this.suspended ? steps - 1 : steps)
    if (this.suspended && this.untouched) {
      this.began[this.at] = stamp
      this.untouched = false
    }
    while (true) {
      if (this.suspended) {
        core.asyncify_start_rewind(this.stack)
      } else {
        // A call at which the schedule stops before its first operation has not begun.
        this.untouched = core.left() <= 0
        if (!this.untouched) this.began[this.at] = stamp
      }
      const answer = (this.script[this.at] as () => number)()
      if (this.unwinding) {
        core.asyncify_stop_unwind()
        this.unwinding = false
        this.suspended = true
        return steps
      }
      this.suspended = false
      this.record(answer, stamp)
      if (this.at === this.script.length) return steps - core.left()
    }
  }

  private record(answer: number, stamp: number): void {
    const { at, core } = this
    const unanswered = Number.isNaN(answer)
    this.whys[at] = unanswered ? core.whyUnanswered() : 0
    this.values[at] = unanswered ? core.detailOfUnanswered() : answer
    this.forgotten[at] = unanswered ? core.forgotten() : -1
    this.ended[at] = stamp
    this.at++
  }

  private switchThread(): void {
    if (this.suspended) {
      this.core.asyncify_stop_rewind()
      this.suspended = false
      return
    }
    this.stackWords[0] = this.stack + STACK_HEADER_BYTES
    this.stackWords[1] = this.stack + STACK_BYTES
    this.unwinding = true
    this.core.asyncify_start_unwind(this.stack)
  }

  private bound(call: Call, keys: readonly ExploredKey[]): () => number {
    const { core } = this
    const { verb, nowUs, amount, policy } = call
    const { low, high } = keys[call.key] ?? { low: 0, high: 0 }
    if (verb === 'peek' || verb === 'reset') return () => core[verb](low, high, nowUs)
    if (verb !== 'update') return () => core[verb](low, high, nowUs, amount)
    if (policy === undefined) throw new Error('an update needs a policy')
    const { unitsPerUs, unitsPerToken, burst, packed } = policy
    return () => {
      if (this.block === 0) {
        const block = core.propose()
        if (this.unwinding) return 0
        this.block = block
      }
      core.update(this.block, unitsPerUs, unitsPerToken, burst * unitsPerToken, packed, nowUs)
      if (!this.unwinding) this.block = 0
      return 0
    }
  }
}
