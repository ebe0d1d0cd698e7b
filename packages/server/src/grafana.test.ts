import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readConfig } from 'sluicegate-config/read-config.js'
import { freePorts, longTest, RedisProcess, until } from 'sluicegate-testkit'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import { GrpcTestClient } from 'sluicegate-testkit/service/simulated-envoy.js'
import { configFile } from 'sluicegate-testkit/service/sluicegate-process.js'
import { parse } from 'yaml'
import { RateLimitService } from './protocols/grpc/messages/envoy/service/ratelimit/v3/rls.gen.js'
import { type Service, startService } from './service.js'

/** A series with its value, as the API of Prometheus gives it. */
interface QueriedSeries {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [atS: number, value: string]
}

/** A real Prometheus on a free loopback port, for the length of a test. */
interface RunningPrometheus {
  /** @throws for a query that it refuses, with its reason. */
  query(expression: string): Promise<readonly QueriedSeries[]>
  /** The data of another path of its API. */
  read(path: string): Promise<unknown>
}

/** @param configFile as for `--config.file`; rule files are relative to it. */
async function runningPrometheus(t: TestContext, configFile: string): Promise<RunningPrometheus> {
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

const EXAMPLES = fileURLToPath(new URL('../../../examples/grafana/', import.meta.url))
const ALERTS = readFileSync(join(EXAMPLES, 'alerts.yml'), 'utf8')
const COLUMNS = 24

interface Target {
  readonly refId: string
  readonly expr: string
  readonly datasource: unknown
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly datasource?: unknown
  readonly targets?: readonly Target[]
  readonly fieldConfig?: { readonly defaults: object; readonly overrides: readonly unknown[] }
}

interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly schemaVersion: number
  readonly panels: readonly Panel[]
  readonly annotations: { readonly list: readonly { readonly expr: string }[] }
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string; readonly definition?: string }[] }
}

const DASHBOARD = JSON.parse(readFileSync(join(EXAMPLES, 'dashboards/sluicegate.json'), 'utf8')) as Dashboard
const QUERIES = [...DASHBOARD.panels.flatMap(({ targets = [] }) => targets), ...DASHBOARD.annotations.list].map(({ expr }) => expr)

interface Rule {
  readonly alert: string
  readonly expr: string
}

const RULES = (parse(ALERTS) as { groups: { rules: Rule[] }[] }).groups.flatMap(({ rules }) => rules)

test('the dashboard has the form that Grafana reads', () => {
  assert.ok(DASHBOARD.schemaVersion >= 36 && DASHBOARD.uid !== '' && DASHBOARD.title !== '')
  const ids = DASHBOARD.panels.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length, 'ids are unique')
  const source = { type: 'prometheus', uid: `\${datasource}` }
  for (const { id, type, title, targets = [], datasource, fieldConfig } of DASHBOARD.panels) {
    assert.ok(Number.isInteger(id) && id > 0 && title !== '', title)
    if (type === 'row') continue
    assert.ok(['stat', 'timeseries', 'bargauge', 'heatmap'].includes(type), type)
    assert.ok(targets.length > 0 && fieldConfig !== undefined, title)
    assert.deepEqual(datasource, source)
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
    for (const target of targets) assert.deepEqual([target.datasource, target.expr !== ''], [source, true])
  }
})

test('panels of the dashboard fill rows of its width and do not overlap', () => {
  const cells = new Set<string>()
  for (const { title, gridPos } of DASHBOARD.panels) {
    const { x, y, w, h } = gridPos
    assert.ok(x >= 0 && w > 0 && x + w <= COLUMNS && h > 0, title)
    for (let column = x; column < x + w; column++) {
      for (let line = y; line < y + h; line++) {
        assert.ok(!cells.has(`${column} ${line}`), `${title} is over another panel`)
        cells.add(`${column} ${line}`)
      }
    }
  }
  const lines = Math.max(...DASHBOARD.panels.map(({ gridPos: { y, h } }) => y + h))
  assert.equal(cells.size, lines * COLUMNS, 'there are no gaps')
})

