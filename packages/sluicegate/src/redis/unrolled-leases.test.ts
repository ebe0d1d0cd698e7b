import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { exactLimiter } from 'sluicegate-testkit/twins/fleet-replay.js'
import { fixedWindow, gcra, type Policy, slidingWindow, tokenBucket } from '../index.js'
import { leaseUsOf } from '../lease/leasing.js'
import { encodingsOf, type PolicyEncoding } from '../shared/steps/policy-encoding.js'
import type { CommandRunner } from './command-runner.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'
import { SCRIPTS } from './scripts.gen.js'

const SEQUENCES = shortOrLong(1, 6)
const STEPS = 60
const START_US = 1_789_000_000_000_000
const HORIZON_MS = 5

const redis = await ownRedis()
after(() => redis.stop())

/** The unrolled lease of a script, taken out of it. */
const UNROLLED = /local value=[\s\S]*?\nend\n(?=local function ceilDiv)/

/** Leases are decided by what stands after the unrolled ones. */
function wholeOf(runner: CommandRunner): CommandRunner {
  return {
    client: runner.client,
    isCluster: false,
    serverOf: () => undefined,
    sendToAll: (command) => runner.sendToAll(command),
    send: (key, command) => runner.send(key, withoutUnrolled(command)),
  }
}

function withoutUnrolled(command: string[]): string[] {
  const [name, sha1, ...more] = command
  const lease = Object.entries(SCRIPTS).find(([of, script]) => of.startsWith('lease ') && script.sha1 === sha1)
  if (name !== 'EVALSHA' || lease === undefined) return command
  const { source } = lease[1]
  assert.match(source, UNROLLED)
  return ['EVAL', source.replace(UNROLLED, ''), ...more]
}

const MAKERS = [tokenBucket, gcra, fixedWindow, slidingWindow] as const

/** A policy, and the same with another limit, as while it changes process by process. */
function randomForms(random: Random, make: (typeof MAKERS)[number]): readonly PolicyEncoding[] {
  const window = random.pick([250, 1000, 60_000, 86_400_000])
  const limits = [random.pick([20, 47, 100, 1000, 999_983]), 61]
  const policies = limits.map((limit): Policy => make({ limit, window, name: 'policy' }))
  return policies.flatMap((policy) => encodingsOf(policy, () => leaseUsOf(HORIZON_MS)).encodings)
}

for (const make of MAKERS) {
  test(`${make.name}: an unrolled lease answers, writes and keeps as the whole script does, among other verbs and steps of the clock`, async () => {
    for (let seed = 1; seed <= SEQUENCES; seed++) await compared(seed, make)
  })
}

async function compared(seed: number, make: (typeof MAKERS)[number]): Promise<void> {
  const random = new Random(seed)
  const encodings = randomForms(random, make)
  const windowUs = (encodings[0] as PolicyEncoding).policy.windowMs * 1000
  const prefixes = ['short', 'whole'].map((name) => `${name} ${make.name} ${seed}`)
  const pair = prefixes.map((prefix, i) => {
    const time = new GivenTime(redis.runner)
    return { time, store: new RedisScripts(i === 0 ? time : wholeOf(time), new RedisKeys(prefix)) }
  })
  let us = START_US + Math.floor(random.fraction() * windowUs)
  for (let step = 0; step < STEPS; step++) {
    us += random.chance(0.1) ? -random.pick([1, 1000, windowUs]) : random.pick([0, 0, 1, 1000, windowUs / 3, windowUs])
    us = Math.floor(us)
    const act = randomAct(random, random.chance(0.9) ? (encodings[0] as PolicyEncoding) : random.pick(encodings))
    const answers: unknown[] = []
    for (const { time, store } of pair) {
      time.nowUs = us
      answers.push(await act(store))
    }
    const about = `seed ${seed}, step ${step}`
    assert.deepEqual(answers[0], answers[1], about)
    const [kept, keptWhole] = await Promise.all(prefixes.map((prefix) => keptOf(prefix)))
    assert.deepEqual(kept, keptWhole, about)
  }
}

function randomAct(random: Random, encoding: PolicyEncoding): (store: RedisScripts) => Promise<unknown> {
  const { limit } = encoding.policy
  const tokens = random.pick([1, 1, 2, Math.ceil(limit / 2), limit])
  if (random.chance(0.75)) {
    const least = random.pick([1, 1, tokens])
    const want = least + random.pick([0, 5, limit])
    return (store) => store.lease(encoding, 'k', want, least)
  }
  const verb = random.pick(['take', 'refund', 'penalize', 'reserve', 'block', 'reset'] as const)
  const mostUs = verb === 'reserve' ? 10_000_000 : undefined
  return (store) => store.ask(verb, [{ encoding, key: 'k', tokens, ...(mostUs === undefined ? {} : { mostUs }) }])
}

