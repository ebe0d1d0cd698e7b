import { CountDecoder, type CountTimes, type DecisionDecoder, RateDecoder } from '../../decision/decision-decoder.js'
import { type Calendar, minuteWindow } from '../../policy/calendar.js'
import { type Policy, policiesOf } from '../../policy/policy.js'
import { DEEPEST_DEBT_BURSTS, emissionOf } from '../../policy/policy-numbers.js'
import { storedNames } from '../../policy/stored-name.js'

export type EncodingName = 'rate' | 'fixed-window' | 'sliding-window' | 'sliding-log' | 'concurrency'

/** A policy in the numbers of the scripts. `lua/` documents what they mean. */
export interface PolicyEncoding {
  readonly name: EncodingName
  readonly policy: Policy
  /** The name of its account, see {@link storedNames}. */
  readonly storedName: string
  /** The length of a lease in microseconds, 0 where it is not leased. */
  readonly leaseUs: number
  /** More tokens than a key can owe count as that many. */
  readonly mostTokens: number
  /** The amount that `tokens` are in the script's unit. */
  amountOf(tokens: number): number
  /** Its numbers, joined by spaces, for a time in microseconds since the Unix epoch. */
  numbersAt(us: number): string
  /** Decodes an answer, whose times are those of a count. */
  decoderOf(times: CountTimes): DecisionDecoder
}

/** The encodings of a policy: one, or one for each policy of `allOf`. */
export interface PolicyEncodings {
  readonly encodings: readonly PolicyEncoding[]
  readonly isAllOf: boolean
}

/**
 * Encodes a policy. A leased policy has the numbers by which the whole fleet counts it.
 *
 * @param lengthOf the length of a lease of a policy, 0 where it is not leased.
 * @param names of its accounts.
 */
export function encodingsOf(
  policy: Policy,
  lengthOf: (policy: Policy) => number = () => 0,
  names: readonly string[] = storedNames(policy),
): PolicyEncodings {
  const encodings = policiesOf(policy).map((part, i) => ({ ...encodingOf(part, lengthOf(part)), storedName: names[i] as string }))
  return { encodings, isAllOf: policy.algorithm === 'all-of' }
}

/** All of an encoding but the name of its account. */
type Numbers = Omit<PolicyEncoding, 'storedName'>

function encodingOf(policy: Policy, leaseUs: number): Numbers {
  switch (policy.algorithm) {
    case 'token-bucket':
    case 'gcra':
      return rateEncoding(policy, leaseUs)
    case 'fixed-window':
      return policy.calendar === undefined
        ? windowEncoding('fixed-window', policy, leaseUs)
        : calendarEncoding(policy, policy.calendar, leaseUs)
    case 'sliding-log':
      return windowEncoding('sliding-log', policy, leaseUs, leaseUs)
    case 'sliding-window':
    case 'concurrency':
      return windowEncoding(policy.algorithm, policy, leaseUs)
    case 'all-of':
      throw new TypeError('each of its policies has an encoding')
  }
}

/** A leased rate says beside its capacity how much of it a lease leaves free: what flows back while it lasts. */
function rateEncoding(policy: Policy, leaseUs: number): Numbers {
  const { unitsPerToken, unitsPerUs, capacity } = emissionOf(policy)
  const numbers = [unitsPerToken, unitsPerUs, capacity - leaseUs * unitsPerUs, capacity].join(' ')
  const decoder = new RateDecoder(policy)
  const mostTokens = DEEPEST_DEBT_BURSTS * policy.burst + 1
  return {
    name: 'rate',
    policy,
    leaseUs,
    mostTokens,
    amountOf: (tokens) => Math.min(tokens, mostTokens) * unitsPerToken,
    numbersAt: () => numbers,
    decoderOf: () => decoder,
  }
}

function windowEncoding(name: EncodingName, policy: Policy, leaseUs: number, ...more: readonly number[]): Numbers {
  const numbers = [policy.limit, usOf(policy), ...more].join(' ')
  return countEncoding(name, policy, leaseUs, () => numbers)
}

/** The script gets three consecutive windows; the last ones are cached. */
function calendarEncoding(policy: Policy, calendar: Calendar, leaseUs: number): Numbers {
  const window = `${calendar.unit}:${calendar.timeZone}`
  let now = minuteWindow(calendar, 0)
  let numbers = ''
  return countEncoding('fixed-window', policy, leaseUs, (us) => {
    if (numbers === '' || us < now.startUs || us >= now.endUs) {
      now = minuteWindow(calendar, us)
      const before = minuteWindow(calendar, now.startUs - 1)
      const after = minuteWindow(calendar, now.endUs)
      numbers = `${policy.limit} ${window}|${[before.startUs, now.startUs, now.endUs, after.endUs].join(' ')}`
    }
    return numbers
  })
}

function countEncoding(name: EncodingName, policy: Policy, leaseUs: number, numbersAt: (us: number) => string): Numbers {
  const mostTokens = DEEPEST_DEBT_BURSTS * policy.limit + 1
  return {
    name,
    policy,
    leaseUs,
    mostTokens,
    amountOf: (tokens) => tokens,
    numbersAt,
    decoderOf: (times) => new CountDecoder(policy, times),
  }
}

function usOf({ windowMs }: Policy): number {
  return Math.round(windowMs * 1000)
}
