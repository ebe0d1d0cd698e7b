import { createServer } from 'node:http'
import { createClient } from '@redis/client'
import express from 'express'
import { rateLimit as limitExpress } from '../../../sluicegate/dist/adapters/express.js'
import { primary, serveLimiter } from '../../../sluicegate/dist/cluster/index.js'
import { rateLimit as limitAsBefore, SluicegateStore } from '../../../sluicegate/dist/compat/express-rate-limit/index.js'
import { createGate } from '../../../sluicegate/dist/gate/index.js'
import {
  concurrency,
  createLimiter,
  createQueue,
  fixedWindow,
  type Limiter,
  type Policy,
  tokenBucket,
} from '../../../sluicegate/dist/index.js'
import { limitedFetch } from '../../../sluicegate/dist/outbound/index.js'
import type { RunningJob } from '../../../sluicegate/dist/queue/queue-options.js'
import { type RedisClient, redis } from '../../../sluicegate/dist/redis/index.js'
import { listening } from '../adapters/harness.js'
import { channelPair } from '../cluster/channel-pair.js'

// A process that drops every promise that may be dropped, with numbers as they come from upstream, of limiters in memory, without their server
// and without their primary. It prints the codes and texts of its warnings; any promise that rejects unobserved ends it.

const WRONG = [undefined, Number.NaN, 12.5, -1, '7', 1e300, null] as readonly unknown[] as readonly number[]
const RIGHT: readonly number[] = [0, 3, 7]
const NAMES: readonly string[] = ['refund', 'penalize', 'block', 'reset']
/** Longer than any call may take. */
const AFTERWARDS_MS = 400

const warnings: string[] = []
process.on('warning', (warning) => warnings.push(`${(warning as { code?: string }).code}: ${warning.message}`))

/** A limiter of any kind. */
type AnyLimiter = Pick<Limiter, 'take' | 'run' | 'close'> & {
  reserve(key: string, cost: number): unknown
}

/** What throws is not dropped: the caller has it at once. */
function dropped(call: () => unknown): void {
  try {
    call()
  } catch (error) {
    if (!['PolicyError', 'StoreError'].includes((error as Error).name)) throw error
  }
}

async function dropAll(limiter: AnyLimiter): Promise<void> {
  const verbs = limiter as unknown as Readonly<Record<string, (key: string, value: unknown) => unknown>>
  for (const value of [...WRONG, ...RIGHT]) {
    for (const name of NAMES) dropped(() => verbs[name]?.('secret-key', value))
    for (const verb of ['settle', 'cancel']) {
      const reservation = (await limiter.reserve('secret-key', 2)) as Readonly<Record<string, (value: unknown) => unknown>>
      dropped(() => reservation[verb]?.(value))
    }
    const permit = (await limiter.take('secret-key')) as unknown as Readonly<Record<string, (() => unknown) | undefined>>
    for (const verb of ['heartbeat', 'release']) dropped(() => permit[verb]?.())
    const job = ({ settle }: RunningJob): string => {
      void settle(value)
      return 'done'
    }
    // The job itself goes on, whatever the number was.
    const answer = await limiter.run('secret-key', job, { maxWait: 20 }).catch((error: Error) => error)
    // One without a place in time never ran.
    if (answer !== 'done' && (answer as Error).name !== 'QueueError') warnings.push(`a job failed: ${answer}`)
  }
}

const bucket = (name: string): Policy => tokenBucket({ limit: 1000, window: '1s', name })
const places = (name: string): Policy => concurrency({ limit: 1000, ttl: '1s', name })

/** No server listens there. */
function deadClient(): RedisClient {
  const client = createClient({ socket: { host: '127.0.0.1', port: 1, reconnectStrategy: () => 20, connectTimeout: 100 } })
  client.on('error', () => undefined)
  client.connect().catch(() => undefined)
  return client as RedisClient
}

function limiters(): readonly AnyLimiter[] {
  const client = deadClient()
  const silent = { isOpen: true, sendCommand: () => new Promise(() => undefined) } as unknown as RedisClient
  const served = [bucket('primary'), places('primary places')].map((policy) => {
    const pair = channelPair()
    serveLimiter(policy).serve(pair.worker)
    const limiter = createLimiter(policy, { store: primary({ process: pair.parent }), timeout: 20 })
    pair.die()
    return limiter
  })
  const of = (options: object, prefix: string, to = client) =>
    [bucket('exact'), bucket('leased'), places('places')].map((policy) =>
      createLimiter(policy, { store: redis(to, { prefix }), timeout: 20, ...(policy.name === 'exact' && { mode: 'exact' }), ...options }),
    )
  const layers = { allow: ['other'], banAfter: { denials: 100, within: '1m', for: '1m' }, shadow: true } as const
  return [
    createLimiter(bucket('memory')),
    createLimiter(places('memory places')),
    createLimiter(bucket('layers'), layers),
    ...of({}, 'a'),
    ...of({}, 'b', silent),
    ...of(layers, 'c'),
    ...of({ policyFor: () => undefined }, 'd'),
    ...served,
  ] as readonly AnyLimiter[]
}

/** The middleware of this library and its stand-ins, whose accounts are corrected after the response. */
async function dropAfterResponses(): Promise<void> {
  const app = express()
  const client = deadClient()
  const create = (policy: Policy) => createLimiter(policy, { store: redis(client), timeout: 20 })
  app.use(limitExpress({ limiter: createLimiter(bucket('after'), { store: redis(client), timeout: 20 }), counts: 'failures' }))
  app.use(limitExpress({ policy: bucket('fails'), counts: () => Promise.reject(new Error('of counts')) }))
  const asBefore = limitAsBefore({ limit: 100, skipSuccessfulRequests: true, passOnStoreError: true, create, identifier: 'before' })
  app.use(asBefore)
  app.get('/', (_, response) => void response.end('served'))
  const site = await listening(createServer(app))
  for (let i = 0; i < 3; i++) await (await fetch(`http://127.0.0.1:${site.port}/`)).text()
  void asBefore.resetKey('a')
  void asBefore.resetKey(5 as never)
  const store = new SluicegateStore({ create })
  store.init({ windowMs: 1000, limit: 5 } as never)
  void store.decrement('secret-key')
  await site.close()
}

async function dropOthers(): Promise<void> {
  for (const value of [...WRONG, ...RIGHT]) {
    dropped(() => createGate({ window: '1s', block: 5 }).record('secret-key', value))
    const own = createLimiter(fixedWindow({ limit: 100, window: '1h', name: 'own queue' }))
    await createQueue(own).run('secret-key', ({ settle }) => void settle(value))
  }
  const polite = limitedFetch(async (_url: string, _init?: object) => new Response('body'), { policy: bucket('polite'), concurrency: 1 })
  for (let i = 0; i < 3; i++) void (await polite('http://127.0.0.1:1/')).body?.cancel()
  polite.close()
}

const all = limiters()
await Promise.all([...all.map(dropAll), dropAfterResponses(), dropOthers()])
await new Promise((resolve) => setTimeout(resolve, AFTERWARDS_MS))
for (const limiter of all) limiter.close()
process.stdout.write(JSON.stringify(warnings), () => process.exit(0))
