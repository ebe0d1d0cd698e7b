import { type Demand, MOST_ARRIVALS, SOURCES } from './arrivals.js'
import { ALGORITHMS, hasBurst, type RatePolicy } from './decide.js'

/** All that is shown; the address of the page holds it. */
export interface PlaygroundState {
  readonly first: RatePolicy
  /** Compared with the first. */
  readonly second: RatePolicy | undefined
  readonly demand: Demand
}

export const DEFAULT_STATE: PlaygroundState = {
  first: { algorithm: 'token-bucket', limit: 10, window: '10s', burst: 10 },
  second: undefined,
  demand: { source: 'poisson', rate: 2, size: 10, seconds: 60, seed: 1, clicks: [] },
}
export const MOST_SECONDS = 3600
const MOST_RATE = 1000

/** As the query of an address. A pasted log is not in it: it is the reader's own. */
export function queryOf({ first, second, demand }: PlaygroundState): string {
  const { source, rate, size, seconds, seed, clicks } = demand
  const query = new URLSearchParams({ policy: policyText(first) })
  if (second !== undefined) query.set('beside', policyText(second))
  query.set('demand', source)
  if (source !== 'clicks' && source !== 'log') query.set('rate', String(rate))
  if (source === 'bursts') query.set('size', String(size))
  if (source === 'poisson') query.set('seed', String(seed))
  if (source === 'clicks' && clicks.length > 0) query.set('clicks', clicks.join('-'))
  query.set('seconds', String(seconds))
  return query.toString().replaceAll('%2C', ',')
}

/** What an address says; what it leaves out, or says wrong, is as at first. */
export function stateOf(search: string): PlaygroundState {
  const query = new URLSearchParams(search)
  const { first, demand } = DEFAULT_STATE
  const source = SOURCES.find((each) => each === query.get('demand')) ?? demand.source
  const clicks = (query.get('clicks') ?? '').split('-', MOST_ARRIVALS).map(Number)
  return {
    first: policyIn(query.get('policy')) ?? first,
    second: policyIn(query.get('beside')),
    demand: {
      source,
      rate: numberIn(query.get('rate'), 0.01, MOST_RATE) ?? demand.rate,
      size: numberIn(query.get('size'), 1, MOST_RATE) ?? demand.size,
      seconds: numberIn(query.get('seconds'), 1, MOST_SECONDS) ?? demand.seconds,
      seed: numberIn(query.get('seed'), 0, 2 ** 32) ?? demand.seed,
      clicks: clicks.filter((ms) => ms > 0 && ms < MOST_SECONDS * 1000).sort((a, b) => a - b),
    },
  }
}

function policyText(rate: RatePolicy): string {
  const numbers = [rate.algorithm, rate.limit, rate.window]
  return (hasBurst(rate) ? [...numbers, rate.burst] : numbers).join(',')
}

function policyIn(text: string | null): RatePolicy | undefined {
  const [name, limit, window = '', burst] = text?.split(',') ?? []
  const algorithm = ALGORITHMS.find((each) => each === name)
  if (algorithm === undefined || !/^\d+(ms|s|m|h|d)$/.test(window) || !(Number(limit) >= 1)) return undefined
  if (burst !== undefined && !(Number(burst) >= 1)) return undefined
  return { algorithm, limit: Number(limit), window, burst: Number(burst ?? limit) }
}

function numberIn(text: string | null, least: number, most: number): number | undefined {
  const value = Number(text)
  return text !== null && value >= least && value <= most ? value : undefined
}
