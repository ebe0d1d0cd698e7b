import { closedError, PolicyError } from '../errors.js'
import { checkKey } from '../key.js'
import { fingerprint, high, low } from '../memory/fingerprint.js'
import { checkInteger } from '../options/option-checks.js'
import { afterUnheld, forwardClock, unheldClock } from '../time/clock.js'
import { warnOnce } from '../warn-once.js'
import { CountMinSketch } from './count-min-sketch.js'
import type { Gate, GateRecord, GateStats, GivenVerdict, TopKey, Verdict, VerdictInForce } from './gate.js'
import { type GateSettings, type Level, MOST_COST, MOST_WIDTH } from './gate-settings.js'
import { HeavyHitters } from './heavy-hitters.js'
import { SharedVerdicts } from './shared-verdicts.js'
import { verdictOf, type WrittenVerdictSet } from './verdict-set.js'

/** Records that wait to be counted; the next one counts them at once. */
const MOST_PENDING = 8_192
/** While verdicts are in force, those that are over are looked for at least so often. */
const SWEEP_MS = 1_000

const warn = warnOnce()

/** The warning of a gate that is too narrow for its traffic. */
function narrowText(width: number, total: number, lowest: number): string {
  const least = 2 ** Math.ceil(Math.log2((Math.E * total) / lowest))
  const isThere = least <= MOST_WIDTH
  const mend = isThere
    ? `width: ${least} would do`
    : `no width would do, the widest is ${MOST_WIDTH}: raise the threshold, or shorten the window`
  const error = Math.floor((Math.E / width) * total)
  return `a gate of width ${width} has counted ${total} in its window: a count may be ${error} too high, which is above the lowest threshold, ${lowest}, so keys may be judged that sent little; ${mend}`
}

/** A key with a verdict, until it is found to be over. */
interface Active {
  readonly key: string
  readonly low: number
  readonly high: number
  /** Of the verdict in the shared set. */
  severity: number
  count: number
  sinceMs: number
  /** The end of each level, by severity; 0 for none. */
  readonly untilMs: [number, number, number, number]
}

/** A gate in the thread that counts. */
export class CountingGate extends SharedVerdicts implements Gate {
  readonly #settings: GateSettings
  readonly #set: WrittenVerdictSet
  readonly #sketch: CountMinSketch
  readonly #top: HeavyHitters
  /** Never runs back: after a step back the clock's time goes on from there. */
  readonly #nowMs: () => number
  readonly #after: (ms: number, fn: () => void) => () => void
  readonly #active = new Map<string, Active>()
  /** The same by severity, the oldest first. */
  readonly #bySeverity: readonly Set<Active>[] = [new Set(), new Set(), new Set(), new Set()]
  /** No key below it has a verdict or gets one. */
  readonly #leastCount: number
  readonly #keys: string[] = new Array<string>(MOST_PENDING).fill('')
  readonly #costs = new Float64Array(MOST_PENDING)
  /** NaN for the time of counting. */
  readonly #times = new Float64Array(MOST_PENDING)
  #pending = 0
  #isCounting = false
  #cancelCounting: (() => void) | undefined
  #cancelSweep: (() => void) | undefined
  #countedMs = 0
  /** The newest time that the flush under way has counted. */
  #newestMs = Number.NEGATIVE_INFINITY
  /** The pane for which the top list was counted last. */
  #renewedPane = Number.NEGATIVE_INFINITY
  #sweptMs = Number.NEGATIVE_INFINITY
  #isNarrow = false
  /** No verdict ends before it. */
  #nextEndMs = Number.POSITIVE_INFINITY
  #records = 0
  #late = 0
  #refused = 0

  constructor(settings: GateSettings, set: WrittenVerdictSet, secret: readonly [number, number]) {
    super(set, secret, settings.clock)
    const { clock, topKeys, levels } = settings
    this.#settings = settings
    this.#set = set
    this.#sketch = new CountMinSketch(settings)
    this.#top = new HeavyHitters(topKeys)
    this.#leastCount = Math.min(...levels.map(({ below }) => below))
    const forward = forwardClock(clock)
    this.#nowMs = () => forward.nowMs()
    const unheld = unheldClock(clock)
    this.#after = unheld.after === undefined ? afterUnheld : (ms, fn) => (unheld.after as typeof afterUnheld)(ms, fn)
  }

