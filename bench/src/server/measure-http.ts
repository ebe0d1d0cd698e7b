import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { cpuMs, rssBytes } from './cpu-time.js'
import { wrk } from './generators.js'
import type { ServerRun } from './server-run.js'
import { ServiceProcess } from './service-process.js'

const HELLO = fileURLToPath(new URL('http-hello.js', import.meta.url))
const WARM_UP_S = 3

/** Connections of wrk. */
export const HTTP_CONNECTIONS = [16, 64] as const

/** The least that Node can answer; an answer of the same headers and length; the service; the service in two processes. */
export const HTTP_SUBJECTS = ['hello', 'same answer', 'service', 'service, 2 processes'] as const
export type HttpSubject = (typeof HTTP_SUBJECTS)[number]

export interface HttpFigure {
  readonly subject: HttpSubject
  readonly connections: number
  /** One of each round. */
  readonly runs: readonly ServerRun[]
  /** Resident memory after the runs. */
  readonly rssBytes: number
}

export interface HttpEffort {
  readonly rounds: number
  /** Of each run. */
  readonly seconds: number
}

/** wrk against the service and bare servers, one after the other in each round. */
export async function measureHttp({ rounds, seconds }: HttpEffort): Promise<HttpFigure[]> {
  const hello = spawn(process.execPath, [HELLO], { stdio: ['ignore', 'pipe', 'inherit'] })
  const same = spawn(process.execPath, [HELLO, 'same'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [one, two] = await Promise.all([ServiceProcess.start(), ServiceProcess.start(['--processes', '2'])])
  try {
    const path = '/v1/take?policy=api&key=key-1'
    const subjects: readonly (readonly [HttpSubject, ChildProcess, string])[] = [
      ['hello', hello, `http://127.0.0.1:${await printedPort(hello)}${path}`],
      ['same answer', same, `http://127.0.0.1:${await printedPort(same)}${path}`],
      ['service', one.child, one.takeUrl],
      ['service, 2 processes', two.child, two.takeUrl],
    ]
    const figures: HttpFigure[] = []
    for (const connections of HTTP_CONNECTIONS) {
      for (const [, , url] of subjects) await wrk(url, connections, WARM_UP_S)
      const runs = new Map(subjects.map(([subject]) => [subject, [] as ServerRun[]]))
      for (let round = 0; round < rounds; round++) {
        for (const [subject, child, url] of subjects) runs.get(subject)?.push(await runOf(child, url, connections, seconds))
      }
      for (const [subject, child] of subjects)
        figures.push({ subject, connections, runs: runs.get(subject) ?? [], rssBytes: rssBytes(child) })
    }
    return figures
  } finally {
    for (const child of [hello, same]) {
      child.kill('SIGKILL')
      await once(child, 'close')
    }
    await Promise.all([one.stop(), two.stop()])
  }
}

async function runOf(child: ChildProcess, url: string, connections: number, seconds: number): Promise<ServerRun> {
  const beforeMs = cpuMs(child)
  const { perSecond, requests } = await wrk(url, connections, seconds)
  return { perSecond, cpuUs: ((cpuMs(child) - beforeMs) * 1_000) / requests }
}

/** A bare server, and the address that it answers with `hello`. */
export async function startHello(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [HELLO], { stdio: ['ignore', 'pipe', 'inherit'] })
  return {
    url: `http://127.0.0.1:${await printedPort(child)}`,
    async stop() {
      child.kill('SIGKILL')
      await once(child, 'close')
    },
  }
}

async function printedPort(child: ChildProcess): Promise<number> {
  const [printed] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  return Number(printed)
}
