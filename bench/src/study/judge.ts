import { Counter } from './counter.js'
import type { Form } from './forms.js'
import type { Traffic } from './traffic.js'
import { TrailingCount } from './trailing-count.js'

/** How a form judged all requests of a traffic against a limit. */
export type Judgement = ReturnType<Tally['judgement']>

const TEN = 10
/** Above any count of any source of the study, and the largest limit of the packed form. */
const NEVER_REACHED = 65_535

class Tally {
  private readonly limit: number
  private readonly counts = {
    requests: 0,
    allowed: 0,
    /** Requests that found their source's real count at the limit: those that an exact limiter would deny. */
    over: 0,
    wronglyAllowed: 0,
    wronglyDenied: 0,
    /** The most that passed in any window of any source. */
    mostAdmitted: 0,
  }
  private readonly most: Uint32Array
  private readonly wasDenied: Uint8Array

  constructor(limit: number, sources: number) {
    this.limit = limit
    this.most = new Uint32Array(sources)
    this.wasDenied = new Uint8Array(sources)
  }

  add(source: number, real: number, allowed: boolean): void {
    const { counts } = this
    const passes = real < this.limit
    counts.requests++
    if (allowed) counts.allowed++
    if (!passes) counts.over++
    if (allowed && !passes) counts.wronglyAllowed++
    if (!allowed && passes) counts.wronglyDenied++
    if (!allowed) this.wasDenied[source] = 1
    else if (real + 1 > counts.mostAdmitted) counts.mostAdmitted = real + 1
    if (real + 1 > (this.most[source] as number)) this.most[source] = real + 1
  }

  judgement(form: string) {
    const { limit } = this
    let [sourcesOver, sourcesMissed, worst, sourcesDeniedWithoutCause] = [0, 0, 0, 0]
    for (const [source, most] of this.most.entries()) {
      const wasDenied = this.wasDenied[source] === 1
      if (most > limit) sourcesOver++
      else if (wasDenied) sourcesDeniedWithoutCause++
      if (most <= limit || wasDenied) continue
      sourcesMissed++
      worst = Math.max(worst, most)
    }
    return {
      form,
      /** Requests a window. */
      limit,
      ...this.counts,
      /** Sources that had a request over the limit, and those of them that were never denied. */
      sourcesOver,
      sourcesMissed,
      /** The most that one of these had in a window, over the limit. */
      worstMissed: worst / limit,
      /** Sources that were denied although they were never over the limit. */
      sourcesDeniedWithoutCause,
    }
  }
}

/**
 * Counts every request, whether it would pass or not, and compares the count with several limits, as the published analysis
 * did. `onRequest` gets to see the counts before each.
 */
export function counted(
  traffic: Traffic,
  form: Form,
  limits: readonly number[],
  windowMs: number,
  onRequest: (real: number, believed: number) => void = () => {},
) {
  const counter = new Counter(form, NEVER_REACHED, windowMs, traffic.sources)
  const exact = new TrailingCount(traffic, windowMs)
  const tallies = limits.map((limit) => new Tally(limit, traffic.sources))
  let [all, tenOrMore, requestsOfTenOrMore, difference, reality] = [0, 0, 0, 0, 0]
  for (const [nth, nowUs] of traffic.timesUs.entries()) {
    const source = traffic.asking[nth] as number
    const real = exact.before(nth)
    counter.ask(source, nowUs)
    if (!counter.allowed) throw new Error('a limit that was to be out of reach was reached')
    exact.add(nth)
    const off = Math.abs(counter.before - real)
    all += off / (real + 1)
    difference += off
    reality += real + 1
    if (real + 1 >= TEN) {
      tenOrMore += off / (real + 1)
      requestsOfTenOrMore++
    }
    for (const [i, tally] of tallies.entries()) tally.add(source, real, counter.before + 1 <= (limits[i] as number))
    onRequest(real, counter.before)
  }
  counter.close()
  const requests = traffic.timesUs.length
  return {
    judgements: tallies.map((tally) => tally.judgement(form.name)),
    /** How far the counts that the form believed in were off: |believed - real| / real, the request itself included, on average. */
    difference: {
      form: form.name,
      /** Over all requests. */
      ofAll: all / requests,
      /** Over requests whose source has at least ten in the window, itself included, and how many those are. */
      ofTenOrMore: tenOrMore / Math.max(1, requestsOfTenOrMore),
      requestsOfTenOrMore,
      /** The sum of all differences over the sum of all real counts. */
      weighted: difference / reality,
    },
  }
}

/** Limits the traffic, so that only what passed is counted, and judges each decision by what the limiter itself had let through. */
export function limited(traffic: Traffic, form: Form, limit: number, windowMs: number): Judgement {
  const counter = new Counter(form, limit, windowMs, traffic.sources)
  const exact = new TrailingCount(traffic, windowMs)
  const tally = new Tally(limit, traffic.sources)
  for (const [nth, nowUs] of traffic.timesUs.entries()) {
    const source = traffic.asking[nth] as number
    const real = exact.before(nth)
    counter.ask(source, nowUs)
    if (counter.allowed) exact.add(nth)
    tally.add(source, real, counter.allowed)
  }
  counter.close()
  return tally.judgement(form.name)
}