test('every variable of a query is one of the dashboard or of Grafana', () => {
  const known = [...DASHBOARD.templating.list.map(({ name }) => name), '__rate_interval', '__range']
  const definitions = DASHBOARD.templating.list.map(({ definition = '' }) => definition)
  for (const text of [...QUERIES, ...definitions]) {
    for (const [, name] of text.matchAll(/\$\{?(\w+)/g)) assert.ok(known.includes(name as string), `${name} in ${text}`)
  }
})

test('every metric of the dashboard and the alerts is exposed by the service', async (t) => {
  const service = await runService(t)
  const names = exposedNames(await (await fetch(`${service.url}/metrics`)).text())
  const definitions = DASHBOARD.templating.list.map(({ definition = '' }) => definition)
  const used = [...QUERIES, ...definitions, ...RULES.map(({ expr }) => expr)].flatMap(
    (text) => text.match(/\b(?:sluicegate|process|nodejs)_\w+/g) ?? [],
  )
  assert.ok(used.length > 60)
  assert.deepEqual(
    [...new Set(used)].filter((name) => !names.has(name)),
    [],
  )
})

test('files for provisioning name what Grafana needs', () => {
  const read = (path: string) => parse(readFileSync(join(EXAMPLES, 'provisioning', path), 'utf8'))
  const { datasources, apiVersion } = read('datasources/prometheus.yml')
  assert.deepEqual(
    [apiVersion, datasources.map(({ type, access }: { type: string; access: string }) => [type, access])],
    [1, [['prometheus', 'proxy']]],
  )
  const { providers } = read('dashboards/sluicegate.yml')
  assert.deepEqual([providers[0].type, providers[0].options.path.startsWith('/')], ['file', true])
})

longTest('promtool accepts the configuration and the alerts, and their tests pass', () => {
  for (const args of [
    ['check', 'config', 'prometheus.yml'],
    ['test', 'rules', 'alert-tests.yml'],
  ]) {
    const { status, stderr } = promtool(EXAMPLES, ...args)
    assert.deepEqual([status, stderr], [0, ''])
  }
})

longTest('every alert has a test that fails when it never fires, and one that fails when it always does', (t) => {
  const folder = temporaryFolder(t)
  cpSync(join(EXAMPLES, 'alert-tests.yml'), join(folder, 'alert-tests.yml'))
  for (const expr of ['vector(1) > 2', 'vector(1)']) {
    const file = parse(ALERTS) as { groups: { rules: Rule[] }[] }
    for (const rule of file.groups.flatMap(({ rules }) => rules)) Object.assign(rule, { expr })
    writeFileSync(join(folder, 'alerts.yml'), JSON.stringify(file))
    const { status, stderr, stdout } = promtool(folder, 'test', 'rules', 'alert-tests.yml')
    assert.notEqual(status, 0)
    for (const { alert } of RULES) assert.match(stderr + stdout, new RegExp(`alertname: ${alert}\\b`), expr)
  }
})

/** Nothing has failed in the service of the test, and its store is Redis: these have no series. `postgres-storage.long.test.ts` has the latter. */
const WITHOUT_SERIES = [/_errors_total/, /changes\(sluicegate_config_last_success/, /sluicegate_store_(?:look_seconds|connections)/]

longTest('a real Prometheus scrapes the service, runs the alerts, and answers every query of the dashboard', async (t) => {
  const service = await serviceWithAll(t)
  const prometheus = await runningPrometheus(t, scrapeOf(t, service))
  using client = new GrpcTestClient(service.urls.get('grpc') ?? '')
  await until('it has scraped the service several times', async () => {
    await demand(service, client)
    const [scrapes] = await prometheus.query('count_over_time(sluicegate_build_info[1m])')
    return Number(scrapes?.value[1] ?? 0) >= 4
  })
  const input = await (await fetch(`${service.url}/metrics`)).text()
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
  assert.deepEqual([status, stdout, stderr], [0, '', ''])
  for (const query of QUERIES) {
    const expression = inGrafana(query)
    // After a scrape that came too late all series are gone until the next one.
    if (WITHOUT_SERIES.some((pattern) => pattern.test(query))) await prometheus.query(expression)
    else await until(`there are series of ${expression}`, async () => (await prometheus.query(expression)).length > 0)
  }
  await until('it is up', async () => (await prometheus.query('up{job="sluicegate"}'))[0]?.value[1] === '1')
  const [denied] = await prometheus.query('sluicegate_decisions_total{policy="api", outcome="denied"}')
  assert.ok(Number(denied?.value[1]) > 0)
  for (const { name, type, definition = '' } of DASHBOARD.templating.list) {
    if (type === 'datasource') continue
    const [, selector = '', label] = /^label_values\((.*), (\w+)\)$/.exec(inGrafana(definition)) ?? []
    const values = await prometheus.read(`label/${label}/values?${new URLSearchParams({ 'match[]': selector })}`)
    assert.ok(Array.isArray(values) && values.length > 0, name)
  }
  await until('it has evaluated the alerts', async () => (await rulesOf(prometheus)).every(({ health }) => health !== 'unknown'))
  assert.deepEqual(
    (await rulesOf(prometheus)).map(({ name, health, lastError }) => [name, health, lastError]),
    RULES.map(({ alert }) => [alert, 'ok', undefined]),
  )
})

async function rulesOf(prometheus: { read(path: string): Promise<unknown> }) {
  const { groups } = (await prometheus.read('rules')) as {
    groups: { rules: { name: string; health: string; lastError?: string }[] }[]
  }
  return groups.flatMap(({ rules }) => rules)
}

/** A service with keys in Redis, which is its region's store and the home, and rules of Envoy. */
async function serviceWithAll(t: TestContext): Promise<Service> {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  const own = configFile(
    t,
    `policies:
  api: { all-of: [{ name: rate, algorithm: token-bucket, limit: 1, window: 1h }, { name: quota, algorithm: fixed-window, limit: 9, window: day }] }
  web: { algorithm: token-bucket, limit: 100000, window: 1s }
storage: { redis: { url: "redis://127.0.0.1:${redis.port}" }, home: { url: "redis://127.0.0.1:${redis.port}", region: west } }
`,
  )
  writeFileSync(
    join(own, '../edge.yaml'),
    'domain: edge\ndescriptors:\n  - { key: user, rate_limit: { unit: hour, requests_per_unit: 1 } }\n',
  )
  const config = readConfig(join(own, '..'))
  const free = { host: '127.0.0.1', port: 0 }
  const source = { path: join(own, '..'), read: () => config }
  const service = await startService({ ...config, listen: { ...config.listen, http: free, grpc: free } }, { source })
  t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
  return service
}

/** Requests of every kind, some of which are denied. */
async function demand({ url, engine }: Service, client: GrpcTestClient): Promise<void> {
  const take = (policy: string) => fetch(`${url}/v1/take?policy=${policy}&key=alice`).then((response) => response.text())
  await Promise.all([take('api'), take('web'), take('web')])
  await engine.callRates.throttle('k', { maxBurst: 0, count: 1, periodS: 60 }, 1)
  const descriptors = [{ entries: [{ key: 'user', value: 'alice' }] }]
  await client.call(RateLimitService.method.shouldRateLimit, { domain: 'edge', descriptors })
}

/** The shipped files, with the address of the service and shorter times. */
function scrapeOf(t: TestContext, service: Service): string {
  const folder = temporaryFolder(t)
  const shipped = readFileSync(join(EXAMPLES, 'prometheus.yml'), 'utf8')
  const host = new URL(service.url).host
  const ours = shipped.replaceAll('15s', '500ms').replace('127.0.0.1:8080', host)
  assert.ok(ours.includes(host) && ours.includes('500ms'))
  writeFileSync(join(folder, 'prometheus.yml'), ours)
  writeFileSync(join(folder, 'alerts.yml'), ALERTS)
  return join(folder, 'prometheus.yml')
}

/** A query with the values that Grafana puts in. */
function inGrafana(query: string): string {
  return query
    .replaceAll('$__rate_interval', '30s')
    .replaceAll('$__range', '1m')
    .replaceAll(/\$(job|instance|policy)\b/g, '.*')
}

/** Names of series in an exposition. */
function exposedNames(text: string): ReadonlySet<string> {
  const names = Array.from(text.matchAll(/^# TYPE (\w+) (\w+)/gm), ([, name, type]) =>
    type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => name + suffix) : [name as string],
  )
  return new Set(names.flat())
}

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-grafana-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function promtool(folder: string, ...args: string[]) {
  return spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' })
}
