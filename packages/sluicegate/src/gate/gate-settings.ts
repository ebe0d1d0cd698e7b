import { PolicyError } from '../errors.js'
import { checkFunction, checkInteger, checkOptions } from '../options/option-checks.js'
import { type Clock, checkClock, preciseClock } from '../time/clock.js'
import { checkedMs } from '../time/duration.js'
import type { GateOptions, GivenVerdict, Threshold, VerdictChange } from './gate.js'
import { verdictOf } from './verdict-set.js'

/** Costs and thresholds, which a counter can hold. */
export const MOST_COST = 2 ** 32 - 1
const LONGEST_MS = 30 * 86_400_000
const SHORTEST_WINDOW_MS = 100
const LEAST_WIDTH = 64
export const MOST_WIDTH: number = 2 ** 24
const MOST_DEPTH = 8
const MOST_VERDICTS = 1_000_000
const MOST_TOP_KEYS = 100_000
const LONGEST_COUNT_EVERY_MS = 3_600_000
const LEVELS = 3

const NAMES: readonly string[] = [
  'window',
  'flag',
  'throttle',
  'block',
  'width',
  'depth',
  'maxVerdicts',
  'topKeys',
  'countEvery',
  'clock',
  'onVerdict',
] satisfies (keyof GateOptions)[]
const THRESHOLD_NAMES: readonly string[] = ['above', 'below', 'for'] satisfies (keyof Threshold)[]
const EXAMPLE = "{ window: '10s', block: 1000 }"

/** A threshold with its defaults. */
export interface Level {
  readonly verdict: GivenVerdict
  /** From 1. */
  readonly severity: number
  readonly above: number
  readonly below: number
  readonly forMs: number
}

/** Checked options. */
export interface GateSettings {
  readonly windowMs: number
  /** By severity, the highest first. */
  readonly levels: readonly Level[]
  readonly width: number
  readonly depth: number
  readonly maxVerdicts: number
  readonly topKeys: number
  readonly countEveryMs: number
  readonly clock: Clock
  readonly onVerdict: ((change: VerdictChange) => void) | undefined
}

/** @throws {PolicyError} on an unknown option or one out of range. */
export function gateSettings(given: GateOptions): GateSettings {
  const options = checkOptions(given, NAMES, EXAMPLE, 'createGate()')
  const { window, width = 32_768, depth = 4, maxVerdicts = 10_000, topKeys = 100, clock = preciseClock(), onVerdict } = options
  const windowMs = checkedMs('window', window, SHORTEST_WINDOW_MS, LONGEST_MS)
  checkInteger('width', width, LEAST_WIDTH, MOST_WIDTH)
  if (!Number.isInteger(Math.log2(width))) throw new PolicyError('OPTION_INVALID', 'width', width, 'must be a power of two')
  checkInteger('depth', depth, 1, MOST_DEPTH)
  checkInteger('maxVerdicts', maxVerdicts, 1, MOST_VERDICTS)
  checkInteger('topKeys', topKeys, 0, MOST_TOP_KEYS)
  const countEveryMs = checkedMs('countEvery', options.countEvery ?? 100, 1, LONGEST_COUNT_EVERY_MS)
  checkClock(clock)
  checkFunction('onVerdict', onVerdict)
  return { windowMs, levels: levelsOf(options, windowMs), width, depth, maxVerdicts, topKeys, countEveryMs, clock, onVerdict }
}

function levelsOf(options: GateOptions, windowMs: number): readonly Level[] {
  const levels: Level[] = []
  for (let severity = LEVELS; severity >= 1; severity--) {
    const verdict = verdictOf(severity) as GivenVerdict
    const threshold = options[verdict]
    if (threshold === undefined) continue
    const level = levelOf(verdict, severity, threshold, windowMs)
    const higher = levels.at(-1)
    if (higher !== undefined && level.above >= higher.above)
      throw new PolicyError(
        'OPTION_INVALID',
        `${verdict}.above`,
        level.above,
        `must be below ${higher.above}, which is that of ${higher.verdict}`,
      )
    levels.push(level)
  }
  if (levels.length === 0)
    throw new PolicyError('OPTION_INVALID', 'options', options, `must have flag, throttle or block, such as ${EXAMPLE}`)
  return levels
}

function levelOf(verdict: GivenVerdict, severity: number, threshold: number | Threshold, windowMs: number): Level {
  if (typeof threshold === 'number') return levelOf(verdict, severity, { above: threshold }, windowMs)
  const own = checkOptions(threshold, THRESHOLD_NAMES, '{ above: 1000, for: "10m" }', verdict, verdict)
  const { above, below } = own
  checkInteger(`${verdict}.above`, above, 1, MOST_COST)
  if (below !== undefined) checkInteger(`${verdict}.below`, below, 1, above)
  const forMs = own.for === undefined ? windowMs : checkedMs(`${verdict}.for`, own.for, 1, LONGEST_MS)
  return { verdict, severity, above, below: below ?? Math.ceil(above / 2), forMs }
}
