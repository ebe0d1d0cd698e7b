import { worstKey } from '../admissions.js'
import type { RegionRecord } from './region-process.js'
import type { Phase } from './region-traffic.js'
import { REGIONS, SHARED, type WayName } from './region-ways.js'

export type MeasuredWay = ReturnType<typeof regionFigures>
export type MeasuredPhase = MeasuredWay['phases'][number]

/** What one way did with the traffic. */
export function regionFigures(
  way: WayName,
  traffic: readonly Phase[],
  byRegion: readonly RegionRecord[],
  messages: readonly number[],
  startUs: number,
) {
  const takes = byRegion.flatMap((region) => region.takes)
  let fromS = 0
  const phases = traffic.map(({ name, seconds }, i) => {
    const [from, to] = [startUs + fromS * 1e6, startUs + (fromS + seconds) * 1e6]
    const own = takes.filter(([dueUs]) => dueUs >= from && dueUs < to)
    fromS += seconds
    const waits = own.map(([, sentUs, answeredUs]) => (answeredUs - sentUs) / 1_000).sort((a, b) => a - b)
    const at = (part: number): number => round(waits[Math.floor(part * waits.length)] ?? 0)
    const allowed = own.filter((take) => take[3] === 1).length
    const calls = byRegion.reduce((sum, region) => sum + (region.calls[i] ?? 0), 0) / seconds / REGIONS
    const [p50Ms, p99Ms] = [at(0.5), at(0.99)]
    return {
      name,
      asked: own.length,
      allowed,
      seconds,
      p50Ms,
      p99Ms,
      /** To the far store, a second and region. */
      messages: round(messages[i] ?? 0),
      /** To the home, a second and region. A message may hold several. */
      calls: round(calls),
    }
  })
  const answers = takes.map(([, fromUs, toUs, isAllowed]) => ({ fromUs, toUs, outcome: isAllowed === 1 ? 'allowed' : 'denied', key: 'k' }))
  const endHomeUs = startUs + (fromS - (traffic.at(-1)?.seconds ?? 0)) * 1e6
  const alive = answers.filter(({ toUs }) => toUs < endHomeUs)
  const bySecond = Array.from({ length: fromS }, (_, second) => {
    const [from, to] = [startUs + second * 1e6, startUs + (second + 1) * 1e6]
    return answers.filter(({ toUs, outcome }) => outcome === 'allowed' && toUs >= from && toUs < to).length
  })
  // Tokens of the worst interval over the policy, before the far store died, and in all.
  return { way, over: round(worstKey(SHARED, alive).over), overDead: round(worstKey(SHARED, answers).over), phases, bySecond }
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
