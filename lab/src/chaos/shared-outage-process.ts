import { createClient } from '@redis/client'
import { createLimiter, tokenBucket } from 'sluicegate'
import { redis } from 'sluicegate/redis'
import { machineUs, type NodeReport, type NodeStart } from './shared-outage.js'

// A process of `shared-outage.ts`: takes all the time, and reports ten times a second.

const REPORT_MS = 100
const REST_MS = 5

const { url, policy } = JSON.parse(process.argv[2] as string) as NodeStart
const { limit, windowMs: window, burst } = policy
const client = createClient({ url, disableOfflineQueue: true, socket: { reconnectStrategy: () => 100, connectTimeout: 500 } })
client.on('error', () => undefined)
void client.connect().catch(() => undefined)
const limiter = createLimiter(tokenBucket({ limit, window, burst, name: 'outage' }), { store: redis(client) })
const ofOutage: number[] = []
const ofStore: number[] = []
let errors = 0

setInterval(() => void take(), REST_MS)
setInterval(() => {
  const { nodes, localShare } = limiter.stats()
  const report = { nodes, localShare, errors, ofOutage: ofOutage.splice(0), ofStore: ofStore.splice(0) }
  process.send?.(report satisfies NodeReport)
}, REPORT_MS)
process.once('disconnect', () => process.exit())

async function take(): Promise<void> {
  try {
    const { allowed, source } = await limiter.take('k')
    if (allowed) (source === 'outage' ? ofOutage : ofStore).push(machineUs())
  } catch {
    errors++
  }
}
