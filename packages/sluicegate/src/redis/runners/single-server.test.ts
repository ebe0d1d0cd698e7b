import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { RedisProcess, RedisSentinel } from 'sluicegate-testkit'
import {
  type ClientKind,
  clientsForRun,
  librariesForRun,
  NO_HASTE,
  SERVER_CLIENTS,
  sentinelClients,
} from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../../create-limiter.js'
import { fixedWindow } from '../../policy/single-policy.js'
import { redis } from '../redis.js'
import { runnerFor } from '../runner-for.js'

let server: RedisProcess
let watched: RedisSentinel
before(async () => {
  server = await RedisProcess.start()
  watched = await RedisSentinel.start()
})
after(() => Promise.all([server.stop(), watched.stop()]))

const policy = fixedWindow({ limit: 1000, window: '1d', name: 'day' })

function behaves(
  kind: ClientKind,
  home: () => { readonly roots: readonly { host: string; port: number }[]; readonly server: RedisProcess },
): void {
  const { name, library, keyPrefix = '' } = kind

  test(`${name} brings commands to the server, and integers back as numbers`, async () => {
    const { roots, server } = home()
    await using open = await kind.open(roots)
    const runner = runnerFor(open.client)
    const key = `counter of ${name}`
    assert.equal(runner.client, library)
    assert.equal(runner.isCluster, false)
    assert.equal(runner.serverOf(0), undefined)
    assert.equal(await runner.send(key, ['EVAL', "return redis.call('INCRBY', KEYS[1], ARGV[1])", '1', key, '41']), 41)
    assert.deepEqual(await runner.send(key, ['EVAL', "return {redis.call('INCR', KEYS[1]), 2^52, 'ü'}", '1', key]), [42, 2 ** 52, 'ü'])
    assert.equal(await server.ask('GET', keyPrefix + key), '42')
  })

  test(`${name} says what the server said when it refuses`, async () => {
    await using open = await kind.open(home().roots)
    const runner = runnerFor(open.client)
    await assert.rejects(runner.send('k', ['EVAL', "return redis.error_reply('PLAIN words')", '1', 'k']), /PLAIN:? words/)
    await assert.rejects(runner.send('k', ['EVALSHA', 'f'.repeat(40), '1', 'k']), /NOSCRIPT|NoScript/)
  })

  test(`${name} asks the one server that takes writes`, async () => {
    const { roots, server } = home()
    await using open = await kind.open(roots)
    const replies = await runnerFor(open.client).sendToAll(['INFO'])
    assert.equal(replies.length, 1)
    assert.match(String(replies[0]), new RegExp(`tcp_port:${server.port}\r\n`))
    assert.match(String(replies[0]), /role:master/)
  })

  test(`limiters open no connection of their own and leave that of ${name} open`, async () => {
    const { roots } = home()
    await using open = await kind.open(roots)
    const runner = runnerFor(open.client)
    const connections = async (): Promise<string | undefined> => {
      const [info] = await runner.sendToAll(['INFO'])
      return /total_connections_received:\d+/.exec(String(info))?.[0]
    }
    // The first one on a client has a look at the server, for which a pool may take another connection.
    await createLimiter(policy, { store: redis(open.client, { prefix: name }), ...NO_HASTE }).take('zero')
    await connections()
    const before = await connections()
    for (const user of ['one', 'two', 'three']) {
      const limiter = createLimiter(policy, { store: redis(open.client, { prefix: name }), ...NO_HASTE })
      const decision = await limiter.take(user)
      assert.deepEqual([decision.allowed, decision.remaining, decision.source], [true, 999, 'store'])
      limiter.close()
    }
    assert.equal(await connections(), before)
  })
}

for (const kind of librariesForRun(SERVER_CLIENTS)) behaves(kind, () => ({ roots: [server], server }))
for (const kind of clientsForRun(sentinelClients('sluicegate'))) {
  behaves(kind, () => ({ roots: watched.roots, server: watched.servers[0] as RedisProcess }))
}
