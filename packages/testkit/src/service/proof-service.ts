import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { readExposition, seriesValue } from './exposition.js'
import { announcement, MAIN } from './sluicegate-process.js'

const CALLERS = 8

/** What a proof may use; `after` ends what it started. */
export interface ProofRun {
  readonly folder: string
  /** Below 1 for a short run. */
  readonly scale: number
  after(end: () => unknown): void
}

/** `holds`, and what was measured. */
export type Verdict = { readonly holds: boolean } & Readonly<Record<string, unknown>>

export interface Served {
  readonly url: string
  readonly text: string
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<unknown>
}

export const limitOf = (limit: number): string => `policies: { api: { algorithm: fixed-window, limit: ${limit}, window: year } }\n`

export async function serve(run: ProofRun, yaml: string, ...flags: string[]): Promise<Served> {
  const file = join(run.folder, 'gate.yaml')
  writeFileSync(file, yaml)
  const child = spawn(process.execPath, [MAIN, 'serve', '--config', file, '--http', '127.0.0.1:0', ...flags])
  child.stderr.resume()
  run.after(() => child.kill('SIGKILL'))
  const ended = once(child, 'close')
  return { ...(await announcement(child)), child, ended }
}

/** What callers got that take from a service one after the other. */
export interface Traffic {
  readonly latenciesMs: number[]
  /** New connections that were refused: a load balancer sends the request elsewhere. */
  refused: number
  /** Requests that a connection ended without an answer to, and answers above 499. */
  failed: number
  readonly failures: Set<string>
}

/** Starts callers, and returns what ends them. */
export function startTraffic(url: string, callers = CALLERS): { traffic: Traffic; stop: () => Promise<Traffic> } {
  const traffic: Traffic = { latenciesMs: [], refused: 0, failed: 0, failures: new Set() }
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  let isOver = false
  const call = async (index: number): Promise<void> => {
    while (!isOver) {
      const startMs = performance.now()
      const outcome = await take(agent, `${url}/v1/take?policy=api&key=caller-${index}`)
      if (outcome === 'ECONNREFUSED') {
        traffic.refused++
        return
      }
      if (outcome === 'answered') traffic.latenciesMs.push(performance.now() - startMs)
      else {
        traffic.failed++
        traffic.failures.add(outcome)
      }
    }
  }
  const calls = Promise.all(Array.from({ length: callers }, (_, i) => call(i)))
  const stop = async (): Promise<Traffic> => {
    isOver = true
    await calls
    agent.destroy()
    return traffic
  }
  return { traffic, stop }
}

/** `answered`, or why not. */
function take(agent: Agent, url: string): Promise<string> {
  return new Promise((resolve) => {
    const sent = request(url, { agent }, (response) => {
      response.resume()
      response.once('end', () => resolve((response.statusCode ?? 500) < 500 ? 'answered' : `status ${response.statusCode}`))
      response.once('error', (error) => resolve(String(error)))
    })
    sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? String(error)))
    sent.end()
  })
}

export async function metric(url: string, name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
  return seriesValue(readExposition(await (await fetch(`${url}/metrics`)).text()), name, labels)
}
