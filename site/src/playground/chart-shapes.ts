import type { Arrival } from './arrivals.js'
import type { Outcome, RatePolicy } from './decide.js'
import { binsOf, budgetAt } from './summary.js'

/** A bar of requests of a stretch of time, in pixels. */
export interface Bar {
  readonly x: number
  readonly width: number
  readonly allowed: { readonly y: number; readonly height: number }
  readonly denied: { readonly y: number; readonly height: number }
}

/** A panel of the chart: its place, and the value at its top. */
export interface Panel {
  readonly top: number
  readonly height: number
  readonly most: number
}

export const LEFT = 40
export const RIGHT = 10
const GAP = 1

/** Requests over time. */
export function barsOf(arrivals: readonly Arrival[], { decisions }: Outcome, seconds: number, width: number, panel: Omit<Panel, 'most'>) {
  const inner = width - LEFT - RIGHT
  const count = Math.max(10, Math.min(120, Math.floor(inner / 7)))
  const bins = binsOf(arrivals, decisions, seconds, count)
  const most = roundTop(Math.max(1, ...bins.map(({ allowed, denied }) => allowed + denied)))
  const scale = panel.height / most
  const bars = bins.map(({ allowed, denied }, i): Bar => {
    const bottom = panel.top + panel.height
    return {
      x: LEFT + (i * inner) / count,
      width: inner / count - GAP,
      allowed: { y: bottom - allowed * scale, height: allowed * scale },
      denied: { y: bottom - (allowed + denied) * scale, height: denied * scale },
    }
  })
  return { bars, most, binMs: (seconds * 1000) / count }
}

/** Tokens left over time, as a path and as the area below it. */
export function leftPath(left: readonly number[], width: number, panel: Panel): { readonly line: string; readonly area: string } {
  const points = left.map((value, i) => `${x(i / (left.length - 1), width)} ${y(value, panel)}`)
  const line = `M${points.join('L')}`
  const bottom = panel.top + panel.height
  return { line, area: `${line}L${x(1, width)} ${bottom}L${x(0, width)} ${bottom}Z` }
}

/** Admitted requests so far, and what the policy may admit at most until then. */
export function budgetPaths(
  rate: RatePolicy,
  arrivals: readonly Arrival[],
  { decisions }: Outcome,
  seconds: number,
  width: number,
  panel: Omit<Panel, 'most'>,
) {
  const endMs = seconds * 1000
  const steps = 240
  const budget = Array.from({ length: steps + 1 }, (_, i) => budgetAt(rate, (i * endMs) / steps))
  const total = decisions.reduce((sum, { allowed }) => sum + (allowed ? 1 : 0), 0)
  const most = roundTop(Math.max(total, budget[steps] as number))
  const whole = { ...panel, most }
  const demanded: string[] = [`M${x(0, width)} ${y(0, whole)}`]
  const admitted: string[] = [`M${x(0, width)} ${y(0, whole)}`]
  let sum = 0
  for (const [i, { atMs }] of arrivals.entries()) {
    const at = x(atMs / endMs, width)
    if (i < most * 1.02) demanded.push(`L${at} ${y(Math.min(most, i + 1), whole)}`)
    if (!decisions[i]?.allowed) continue
    admitted.push(`H${at}V${y(++sum, whole)}`)
  }
  admitted.push(`H${x(1, width)}`)
  const line = budget.map((value, i) => `${x(i / steps, width)} ${y(value, whole)}`)
  return { budget: `M${line.join('L')}`, admitted: admitted.join(''), demanded: demanded.join(''), most, panel: whole }
}

/** About five marks of the time axis. */
export function timeMarks(seconds: number): readonly number[] {
  const step = [0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800].find((each) => seconds / each <= 6) ?? seconds
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, i) => i * step)
}

export function x(share: number, width: number): number {
  return tenths(LEFT + share * (width - LEFT - RIGHT))
}

export function y(value: number, { top, height, most }: Panel): number {
  return tenths(top + height - (Math.min(value, most) / most) * height)
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10
}

/** A round number at or above: 1, 2, 5, 10, 20 ... */
function roundTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 3, 4, 5, 6, 8, 10].find((each) => each * power >= value) ?? 10) * power
}
