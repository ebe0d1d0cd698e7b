import type { Random } from 'sluicegate-testkit'

/**
 * Lengths of answers in tokens, by the share of answers that are at most as long, with straight lines between: the generated tokens of the Azure
 * LLM inference trace of 2023, conversations (Patel et al., ISCA 2024): mean 211, median 129, p90 424, p99 601, at most 1,000.
 */
const QUANTILES = [
  [0, 7],
  [0.1, 60],
  [0.5, 129],
  [0.7, 300],
  [0.9, 424],
  [0.99, 601],
  [1, 1000],
] as const

export const LONGEST = 1000

export function answerLength(random: Random): number {
  if (process.env.TAIL) { let z = 0; for (let i = 0; i < 12; i++) z += random.fraction(); return Math.max(1, Math.min(45_000, Math.round(129 * Math.exp(Number(process.env.TAIL) * (z - 6))))) }
  const share = random.fraction()
  for (let i = 1; ; i++) {
    const [toShare, to] = QUANTILES[i] as (typeof QUANTILES)[number]
    if (share > toShare) continue
    const [fromShare, from] = QUANTILES[i - 1] as (typeof QUANTILES)[number]
    return Math.round(from + ((to - from) * (share - fromShare)) / (toShare - fromShare))
  }
}
