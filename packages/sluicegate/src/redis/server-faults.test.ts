import assert from 'node:assert/strict'
import { everyNth, FleetLoad, type RedisProcess, shortOrLong, until } from 'sluicegate-testkit'
import { serverOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { type ClientKind, clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { redis as redisStore } from './redis.js'

// Faults of a server itself, under load: no caller gets an error, all are answered in bounded time, and afterwards the store decides again.

const LIMIT = 300
const BURST = 400
const SHARE = 0.1
const POLICY = tokenBucket({ limit: LIMIT, window: '1s', burst: BURST, name: 'p' })
const TIMEOUT_MS = 200
/** Far above what a call may take: this machine may have other things to do. */
const MOST_MS = 5_000
const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name, library }) => name === library && library !== 'valkey-glide'))
const MODES = ['exact', 'leased'] as const

interface ServerFault {
  readonly name: string
  /** Makes and ends it. */
  readonly inject: (server: RedisProcess) => Promise<void>
  /** Whether the store goes on deciding as if nothing was. */
  readonly isHarmless?: true
  /** How often the server forgot everything: each time a whole burst may be spent again. */
  readonly forgets?: number
}

// Loading takes 20 microseconds a key, and the server answers meanwhile that it is loading.
const SLOW = ['--key-load-delay', '20', '--loading-process-events-interval-bytes', '1024']
const DEBUG = ['--enable-debug-command', 'yes', '--busy-reply-threshold', '20']
const server = await serverOfFile([...SLOW, ...DEBUG])

const FAULTS: readonly ServerFault[] = [
  {
    name: 'SCRIPT FLUSH, again and again: scripts are sent anew',
    inject: (redis) => repeated(shortOrLong(8, 20), () => redis.ask('SCRIPT', 'FLUSH')),
    isHarmless: true,
  },
  {
    name: 'FLUSHALL: what was spent is forgotten, and a burst may be spent anew',
    inject: (redis) => repeated(2, () => redis.ask('FLUSHALL')),
    isHarmless: true,
    forgets: 2,
  },
  {
    name: 'READONLY: the server has become a replica',
    inject: async (redis) => {
      await redis.ask('REPLICAOF', '127.0.0.1', '1')
      await pause(500)
      await redis.ask('REPLICAOF', 'NO', 'ONE')
    },
  },
  {
    name: 'BUSY: another client runs a long script',
    inject: async (redis) => {
      const script = redis.ask('EVAL', 'while true do end', '0').catch(() => undefined)
      await pause(500)
      await redis.ask('SCRIPT', 'KILL')
      await script
    },
  },
  {
    name: 'OOM: the memory is full, and nothing may be evicted',
    inject: async (redis) => {
      await redis.ask('CONFIG', 'SET', 'maxmemory', '1')
      await pause(500)
      await redis.ask('CONFIG', 'SET', 'maxmemory', '0')
    },
  },
  {
    name: 'CLIENT PAUSE: commands are held back',
    inject: async (redis) => {
      await redis.ask('CLIENT', 'PAUSE', '600')
      await pause(650)
    },
  },
  {
    name: 'the server is stopped for a second, and goes on',
    inject: async (redis) => {
      redis.pause()
      await pause(1000)
      redis.resume()
    },
  },
  {
    name: 'LOADING: the server starts again with much to read',
    inject: async (redis) => {
      await redis.ask('DEBUG', 'POPULATE', '20000', 'other')
      await redis.ask('SAVE')
      await redis.kill()
      await redis.start()
      await redis.ask('EVAL', "for _, key in ipairs(redis.call('KEYS', 'other:*')) do redis.call('DEL', key) end", '0')
      await redis.ask('SAVE')
    },
  },
  {
    name: 'the server starts again, and has forgotten everything',
    inject: async (redis) => {
      await redis.ask('FLUSHALL')
      await redis.ask('SAVE')
      await redis.kill()
      await pause(100)
      await redis.start()
    },
    forgets: 2,
  },
]

for (const kind of KINDS) {
  for (const [i, fault] of FAULTS.entries()) everyNth(i, 3)(`${kind.name}: ${fault.name}`, () => endures(kind, fault))
}

async function endures(kind: ClientKind, fault: ServerFault): Promise<void> {
  await using open = await kind.open([server])
  const loads = MODES.map((mode) => {
    const prefix = `${kind.name} ${fault.name} ${mode}`
    const limiter = createLimiter(POLICY, { store: redisStore(open.client, { prefix }), mode, localShare: SHARE, timeout: TIMEOUT_MS })
    const beganMs = performance.now()
    return { mode, limiter, beganMs, load: new FleetLoad(limiter, { keys: ['k'] }) }
  })
  const served = (sinceMs: number) => (): boolean =>
    loads.every(({ load }) => load.since(sinceMs).some(({ decision }) => decision.source !== 'outage'))
  await until('the store decides', served(0))
  await fault.inject(server)
  await until('the store decides again', served(performance.now()))
  await Promise.all(loads.map(({ load }) => load.stop()))
  for (const { mode, limiter, load, beganMs } of loads) {
    assert.deepEqual(load.errors, [])
    assert.ok(load.slowestMs < TIMEOUT_MS + MOST_MS, `${mode}: an answer after ${load.slowestMs} ms`)
    const { storeFailures, timeouts } = limiter.stats()
    // What is late is this machine's doing.
    if (fault.isHarmless) assert.equal(storeFailures - timeouts, 0, mode)
    checkBudget(limiter, load, performance.now() - beganMs, fault.forgets ?? 0)
  }
}

/** What the store admitted is within the policy, once more for each time that it forgot; what was admitted without it within the share. */
function checkBudget(limiter: SharedLimiter, { takes }: FleetLoad, tookMs: number, forgets: number): void {
  const admitted = takes.filter(({ decision }) => decision.allowed)
  const out = admitted.filter(({ decision }) => decision.source === 'outage').length
  const budget = BURST * (1 + forgets) + (LIMIT * tookMs) / 1000
  assert.ok(admitted.length - out <= budget, `${admitted.length - out} of ${budget}`)
  assert.ok(out <= SHARE * (BURST + (LIMIT * tookMs) / 1000), `${out} without the store`)
  const stats = limiter.stats()
  assert.equal(stats.admittedTokens, admitted.length)
  assert.equal(stats.outageTokens, out)
  assert.ok(stats.accountedTokens <= out)
  assert.ok(stats.chargedTokens >= admitted.length - out)
}

async function repeated(times: number, what: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) {
    await what()
    await pause(15)
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
