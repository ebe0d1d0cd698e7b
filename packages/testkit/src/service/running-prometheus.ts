import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePorts, until } from 'sluicegate-testkit'

/** A series with its value, as the API of Prometheus gives it. */
export interface QueriedSeries {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [atS: number, value: string]
}

/** A real Prometheus on a free loopback port, for the length of a test. */
export interface RunningPrometheus {
  /** @throws for a query that it refuses, with its reason. */
  query(expression: string): Promise<readonly QueriedSeries[]>
  /** The data of another path of its API. */
  read(path: string): Promise<unknown>
}

/** @param configFile as for `--config.file`; rule files are relative to it. */
export async function runningPrometheus(t: TestContext, configFile: string): Promise<RunningPrometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-prometheus-'))
  const [port = 0] = await freePorts(1)
  const at = `127.0.0.1:${port}`
  const flags = [`--config.file=${configFile}`, `--storage.tsdb.path=${folder}`, `--web.listen-address=${at}`, '--log.level=warn']
  const child = spawn('prometheus', flags, { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  const ended = once(child, 'close')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  await until('Prometheus is ready', async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus ended: ${log}`)
    return fetch(`http://${at}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  const read = async (path: string, body?: URLSearchParams): Promise<unknown> => {
    const response = await fetch(`http://${at}/api/v1/${path}`, body === undefined ? {} : { method: 'POST', body })
    const { status, error, data } = (await response.json()) as { status: string; error?: string; data: unknown }
    if (status !== 'success') throw new Error(`${path} ${body?.get('query') ?? ''}: ${error}`)
    return data
  }
  return {
    read: (path) => read(path),
    async query(expression) {
      const { result } = (await read('query', new URLSearchParams({ query: expression }))) as { result: readonly QueriedSeries[] }
      return result
    },
  }
}