  record(key: string, cost = 1, timeMs?: number): void {
    checkKey(key)
    if (!(Number.isInteger(cost) && cost >= 1 && cost <= MOST_COST))
      throw new PolicyError('COST_INVALID', 'cost', cost, `must be an integer from 1 to ${MOST_COST}`)
    if (timeMs !== undefined && !Number.isFinite(timeMs))
      throw new PolicyError('OPTION_INVALID', 'timeMs', timeMs, 'must be Unix milliseconds, or left out for the time of counting')
    if (this.isClosed) throw closedError()
    if (this.#pending === MOST_PENDING) {
      // A callback records while a full buffer is counted: the record is counted before those that wait.
      if (this.#isCounting) {
        this.#count(key, cost, Math.min(timeMs ?? this.#countedMs, this.#countedMs))
        return
      }
      this.flush()
    }
    const at = this.#pending++
    this.#keys[at] = key
    this.#costs[at] = cost
    this.#times[at] = timeMs ?? Number.NaN
    if (this.#cancelCounting === undefined) this.#cancelCounting = this.#after(this.#settings.countEveryMs, () => this.#countInTime())
  }

  recordAll(records: Iterable<GateRecord>): void {
    for (const { key, cost, timeMs } of records) this.record(key, cost, timeMs)
  }

  flush(): void {
    if (this.isClosed) throw closedError()
    if (this.#isCounting) return
    this.#isCounting = true
    this.#newestMs = Number.NEGATIVE_INFINITY
    try {
      this.#countedMs = this.#nowMs()
      for (let i = 0; i < this.#pending; i++) {
        const timeMs = this.#times[i] as number
        const countedMs = Number.isNaN(timeMs) ? this.#countedMs : Math.min(timeMs, this.#countedMs)
        this.#count(this.#keys[i] as string, this.#costs[i] as number, countedMs)
      }
    } finally {
      this.#keys.fill('', 0, this.#pending)
      this.#pending = 0
      this.#isCounting = false
    }
    this.#checkWidth()
    // A log that is read from its start has its own time, by which its verdicts begin and end.
    const timeMs = this.#newestMs === Number.NEGATIVE_INFINITY ? this.#countedMs : this.#newestMs
    if (timeMs >= this.#nextEndMs && timeMs >= this.#sweptMs + this.#settings.countEveryMs) this.#endVerdicts(timeMs)
  }

  count(key: string): number {
    checkKey(key)
    this.flush()
    fingerprint(key, this.secret[0], this.secret[1])
    return this.#sketch.count(low, high)
  }

  top(n = 10): TopKey[] {
    checkInteger('n', n, 0)
    this.flush()
    this.#renewTop()
    return this.#top.top(n)
  }

  verdicts(): VerdictInForce[] {
    this.flush()
    return Array.from(this.#active.values(), ({ key, severity, count, sinceMs, untilMs }) => ({
      key,
      verdict: verdictOf(severity) as GivenVerdict,
      count,
      sinceMs,
      untilMs: untilMs[severity] as number,
    }))
  }

  stats(): GateStats {
    const { epsilon, delta, margin, total, memoryBytes } = this.#sketch
    return {
      records: this.#records,
      pending: this.#pending,
      late: this.#late,
      total,
      verdicts: this.#active.size,
      refused: this.#refused,
      memoryBytes: memoryBytes + this.#set.memory.byteLength,
      epsilon,
      delta,
      margin,
    }
  }

  override close(): void {
    this.#cancelCounting?.()
    this.#cancelSweep?.()
    super.close()
  }

  override toJSON(): object {
    return { windowMs: this.#settings.windowMs, verdicts: this.#active.size }
  }

  /** Where the error of a count may exceed a threshold, a verdict may be on any key. */
  #checkWidth(): void {
    if (this.#isNarrow) return
    const { epsilon, total } = this.#sketch
    const { width, windowMs, levels } = this.#settings
    const lowest = Math.min(...levels.map(({ above }) => above))
    if (epsilon * total <= lowest) return
    this.#isNarrow = true
    warn('SLUICEGATE_GATE_WIDTH', () => narrowText(width, total, lowest), `${width} ${windowMs} ${lowest}`)
  }

  #countInTime(): void {
    this.#cancelCounting = undefined
    this.flush()
    this.#sweepInTime()
  }

