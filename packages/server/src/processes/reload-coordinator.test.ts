import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { configFiles } from 'sluicegate-config/read-config.js'
import { configFile } from 'sluicegate-testkit/service/sluicegate-process.js'
import { createLog } from '../log.js'
import { ReloadCoordinator } from './reload-coordinator.js'
import type { ReadyWorker } from './worker-pool.js'

/** A worker whose answers a test sets, and which counts what it has put in force. */
class FakeWorker implements ReadyWorker {
  readonly slot = 0
  isReading = false
  isKilled = false
  commits = 0
  readonly calls: string[] = []
  readonly ended: Promise<void>
  during: (method: string) => Promise<void> = async () => undefined
  private end: () => void = () => undefined
  private isPrepared = false

  constructor() {
    this.ended = new Promise((resolve) => {
      this.end = resolve
    })
  }

  readonly exchange = {
    call: <Value>(method: string): Promise<Value> => this.answer(method) as Promise<Value>,
    callWith: <Value>(_: object, method: string): Promise<Value> => this.answer(method) as Promise<Value>,
  }

  kill(): void {
    this.isKilled = true
    this.end()
  }

  private async answer(method: string): Promise<unknown> {
    this.calls.push(method)
    await this.during(method)
    if (method !== 'commitReload') this.isPrepared = true
    else if (this.isPrepared) this.commits++
    return 'data'
  }
}

function coordinated(t: TestContext) {
  const path = configFile(t, 'policies: { api: { algorithm: gcra, limit: 5, window: 1s } }\n')
  const ready: FakeWorker[] = [new FakeWorker(), new FakeWorker()]
  const prepared = { data: 'data', commit: () => undefined, discard: () => undefined }
  const reloads = new ReloadCoordinator({
    source: { path, read: () => assert.fail('not read here') },
    reloader: { tls: undefined, prepare: async () => prepared as never, prepareData: async () => prepared as never, fail: () => undefined },
    workers: { ready, call: async () => new Map() },
    tables: undefined,
    log: createLog('silent'),
    files: configFiles(path),
  })
  return { ready, reloads, first: ready[0] as FakeWorker, other: ready[1] as FakeWorker }
}

for (const [what, change] of [
  ['configuration', (reloads: ReloadCoordinator) => reloads.reload('SIGHUP')],
  ['data files', (reloads: ReloadCoordinator) => reloads.reloadData()],
] as const) {
  test(`a worker that becomes ready while others prepare or commit has the ${what}, too`, async (t) => {
    for (const moment of ['prepare', 'commitReload']) {
      const { ready, reloads, first, other } = coordinated(t)
      const late = new FakeWorker()
      let isUpToDate: Promise<void> | undefined
      first.during = async (method) => {
        if (isUpToDate !== undefined || !method.startsWith(moment)) return
        ready.push(late)
        isUpToDate = reloads.bringUpToDate(late, 0)
      }
      await change(reloads)
      await isUpToDate
      assert.deepEqual([first.commits, other.commits, late.commits], [1, 1, 1], moment)
    }
  })
}

test('one that started with the configuration in force reads nothing', async (t) => {
  const { reloads } = coordinated(t)
  await reloads.reload('SIGHUP')
  const late = new FakeWorker()
  await reloads.bringUpToDate(late, 1)
  assert.deepEqual(late.calls, [])
})

test('a worker that does not prepare or commit in time is ended, so that none goes on with another configuration', async (t) => {
  for (const moment of ['prepareReload', 'commitReload']) {
    const { reloads, first, other } = coordinated(t)
    other.during = async (method) => {
      if (method === moment) throw method === 'commitReload' ? new RangeError('no memory') : new Error('it does not answer')
    }
    await reloads.reload('SIGHUP')
    assert.deepEqual([first.isKilled, other.isKilled, first.commits], [false, true, 1], moment)
  }
})
