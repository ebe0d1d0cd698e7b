import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../servers/free-ports.js'
import { until } from '../servers/until.js'
import type { Cleanup } from './sluicegate-process.js'

export interface RunningNginx {
  readonly url: string
  /** Its error log, for a test that fails. */
  log(): string
}

/**
 * nginx with a file that ships, on a free port in place of 127.0.0.1:8000.
 *
 * @param values what stands in place of which text of the file.
 * @param isUp whether the status of `path` says that nginx serves.
 */
export async function runNginx(
  t: Cleanup,
  shipped: string,
  values: Readonly<Record<string, string>>,
  [path, isUp]: readonly [path: string, isUp: (status: number) => boolean],
): Promise<RunningNginx> {
  const [port = 0] = await freePorts(1)
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-nginx-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  // On a busy machine a test may have to wait longer than a visitor should.
  writeFileSync(join(folder, 'site.conf'), replaced(shipped, { ...values, '250ms': '20s', '127.0.0.1:8000': `127.0.0.1:${port}` }))
  const http = [temporaryPaths(folder), 'access_log off;', `include ${folder}/site.conf;`].join('\n')
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; error_log stderr warn; pid ${folder}/pid;\nevents {}\nhttp {\n${http}\n}\n`,
  )
  const nginx = startNginx(t, folder)
  let log = ''
  nginx.stderr?.on('data', (chunk) => (log += chunk))
  const url = `http://127.0.0.1:${port}`
  await until('nginx answers', async () => {
    assert.equal(nginx.exitCode, null, `nginx ended: ${log}`)
    const response = await fetch(`${url}${path}`).catch(() => undefined)
    return response !== undefined && isUp(response.status)
  })
  return { url, log: () => log }
}

/** Starts nginx with `nginx.conf` of a folder, for the length of a test. */
export function startNginx(t: Cleanup, folder: string, ...options: string[]): ChildProcess {
  const nginx = spawn('nginx', ['-p', folder, ...options, '-c', join(folder, 'nginx.conf')], { stdio: ['ignore', 'ignore', 'pipe'] })
  nginx.stderr?.resume()
  const ended = once(nginx, 'close')
  t.after(async () => {
    nginx.kill('SIGTERM')
    await ended
  })
  return nginx
}

/** Lines by which nginx writes its temporary files into a folder. */
export function temporaryPaths(folder: string): string {
  return ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')
}

/** The text with other values; each has to stand in it. */
export function replaced(text: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values).reduce((changed, [from, to]) => {
    assert.ok(changed.includes(from), `the file that ships has ${from}`)
    return changed.replaceAll(from, to)
  }, text)
}
