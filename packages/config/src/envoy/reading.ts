import type { PolicyConfig } from '../policy-config.js'

/** What is collected while the rules of a file are read. */
export interface Reading {
  readonly policies: PolicyConfig[]
  readonly names: Set<string>
  /** Whether limits charge denied hits, where they do not say so themselves. */
  readonly chargeDenied: boolean
  rules: number
}

const OF_THE_LIMIT = new Set([
  'unit',
  'requests_per_unit',
  'unlimited',
  'name',
  'replaces',
  'algorithm',
  'window',
  'burst',
  'cost',
  'tiers',
  'tier_file',
  'priorities',
  'soft',
])
const OF_THE_DESCRIPTOR = new Set([
  'shadow_mode',
  'quota_mode',
  'detailed_metric',
  'value_to_metric',
  'share_threshold',
  'metadata',
  'descriptors',
])

/** Where an option belongs that stands in the wrong place; Envoy's ratelimit service ignores it there. */
export function hintFor(option: string): string | undefined {
  if (OF_THE_LIMIT.has(option)) return 'is for rate_limit: write it there'
  return OF_THE_DESCRIPTOR.has(option) ? 'is for the descriptor: write it beside key' : undefined
}
