import type { Call } from './call.js'
import { ExploredCall, type GivenPermit } from './explored-call.js'
import type { ExploredCore, ExploredKey } from './explored-core.js'
import type { ExploredPolicy, PolicyRecords } from './explored-policy.js'
import { SavedNumbers } from './proof-tables.js'
import { type Stepwise, TO_THE_END } from './search.js'

const STACK_HEADER_BYTES = 8
export const STACK_BYTES = 4096
const SECTION = 0

/** What a thread runs in. */
export interface ThreadParts {
  readonly core: ExploredCore
  readonly memory: WebAssembly.Memory
  /** Address of its stack while it is suspended. */
  readonly stack: number
  readonly keys: readonly ExploredKey[]
  readonly blocks: PolicyRecords
  readonly policy: ExploredPolicy
  readonly founded: readonly GivenPermit[]
  readonly calls: readonly Call[]
}

/** A thread of the exploration: its own instance over the shared memory, that runs as many atomic operations as the schedule says. */
export class ExploredThread implements Stepwise {
  readonly core: ExploredCore
  /** Of each call of the script; `whys` 0 stands for a plain number. */
  readonly values: Float64Array
  readonly mores: Float64Array
  /** When the permit expires that a call was about. */
  readonly untils: Float64Array
  readonly whys: Int32Array
  readonly forgotten: Float64Array
  readonly began: Float64Array
  readonly ended: Float64Array
  private readonly numbers = new SavedNumbers()
  private readonly script: readonly ExploredCall[]
  private readonly verbs: readonly Call['verb'][]
  private readonly stack: number
  private readonly stackWords: Int32Array
  private at = 0
  private suspended = false
  private unwinding = false
  private untouched = false
  /** The permit that it was given last. */
  private held: GivenPermit | undefined
  /** All that it was given. */
  readonly given: GivenPermit[] = []

  constructor({ memory, stack, calls, ...parts }: ThreadParts) {
    this.core = parts.core
    this.stack = stack
    this.stackWords = new Int32Array(memory.buffer, stack, 2)
    const context = { ...parts, numbers: this.numbers, isSuspended: () => this.unwinding }
    this.script = calls.map((call) => new ExploredCall(call, context))
    this.verbs = calls.map(({ verb }) => verb)
    const numbers = (): Float64Array => new Float64Array(calls.length)
    this.values = numbers()
    this.mores = numbers()
    this.untils = numbers()
    this.forgotten = numbers()
    this.began = numbers()
    this.ended = numbers()
    this.whys = new Int32Array(calls.length)
  }

  /** An instance of the core whose yield points lead to the thread that `thread` gives. */
  static instantiate(module: WebAssembly.Module, memory: WebAssembly.Memory, thread: () => ExploredThread): ExploredCore {
    const ignore = (): void => undefined
    const noCalendar = (): number => {
      throw new Error('no scenario goes by the calendar')
    }
    const numbers = {
      beginKey: () => thread().numbers.begin(),
      endKey: ignore,
      savedEntry: ignore,
      putNumber: (number: number) => thread().numbers.put(number),
      nextNumber: () => thread().numbers.next(),
    }
    const host = { policyChanged: ignore, pause: ignore, switchThread: () => thread().switchThread(), ...numbers }
    const imports = { env: { memory }, host: { ...host, calendarWindowStart: noCalendar, calendarWindowEnd: noCalendar } }
    return new WebAssembly.Instance(module, imports).exports as unknown as ExploredCore
  }

  reset(): void {
    this.at = 0
    this.suspended = false
    this.unwinding = false
    this.held = undefined
    this.given.length = 0
    this.ended.fill(Number.POSITIVE_INFINITY)
    this.began.fill(Number.POSITIVE_INFINITY)
    for (const call of this.script) call.reset()
    this.core.startOver()
  }

  /** Looks at the memory again, as a thread that has just been started. */
  attach(): void {
    this.core.grant(TO_THE_END)
    this.core.attach(SECTION)
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
    if (this.suspended && this.untouched) this.begin(stamp)
    while (true) {
      if (this.suspended) {
        core.asyncify_start_rewind(this.stack)
      } else {
        // A call at which the schedule stops before its first operation has not begun.
        this.untouched = core.left() <= 0
        if (!this.untouched) this.begin(stamp)
      }
      const call = this.script[this.at] as ExploredCall
      const answer = call.run(this.held)
      this.untils[this.at] = call.permit?.untilUs ?? Number.NaN
      if (this.unwinding) {
        core.asyncify_stop_unwind()
        this.unwinding = false
        this.suspended = true
        return steps
      }
      this.suspended = false
      if (this.untouched) this.begin(stamp)
      this.record(call, answer, stamp)
      if (this.at === this.script.length) return steps - core.left()
    }
  }

  private begin(stamp: number): void {
    this.began[this.at] = stamp
    this.untouched = false
  }

  private record(call: ExploredCall, answer: number, stamp: number): void {
    const { at, core } = this
    const unanswered = Number.isNaN(answer)
    this.whys[at] = unanswered ? core.whyUnanswered() : 0
    this.values[at] = unanswered ? core.detailOfUnanswered() : answer
    this.mores[at] = call.more
    this.forgotten[at] = unanswered ? core.forgotten() : -1
    this.ended[at] = stamp
    const { permit } = call
    if (permit !== undefined && (this.verbs[at] === 'take' || this.verbs[at] === 'open')) this.given.push(permit)
    if (permit !== undefined) this.held = this.verbs[at] === 'heartbeat' && answer > 0 ? { ...permit, untilUs: answer } : permit
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
}
