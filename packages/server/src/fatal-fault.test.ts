import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { everyNth, longTest, until } from 'sluicegate-testkit'
import { send } from 'sluicegate-testkit/service/many-connections.js'
import { configFile } from 'sluicegate-testkit/service/sluicegate-process.js'
import {
  type Bystander,
  bystanders,
  reconnectingBystanders,
  type StormedService,
  stormedService,
} from 'sluicegate-testkit/service/storm/bystanders.js'
import { canSharePorts } from './processes/child.js'

const PRELOAD = fileURLToPath(import.meta.resolve('sluicegate-testkit/service/fault-preload.js'))

/** A service that has a fault on request. */
async function faultyService(t: TestContext, ...flags: string[]): Promise<{ stormed: StormedService; fail: (kind: string) => void }> {
  const file = configFile(t, '')
  process.env.FAULT_FILE = file
  const stormed = await stormedService(t, [process.execPath, '--import', PRELOAD], ...flags)
  return { stormed, fail: (kind) => writeFileSync(file, kind) }
}

for (const [i, kind] of ['rejection', 'exception'].entries()) {
  everyNth(i, 2)(
    `an ${kind} that nothing handles ends the service with 1, after it has answered for the time of the drain and has said so`,
    async (t) => {
      const { stormed, fail } = await faultyService(t, '--drain', '1500ms')
      const { service, log } = stormed
      const ended = once(service.child, 'exit')
      fail(kind)
      await until('the service drains', async () => (await send(service.url, '/readyz')).status === 503)
      assert.equal((await send(service.url, '/v1/take?policy=api&key=a')).status, 200)
      assert.deepEqual(await ended, [1, null])
      assert.match(log(), /"drain":"1500ms","msg":"a fault of the service: it answers for the time of the drain/)
      assert.match(log(), /a fault on purpose/)
    },
  )
}

for (const flag of canSharePorts() ? ['--processes', '--threads'] : ['--processes']) {
  for (const [protocols, clients] of [
    ['HTTP', async (stormed: StormedService) => overHttp(await bystanders(stormed))],
    // Enough that each worker has some.
    [
      'gRPC or RESP',
      async (stormed: StormedService) => (await Promise.all(Array.from({ length: 4 }, () => reconnectingBystanders(stormed)))).flat(),
    ],
  ] as const) {
    longTest(`with ${flag} a worker that has a fault is replaced, and no call of others over ${protocols} fails`, async (t) => {
      const { stormed, fail } = await faultyService(t, flag, '2', '--drain', '200ms')
      const { service, log } = stormed
      let isOver = false
      const calling = (await clients(stormed)).map(async (bystander) => {
        while (!isOver) await bystander.call()
        bystander.close()
      })
      const faults = ['exception worker', 'rejection worker']
      for (const [before, fault] of faults.entries()) {
        fail(fault)
        await until('a worker was replaced', () => log().split('a worker listens again').length === before + 2)
      }
      isOver = true
      await Promise.all(calling)
      assert.equal(await service.metric('sluicegate_worker_restarts_total', { reason: 'ended' }), faults.length)
      assert.equal(await service.end('SIGINT'), 0)
    })
  }
}

function overHttp([kept, fresh, ...others]: readonly Bystander[]): readonly Bystander[] {
  for (const each of others) each.close()
  return [kept, fresh].filter((bystander) => bystander !== undefined)
}
