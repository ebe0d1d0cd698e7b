import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { wrk } from './generators.js'
import { cpuMs, HTTP_REQUESTS, type HttpRequests, requestScripts, rssBytes } from './http-requests.js'
import { inRounds, type ServerRun, type TimedEffort } from './server-run.js'
import { ServiceProcess } from './service-process.js'

const HELLO = fileURLToPath(new URL('http-hello.js', import.meta.url))
const WARM_UP_S = 3

/** Connections of wrk. */
export const HTTP_CONNECTIONS = [16, 64] as const

/** The least that Node can answer; an answer of the same headers and length; the service; the service in two processes. */
export const HTTP_SUBJECTS = ['hello', 'same answer', 'service', 'service, 2 processes'] as const
export type HttpSubject = (typeof HTTP_SUBJECTS)[number]

/** Measured with each kind of requests; the others with the first kind. */
const EACH_KIND: readonly HttpSubject[] = ['hello', 'service']

export interface HttpFigure {
  readonly subject: HttpSubject
  readonly requests: HttpRequests
  readonly connections: number
  /** One of each round. */
  readonly runs: readonly ServerRun[]
  /** Resident memory after the runs. */
  readonly rssBytes: number
}

/** wrk against the service and bare servers, one after the other in each round. */
export async function measureHttp({ rounds, seconds }: TimedEffort): Promise<HttpFigure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-bench-'))
  const scripts = requestScripts(folder)
  const [hello, same] = await Promise.all([startBare(), startBare('same')])
  const [one, two] = await Promise.all([ServiceProcess.start(), ServiceProcess.start(['--processes', '2'])])
  try {
    const subjects: readonly (readonly [HttpSubject, ChildProcess, string])[] = [
      ['hello', hello.child, `${hello.url}${TAKE_PATH}`],
      ['same answer', same.child, `${same.url}${TAKE_PATH}`],
      ['service', one.child, one.takeUrl],
      ['service, 2 processes', two.child, two.takeUrl],
    ]
    const figures: HttpFigure[] = []
    for (const connections of HTTP_CONNECTIONS) {
      for (const requests of HTTP_REQUESTS) {
        const measured = subjects.filter(([subject]) => requests === HTTP_REQUESTS[0] || EACH_KIND.includes(subject))
        const script = scripts[requests]
        for (const [, , url] of measured) await wrk(url, connections, WARM_UP_S, script)
        const found = await inRounds(measured, rounds, ([, child, url]) => runOf([child], url, connections, seconds, script))
        for (const [[subject, child], runs] of found) figures.push({ subject, requests, connections, runs, rssBytes: rssBytes(child) })
      }
    }
    return figures
  } finally {
    await Promise.all([hello, same, one, two].map((each) => each.stop()))
    rmSync(folder, { recursive: true })
  }
}

/** A run of wrk, and the processor time that `children` took for a request. */
export async function runOf(
  children: readonly ChildProcess[],
  url: string,
  connections: number,
  seconds: number,
  script: string,
): Promise<ServerRun> {
  const taken = (): number => children.reduce((sum, child) => sum + cpuMs(child), 0)
  const beforeMs = taken()
  const { perSecond, requests } = await wrk(url, connections, seconds, script)
  return { perSecond, cpuUs: ((taken() - beforeMs) * 1_000) / requests }
}

const TAKE_PATH = '/v1/take?policy=api&key=key-1'

/** A bare server, and its address. */
export interface BareServer {
  readonly child: ChildProcess
  readonly url: string
  stop(): Promise<void>
}

/** Starts the server of http-hello.ts. */
export async function startBare(...args: readonly string[]): Promise<BareServer> {
  const child = spawn(process.execPath, [HELLO, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [printed] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  return {
    child,
    url: `http://127.0.0.1:${Number(printed)}`,
    async stop() {
      child.kill('SIGKILL')
      await once(child, 'close')
    },
  }
}
