import { Random } from 'sluicegate-testkit'
import { randomInput } from '../fuzz/fuzz-resp.js'
import { type Bystander, bystanders } from './bystanders.js'
import { randomEventReader, randomHttp1 } from './http1-requests.js'
import { randomHttp2 } from './http2-frames.js'
import { stormClient } from './storm-client.js'
import type { StormedService } from './stormed-service.js'

type Port = keyof StormedService['urls']

/** What clients of a storm send, and where. */
const STORMS = {
  http: { port: 'http', bytes: randomHttp1 },
  admin: { port: 'admin', bytes: randomHttp1 },
  events: { port: 'http', bytes: randomEventReader },
  grpc: { port: 'grpc', bytes: randomHttp2 },
  resp: {
    port: 'resp',
    bytes: (random: Random) => Buffer.concat(Array.from({ length: random.magnitude(1, 20) }, () => randomInput(random))),
  },
} satisfies Readonly<Record<string, { readonly port: Port; readonly bytes: (random: Random) => Buffer }>>

export type StormName = keyof typeof STORMS
export const STORM_NAMES = Object.keys(STORMS) as StormName[]

/** Clients at once. */
const AT_ONCE = 50

/**
 * `clients` clients of one protocol that each break off in the middle, many at once, while bystanders call over all protocols. Rejects where one of those
 * has no answer or a wrong one. Each client has its own seed, so that `seed` and its number repeat what it does.
 *
 * @returns the calls of bystanders.
 */
export async function storm(stormed: StormedService, name: StormName, seed: number, clients: number): Promise<number> {
  const { port, bytes } = STORMS[name]
  const at = Number(stormed.urls[port].port)
  let next = 0
  let isOver = false
  let calls = 0
  const attack = async (): Promise<void> => {
    while (next < clients) {
      const random = new Random(seed * 1_000_003 + next++)
      await stormClient(random, at, bytes(random), stormed.ca !== undefined)
    }
  }
  const others = await bystanders(stormed)
  const call = async (bystander: Bystander): Promise<void> => {
    do {
      await bystander.call()
      calls++
    } while (!isOver)
  }
  const attacks = Promise.all(Array.from({ length: AT_ONCE }, attack)).finally(() => {
    isOver = true
  })
  try {
    await Promise.all([attacks, ...others.map(call)])
  } catch (error) {
    throw new Error(`${name}, seed ${seed}: ${(error as Error).message}; the log: ${stormed.log()}`, { cause: error })
  } finally {
    next = clients
    for (const each of others) each.close()
  }
  return calls
}
