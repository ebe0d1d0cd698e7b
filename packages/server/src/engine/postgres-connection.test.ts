import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { until } from 'sluicegate-testkit'
import { GreetingPostgres } from 'sluicegate-testkit/servers/greeting-postgres.js'
import { PostgresConnection } from './postgres-connection.js'
import type { StoreNews } from './store-watch.js'

function connectionTo({ url }: GreetingPostgres, said: StoreNews[] = []): PostgresConnection {
  const place = { kind: 'postgres', url, table: 'sluicegate', connections: 4 } as const
  return new PostgresConnection(place, { option: 'storage.postgres', prefix: 'sluicegate', closeMs: 10 }, (news) => said.push(news))
}

test('a server that shuts down as it greets is an outage, and ends no process', async (t) => {
  using server = await GreetingPostgres.start({ shutsDown: true })
  const said: StoreNews[] = []
  const connection = connectionTo(server, said)
  t.after(() => connection.close())
  await connection.connect(200)
  assert.equal(connection.isReachable, false)
  const [news] = said
  assert.ok(news?.isReachable === false && news.kind === 'lost')
})

test('connections that are opened ahead of need may be closed as they are greeted', async (t) => {
  using server = await GreetingPostgres.start({ shutsDown: false })
  const connection = connectionTo(server)
  t.after(() => connection.close())
  // It is asked, and says nothing.
  const looking = connection.look().catch(() => undefined)
  await until('a client is greeted', () => server.greeted === 1 && connection.connections.busy === 1)
  server.shutsDown = true
  assert.equal(connection.renew(), true)
  await until('four more are', () => server.greeted === 5)
  await until('all of them are gone', () => connection.connections.busy + connection.connections.idle === 0)
  await looking
  await nextTurn()
})
