import { RedisSentinel, until } from 'sluicegate-testkit'
import { sentinelClients } from './clients.js'
import { type FailoverReport, overPerFailover, slack } from './failover.js'
import { LOCAL_SHARE, RATE, reportOf, subjectsOn } from './subject.js'

const KEY = 'user:0'

/** Kills a primary that sentinels watch, under load, once. */
export async function sentinelFailover(): Promise<FailoverReport> {
  await using watched = await RedisSentinel.start()
  const clients = await sentinelClients(watched.roots, watched.name)
  const subjects = subjectsOn(clients, [KEY])
  const beganMs = performance.now()
  const served = (sinceMs: number) => () =>
    subjects.every(({ load }) => load.since(sinceMs).some(({ decision }) => decision.source !== 'outage'))
  try {
    await until('the store decides', served(0))
    const primary = await watched.primary()
    const killedMs = performance.now()
    await primary.kill()
    await until('the replica takes over', async () => (await watched.primary()) !== primary)
    await until('the store decides again', served(performance.now()))
    const recoveryMs = Math.round(performance.now() - killedMs)
    await Promise.all(subjects.map(({ load }) => load.stop()))
    return {
      failovers: 1,
      recoveryMs: [recoveryMs],
      allowedOver: overPerFailover() + slack(),
      allowedShare: LOCAL_SHARE * (RATE.burst + RATE.limit * ((performance.now() - beganMs) / 1000)),
      subjects: subjects.map(reportOf),
    }
  } finally {
    await Promise.all(subjects.map(({ load }) => load.stop()))
    for (const client of clients) client.close()
  }
}