  /** Verdicts that end while no record comes are taken out of the set, and reported, by a timer of their own. */
  #sweepInTime(): void {
    if (this.#active.size === 0 || this.isClosed) return
    this.#cancelSweep ??= this.#after(SWEEP_MS, () => {
      this.#cancelSweep = undefined
      this.flush()
      this.#sweepInTime()
    })
  }

  #count(key: string, cost: number, timeMs: number): void {
    fingerprint(key, this.secret[0], this.secret[1])
    const ownLow = low
    const ownHigh = high
    const count = this.#sketch.add(ownLow, ownHigh, cost, timeMs)
    if (count < 0) {
      this.#late++
      return
    }
    this.#records++
    if (timeMs > this.#newestMs) this.#newestMs = timeMs
    if (this.#sketch.newestPane !== this.#renewedPane) this.#renewTop()
    this.#top.offer(key, ownLow, ownHigh, count)
    if (count >= this.#leastCount) this.#judge(key, ownLow, ownHigh, count, timeMs)
  }

  /** Compares the count, less the error that it may have, with the thresholds. */
  #judge(key: string, ownLow: number, ownHigh: number, count: number, timeMs: number): void {
    const sure = count - this.#sketch.margin
    const known = this.#active.get(key)
    let active = known
    for (const level of this.#settings.levels) {
      const { severity, above, below, forMs } = level
      const isInForce = active !== undefined && (active.untilMs[severity] as number) > timeMs
      if (sure <= above && !(isInForce && sure >= below)) continue
      active ??= { key, low: ownLow, high: ownHigh, severity: 0, count, sinceMs: timeMs, untilMs: [0, 0, 0, 0] }
      active.untilMs[severity] = Math.max(active.untilMs[severity] as number, timeMs + forMs)
    }
    if (active === undefined) return
    active.count = count
    this.#settle(active, timeMs)
  }

  /** Brings the shared set and the lists into agreement with the ends of a key's levels. */
  #settle(active: Active, timeMs: number): void {
    const { key, untilMs } = active
    const before = active.severity
    const level = this.#settings.levels.find(({ severity }) => (untilMs[severity] as number) > timeMs)
    if (level === undefined) {
      this.#end(active, timeMs)
      return
    }
    if (before === 0 && !this.#hasPlace(level, timeMs)) {
      this.#refused++
      return
    }
    const end = untilMs[level.severity] as number
    if (!this.#set.set(active.low, active.high, level.verdict, end)) {
      this.#refused++
      return
    }
    this.#nextEndMs = Math.min(this.#nextEndMs, end)
    if (before === level.severity) return
    active.severity = level.severity
    active.sinceMs = timeMs
    this.#active.set(key, active)
    this.#bySeverity[before]?.delete(active)
    this.#bySeverity[level.severity]?.add(active)
    this.#report(active, verdictOf(before), timeMs, end)
  }

  #end(active: Active, timeMs: number): void {
    const before = active.severity
    if (before === 0) return
    this.#active.delete(active.key)
    this.#bySeverity[before]?.delete(active)
    this.#set.delete(active.low, active.high)
    active.severity = 0
    this.#report(active, verdictOf(before), timeMs, timeMs)
  }

  /** Among as many verdicts as there may be, the oldest of the least severity gives its place to a more severe one, and to no other. */
  #hasPlace(level: Level, timeMs: number): boolean {
    if (this.#active.size < this.#settings.maxVerdicts) return true
    for (let severity = 1; severity < level.severity; severity++) {
      const [oldest] = this.#bySeverity[severity] as Set<Active>
      if (oldest === undefined) continue
      this.#end(oldest, timeMs)
      return true
    }
    return false
  }

  #endVerdicts(timeMs: number): void {
    this.#sweptMs = timeMs
    this.#nextEndMs = Number.POSITIVE_INFINITY
    for (const active of this.#active.values()) {
      const endMs = active.untilMs[active.severity] as number
      if (endMs <= timeMs) this.#settle(active, endMs)
      if (active.severity > 0) this.#nextEndMs = Math.min(this.#nextEndMs, active.untilMs[active.severity] as number)
    }
  }

  #renewTop(): void {
    this.#renewedPane = this.#sketch.newestPane
    this.#top.renew((low, high) => this.#sketch.count(low, high))
  }

  #report({ key, severity, count }: Active, before: Verdict, timeMs: number, untilMs: number): void {
    const { onVerdict } = this.#settings
    if (onVerdict === undefined) return
    try {
      onVerdict({ key, verdict: verdictOf(severity), before, count, timeMs, untilMs })
    } catch (error) {
      // Counting goes on with the next record; the error reaches the process as one that was not caught.
      queueMicrotask(() => {
        throw error
      })
    }
  }
}