/** The value and its end. */
async function keptOf(prefix: string): Promise<readonly unknown[]> {
  const [name = ''] = (await redis.send('KEYS', `${prefix}:*`)) as readonly string[]
  return Promise.all([redis.send('GET', name), redis.send('PEXPIRETIME', name)])
}

describe('unrolled takes', async () => {
  const SEQUENCES = shortOrLong(1, 6)
  const STEPS = 60
  const START_MS = 1_789_000_000_000

  const redis = await ownRedis()
  after(() => redis.stop())

  /** An ordinary take of one policy has two arguments, before the time that the tests give; with its verb it is not unrolled. */
  const whole: CommandRunner = {
    ...redis.runner,
    send: (key, command, recall) => redis.runner.send(key, command.length === 7 ? command.toSpliced(6, 0, 'take') : command, recall),
  }

  let shortReplies = 0
  const short: CommandRunner = {
    ...redis.runner,
    send: async (key, command, recall) => {
      const reply = await redis.runner.send(key, command, recall)
      if (!Array.isArray(reply) || reply.length === 3) shortReplies++
      return reply
    },
  }

  function randomPolicy(random: Random, make: (typeof MAKERS)[number]): Policy {
    const limit = random.pick([1, 3, 7, 10, 1000, 999_983])
    const window = random.pick([1, 16.667, 1000, 60_000, 86_400_000])
    return make({ limit, window, name: 'policy' })
  }

  const MAKERS = [tokenBucket, gcra, fixedWindow, slidingWindow] as const

  for (const make of MAKERS) {
    test(`${make.name}: an unrolled take answers, writes and keeps as the whole script does, among other verbs and steps of the clock`, async () => {
      let takes = 0
      shortReplies = 0
      for (let seed = 1; seed <= SEQUENCES; seed++) {
        const random = new Random(seed)
        const policy = randomPolicy(random, make)
        const name = `${make.name} ${seed}`
        const pair = [exactLimiter(short, `short ${name}`, policy), exactLimiter(whole, `whole ${name}`, policy)]
        let ms = START_MS + random.fraction() * policy.windowMs
        for (let step = 0; step < STEPS; step++) {
          ms += random.chance(0.1)
            ? -random.pick([0.001, 1, policy.windowMs])
            : random.pick([0, 0, 0.001, 1, policy.windowMs / 3, policy.windowMs])
          const verb = random.chance(0.75) ? 'take' : random.pick(['refund', 'penalize', 'reserve', 'block', 'reset'] as const)
          const tokens =
            verb === 'block' ? random.pick([0, 0, policy.windowMs]) : random.pick([1, 1, 2, policy.limit, policy.limit + 1, 1e300])
          const cost = verb === 'take' || verb === 'reserve' ? Math.min(tokens, 1e9) : tokens
          const [one, other] = await Promise.all(
            pair.map(async ({ limiter, set }) => {
              set(ms)
              const { decision = undefined, ...rest } = { ...(await limiter[verb]('k', cost)) } as { readonly decision?: unknown }
              return decision ?? rest
            }),
          )
          assert.deepEqual(one, other, `seed ${seed}, step ${step}, ${verb}`)
          const [kept, keptWhole] = await Promise.all(['short', 'whole'].map((prefix) => keptAs(`${prefix} ${name}`)))
          assert.deepEqual(kept, keptWhole, `seed ${seed}, step ${step}, ${verb}`)
          if (verb === 'take') takes++
        }
      }
      assert.ok(shortReplies > takes / 4, `${shortReplies} of ${takes}`)
    })
  }

  /** The value and its end. */
  async function keptAs(prefix: string): Promise<readonly unknown[]> {
    const [name = ''] = (await redis.send('KEYS', `${prefix}:*`)) as readonly string[]
    return Promise.all([redis.send('GET', name), redis.send('PEXPIRETIME', name)])
  }

  test('an ordinary take sends its numbers and its amount, and is answered by one number', async () => {
    const sent: (readonly string[])[] = []
    const replies: unknown[] = []
    const watched: CommandRunner = {
      ...redis.runner,
      send: async (key, command, recall) => {
        sent.push([...command])
        const reply = await redis.runner.send(key, command, recall)
        replies.push(reply)
        return reply
      },
    }
    const { limiter, set } = exactLimiter(watched, 'ordinary', tokenBucket({ limit: 10, window: '1s', name: 'policy' }))
    set(START_MS)
    for (const cost of [1, 9, 1]) await limiter.take('k', cost)
    assert.deepEqual(
      sent.slice(-2).map((command) => command.slice(2, 6)),
      [9, 1].map((cost) => ['1', 'ordinary:rate:policy:{k}', '100000 1 1000000 1000000', String(cost * 100_000)]),
    )
    assert.deepEqual(replies.slice(-3), [100_000, 1_000_000, -1_000_001])
  })
})
