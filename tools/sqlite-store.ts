import { equal } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

// For a Node with `node:sqlite`: the store of examples/stores/sqlite.mjs by the conformance kit, and three processes on one file.

// Packages are compiled after the tools, which make sources of theirs.

/** What the kit is used for here. */
export interface Conformance {
  storeConformance(options: { readonly test: typeof test; connect(): object }): void
}

interface Library {
  fixedWindow(options: { readonly limit: number; readonly window: string; readonly name: string }): object
  createLimiter(
    policy: object,
    options: { readonly store: object; readonly mode: 'exact'; readonly outage: 'closed'; readonly timeout: number },
  ): { take(key: string): Promise<{ readonly allowed: boolean }>; close(): void }
}

interface Stores {
  casStore(store: object): object
}

const imported = async <T>(path: string): Promise<T> => (await import(new URL(`../../${path}`, import.meta.url).href)) as T
const { casStore } = await imported<Stores>('packages/sluicegate/dist/store/index.js')
const { createLimiter, fixedWindow } = await imported<Library>('packages/sluicegate/dist/index.js')
const { sqliteStore } = await imported<{ sqliteStore(db: unknown): object }>('examples/stores/sqlite.mjs')
const { DatabaseSync } = createRequire(import.meta.url)('node:sqlite') as { DatabaseSync: new (file: string) => { close(): void } }

const LIMIT = 500
const PROCESSES = 3
const TAKES = 300
const MOST_MS = 60_000

/** How many of its takes are admitted. */
async function admitted(file: string): Promise<number> {
  const policy = fixedWindow({ limit: LIMIT, window: '365d', name: 'shared' })
  // SQLite waits for its lock in the thread that decides, so an answer may be late: then nothing is to be admitted without the store.
  const options = { mode: 'exact', outage: 'closed', timeout: MOST_MS } as const
  const limiter = createLimiter(policy, { store: casStore(sqliteStore(new DatabaseSync(file))), ...options })
  let count = 0
  for (let i = 0; i < TAKES; i++) if ((await limiter.take('key')).allowed) count++
  limiter.close()
  return count
}

async function admittedByProcess(file: string): Promise<number> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), file], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number]
  equal(code, 0)
  return Number(text)
}

const [file] = process.argv.slice(2)
if (file !== undefined) {
  console.log(await admitted(file))
} else {
  const { storeConformance } = await imported<Conformance>('packages/sluicegate/dist/store-testing/index.js')
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-sqlite-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  storeConformance({ test, connect: () => sqliteStore(new DatabaseSync(join(folder, 'kit.db'))) })
  test(`${PROCESSES} processes on one file admit exactly the limit`, async () => {
    const shared = join(folder, 'shared.db')
    const counts = await Promise.all(Array.from({ length: PROCESSES }, () => admittedByProcess(shared)))
    equal(
      counts.reduce((sum, count) => sum + count, 0),
      LIMIT,
      `admitted ${counts.join(', ')}`,
    )
  })
}
