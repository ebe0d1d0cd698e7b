import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { createClient } from '@redis/client'
import pg from 'pg'
import { createLimiter } from '../create-limiter.js'
import { levels, type Store, tokenBucket } from '../index.js'
import { postgres } from '../postgres/postgres.js'
import { redis } from '../redis/redis.js'
import { region } from '../regions/region.js'
import { casStore } from '../store/cas.js'
import { memoryStore } from '../store-testing/memory-store.js'

const client = createClient().on('error', () => undefined)
const pool = new pg.Pool()
const values = memoryStore()
const STORES: readonly (() => Store)[] = [
  () => redis(client),
  () => postgres(pool),
  () => casStore(values),
  () => region({ name: 'west', local: casStore(values, { prefix: 'west' }), home: redis(client) }),
]

for (const store of STORES) {
  test(`over ${store().name} two wholes without a name are warned about, and two with names are not`, async () => {
    const warned: string[] = []
    const hear = ({ code }: Error & { readonly code?: string }): void => void warned.push(`${code}`)
    process.on('warning', hear)
    const perUser = (limit: number, name?: string) =>
      createLimiter(levels({ user: tokenBucket({ limit, window: '1m' }) }, name === undefined ? {} : { name }), { store: store() })
    const limiters = [perUser(5, 'requests'), perUser(9_000, 'tokens'), perUser(5)]
    process.emitWarning('of the test', { code: 'END' })
    while (!warned.includes('END')) await once(process, 'warning')
    assert.deepEqual(warned, ['END'])
    limiters.push(perUser(9_000))
    await once(process, 'warning')
    assert.deepEqual(warned, ['END', 'SLUICEGATE_SHARED_NAME'])
    for (const limiter of limiters) limiter.close()
    process.off('warning', hear)
  })
}
