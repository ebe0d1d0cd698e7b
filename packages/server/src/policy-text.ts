import type { Policy } from './engine.js'

const MS_PER_UNIT = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** A policy for people: `token-bucket, 100 per 1m, burst 200`. */
export function describePolicy({ algorithm, limit, windowMs, burst }: Policy): string {
  const [unit, size] = MS_PER_UNIT.find(([, unitMs]) => windowMs % unitMs === 0) ?? ['ms', 1]
  return `${algorithm}, ${limit} per ${windowMs / size}${unit}, burst ${burst}`
}
