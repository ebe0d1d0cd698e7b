import { manualClock } from 'sluicegate'
import { createGate, type Gate } from 'sluicegate/gate'
import { Random, Zipf } from '../random.js'
import { quantile } from '../samples.js'

/** Exact counts of numbered keys in a sliding window: each record is kept until it leaves the window. */
class ExactWindow {
  readonly counts: Uint32Array
  readonly #windowMs: number
  readonly #keys: Uint32Array
  readonly #times: Float64Array
  #first = 0
  #next = 0

  /** @param most records that the window may hold at once. */
  constructor(keys: number, windowMs: number, most: number) {
    this.counts = new Uint32Array(keys)
    this.#windowMs = windowMs
    this.#keys = new Uint32Array(most)
    this.#times = new Float64Array(most)
  }

  get total(): number {
    return this.#next - this.#first
  }

  /** The count of the key in the window that ends now. */
  add(key: number, timeMs: number): number {
    this.advance(timeMs)
    const at = this.#next++ % this.#keys.length
    if (this.total > this.#keys.length) throw new Error('the window holds more records than it has room for')
    this.#keys[at] = key
    this.#times[at] = timeMs
    const count = (this.counts[key] as number) + 1
    this.counts[key] = count
    return count
  }

  advance(timeMs: number): void {
    while (this.#first < this.#next) {
      const at = this.#first % this.#keys.length
      if ((this.#times[at] as number) > timeMs - this.#windowMs) return
      const key = this.#keys[at] as number
      this.counts[key] = (this.counts[key] as number) - 1
      this.#first++
    }
  }
}

/** Traffic of honest keys with attackers among them, and the gate that it meets. */
export interface AttackOptions {
  readonly seed: number
  readonly seconds: number
  /** Of all honest keys together. */
  readonly requestsPerSecond: number
  readonly honestKeys: number
  readonly exponent: number
  readonly attackers: number
  /** Requests a second of distinct keys, in the middle third of the time. */
  readonly floodPerSecond: number
  readonly windowMs: number
  readonly above: number
  readonly width: number
  readonly depth: number
}

/** How verdicts compare with exact counts. */
export interface AttackResult {
  readonly records: number
  /** Times at which a key rose above the threshold in the exact window and had no verdict... */
  readonly rises: number
  /** ...and those of them in which it had one within {@link AttackResult.statedDelayMs}, or fell to the threshold again before. */
  readonly found: number
  /** Attackers that were above the threshold at any time, and those of them with a verdict. */
  readonly attackersAbove: number
  readonly attackersFound: number
  /** Verdicts that began... */
  readonly verdicts: number
  /** ...and those of them on keys that were above the threshold in eight sevenths of the window, which a count may cover. */
  readonly right: number
  /** The same against the window itself. */
  readonly rightInWindow: number
  readonly statedDelayMs: number
  readonly delaysMs: { readonly median: number; readonly p99: number; readonly most: number }
  /** Counts that were compared with the exact ones. */
  readonly compared: number
  /** Counts below the exact one of the window. */
  readonly under: number
  /** Counts above the exact one of eight sevenths of the window by more than epsilon of all. */
  readonly beyond: number
  readonly error: { readonly mean: number; readonly p99: number; readonly most: number; readonly bound: number }
  readonly mostMargin: number
  readonly stats: ReturnType<Gate['stats']>
  /** What the exact counter holds at its peak: keys in the window at once. */
  readonly mostKeysInWindow: number
}

const COUNT_EVERY_MS = 100
const SAMPLES_PER_SECOND = 500
/** Attackers send at this many times the threshold, by magnitude. */
const LEAST_TIMES = 1.5
const MOST_TIMES = 30

interface Attacker {
  readonly fromMs: number
  readonly untilMs: number
  readonly perMs: number
  sent: number
}

/** Runs the traffic through the gate and through exact counters. */
export function zipfAttack(options: AttackOptions): AttackResult {
  const attack = new ZipfAttack(options)
  for (let ms = 0; ms < options.seconds * 1_000; ms++) {
    attack.send(ms)
    if (ms % 1_000 === 999) attack.compare(ms)
  }
  return attack.end()
}

class ZipfAttack {
  private readonly options: AttackOptions
  private readonly random: Random
  private readonly zipf: Zipf
  private readonly attackers: readonly Attacker[]
  /** Keys below it are honest or attack; those from it on are sent once. */
  private readonly firstFlood: number
  private readonly keys: number
  private readonly exact: ExactWindow
  private readonly wider: ExactWindow
  private readonly names = new Map<number, string>()
  private readonly numbers = new Map<string, number>()
  private readonly startMs = Date.UTC(2026, 9, 10)
  private readonly clock = manualClock(this.startMs)
  private readonly gate: Gate
  /** Since when a key is above the threshold without a verdict. */
  private readonly waiting = new Map<number, number>()
  private readonly attackersAbove = new Set<number>()
  private readonly attackersFound = new Set<number>()
  private readonly delays: number[] = []
  private readonly errors: number[] = []
  private readonly counts = { records: 0, rises: 0, verdicts: 0, right: 0, rightInWindow: 0, compared: 0, under: 0, beyond: 0 }
  private floodNext: number
  private bound = 0
  private mostMargin = 0
  private mostKeysInWindow = 0

  constructor(options: AttackOptions) {
    const { seed, seconds, requestsPerSecond, floodPerSecond, honestKeys, exponent, windowMs, above, width, depth } = options
    this.options = options
    this.random = new Random(seed)
    this.zipf = new Zipf(honestKeys, exponent)
    this.attackers = attackersOf(options, this.random)
    this.firstFlood = honestKeys + this.attackers.length
    this.floodNext = this.firstFlood
    this.keys = this.firstFlood + Math.ceil((floodPerSecond * seconds) / 3)
    const perSecond = requestsPerSecond + floodPerSecond + this.attackers.length * 30 * (above / windowMs) * 1_000
    const most = Math.ceil(perSecond * (windowMs / 500))
    this.exact = new ExactWindow(this.keys, windowMs, most)
    this.wider = new ExactWindow(this.keys, (windowMs * 8) / 7, most)
    this.gate = createGate({
      window: windowMs,
      block: { above, for: 3 * windowMs },
      width,
      depth,
      countEvery: COUNT_EVERY_MS,
      clock: this.clock,
      onVerdict: ({ key, verdict }) => {
        if (verdict !== 'pass') this.judged(this.numbers.get(key))
      },
    })
  }

  /** All requests of one millisecond. */
  send(ms: number): void {
    const { requestsPerSecond, floodPerSecond, seconds, honestKeys } = this.options
    const nowMs = this.startMs + ms
    this.clock.set(nowMs)
    for (let i = due(requestsPerSecond, ms); i > 0; i--) this.request(this.zipf.draw(this.random), nowMs)
    if (ms >= (seconds * 1_000) / 3 && ms < (seconds * 2_000) / 3)
      for (let i = due(floodPerSecond, ms); i > 0 && this.floodNext < this.keys; i--) this.request(this.floodNext++, nowMs)
    for (const [i, attacker] of this.attackers.entries()) {
      if (ms < attacker.fromMs || ms >= attacker.untilMs) continue
      const target = Math.floor((ms - attacker.fromMs + 1) * attacker.perMs)
      for (; attacker.sent < target; attacker.sent++) this.request(honestKeys + i, nowMs)
    }
    // A key that fell to the threshold before its verdict was above it for less than the delay, or is one that was missed.
    for (const [key, since] of this.waiting) {
      if ((this.exact.counts[key] as number) > this.options.above || nowMs === since) continue
      this.waiting.delete(key)
      this.delays.push(this.inTime(nowMs - since))
    }
  }

  /** Compares counts of the gate with the exact ones. */
  compare(ms: number): void {
    const { gate, exact, wider, counts, random, zipf } = this
    const nowMs = this.startMs + ms
    gate.flush()
    exact.advance(nowMs)
    wider.advance(nowMs)
    const { epsilon, total, margin } = gate.stats()
    this.mostMargin = Math.max(this.mostMargin, margin)
    this.bound = Math.max(this.bound, epsilon * total)
    for (let i = 0; i < SAMPLES_PER_SECOND; i++) {
      const key = random.chance(0.5) ? zipf.draw(random) : random.integer(0, this.firstFlood - 1)
      const count = gate.count(this.nameOf(key))
      counts.compared++
      if (count < (exact.counts[key] as number)) counts.under++
      const error = count - (wider.counts[key] as number)
      this.errors.push(Math.max(0, error))
      if (error > epsilon * total) counts.beyond++
    }
    if (ms % 10_000 !== 9_999) return
    this.mostKeysInWindow = Math.max(
      this.mostKeysInWindow,
      exact.counts.reduce((sum, count) => sum + (count > 0 ? 1 : 0), 0),
    )
  }

  end(): AttackResult {
    const { counts, delays, errors, attackersAbove, attackersFound, mostMargin, mostKeysInWindow, gate } = this
    const { rises, records, verdicts, right, rightInWindow, compared, under, beyond } = counts
    const endMs = this.startMs + this.options.seconds * 1_000
    for (const since of this.waiting.values()) delays.push(this.inTime(endMs - since))
    const stats = gate.stats()
    gate.close()
    const { statedDelayMs } = this
    const [late, off] = [delays, errors].map((values) => Float64Array.from(values).sort()) as [Float64Array, Float64Array]
    return {
      records,
      rises,
      found: delays.filter((ms) => ms <= statedDelayMs).length,
      attackersAbove: attackersAbove.size,
      attackersFound: [...attackersAbove].filter((key) => attackersFound.has(key)).length,
      verdicts,
      right,
      rightInWindow,
      statedDelayMs,
      delaysMs: { median: quantile(late, 0.5), p99: quantile(late, 0.99), most: quantile(late, 1) },
      compared,
      under,
      beyond,
      error: {
        mean: errors.reduce((sum, error) => sum + error, 0) / errors.length,
        p99: quantile(off, 0.99),
        most: quantile(off, 1),
        bound: this.bound,
      },
      mostMargin,
      stats,
      mostKeysInWindow,
    }
  }

  private request(key: number, nowMs: number): void {
    const { above, honestKeys } = this.options
    this.counts.records++
    const count = this.exact.add(key, nowMs)
    this.wider.add(key, nowMs)
    this.gate.record(this.nameOf(key), 1, nowMs)
    if (count <= above) return
    if (key >= honestKeys) this.attackersAbove.add(key)
    if (this.waiting.has(key) || this.gate.check(this.nameOf(key)) !== 'pass') return
    this.waiting.set(key, nowMs)
    this.counts.rises++
  }

  /** A verdict began; undefined: on a key that is sent once. */
  private judged(key: number | undefined): void {
    const { counts, options, waiting } = this
    counts.verdicts++
    if (key === undefined) return
    if ((this.wider.counts[key] as number) > options.above) counts.right++
    if ((this.exact.counts[key] as number) > options.above) counts.rightInWindow++
    if (key >= options.honestKeys) this.attackersFound.add(key)
    const since = waiting.get(key)
    if (since === undefined) return
    waiting.delete(key)
    this.delays.push(this.clock.nowMs() - since)
  }

  private get statedDelayMs(): number {
    return COUNT_EVERY_MS + (this.options.windowMs * this.mostMargin) / this.options.above
  }

  /** The delay of a key without a verdict: none within the stated one. */
  private inTime(delayMs: number): number {
    return delayMs <= this.statedDelayMs ? 0 : Number.POSITIVE_INFINITY
  }

  private nameOf(key: number): string {
    const known = this.names.get(key)
    if (known !== undefined) return known
    if (key >= this.firstFlood) return `flood ${key}`
    const name = key < this.options.honestKeys ? `client ${key}` : `attacker ${key}`
    this.names.set(key, name)
    this.numbers.set(name, key)
    return name
  }
}

function attackersOf({ attackers, seconds, above, windowMs }: AttackOptions, random: Random): Attacker[] {
  return Array.from({ length: attackers }, () => {
    const fromMs = random.integer(0, seconds * 1_000 * 0.9)
    const lengthMs = random.integer(windowMs, 4 * windowMs)
    const times = Math.exp(Math.log(LEAST_TIMES) + random.fraction() * Math.log(MOST_TIMES / LEAST_TIMES))
    return { fromMs, untilMs: fromMs + lengthMs, perMs: (times * above) / windowMs, sent: 0 }
  })
}

/** Requests due in this millisecond, of `perSecond` in each second. */
function due(perSecond: number, ms: number): number {
  return Math.floor(((ms + 1) * perSecond) / 1_000) - Math.floor((ms * perSecond) / 1_000)
}
