import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { installIn, ROOT, version } from './software.js'
import { eventually, output, running, servedAt } from './testing/running.js'

const KUBERNETES = `${ROOT}deploy/kubernetes/`
const CHART = `${ROOT}deploy/helm/sluicegate`
const COMPOSE = `${ROOT}deploy/compose/`
const FOLDER = mkdtempSync(join(tmpdir(), 'sluicegate-manifests-'))
/** Debian's packages of Go stand where Go looked before it had modules. */
const GO = { PATH: process.env.PATH, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOFLAGS: '-p=1', GOCACHE: join(FOLDER, 'go') }

before(() => {
  installIn('deploy/tested-with')
  output(['go', 'build', '-o', join(FOLDER, 'render-chart'), `${ROOT}deploy/tested-with/render-chart.go`], GO)
})
after(() => rmSync(FOLDER, { recursive: true, force: true }))

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
  // biome-ignore lint/suspicious/noExplicitAny: the schemas check the rest
  readonly spec: any
  readonly data?: Readonly<Record<string, string>>
}

/** Where the schema of an API stands; the rest is in kubernetes-models by the name of the group. */
const SCHEMAS: Readonly<Record<string, string>> = {
  'networking.istio.io': '@kubernetes-models/istio/',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator/',
}

/** Kinds whose schema is not on npm. */
const WITHOUT_SCHEMA = new Set(['EnvoyPatchPolicy', 'Kustomization'])

const requireThere = createRequire(`${ROOT}deploy/tested-with/package.json`)

function manifestsIn(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => {
    assert.deepEqual(document.errors, [])
    return document.toJS()
  })
}

function assertFitsSchema(manifest: Manifest): void {
  if (WITHOUT_SCHEMA.has(manifest.kind)) return
  const [group = ''] = manifest.apiVersion.split('/')
  const kinds = requireThere(`${SCHEMAS[group] ?? 'kubernetes-models/'}${manifest.apiVersion}`)
  const Kind = kinds[manifest.kind]
  assert.ok(Kind, `${manifest.apiVersion} has ${manifest.kind}`)
  new Kind(manifest).validate()
}

function rendered(values: object): Manifest[] {
  const file = join(FOLDER, 'values.yaml')
  writeFileSync(file, JSON.stringify(values))
  return manifestsIn(output([join(FOLDER, 'render-chart'), CHART, 'edge', file])).filter((manifest) => manifest !== null)
}

function named(kind: string, manifests: readonly Manifest[]): Manifest {
  const found = manifests.find((manifest) => manifest.kind === kind)
  assert.ok(found, `there is a ${kind}`)
  return found
}

const plain = (): Manifest[] => {
  const { resources } = parse(readFileSync(`${KUBERNETES}kustomization.yaml`, 'utf8'))
  return resources.flatMap((file: string) => manifestsIn(readFileSync(KUBERNETES + file, 'utf8')))
}

test('every manifest and every example fits the schema of its kind', () => {
  const examples = readdirSync(`${KUBERNETES}examples`).filter((file) => file !== 'prometheus-adapter.yaml')
  const all = [...plain(), ...examples.flatMap((file) => manifestsIn(readFileSync(`${KUBERNETES}examples/${file}`, 'utf8')))]
  assert.ok(all.length >= 10)
  for (const manifest of all) assertFitsSchema(manifest)
  const broken = structuredClone(named('Deployment', plain()))
  broken.spec.replicas = 'two'
  assert.throws(() => assertFitsSchema(broken))
})

test('manifests select the same pods, and name ports, config and probes that are there', () => {
  assertConsistent(plain())
  const { kind, name } = named('HorizontalPodAutoscaler', plain()).spec.scaleTargetRef
  assert.deepEqual([kind, name], ['Deployment', named('Deployment', plain()).metadata.name])
})

