import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sum } from 'sluicegate-testkit/samples.js'
import { residentBytes } from 'sluicegate-testkit/service/sluicegate-process.js'
import { wrk } from './generators.js'
import { inRounds, type ServerRun, ServiceProcess, type TimedEffort } from './service-process.js'

/** Requests of wrk: each with its own id, as proxies and tracing clients send them; the same bytes each time; a take as JSON. */
export const HTTP_REQUESTS = ['headers that change', 'the same headers', 'POST of JSON'] as const
export type HttpRequests = (typeof HTTP_REQUESTS)[number]

const ID = `
local number = 0
function id()
  number = number + 1
  return string.format("7f3a9c1e-%08x", number)
end`

const SCRIPTS: Readonly<Record<HttpRequests, string>> = {
  'headers that change': `${ID}
function request()
  return wrk.format(nil, nil, { ["X-Request-Id"] = id() })
end`,
  'the same headers': '',
  'POST of JSON': `${ID}
function request()
  return wrk.format("POST", "/v1/take", { ["Content-Type"] = "application/json", ["X-Request-Id"] = id() }, '{"policy":"api","key":"key-1"}')
end`,
}

/** 1,000 clients behind a proxy, each with headers of its own, and an id in each request. */
const CLIENTS = `${ID}
function request()
  local client = math.random(1000)
  return wrk.format(nil, nil, {
    ["X-Client"] = "client-" .. client,
    ["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:" .. client .. ".0) Gecko/20100101 Firefox/" .. client .. ".0",
    ["Accept"] = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    ["Accept-Language"] = "en-US,en;q=0.5",
    ["Cookie"] = "session=" .. string.format("%032x", client * 7919),
    ["X-Request-Id"] = id(),
  })
end`

/** Writes the scripts of wrk into `folder`, and returns their paths. */
export function requestScripts(folder: string): Readonly<Record<HttpRequests | 'clients', string>> {
  const write = (name: string, text: string): string => {
    const file = join(folder, `${name.replaceAll(' ', '-')}.lua`)
    writeFileSync(file, text)
    return file
  }
  const paths = HTTP_REQUESTS.map((name) => [name, write(name, SCRIPTS[name])] as const)
  return { ...(Object.fromEntries(paths) as Record<HttpRequests, string>), clients: write('clients', CLIENTS) }
}

const MS_PER_TICK = 10

/** User and system time of a process and its children; 0 where the system does not say. */
export function cpuMs({ pid }: ChildProcess): number {
  return pid === undefined ? 0 : cpuMsOf(pid)
}

/** Resident memory of a process and its children; 0 where the system does not say. */
function rssBytes({ pid }: ChildProcess): number {
  return pid === undefined ? 0 : rssBytesOf(pid)
}

function cpuMsOf(pid: number): number {
  try {
    const [, text = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
    const fields = text.split(' ')
    return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK + sum(childrenOf(pid).map(cpuMsOf))
  } catch {
    return 0
  }
}

function rssBytesOf(pid: number): number {
  try {
    return residentBytes(pid) + sum(childrenOf(pid).map(rssBytesOf))
  } catch {
    return 0
  }
}

function childrenOf(pid: number): number[] {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number))
}

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
