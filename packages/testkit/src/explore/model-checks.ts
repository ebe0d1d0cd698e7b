import type { Defines } from './spin.js'

/** A question to the model. */
export interface ModelCheck {
  readonly name: string
  readonly defines: Defines
}

/** A fault that the model is given, and the configuration in which Spin finds it. */
export interface ModelFault {
  readonly fault: string
  readonly defines: Defines
}

/** Small enough for every run of the tests. */
export const SMALL_CHECKS: readonly ModelCheck[] = [
  { name: 'two takers of one key, stopped anywhere, an auditor', defines: { SECOND: 1, ATTEMPTS: 2 } },
  { name: 'two takers of two keys, stopped anywhere, an auditor', defines: { SECOND: 2, ATTEMPTS: 2 } },
  { name: 'two takers of one key, a burst of one', defines: { SECOND: 1, ATTEMPTS: 2, BURST: 1 } },
]

/** `npm run prove:model`. */
export const LARGE_CHECKS: readonly ModelCheck[] = [
  { name: 'two takers of one key, three attempts', defines: { SECOND: 1 } },
  { name: 'two takers of one key, clocks alike', defines: { SECOND: 1, SECOND_NOW: 0 } },
  { name: 'two takers of two keys, three attempts', defines: { SECOND: 2 } },
  { name: 'three takers of two keys', defines: { SECOND: 1, THIRD: 2, AUDIT: 0, ATTEMPTS: 2 } },
  { name: 'three takers of one key', defines: { SECOND: 1, THIRD: 1, AUDIT: 0, ATTEMPTS: 2 } },
  {
    name: 'three takers of two keys, a burst of one, the clocks of two behind',
    defines: { SECOND: 1, SECOND_NOW: 0, THIRD: 2, AUDIT: 0, ATTEMPTS: 2, BURST: 1 },
  },
  { name: 'three takers of two keys, one attempt, stopped anywhere, an auditor', defines: { SECOND: 1, THIRD: 2, ATTEMPTS: 1 } },
]

const PAIR = { SECOND: 1, ATTEMPTS: 2 }
const STRANGERS = { SECOND: 2, ATTEMPTS: 2 }

export const MODEL_FAULTS: readonly ModelFault[] = [
  { fault: 'NO_RESCAN', defines: PAIR },
  { fault: 'RIVALS_BOTH_GO_ON', defines: PAIR },
  { fault: 'MARK_WIPED', defines: STRANGERS },
  { fault: 'IDENTITY_LEFT', defines: PAIR },
  { fault: 'PLAIN_IDENTITY', defines: PAIR },
  { fault: 'NO_GENERATION', defines: STRANGERS },
  { fault: 'IDENTITY_FIRST', defines: PAIR },
  { fault: 'NO_SECOND_LOOK', defines: PAIR },
  { fault: 'PLAIN_STORE', defines: { ...PAIR, BURST: 1 } },
  { fault: 'FIRST_TAKE_FREE', defines: { ...PAIR, BURST: 1 } },
  { fault: 'FORGETS_ITSELF', defines: PAIR },
  { fault: 'NO_TAKEOVER_TIME', defines: { SECOND: 1, SECOND_NOW: 0, THIRD: 2, AUDIT: 0, ATTEMPTS: 2, BURST: 1 } },
]