test('the chart with all its parts renders to what the plain manifests have, and fits the schemas', () => {
  const everything = { redis: { existingSecret: 'sluicegate-redis' }, autoscaling: { enabled: true }, serviceMonitor: { enabled: true } }
  const all = rendered({ ...everything, tokens: { existingSecret: 'tokens' }, podAnnotations: { team: 'edge' } })
  for (const manifest of all) assertFitsSchema(manifest)
  assertConsistent(all)
  assert.deepEqual(
    all.map(({ kind }) => kind).sort(),
    plain()
      .map(({ kind }) => kind)
      .sort(),
  )
  const container = (manifests: readonly Manifest[]) => named('Deployment', manifests).spec.template.spec.containers[0]
  for (const part of [
    'args',
    'ports',
    'startupProbe',
    'livenessProbe',
    'readinessProbe',
    'resources',
    'securityContext',
    'volumeMounts',
    'image',
  ])
    assert.deepEqual(container(all)[part], container(plain())[part], part)
  for (const kind of ['HorizontalPodAutoscaler', 'Service', 'NetworkPolicy', 'PodDisruptionBudget', 'ServiceMonitor'])
    assert.deepEqual(withoutInstance(named(kind, all).spec), named(kind, plain()).spec, kind)
})

test('the chart by itself has one pod and the budget in its memory, and refuses several pods without Redis', () => {
  const all = rendered({})
  for (const manifest of all) assertFitsSchema(manifest)
  assert.equal(named('Deployment', all).spec.replicas, 1)
  assert.throws(() => rendered({ replicas: 2 }), /set redis\.existingSecret/)
  assert.throws(() => rendered({ autoscaling: { enabled: true } }), /set redis\.existingSecret/)
})

test('manifests, chart and compose name the version of the service', () => {
  const chart = parse(readFileSync(`${CHART}/Chart.yaml`, 'utf8'))
  const { services } = parse(readFileSync(`${COMPOSE}compose.yaml`, 'utf8'))
  const image = `sluicegate:${version()}`
  const [container] = named('Deployment', plain()).spec.template.spec.containers
  assert.deepEqual([chart.version, chart.appVersion, services.sluicegate.image, container.image], [version(), version(), image, image])
})

test('files of manifests, chart and compose are configurations that the service accepts', () => {
  for (const [name, text] of [named('ConfigMap', plain()), named('ConfigMap', rendered({}))].flatMap(({ data = {} }) =>
    Object.entries(data),
  )) {
    writeFileSync(join(FOLDER, name), text)
    assert.match(output([process.execPath, `${ROOT}packages/server/dist/main.js`, 'check', join(FOLDER, name)]), /good/)
  }
  assert.match(output([process.execPath, `${ROOT}packages/server/dist/main.js`, 'check', `${ROOT}deploy/config`]), /good/)
})

test('compose mounts files that exist, and Prometheus and Grafana find each other and the service by the names of compose', () => {
  const { services, volumes } = parse(readFileSync(`${COMPOSE}compose.yaml`, 'utf8'))
  for (const { volumes: mounts = [] } of Object.values<{ volumes?: readonly string[] }>(services)) {
    for (const mount of mounts) {
      const [from = ''] = mount.split(':')
      assert.ok(from.startsWith('.') ? existsSync(resolve(COMPOSE, from)) : Object.hasOwn(volumes, from), mount)
    }
  }
  const scraped = parse(readFileSync(`${COMPOSE}prometheus.yml`, 'utf8')).scrape_configs[0].static_configs[0].targets
  assert.deepEqual(scraped, ['sluicegate:8080'])
  const { datasources } = parse(readFileSync(`${COMPOSE}grafana-datasource.yml`, 'utf8'))
  assert.equal(datasources[0].url, 'http://prometheus:9090')
  assert.ok(Object.hasOwn(services, 'sluicegate') && Object.hasOwn(services, 'prometheus'))
  assert.equal(new URL(services.sluicegate.environment.SLUICEGATE_REDIS).hostname, 'redis')
  const dashboards = readdirSync(`${ROOT}examples/grafana/dashboards`).map((file) =>
    readFileSync(`${ROOT}examples/grafana/dashboards/${file}`, 'utf8'),
  )
  for (const text of dashboards) assert.ok(JSON.parse(text).panels.length > 0)
})

