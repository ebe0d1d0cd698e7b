import { type RateSpec, type RedisProcess, until } from 'sluicegate-testkit'
import { LOCAL_SHARE } from './fleet.js'
import type { Subject } from './recorded.js'
import { type OpenClient, TIMEOUT_MS } from './subject.js'
import { underFaults } from './under-faults.js'
import { stateOf } from './watched.js'

/** As servers are set up: after so long a silence a primary is taken for failed. */
const SILENCE_MS = 1000
/** On loopback, under load. */
const REPLICATION_LAG_MS = 100

/** Servers that replace a primary by themselves. */
export interface Replacing {
  readonly servers: readonly RedisProcess[]
  /** Whom to kill in a round. */
  primary(round: number): Promise<RedisProcess>
  /** Whether another has its place. */
  hasReplaced(killed: RedisProcess): Promise<boolean>
  /** Whether one that was started again follows another, and all is as before. */
  isWhole(restarted: RedisProcess): Promise<boolean>
}

export type FailoverReport = Awaited<ReturnType<typeof failovers>>

export interface FailoverPlan {
  readonly clients: readonly OpenClient[]
  readonly subjects: readonly Subject[]
  readonly keys: readonly string[]
  readonly count: number
  readonly progress?: ((line: string) => void) | undefined
}

/** Kills one primary after another, under load, and lets each come back as a replica. */
export async function failovers(replacing: Replacing, { clients, subjects, keys, count, progress }: FailoverPlan) {
  const stop = (): Promise<unknown> => Promise.all(subjects.map(({ load }) => load.stop()))
  try {
    const { recoveryMs, seconds, ...found } = await underFaults({
      name: 'failover',
      times: count,
      subjects,
      keys,
      state: () => stateOf(replacing.servers, subjects),
      stop,
      progress,
      async make(round, watched) {
        const primary = await watched('there is a primary', replacing.primary(round))
        const fromMs = performance.now()
        await primary.kill()
        for (const subject of subjects) subject.primaryGone?.()
        await watched(
          `after ${primary.port} was killed`,
          until('a replica takes over', () => replacing.hasReplaced(primary)),
        )
        const repair = async (): Promise<void> => {
          await watched(`${primary.port} starts again`, primary.start())
          await watched(
            `${primary.port} is back`,
            until('the old primary follows the new one', () => replacing.isWhole(primary)),
          )
        }
        return { fromMs, sinceMs: performance.now(), repair }
      },
    })
    const secondsOut = recoveryMs.reduce((sum, ms) => sum + ms, 0) / 1000
    return {
      failovers: count,
      /** Milliseconds from the kill until every subject had an answer of the store about every key again, of each failover. */
      recoveryMs,
      /** Tokens by which a key may be over the policy after that many failovers of its shard, of the subject that may be over by the least. */
      allowedOver: Math.min(...subjects.map(({ bound }) => allowedOver(bound, count))),
      /** What the share of one process may add while shards are out. */
      allowedShare: Math.max(...subjects.map((subject) => allowedShare(subject, seconds, secondsOut))),
      ...found,
    }
  } finally {
    // After a failure, subjects that may have failed are not awaited.
    void stop()
    for (const client of clients) client.close()
  }
}

/** No error for callers, and no more than the bound; in an outage the share of each process beside it. */
export function isWithin({
  allowedOver,
  allowedShare,
  subjects,
}: Pick<FailoverReport, 'allowedOver' | 'allowedShare' | 'subjects'>): boolean {
  return subjects.every(
    ({ errors, over, overWithShare }) => errors === 0 && over <= allowedOver && overWithShare <= allowedOver + allowedShare,
  )
}

/** Whether a server is a replica that has all of its primary. Who is made one closes its connections, that of this question among them. */
export async function isFollowing(server: RedisProcess): Promise<boolean> {
  const info = await server.ask('INFO', 'replication').catch(() => '')
  return info.includes('master_link_status:up')
}

/** `burst + rate * (replication lag + node timeout)` for each failover; an answer may also reach its caller later than the store gave it. */
export function allowedOver({ limit, windowMs, burst }: RateSpec, failovers: number): number {
  const perMs = limit / windowMs
  return (burst + perMs * (REPLICATION_LAG_MS + SILENCE_MS)) * failovers + perMs * 2 * TIMEOUT_MS
}

export function allowedShare({ bound, processes }: Subject, seconds: number, secondsOut: number): number {
  const { limit, windowMs, burst } = bound
  return processes * (LOCAL_SHARE * (burst + (limit / windowMs) * 1000 * seconds) + Math.ceil(secondsOut))
}
