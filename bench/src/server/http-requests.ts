import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { residentBytes } from 'sluicegate-testkit/service/sluicegate-process.js'
import { sum } from '../samples.js'

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
export function rssBytes({ pid }: ChildProcess): number {
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
