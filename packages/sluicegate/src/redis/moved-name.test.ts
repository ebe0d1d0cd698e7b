import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '@redis/client'
import { Redis } from 'ioredis'
import { FaultProxy, RedisProcess, until } from 'sluicegate-testkit'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import { redis } from './redis.js'
import type { RedisClient } from './runner-for.js'

/** As docs/redis.md has it. */
const CLIENTS: Readonly<Record<string, (url: string) => Promise<{ client: RedisClient; end(): void }>>> = {
  async ioredis(url) {
    const client = new Redis(url, {
      reconnectOnError: ({ message }) => /^(READONLY|LOADING|MASTERDOWN) /.test(message),
      socketTimeout: 2_000,
    })
    client.on('error', () => undefined)
    return { client: client as unknown as RedisClient, end: () => client.disconnect() }
  },
  async 'node-redis'(url) {
    const client = createClient({ url, disableOfflineQueue: true })
    client.on('error', () => undefined)
    await client.connect()
    const look = async (): Promise<void> => {
      const answer = client.set('sluicegate:look', '1', { PX: 60_000 }).catch(({ message }: Error) => message)
      const late = new Promise((resolve) => setTimeout(resolve, 1_000, 'late'))
      if (!client.isReady || !/^(READONLY|LOADING|MASTERDOWN|late)/.test(String(await Promise.race([answer, late])))) return
      client.destroy()
      await client.connect()
    }
    const timer = setInterval(look, 1_000)
    const end = (): void => {
      clearInterval(timer)
      client.destroy()
    }
    return { client: client as unknown as RedisClient, end }
  },
}

freshWarnings()

test('with the settings of docs/redis.md a client leaves a server that became a replica, and a warning says so once', async () => {
  const warnings: string[] = []
  const listen = ({ message, code }: NodeJS.ErrnoException): void => void (code === 'SLUICEGATE_REPLICA' && warnings.push(message))
  process.on('warning', listen)
  for (const [library, open] of Object.entries(CLIENTS)) {
    await using first = await RedisProcess.start()
    await using second = await RedisProcess.start()
    await using name = await FaultProxy.before({ host: '127.0.0.1', port: first.port })
    const { client, end } = await open(name.url)
    const limiter = createLimiter(tokenBucket({ limit: 1_000, window: '1h', name: library }), { store: redis(client), mode: 'exact' })
    await until('the store decides', async () => (await limiter.take('k')).source === 'store')
    await first.ask('REPLICAOF', '127.0.0.1', String(second.port))
    name.leadNext({ host: '127.0.0.1', port: second.port })
    await until('it is out', async () => (await limiter.take('k')).source === 'outage')
    await until(`${library} is at the other one`, async () => (await limiter.take('k')).source === 'store')
    limiter.close()
    end()
  }
  process.off('warning', listen)
  assert.equal(warnings.length, 1, warnings.join('\n'))
  assert.match(warnings[0] as string, /A name that moves/)
})
