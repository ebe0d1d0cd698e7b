import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hostile } from './hostile-proof.js'
import { overload } from './overload-proof.js'
import { limitOf, metric, type ProofRun, serve, startTraffic, type Verdict } from './proof-service.js'

/** By name. */
export const SERVICE_PROOFS: Readonly<Record<string, (run: ProofRun) => Promise<Verdict>>> = { reloads, stops, kill, hostile, overload }

/** 1,000 files under load, every fifth of them broken: no request is dropped, and a broken file changes nothing. */
async function reloads(run: ProofRun): Promise<Verdict> {
  const files = Math.round(1_000 * run.scale)
  const { url, text } = await serve(run, limitOf(1_000_000), '--admin', '127.0.0.1:0')
  const admin = /admin: (\S+)/.exec(text)?.[1] ?? ''
  const file = join(run.folder, 'gate.yaml')
  const { stop } = startTraffic(url)
  const statuses: Record<number, number> = {}
  let wrong = 0
  for (let i = 1; i <= files; i++) {
    const isBroken = i % 5 === 0
    writeFileSync(file, isBroken ? 'policies: { api: { algorithm: no-such' : limitOf(1_000_000 + i))
    const { status } = await fetch(`${admin}/v1/reload`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
    statuses[status] = (statuses[status] ?? 0) + 1
    if (isBroken === status < 300) wrong++
  }
  const { latenciesMs, failed, refused, failures } = await stop()
  const holds = failed + refused + wrong === 0 && latenciesMs.length > 0
  return { holds, files, statuses, wrong, answered: latenciesMs.length, failed: failed + refused, failures: [...failures] }
}

/** 50 services that receive SIGTERM under load: every request that reached one is answered, and the exit code is 0. */
async function stops(run: ProofRun): Promise<Verdict> {
  const rounds = Math.max(1, Math.round(50 * run.scale))
  let [answered, failed, refused, unclean] = [0, 0, 0, 0]
  const failures = new Set<string>()
  for (let round = 0; round < rounds; round++) {
    const { url, child, ended } = await serve(run, limitOf(1_000_000), '--drain', '100ms')
    const { traffic, stop } = startTraffic(url)
    while (traffic.latenciesMs.length < 50) await sleep(5)
    child.kill('SIGTERM')
    const [code] = (await ended) as [number | null]
    if (code !== 0) unclean++
    await stop()
    answered += traffic.latenciesMs.length
    failed += traffic.failed
    refused += traffic.refused
    for (const failure of traffic.failures) failures.add(failure)
  }
  return {
    holds: failed + unclean === 0,
    rounds,
    answered,
    failed,
    failures: [...failures],
    uncleanExits: unclean,
    refusedAfterwards: refused,
  }
}

/** kill -9 under load, and a start from the snapshot: what is forgotten is at most what was taken since the snapshot was written. */
async function kill(run: ProofRun): Promise<Verdict> {
  const rounds = Math.max(1, Math.round(10 * run.scale))
  const yaml = `snapshot: { file: "${join(run.folder, 'keys')}", every: 1s }\n${limitOf(100_000_000)}`
  let wrong = 0
  const forgotten: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { url, child, ended } = await serve(run, yaml)
    const before = await spent(url)
    const { traffic, stop } = startTraffic(url, 1)
    const snapshotS = (): Promise<number> => metric(url, 'sluicegate_snapshot_last_success_timestamp_seconds')
    // The second of two snapshots holds every take that was answered before the first one was written.
    let known = 0
    let seenS = await snapshotS()
    for (let written = 0; written < 2; ) {
      const answered = traffic.latenciesMs.length
      const nowS = await snapshotS()
      if (nowS > seenS) written++
      else if (written === 0) known = answered
      seenS = nowS
      await sleep(20)
    }
    child.kill('SIGKILL')
    await ended
    const { latenciesMs } = await stop()
    const taken = before + latenciesMs.length
    const next = await serve(run, yaml)
    const after = await spent(next.url)
    forgotten.push(taken - after)
    // One take may have been charged without an answer.
    if (after > taken + 1 || after < before + known) wrong++
    next.child.kill('SIGKILL')
    await next.ended
  }
  return { holds: wrong === 0, rounds, wrong, forgotten }
}

async function spent(url: string): Promise<number> {
  const { remaining } = (await (await fetch(`${url}/v1/peek?policy=api&key=caller-0`)).json()) as { remaining: number }
  return 100_000_000 - remaining
}
