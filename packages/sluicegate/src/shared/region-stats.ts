/** How a limiter with a home elsewhere does, since it was created. */
export interface RegionStats {
  readonly region: string
  /**
   * `tokens`: the region holds tokens ahead of need. A policy too small for that: `home`, where the home decides each take, or `share`, where
   * the region has a fixed share of the policy.
   */
  readonly mode: 'tokens' | 'share' | 'home'
  /** Why it is not `tokens`. */
  readonly why?: string | undefined
  /** Calls that the home answered, and those that it did not. */
  readonly homeCalls: number
  readonly homeFailures: number
  /** Whether the home is out: the last call to it failed, in the last half minute. From then on the region decides without it. */
  readonly isHomeOut: boolean
  /** Renewals by this process that the home answered, and the tokens that they brought to the region. */
  readonly renewals: number
  readonly renewedTokens: number
  /** Tokens that this process charged at the home after the region had admitted them without it. */
  readonly accountedTokens: number
  /** Regions that share the policy, as the home last counted them; 0 while unknown. */
  readonly regions: number
  /** The part of the budget that the region decides without the home. */
  readonly share: number
}

/** What several limiters of one region did together, and whether the home is out for one of them; all else is that of the first. */
export function sumOfRegions(first: RegionStats, limiters: Iterable<{ stats(): { readonly region?: RegionStats } }>): RegionStats {
  const sum = { homeCalls: 0, homeFailures: 0, renewals: 0, renewedTokens: 0, accountedTokens: 0 }
  let { isHomeOut } = first
  for (const limiter of limiters) {
    const { region } = limiter.stats()
    isHomeOut ||= region?.isHomeOut ?? false
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += region?.[name] ?? 0
  }
  return { ...first, ...sum, isHomeOut }
}
