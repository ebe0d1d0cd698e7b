import type { Machine } from './machine.js'
import type { Effort } from './measure.js'
import type { Answer } from './question.js'

/** What `--json` writes. */
export interface Results {
  readonly startedAt: string
  readonly machine: Machine
  /** The rivals' versions. */
  readonly rivals: Readonly<Record<string, string>>
  readonly effort: Effort
  readonly loadBefore: number
  readonly loadAfter: number
  readonly answers: readonly (Answer & { readonly question: string })[]
}
