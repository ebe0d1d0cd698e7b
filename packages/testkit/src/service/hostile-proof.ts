import { type ChildProcess, type ChildProcessWithoutNullStreams, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ATTACKS, type AttackOrder, type AttackReport } from './hostile-attacks.js'
import { limitOf, type ProofRun, serve, startTraffic, type Verdict } from './proof-service.js'
import { residentBytes } from './resident-memory.js'

const ATTACKER = fileURLToPath(new URL('./attacker.js', import.meta.url))
const MAX_RSS_MB = 400
/** A measurement of fewer seconds may end before the service looks for connections to close. */
const CLOSED_WITHIN_S = 5
/** Short times, so that offenders are closed while the proof looks. */
const CLIENTS = 'clients: { headers-timeout: 2s, read-timeout: 2s }\n'
/** Attacks after which the service closes all connections. */
const CLOSED: ReadonlySet<string> = new Set(['slowloris', 'oversizedCommands', 'oversizedFrames'])

/** Clients that are slow, silent or greedy, on all protocols: p99 of the others at most doubles, and memory is bounded. */
export async function hostile(run: ProofRun): Promise<Verdict> {
  const { url, text, child } = await serve(run, `${CLIENTS}${limitOf(1_000_000_000)}`, '--grpc', '127.0.0.1:0', '--resp', '127.0.0.1:0')
  const port = (scheme: RegExp): number => Number(scheme.exec(text)?.[1])
  const ports = { http: Number(new URL(url).port), grpc: port(/grpcs?:\/\/[^\s:]+:(\d+)/), resp: port(/redis:\/\/[^\s:]+:(\d+)/) }
  const seconds = 10 * run.scale
  let peakRssMb = 0
  const besides: Record<string, unknown> = {}
  const measured = async (): Promise<number> => {
    const { stop } = startTraffic(url, 4)
    for (const endMs = performance.now() + seconds * 1_000; performance.now() < endMs; await sleep(50))
      peakRssMb = Math.max(peakRssMb, rssMb(child))
    const { latenciesMs, failed, refused } = await stop()
    if (failed + refused > 0) throw new Error(`${failed + refused} requests of others failed`)
    return p99(latenciesMs)
  }
  let holds = true
  for (const name of Object.keys(ATTACKS)) {
    const baseMs = await measured()
    const attack = await begun({ name, ports, scale: run.scale })
    const p99Ms = await measured()
    const { closed, count } = await attack.end()
    besides[name] = { quietP99Ms: round(baseMs), p99Ms: round(p99Ms), ratio: round(p99Ms / baseMs), closed: `${closed} of ${count}` }
    if (p99Ms > 2 * baseMs || (CLOSED.has(name) && seconds >= CLOSED_WITHIN_S && closed < count)) holds = false
    await sleep(200)
  }
  return { holds: holds && peakRssMb <= MAX_RSS_MB, peakRssMb: Math.round(peakRssMb), ...besides }
}

/** Attacks in a process of their own: their work delays no other client. */
async function begun(order: AttackOrder): Promise<{ end(): Promise<AttackReport> }> {
  const child: ChildProcess = fork(ATTACKER)
  const report = async (): Promise<AttackReport> => {
    const [message] = (await once(child, 'message')) as [AttackReport]
    return message
  }
  child.send(order)
  await report()
  return {
    async end() {
      child.send('end')
      const last = await report()
      child.kill('SIGKILL')
      return last
    },
  }
}

function rssMb({ pid }: ChildProcessWithoutNullStreams): number {
  return residentBytes(pid) / 2 ** 20
}

function p99(latenciesMs: number[]): number {
  return latenciesMs.sort((a, b) => a - b)[Math.floor(latenciesMs.length * 0.99)] ?? Number.NaN
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
