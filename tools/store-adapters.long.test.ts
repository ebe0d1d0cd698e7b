import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { type AddressInfo, connect, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Conformance } from './sqlite-store.js'

// The stores of examples/stores by the conformance kit, on real servers.

const ADAPTERS = 'examples/stores'
const MOST_LINES = 80
/** The packages that these tests need. */
const PACKAGES = 'tools/stores'
const MOST_MS = 120_000
const HOST = '127.0.0.1'

// Compiled after this is: the tools generate sources of what they use.
const at = (path: string): string => new URL(`../../${path}`, import.meta.url).href
const { storeConformance } = (await import(at('packages/sluicegate/dist/store-testing/index.js'))) as Conformance
interface CasStore {
  swap(swap: {
    key: string
    version: string | undefined
    value: Uint8Array
    ttlMs: number
  }): Promise<{ readonly swapped: boolean; readonly state: { readonly version: string | undefined } }>
  close(): void
}
interface Child {
  end(signal: NodeJS.Signals): Promise<void>
}
const { ServerChild } = (await import(at('packages/testkit/dist/servers/server-child.js'))) as {
  ServerChild: { start(name: string, command: readonly [string, readonly string[]], isReady: () => Promise<boolean>): Promise<Child> }
}
const { freePorts } = (await import(at('packages/testkit/dist/servers/free-ports.js'))) as { freePorts(count: number): Promise<number[]> }
const { memcachedStore } = (await import(at(`${ADAPTERS}/memcached.mjs`))) as {
  memcachedStore(options: { port: number }): CasStore
}
const { etcdStore } = (await import(at(`${ADAPTERS}/etcd.mjs`))) as { etcdStore(url: string): object }
const { dynamodbStore } = (await import(at(`${ADAPTERS}/dynamodb.mjs`))) as { dynamodbStore(client: object, table: string): object }
const { until } = (await import(at('packages/testkit/dist/servers/until.js'))) as {
  until(what: string, isSo: () => Promise<boolean>): Promise<void>
}

interface DynamoClient {
  createTable(table: object): Promise<unknown>
  describeTable(table: object): Promise<{ readonly Table: { readonly TableStatus: string } }>
  destroy(): void
}

test(`each adapter has at most ${MOST_LINES} lines`, () => {
  const files = readdirSync(ADAPTERS).filter((file) => file.endsWith('.mjs'))
  assert.ok(files.length > 0)
  for (const file of files) assert.ok(readFileSync(join(ADAPTERS, file), 'utf8').trimEnd().split('\n').length <= MOST_LINES, file)
})

const [memcachedPort = 0, etcdPort = 0, peerPort = 0] = await freePorts(3)
const load = await installed()

describe('Memcached', () => {
  const root = process.getuid?.() === 0 ? ['-u', 'daemon'] : []
  const command = ['memcached', ['-l', HOST, '-p', String(memcachedPort), '-m', '64', ...root]] as const
  const stores: ReturnType<typeof memcachedStore>[] = []
  let server: Child | undefined
  before(async () => {
    server = await ServerChild.start('memcached', command, () => accepts(memcachedPort))
  })
  after(async () => {
    for (const store of stores) store.close()
    await server?.end('SIGKILL')
  })
  const connected = (): CasStore => {
    const store = memcachedStore({ port: memcachedPort })
    stores.push(store)
    return store
  }
  storeConformance({ test, connect: connected })

  test('a version from before a restart, which counts versions again, fits nothing', async () => {
    const write = (store: CasStore, version?: string) => store.swap({ key: 'again', version, value: Uint8Array.of(1), ttlMs: 60_000 })
    const restarted = async (): Promise<void> => {
      await server?.end('SIGKILL')
      server = await ServerChild.start('memcached', command, () => accepts(memcachedPort))
    }
    await restarted()
    const store = connected()
    const before = await write(store)
    await restarted()
    const after = await write(connected())
    const late = await write(store, before.state.version)
    assert.deepEqual([before.swapped, after.swapped, late.swapped], [true, true, false])
  })
})

describe('etcd', () => {
  const url = `http://${HOST}:${etcdPort}`
  const peer = `http://${HOST}:${peerPort}`
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-etcd-'))
  const clients = ['--listen-client-urls', url, '--advertise-client-urls', url]
  const peers = ['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`]
  const isHealthy = async (): Promise<boolean> => {
    try {
      return (await fetch(`${url}/health`)).ok
    } catch {
      return false
    }
  }
  let server: Child | undefined
  before(async () => {
    server = await ServerChild.start('etcd', ['etcd', ['--data-dir', folder, ...clients, ...peers]], isHealthy)
  })
  after(async () => {
    await server?.end('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  storeConformance({ test, connect: () => etcdStore(url) })
})

describe('DynamoDB, as an emulator has it', () => {
  const server = (load('dynalite') as (options: object) => Server)({ createTableMs: 0 })
  const { DynamoDB } = load('@aws-sdk/client-dynamodb') as { DynamoDB: new (options: object) => DynamoClient }
  const credentials = { accessKeyId: 'any', secretAccessKey: 'any' }
  let client: DynamoClient
  before(async () => {
    server.listen(0, HOST)
    await once(server, 'listening')
    const endpoint = `http://${HOST}:${(server.address() as AddressInfo).port}`
    client = new DynamoDB({ maxAttempts: 1, region: 'local', endpoint, credentials })
    await client.createTable({
      TableName: 'limits',
      KeySchema: [{ AttributeName: 'key', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'key', AttributeType: 'S' }],
      BillingMode: 'PAY_PER_REQUEST',
    })
    await until('the table is there', async () => (await client.describeTable({ TableName: 'limits' })).Table.TableStatus === 'ACTIVE')
  })
  after(() => {
    client.destroy()
    server.close()
  })
  storeConformance({ test, connect: () => dynamodbStore(client, 'limits') })
})

test('SQLite: the conformance kit, and three processes on one file', () => {
  const env = { ...process.env }
  // The runner of a test reports to its parent in a form of its own.
  delete env.NODE_TEST_CONTEXT
  const program = fileURLToPath(new URL('sqlite-store.js', import.meta.url))
  const done = spawnSync(nodeWithSqlite(), [program], { encoding: 'utf8', timeout: MOST_MS, env })
  assert.equal(done.status, 0, `${done.stdout}${done.stderr}`)
  assert.match(done.stdout, /admit exactly the limit/)
})

/** This one, or else a Node 24. */
function nodeWithSqlite(): string {
  return isBuiltin('node:sqlite') ? process.execPath : load.resolve('node24/bin/node')
}

/** Loads from the packages, which are installed once. Without blocking: a server that starts meanwhile is to be heard. */
async function installed(): Promise<NodeJS.Require> {
  if (!existsSync(`${PACKAGES}/node_modules`)) await promisify(execFile)('npm', ['ci'], { cwd: PACKAGES })
  return createRequire(resolve(PACKAGES, 'package.json'))
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
