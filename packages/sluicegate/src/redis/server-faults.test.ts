import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyNth, FleetLoad, type RedisProcess, shortOrLong, until } from 'sluicegate-testkit'
import { serverOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { type ClientKind, clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import { KeyFault } from '../shared/calls/call-guard.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { redis as redisStore } from './redis.js'
import { refusalOf } from './refusal-warnings.js'
import { faultOf } from './run-script.js'

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
    const limiter = createLimiter(POLICY, { store: redisStore(open.client, { prefix }), mode, share: SHARE, timeout: TIMEOUT_MS })
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

/** As node-redis and ioredis bring it; and as valkey-glide does, where it has other words. */
const OF_A_KEY = [
  'WRONGTYPE Operation against a key holding the wrong kind of value script: 62, on @user_script:1.',
  'WRONGTYPE: Operation against a key holding the wrong kind of value',
  'ERR user_script:1: attempt to compare nil with number script: dc, on @user_script:1.',
  'An error was signalled by the server: - ResponseError: user_script:1: attempt to perform arithmetic on a nil value',
  'ERR Error running script (call to f_62): @user_script:12: WRONGTYPE Operation against a key holding the wrong kind of value',
  'NOPERM this user has no permissions to access one of the keys used as arguments',
  'NOPERM No permissions to access a key',
  "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: d7",
  'TRYAGAIN Multiple keys request during rehashing of slot',
  'CROSSSLOT Keys in request do not hash to the same slot',
]

const OF_A_SERVER = [
  'LOADING Redis is loading the dataset in memory',
  'An error was signalled by the server: - BusyLoadingError: Redis is loading the dataset in memory',
  "READONLY You can't write against a read only replica. script: 94, on @user_script:1.",
  "An error was signalled by the server: - ReadOnly: You can't write against a read only replica.",
  "ERR Error running script (call to f_94): @user_script:37: @user_script: 37: -READONLY You can't write against a read only replica.",
  "ERR Error running script (call to f_94): @user_script:37: @user_script: 37: -OOM command not allowed when used memory > 'maxmemory'.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "OOM: command not allowed when used memory > 'maxmemory'. script: 94, on @user_script:1.",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  'CLUSTERDOWN The cluster is down',
  'An error was signalled by the server: - ClusterDown: The cluster is down',
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
  'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.',
  'NOREPLICAS Not enough good replicas to write.',
  'NOAUTH Authentication required.',
  'WRONGPASS invalid username-password pair or user is disabled.',
  "NOPERM this user has no permissions to run the 'evalsha' command",
  "NOPERM User limiter has no permissions to run the 'evalsha' command",
  "ERR The user executing the script can't run this command or subcommand script: 62, on @user_script:1.",
  "ERR unknown command 'EVALSHA', with args beginning with: 'x'",
  'ERR max number of clients reached',
  'MOVED 3999 127.0.0.1:6381',
]

/** What clients say by themselves. */
const OF_A_CLIENT = [
  'ECONNRESET',
  'connect ECONNREFUSED 127.0.0.1:6379',
  'Socket closed unexpectedly',
  'Connection is closed.',
  'Reached the max retries per request limit (which is 20). Refer to "maxRetriesPerRequest" option for details.',
  'The client is closed',
  'timed out',
  'Broken pipe - FatalSendError',
  'the connection was lost before the reply came',
  '',
]

for (const message of OF_A_KEY) {
  test(`of a key: ${message}`, () => {
    const error = new Error(message)
    const fault = faultOf(error)
    assert.ok(fault instanceof KeyFault)
    assert.deepEqual([fault.message, fault.cause], [message, error])
  })
}

for (const message of [...OF_A_SERVER, ...OF_A_CLIENT]) {
  test(`of a server, or the way to it: ${message}`, () => {
    const error = new Error(message)
    assert.equal(faultOf(error), error)
  })
}

const MENDED: readonly (readonly [answer: string, said: RegExp])[] = [
  ["OOM command not allowed when used memory > 'maxmemory'.", /its memory is full: raise maxmemory/],
  ["ERR Error running script (call to f_94): @user_script:37: -OOM command not allowed when used memory > 'maxmemory'.", /full/],
  ['MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.', /cannot save to its disk/],
  ['NOREPLICAS Not enough good replicas to write.', /min-replicas-to-write/],
  ['WRONGPASS invalid username-password pair or user is disabled.', /another user or password/],
  ["NOPERM this user has no permissions to run the 'evalsha' command", /may not run a command .* "Access control"/],
  ["ERR The user executing the script can't run this command or subcommand script: 62, on @user_script:1.", /may not run a command/],
  ['NOPERM No permissions to access a key', /may not use these keys: allow the keys/],
  ["ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: d7", /these keys/],
  ['MOVED 3999 127.0.0.1:6381', /part of a cluster: make a client of the cluster/],
  ["READONLY You can't write against a read only replica. script: 94, on @user_script:1.", /is a replica.*"A name that moves"/],
  ["An error was signalled by the server: - ReadOnly: You can't write against a read only replica.", /is a replica/],
]

for (const [answer, said] of MENDED) {
  test(`what to do is known: ${answer}`, () => {
    const { what, mend } = refusalOf({ isCluster: false }, answer) ?? {}
    assert.match(`${what}: ${mend}`, said)
  })
}

test('what passes by itself, and a cluster that sends its client elsewhere, needs nothing', () => {
  for (const answer of [
    'LOADING Redis is loading the dataset in memory',
    'CLUSTERDOWN The cluster is down',
    'ECONNRESET',
    'TRYAGAIN Multiple keys',
  ])
    assert.equal(refusalOf({ isCluster: false }, answer), undefined, answer)
  assert.equal(refusalOf({ isCluster: true }, 'MOVED 3999 127.0.0.1:6381'), undefined)
})

test('what is no error stays as it is', () => {
  for (const thrown of [undefined, null, 'WRONGTYPE text', { message: 'WRONGTYPE text' }]) assert.equal(faultOf(thrown), thrown)
})
