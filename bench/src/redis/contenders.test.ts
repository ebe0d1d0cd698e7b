import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { VERSUS } from '../rivals.js'
import { BURST, RATE_PER_S } from './bucket.js'
import { FLEET_CONTENDER_NAMES } from './contenders.js'
import type { FleetJob } from './fleet-job.js'
import { startServers } from './servers.js'
import type { Stint } from './stint.js'

const SUBJECT = fileURLToPath(new URL('./fleet-subject.js', import.meta.url))

// Clients and rivals are installed on demand: without them there is nobody to compare.
if (existsSync(`${VERSUS}node_modules/@redis/client`)) {
  test('every contender spends the burst and not more than comes back, on one key and one caller', async () => {
    const servers = await startServers('standalone')
    try {
      for (const contender of FLEET_CONTENDER_NAMES) {
        const job: FleetJob = {
          cell: { contender, topology: 'standalone', shape: 'hot_key', callers: 1, pace: 0 },
          place: servers.place,
          ms: 300,
          prefix: 't',
        }
        const { admitted, elapsedMs, takes } = await stintOf(job)
        const most = BURST + (RATE_PER_S * elapsedMs) / 1000
        const [tokens = 0] = admitted
        assert.ok(tokens > 0 && tokens <= takes && tokens <= most, `${contender}: ${tokens} of ${most}`)
      }
    } finally {
      await servers.stop()
    }
  })
}

async function stintOf(job: FleetJob): Promise<Stint> {
  const child = spawn(process.execPath, [SUBJECT, JSON.stringify(job)], { stdio: ['pipe', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  child.stdin.end('run\n')
  const [code] = await once(child, 'close')
  assert.equal(code, 0, said)
  return JSON.parse(said.split('\n')[1] as string) as Stint
}
