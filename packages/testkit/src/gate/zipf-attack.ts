import { manualClock } from 'sluicegate'
import { createGate, type GateStats } from 'sluicegate/gate'
import { Random } from '../random.js'
import { ExactWindow } from './exact-window.js'
import { Zipf } from './zipf.js'

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
  readonly stats: GateStats
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
  const { seed, seconds, requestsPerSecond, honestKeys, exponent, windowMs, above, width, depth } = options
  const random = new Random(seed)
  const zipf = new Zipf(honestKeys, exponent, random)
  const floodKeys = Math.ceil((options.floodPerSecond * seconds) / 3)
  const attackers = attackersOf(options, random)
  const keys = honestKeys + attackers.length + floodKeys
  const most = Math.ceil(
    (requestsPerSecond + options.floodPerSecond + attackers.length * 30 * (above / windowMs) * 1_000) * (windowMs / 500),
  )
  const exact = new ExactWindow(keys, windowMs, most)
  const wider = new ExactWindow(keys, (windowMs * 8) / 7, most)
  const names = new Map<number, string>()
  const numbers = new Map<string, number>()
  const nameOf = (key: number): string => {
    const known = names.get(key)
    if (known !== undefined) return known
    const name = key < honestKeys ? `client ${key}` : key < honestKeys + attackers.length ? `attacker ${key}` : `flood ${key}`
    if (key < honestKeys + attackers.length) {
      names.set(key, name)
      numbers.set(name, key)
    }
    return name
  }
  const startMs = Date.UTC(2026, 9, 10)
  const clock = manualClock(startMs)
  /** Since when a key is above the threshold without a verdict. */
  const waiting = new Map<number, number>()
  const found = { rises: 0, inTime: 0, verdicts: 0, right: 0, rightInWindow: 0 }
  const attackersAbove = new Set<number>()
  const attackersFound = new Set<number>()
  const delays: number[] = []
  let mostMargin = 0
  const gate = createGate({
    window: windowMs,
    block: { above, for: 3 * windowMs },
    width,
    depth,
    countEvery: COUNT_EVERY_MS,
    clock,
    onVerdict: ({ key, verdict }) => {
      const number = numbers.get(key)
      if (verdict === 'pass') return
      found.verdicts++
      if (number === undefined) return
      if ((wider.counts[number] as number) > above) found.right++
      if ((exact.counts[number] as number) > above) found.rightInWindow++
      if (number >= honestKeys) attackersFound.add(number)
      const since = waiting.get(number)
      if (since === undefined) return
      waiting.delete(number)
      delays.push(clock.nowMs() - since)
    },
  })
  const errors: number[] = []
  const compare = { compared: 0, under: 0, beyond: 0, bound: 0 }
  let floodNext = honestKeys + attackers.length
  let records = 0
  let mostKeysInWindow = 0
  const inWindow = { keys: 0 }
  const send = (key: number, nowMs: number): void => {
    records++
    const count = exact.add(key, nowMs)
    wider.add(key, nowMs)
    gate.record(nameOf(key), 1, nowMs)
    if (count <= above) return
    if (key >= honestKeys) attackersAbove.add(key)
    if (!waiting.has(key) && gate.check(nameOf(key)) === 'pass') {
      waiting.set(key, nowMs)
      found.rises++
    }
  }
  const statedDelayMs = (): number => COUNT_EVERY_MS + (windowMs * mostMargin) / above
  for (let ms = 0; ms < seconds * 1_000; ms++) {
    const nowMs = startMs + ms
    clock.set(nowMs)
    for (let i = due(requestsPerSecond, ms); i > 0; i--) send(zipf.next(), nowMs)
    if (ms >= (seconds * 1_000) / 3 && ms < (seconds * 2_000) / 3)
      for (let i = due(options.floodPerSecond, ms); i > 0 && floodNext < keys; i--) send(floodNext++, nowMs)
    for (const [i, attacker] of attackers.entries()) {
      if (ms < attacker.fromMs || ms >= attacker.untilMs) continue
      const target = Math.floor((ms - attacker.fromMs + 1) * attacker.perMs)
      for (; attacker.sent < target; attacker.sent++) send(honestKeys + i, nowMs)
    }
    // A key that fell to the threshold before its verdict was above it for less than the delay, or is one that was missed.
    for (const [key, since] of waiting) {
      if ((exact.counts[key] as number) > above || nowMs === since) continue
      waiting.delete(key)
      delays.push(nowMs - since <= statedDelayMs() ? 0 : Number.POSITIVE_INFINITY)
    }
    if (ms % 1_000 !== 999) continue
    gate.flush()
    exact.advance(nowMs)
    wider.advance(nowMs)
    const { epsilon, total, margin } = gate.stats()
    mostMargin = Math.max(mostMargin, margin)
    compare.bound = Math.max(compare.bound, epsilon * total)
    for (let i = 0; i < SAMPLES_PER_SECOND; i++) {
      const key = random.chance(0.5) ? zipf.next() : random.integer(0, honestKeys + attackers.length - 1)
      const count = gate.count(nameOf(key))
      compare.compared++
      if (count < (exact.counts[key] as number)) compare.under++
      const error = count - (wider.counts[key] as number)
      errors.push(Math.max(0, error))
      if (error > epsilon * total) compare.beyond++
    }
    if (ms % 10_000 === 9_999) {
      inWindow.keys = exact.counts.reduce((sum, count) => sum + (count > 0 ? 1 : 0), 0)
      mostKeysInWindow = Math.max(mostKeysInWindow, inWindow.keys)
    }
  }
  const endMs = startMs + seconds * 1_000
  for (const since of waiting.values()) delays.push(endMs - since <= statedDelayMs() ? 0 : Number.POSITIVE_INFINITY)
  const stats = gate.stats()
  gate.close()
  return {
    records,
    rises: found.rises,
    found: delays.filter((ms) => ms <= statedDelayMs()).length,
    attackersAbove: attackersAbove.size,
    attackersFound: [...attackersAbove].filter((key) => attackersFound.has(key)).length,
    verdicts: found.verdicts,
    right: found.right,
    rightInWindow: found.rightInWindow,
    statedDelayMs: statedDelayMs(),
    delaysMs: { median: quantile(delays, 0.5), p99: quantile(delays, 0.99), most: quantile(delays, 1) },
    compared: compare.compared,
    under: compare.under,
    beyond: compare.beyond,
    error: {
      mean: errors.reduce((sum, error) => sum + error, 0) / errors.length,
      p99: quantile(errors, 0.99),
      most: quantile(errors, 1),
      bound: compare.bound,
    },
    mostMargin,
    stats,
    mostKeysInWindow,
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

function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}
