import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePorts } from 'sluicegate-testkit'
import { atOnce, runService } from 'sluicegate-testkit/service/running-service.js'
import type { Service } from './service.js'

// Proxies with the configurations of examples, which ask a service; only addresses and time limits are put in. nginx has its own test.

const EXAMPLES = fileURLToPath(new URL('../../../examples/', import.meta.url))
const CONFIG = 'listen: { port: 0 }\npolicies:\n  per-user: { algorithm: token-bucket, limit: 3, window: 1h }\n'
const MODULES = '/usr/lib/apache2/modules'
const MOST_MS = 60_000

/** A proxy: its files, those of a folder in `examples`, and how it starts with them. */
interface Proxy {
  readonly name: string
  readonly files: readonly string[]
  /** Addresses and times that are put in; each file has at least one. */
  readonly values: Readonly<Record<string, string>>
  /** What else it needs to start. */
  prepare?(folder: string): void
  command(folder: string): readonly string[]
  /** Whether requests pass without a service, as the example has it. */
  readonly isOpen: boolean
}

const PROXIES: readonly Proxy[] = [
  {
    name: 'haproxy',
    files: ['haproxy.cfg', 'sluicegate.lua'],
    values: { 'timeout_ms = 250': 'timeout_ms = 30000', 'lua-load sluicegate.lua': 'lua-load FOLDER/sluicegate.lua' },
    command: (folder) => ['haproxy', '-f', join(folder, 'haproxy.cfg')],
    isOpen: true,
  },
  {
    name: 'caddy',
    files: ['Caddyfile'],
    values: {},
    command: (folder) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')],
    isOpen: false,
  },
  {
    name: 'apache',
    files: ['sluicegate.conf', 'sluicegate.lua'],
    values: { 'TIMEOUT = 0.25': 'TIMEOUT = 30', '/etc/apache2/sluicegate.lua': 'FOLDER/sluicegate.lua' },
    prepare: writeApacheMain,
    command: (folder) => ['apache2', '-f', join(folder, 'main.conf'), '-D', 'FOREGROUND'],
    isOpen: true,
  },
]

for (const proxy of PROXIES) {
  test(`${proxy.name} lets through what the policy admits, and answers 429 with Retry-After to the rest`, async (t) => {
    const { url, passed, service, log } = await runProxy(t, proxy)
    const statuses: number[] = []
    for (let i = 0; i < 5; i++) {
      // A browser may send these, and a client may try to choose its key.
      const response = await fetch(url, {
        headers: { 'sec-fetch-site': 'cross-site', 'x-sluicegate-key': `own-${i}`, 'x-real-ip': '192.0.2.9' },
        // A large upload is limited like any other request.
        ...(i === 0 && { method: 'POST', body: 'x'.repeat(3_000_000) }),
      })
      statuses.push(response.status)
      if (response.status === 429) assert.ok(Number(response.headers.get('retry-after')) > 0, log())
    }
    assert.deepEqual(statuses, [200, 200, 200, 429, 429], `${statuses} ${log()}`)
    assert.equal(passed(), 3)
    assert.equal(atOnce(service.engine.policy('per-user')?.peek('127.0.0.1', 1)).allowed, false)
  })

  test(`while the service is down ${proxy.name} ${proxy.isOpen ? 'lets requests pass' : 'refuses requests'}`, async (t) => {
    const { url, passed, service, log } = await runProxy(t, proxy)
    await service.stop()
    const { status } = await fetch(url)
    assert.deepEqual([status < 400, passed()], proxy.isOpen ? [true, 1] : [false, 0], log())
  })
}

test('Traefik, which is not tried here, has the policy and the header with the key in an address that the service answers', async (t) => {
  const { url } = await runService(t, CONFIG)
  const example = readFileSync(`${EXAMPLES}traefik/dynamic.yml`, 'utf8')
  const [, path = ''] = /address: http:\/\/127\.0\.0\.1:8080(\S+)/.exec(example) ?? []
  const headers = { 'x-real-ip': '192.0.2.1', 'x-forwarded-for': '192.0.2.1' }
  const statuses = []
  for (let i = 0; i < 4; i++) statuses.push((await fetch(url + path, { headers })).status)
  assert.deepEqual(statuses, [204, 204, 204, 429])
})

interface Edge {
  readonly url: string
  readonly service: Service
  /** How many requests reached the application. */
  passed(): number
  log(): string
}

async function runProxy(t: TestContext, proxy: Proxy): Promise<Edge> {
  const service = await runService(t, CONFIG)
  let passed = 0
  const application = createServer(async (request, response) => {
    passed++
    for await (const _ of request);
    response.end('from the application')
  })
  application.listen(0, '127.0.0.1')
  await once(application, 'listening')
  t.after(() => application.close().closeAllConnections())
  const [port = 0] = await freePorts(1)
  const folder = mkdtempSync(join(tmpdir(), `sluicegate-${proxy.name}-`))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const values: Record<string, string> = {
    ...proxy.values,
    '127.0.0.1:8080': new URL(service.url).host,
    '127.0.0.1:8000': `127.0.0.1:${port}`,
    '127.0.0.1:3000': `127.0.0.1:${(application.address() as AddressInfo).port}`,
  }
  const unused = new Set(Object.keys(values))
  for (const file of proxy.files) {
    let text = readFileSync(join(EXAMPLES, proxy.name, file), 'utf8')
    for (const [from, to] of Object.entries(values)) {
      if (text.includes(from)) unused.delete(from)
      text = text.replaceAll(from, to.replace('FOLDER', folder))
    }
    writeFileSync(join(folder, file), text)
  }
  assert.deepEqual([...unused], [], 'the files have all addresses and times')
  proxy.prepare?.(folder)
  const log = await started(t, proxy.command(folder), folder, port)
  return { url: `http://127.0.0.1:${port}/`, service, passed: () => passed, log }
}

/** Waits until the port is open: a request would count. */
async function started(t: TestContext, [program = '', ...args]: readonly string[], folder: string, port: number): Promise<() => string> {
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  child.stdout.on('data', (chunk) => (log += chunk))
  child.stderr.on('data', (chunk) => (log += chunk))
  const ended = once(child, 'close')
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const untilMs = performance.now() + MOST_MS
  while (!isListening(port)) {
    assert.ok(child.exitCode === null && performance.now() < untilMs, `${program} does not listen: ${log}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return () => log + (existsSync(join(folder, 'error.log')) ? readFileSync(join(folder, 'error.log'), 'utf8') : '')
}

/** As the kernel lists it: 0A is the state of a socket that listens. */
function isListening(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  return readFileSync('/proc/net/tcp', 'utf8').includes(`0100007F:${hex} 00000000:0000 0A`)
}

function writeApacheMain(folder: string): void {
  const modules = ['mpm_event', 'authz_core', 'lua', 'proxy', 'proxy_http'].filter((name) => existsSync(`${MODULES}/mod_${name}.so`))
  const load = modules.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`)
  const rest = [
    `ServerRoot ${folder}`,
    'ServerName localhost',
    `PidFile ${folder}/pid`,
    `ErrorLog ${folder}/error.log`,
    'User www-data',
    'Group www-data',
  ]
  writeFileSync(join(folder, 'main.conf'), `${[...load, ...rest, `Include ${folder}/sluicegate.conf`].join('\n')}\n`)
  // Its workers run as another user.
  chmodSync(folder, 0o755)
}
