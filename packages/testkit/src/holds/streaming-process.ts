import { appendFileSync, openSync, writeSync } from 'node:fs'
import { createClient } from '@redis/client'
import { createLimiter, type Hold } from '../../../sluicegate/dist/index.js'
import { createLedger } from '../../../sluicegate/dist/ledger/index.js'
import { redis } from '../../../sluicegate/dist/redis/index.js'
import { Random } from '../random.js'
import { LEVELS, SPEND_BYTES, type StreamingStart, TTL, USERS } from './streaming-load.js'

// A program: streams that spend what they hold, one piece after the other, until the standard input ends. What they have spent is in a file at
// once, so it is known of a process that is killed, too.

const PIECE_MS = 250
const MOST_PIECES = 16
const MOST_TOKENS = 19
/** Before it is worth trying again. */
const AGAIN_MS = [100, 500] as const

const { url, streams, seed, spends, records } = JSON.parse(process.argv[2] as string) as StreamingStart

const client = createClient({ url })
client.on('error', () => undefined)
await client.connect()
const ledger = createLedger({
  append: async (batch) => appendFileSync(records, batch.map((record) => `${JSON.stringify(record)}\n`).join('')),
})
const limiter = createLimiter(LEVELS, { store: redis(client), mode: 'exact', outage: 'closed', timeout: 300, ledger })
const file = openSync(spends, 'a')
const line = Buffer.alloc(SPEND_BYTES)
let isEnding = false

function spent(user: number, tokens: number): void {
  line.writeDoubleLE(Number(process.hrtime.bigint()) / 1e6, 0)
  line.writeInt32LE(user, 8)
  line.writeInt32LE(tokens, 12)
  writeSync(file, line)
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** One client, which asks for one answer after another. */
async function stream(user: number, random: Random): Promise<void> {
  await after(random.integer(0, PIECE_MS))
  while (!isEnding) {
    const work: Hold<boolean | Promise<boolean>, 'later'> = await limiter.open(
      { org: 'acme', user: `user ${user}` },
      { ttl: TTL, most: 500 },
    )
    if (!work.allowed) {
      await after(Math.min(Math.max(work.retryAfterMs, AGAIN_MS[0]), AGAIN_MS[1]))
      continue
    }
    for (let left = random.integer(1, MOST_PIECES); left > 0 && !isEnding; left--) {
      const tokens = random.integer(1, MOST_TOKENS)
      if (!(await work.add(tokens))) break
      spent(user, tokens)
      await after(PIECE_MS)
    }
    await work.close()
  }
}

const all = Array.from({ length: streams }, (_, i) => stream(i % USERS, new Random(seed * 1_000 + i)))
process.stdout.write('begun\n')
process.stdin.resume()
process.stdin.once('end', async () => {
  isEnding = true
  await Promise.all(all)
  await ledger.close()
  limiter.close()
  client.destroy()
  process.exit()
})