function assertConsistent(manifests: readonly Manifest[]): void {
  const { spec } = named('Deployment', manifests)
  const labels = spec.template.metadata.labels
  const selectors = [
    spec.selector.matchLabels,
    named('Service', manifests).spec.selector,
    named('PodDisruptionBudget', manifests).spec.selector.matchLabels,
    named('NetworkPolicy', manifests).spec.podSelector.matchLabels,
  ]
  for (const selector of selectors) for (const [name, value] of Object.entries(selector)) assert.equal(labels[name], value, name)
  const service = named('Service', manifests)
  for (const [name, value] of Object.entries(named('ServiceMonitor', manifests).spec.selector.matchLabels))
    assert.equal(service.metadata.labels?.[name], value)
  const [container] = spec.template.spec.containers
  const ports = container.ports.map(({ name }: { name: string }) => name)
  for (const { targetPort } of service.spec.ports) assert.ok(ports.includes(targetPort))
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) assert.ok(ports.includes(container[probe].httpGet.port))
  assert.equal(spec.template.spec.volumes[0].configMap.name, named('ConfigMap', manifests).metadata.name)
  assert.ok(spec.template.spec.terminationGracePeriodSeconds > 5 + 10, 'drain and finish fit')
}

/** Without the labels that name the release. */
function withoutInstance(spec: unknown): unknown {
  return JSON.parse(JSON.stringify(spec, (key, value) => (key === 'app.kubernetes.io/instance' ? undefined : value)))
}

// A folder of configuration as the kubelet mounts a ConfigMap: each file is a link into `..data`, which is a link to a folder of one version.

const MAP_FOLDER = mkdtempSync(join(tmpdir(), 'sluicegate-config-map-'))
after(() => rmSync(MAP_FOLDER, { recursive: true, force: true }))

const policy = (limit: number): string => `policies:\n  per-user: { algorithm: token-bucket, limit: ${limit}, window: 24h }\n`

/** Writes a version beside the one in force, turns the link `..data` to it in one step, and removes the old one: what the kubelet does. */
function publish(version: number, text: string): void {
  mkdirSync(join(MAP_FOLDER, `..v${version}`))
  writeFileSync(join(MAP_FOLDER, `..v${version}`, 'policies.yaml'), text)
  symlinkSync(`..v${version}`, join(MAP_FOLDER, '..data_tmp'))
  renameSync(join(MAP_FOLDER, '..data_tmp'), join(MAP_FOLDER, '..data'))
  rmSync(join(MAP_FOLDER, `..v${version - 1}`), { recursive: true, force: true })
}

test('a ConfigMap that changes is in force without a restart, keys keep what they spent, and a faulty one changes nothing', async (t) => {
  publish(1, policy(100))
  symlinkSync('..data/policies.yaml', join(MAP_FOLDER, 'policies.yaml'))
  const program = [
    process.execPath,
    `${ROOT}packages/server/dist/main.js`,
    'serve',
    '--config',
    MAP_FOLDER,
    '--http',
    '127.0.0.1:0',
    '--json',
  ]
  const service = running(t, program)
  const { http = '' } = await servedAt(service)
  const answer = async (path: string): Promise<{ limit: number; remaining: number }> => (await fetch(http + path)).json() as never
  const peek = (key: string) => answer(`/v1/peek?policy=per-user&key=${key}`)
  assert.equal((await answer('/v1/take?policy=per-user&key=alice&cost=10')).remaining, 90)

  publish(2, policy(50))
  await eventually(async () => (await peek('new')).limit === 50, 'the second version is in force', service.text)
  assert.equal((await peek('alice')).remaining, 40)

  publish(3, 'policies:\n  per-user: { algorithm: token-buckets, limit: 7, window: 24h }\n')
  await service.printed(/did you mean/)
  assert.deepEqual([(await peek('new')).limit, (await peek('alice')).remaining], [50, 40])

  publish(4, policy(60))
  await eventually(async () => (await peek('new')).limit === 60, 'the fourth version is in force', service.text)
  assert.equal((await peek('alice')).remaining, 50)
  assert.equal(service.child.exitCode, null)
})
