import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts, until } from 'sluicegate-testkit'
import { callsPerSecond } from './grpc-load.js'

const MAIN = fileURLToPath(new URL('../../../packages/server/dist/main.js', import.meta.url))
const ECHO = fileURLToPath(new URL('grpc-echo.js', import.meta.url))
const RULES = 'domain: edge\ndescriptors:\n  - { key: user, rate_limit: { unit: second, requests_per_unit: 1000000 } }\n'
const CONNECTIONS = 4
const WARM_UP_CALLS = 5_000
const MS_PER_TICK = 10

/** One run of one server. */
export interface GrpcRun {
  readonly callsPerSecond: number
  /** Processor time of the server for one call. */
  readonly cpuUs: number
}

export interface GrpcEffort {
  readonly rounds: number
  readonly calls: number
  /** Calls at a time, on each of four connections. */
  readonly outstanding: number
}

/** The service and a bare server, one after the other in each round. */
export async function measureGrpc({ rounds, calls, outstanding }: GrpcEffort): Promise<Record<'service' | 'echo', GrpcRun[]>> {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-bench-'))
  const file = join(folder, 'rules.yaml')
  writeFileSync(file, RULES)
  const [port = 0] = await freePorts(1)
  const service = start([MAIN, 'serve', '--config', file, '--http', 'off', '--grpc', `127.0.0.1:${port}`])
  const echo = start([ECHO])
  const runs: Record<'service' | 'echo', GrpcRun[]> = { service: [], echo: [] }
  try {
    const [printed] = await once(echo.stdout as NodeJS.ReadableStream, 'data')
    const servers = [
      ['service', service, port],
      ['echo', echo, Number(printed)],
    ] as const
    await until('both answer', () => answers(servers.map(([, , each]) => each)))
    for (const [, , each] of servers) await callsPerSecond(each, WARM_UP_CALLS, CONNECTIONS, outstanding)
    for (let round = 0; round < rounds; round++) {
      for (const [name, child, each] of servers) {
        const beforeMs = cpuMs(child)
        const perSecond = await callsPerSecond(each, calls, CONNECTIONS, outstanding)
        runs[name].push({ callsPerSecond: perSecond, cpuUs: ((cpuMs(child) - beforeMs) * 1_000) / calls })
      }
    }
    return runs
  } finally {
    for (const child of [service, echo]) {
      child.kill('SIGKILL')
      await once(child, 'close')
    }
    rmSync(folder, { recursive: true })
  }
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
}

async function answers(ports: readonly number[]): Promise<boolean> {
  const tries = await Promise.allSettled(ports.map((port) => callsPerSecond(port, 1, 1, 1)))
  return tries.every(({ status }) => status === 'fulfilled')
}

/** User and system time of a process; 0 where the system does not say. */
function cpuMs({ pid }: ChildProcess): number {
  try {
    const [, text = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
    const fields = text.split(' ')
    return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
  } catch {
    return 0
  }
}
