import { manualClock, type Policy } from 'sluicegate'
import { Random } from 'sluicegate-testkit'
import type { Metered, Metering } from './metering.js'

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

/** A piece is a token, and a stream sends 50 a second. */
const PIECE_MS = 20
export const START_MS = 1_789_000_020_000

export interface StreamsRow {
  readonly name: string
  /** Percent of what the policy allows in the time measured. */
  readonly used: number
  /** Tokens sent beyond the policy, at the worst moment. */
  readonly over: number
  /** Percent of the answers that began and were cut, and of the tokens that were sent in them. */
  readonly cut: number
  readonly wasted: number
}

interface Stream {
  work: Metered | undefined
  length: number
  sent: number
  nextMs: number
  isWaiting: boolean
}

/** `streams` clients, each of which asks for one answer after another, on a clock of their own. */
export async function streamed(policy: Policy, metering: Metering, streams: number, minutes: number): Promise<StreamsRow> {
  const random = new Random(47)
  const clock = manualClock(START_MS)
  const meter = metering.meter(policy, clock)
  const spent = new Spent(policy)
  const all = Array.from({ length: streams }, (_, i): Stream => ({ work: undefined, length: 0, sent: 0, nextMs: i, isWaiting: false }))
  const warmMs = 2 * 60_000
  const endMs = warmMs + minutes * 60_000
  let [begun, cut, sent, wasted] = [0, 0, 0, 0]
  for (let ms = 0; ms < endMs; ms += PIECE_MS) {
    const isCounted = ms >= warmMs
    const end = (stream: Stream, isCut: boolean): void => {
      stream.work?.end()
      stream.work = undefined
      stream.nextMs = ms + PIECE_MS
      if (!isCounted) return
      begun++
      if (!isCut) return
      cut++
      wasted += stream.sent
    }
    const passed = (stream: Stream, may: boolean): void => {
      if (!may) {
        end(stream, true)
        return
      }
      stream.sent++
      if (isCounted) sent++
      spent.add(clock.nowMs())
      if (stream.sent >= stream.length) end(stream, false)
    }
    /** False: it has to wait. */
    const begin = (stream: Stream, work: Metered | number): boolean => {
      if (typeof work === 'number') stream.nextMs = ms + work
      else Object.assign(stream, { work, length: answerLength(random), sent: 0 })
      return typeof work !== 'number'
    }
    for (const stream of all) {
      if (stream.isWaiting || stream.nextMs > ms) continue
      if (stream.work === undefined) {
        const work = meter.begin()
        if (work instanceof Promise) {
          stream.isWaiting = true
          void work.then((begun) => {
            stream.isWaiting = false
            begin(stream, begun)
          })
          continue
        }
        if (!begin(stream, work)) continue
      }
      const may = (stream.work as Metered).piece()
      if (typeof may === 'boolean') passed(stream, may)
      else {
        stream.isWaiting = true
        void may.then((allowed) => {
          stream.isWaiting = false
          passed(stream, allowed)
        })
      }
    }
    clock.advance(PIECE_MS)
    // Those that waited go on.
    await Promise.resolve()
    for (let i = 0; i < 5; i++) await undefined
  }
  meter.close()
  const budget = (policy.limit * minutes * 60_000) / policy.windowMs
  return {
    name: metering.name,
    used: (100 * sent) / budget,
    over: spent.over,
    cut: (100 * cut) / begun,
    wasted: sent === 0 ? 0 : (100 * wasted) / sent,
  }
}

/** What was sent, measured at the time of sending, against the policy. */
export class Spent {
  over = 0
  private readonly policy: Policy
  private level = 0
  private atMs = 0

  constructor(policy: Policy) {
    this.policy = policy
  }

  add(nowMs: number): void {
    const { algorithm, limit, windowMs, burst } = this.policy
    if (algorithm === 'fixed-window') {
      if (Math.floor(nowMs / windowMs) !== Math.floor(this.atMs / windowMs)) this.level = 0
    } else this.level = Math.max(0, this.level - ((nowMs - this.atMs) * limit) / windowMs)
    this.atMs = nowMs
    this.level++
    // A fraction of a token is what the sum above rounds.
    this.over = Math.max(this.over, Math.floor(this.level - burst + 1e-6))
  }
}
