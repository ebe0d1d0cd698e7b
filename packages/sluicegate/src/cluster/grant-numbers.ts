import { askAfterUs } from '../lease/ask-after.js'
import type { Grant } from '../lease/grant.js'
import type { Policy } from '../policy/policy.js'
import { flowsBack, isBookedAhead, type LeaseRun, type MemoryLease } from './memory-lease.js'
import { numbersIn, receivedTime, sentTime } from './message.js'

/** Numbers before the runs, and for each run. */
const HEAD = 4
const RUN = 3

/** Encodes a lease: until free, banned, remaining, until full; then for each run its tokens, beginning and end. */
export function numbersOfLease({ untilFreeUs, blockedUs, remaining, untilNewUs, runs }: MemoryLease): number[] {
  return [
    sentTime(untilFreeUs),
    blockedUs,
    remaining,
    untilNewUs,
    ...runs.flatMap(({ tokens, beginUs, endUs }) => [tokens, beginUs, endUs]),
  ]
}

/** Decodes a grant, which request `id` asked for with at least `least` tokens. */
export function grantIn(answer: readonly unknown[], policy: Policy, horizonUs: number, least: number, id?: number): Grant {
  const [freeUs = 0, blockedUs = 0, remaining = 0, untilNewUs = 0, ...numbers] = numbersIn(answer, HEAD)
  const untilFreeUs = receivedTime(freeUs)
  const runs: LeaseRun[] = []
  for (let at = 0; at + RUN <= numbers.length; at += RUN) {
    const [tokens = 0, beginUs = 0, endUs = 0] = numbers.slice(at, at + RUN)
    runs.push({ tokens, beginUs, endUs })
  }
  const ready = countOf(runs.filter(({ beginUs }) => beginUs === 0))
  const later = countOf(runs) - ready
  const runOf = runFinder(runs)
  return {
    availableNow: ready,
    availableLater: later,
    flowsBack: flowsBack(policy),
    id: flowsBack(policy) ? undefined : id,
    beginUs: (token) => runOf(token).beginUs,
    endUs: (token) => runOf(token).endUs,
    untilFreeUs,
    untilFreeFor: untilFreeIn(policy, untilFreeUs, least),
    askAfterUs: isBookedAhead(policy) ? askAfterUs(untilFreeUs, ready + later, horizonUs) : untilFreeUs,
    blockedUs,
    remaining,
    untilNewUs,
  }
}

/** A rate gives one token after another, a fixed window all at once. For others only the primary knows: more tokens take as long, or longer. */
function untilFreeIn(policy: Policy, untilFreeUs: number, least: number): Grant['untilFreeFor'] {
  const { limit, windowMs } = policy
  const isRate = flowsBack(policy)
  return (tokens) => {
    if (tokens === least || (!isRate && tokens > least && untilFreeUs > 0)) return untilFreeUs
    return isRate ? Math.max(0, Math.ceil(untilFreeUs + ((tokens - least) * windowMs * 1000) / limit)) : undefined
  }
}

function countOf(runs: readonly LeaseRun[]): number {
  return runs.reduce((sum, { tokens }) => sum + tokens, 0)
}

/** Tokens are read in order, so the last run found is nearly always the right one. */
function runFinder(runs: readonly LeaseRun[]): (token: number) => LeaseRun {
  let index = 0
  let first = 0
  return (token) => {
    if (token < first) index = first = 0
    let run = runs[index] as LeaseRun
    while (token >= first + run.tokens && index < runs.length - 1) {
      first += run.tokens
      run = runs[++index] as LeaseRun
    }
    return run
  }
}
