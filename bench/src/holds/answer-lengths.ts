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

export function answerLength(random: Random): number {
  const share = random.fraction()
  for (let i = 1; ; i++) {
    const [toShare, to] = QUANTILES[i] as (typeof QUANTILES)[number]
    if (share > toShare) continue
    const [fromShare, from] = QUANTILES[i - 1] as (typeof QUANTILES)[number]
    return Math.round(from + ((to - from) * (share - fromShare)) / (toShare - fromShare))
  }
}
