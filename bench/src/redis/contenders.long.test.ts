import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startNode } from '../measure.js'
import { BURST, RATE_PER_S } from './bucket.js'
import { FLEET_CONTENDER_NAMES } from './contenders.js'
import { type Servers, startServers } from './servers.js'
import type { FleetJob, FleetStint } from './stint.js'

const SUBJECT = fileURLToPath(new URL('./fleet-subject.js', import.meta.url))

let servers: Servers
before(async () => {
  servers = await startServers('standalone')
})
after(() => servers.stop())

for (const contender of FLEET_CONTENDER_NAMES) {
  test(`${contender}: one caller on one key spends tokens of the burst, and not more than comes back`, async () => {
    const job: FleetJob = {
      cell: { contender, topology: 'standalone', shape: 'hot_key', callers: 1, pace: 0 },
      place: servers.place,
      ms: 300,
      // Of its own: the two of rate-limiter-flexible give a key the same name, and what one has spent the other lacks.
      prefix: contender,
    }
    const subject = await startNode(contender, SUBJECT, job)
    try {
      const { admitted, elapsedMs, takes, withoutStore } = (await subject.ask('run')) as FleetStint
      const most = BURST + (RATE_PER_S * elapsedMs) / 1000
      const [tokens = 0] = admitted
      // A run ends with an answer, and a new key's first is yes: however slow the machine is, there is one.
      assert.ok(tokens > 0 && tokens <= takes && tokens <= most, `${tokens} of ${most}, ${takes} asked`)
      assert.equal(withoutStore, 0)
    } finally {
      await subject.stop()
    }
  })
}
