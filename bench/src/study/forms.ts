import { type Policy, slidingLog, slidingWindow } from 'sluicegate'

/** A way of counting requests, and how many tokens it asks for each: limits above 65,535 tokens are held in the wide form. */
export interface Form {
  readonly name: string
  readonly tokensPerRequest: number
  policy(requests: number, windowMs: number): Policy
}

const WIDE_TOKENS = 1000

export const PACKED: Form = {
  name: 'packed',
  tokensPerRequest: 1,
  policy: (requests, windowMs) => slidingWindow({ limit: requests, window: windowMs }),
}

const WIDE: Form = {
  name: 'wide',
  tokensPerRequest: WIDE_TOKENS,
  policy: (requests, windowMs) => slidingWindow({ limit: requests * WIDE_TOKENS, window: windowMs }),
}

const COMPACT: Form = {
  name: 'compact',
  tokensPerRequest: WIDE_TOKENS,
  policy: (requests, windowMs) => slidingWindow({ limit: requests * WIDE_TOKENS, window: windowMs, counters: 'compact' }),
}

/** The approximated sliding window in each of its forms. */
export const FORMS: readonly Form[] = [PACKED, WIDE, COMPACT]

/** What is exact, to check the study itself: it must never be found wrong. */
export const LOG: Form = {
  name: 'sliding log',
  tokensPerRequest: 1,
  policy: (requests, windowMs) => slidingLog({ limit: requests, window: windowMs }),
}
