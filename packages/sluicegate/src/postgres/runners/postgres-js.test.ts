import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { after, before, test } from 'node:test'
import postgres from 'postgres'
import { PostgresProcess } from 'sluicegate-testkit'
import { postgresJsRunner } from './postgres-js.js'

let server: PostgresProcess
before(async () => {
  server = await PostgresProcess.start()
})
after(() => server.stop())

const clientAt = (url: string) => postgres(url, { max: 1, fetch_types: false, onnotice: () => undefined })

/** Notes that it ran: a sequence counts whatever becomes of the transaction. */
const NOTED = { name: 'noted', text: "SELECT nextval('ran') AS n, $1::text AS given" }

const ran = async (): Promise<number> => Number((await server.ask<{ n: string }>("SELECT nextval('ran') AS n"))[0]?.n) - 1

test('a statement that is given up while its connection opens, or waits behind others, does nothing, and the connection serves what comes next', async () => {
  await server.ask('CREATE SEQUENCE ran')
  // Connections wait here until they are let through.
  let letThrough = (): void => undefined
  const isOpen = new Promise<void>((resolve) => {
    letThrough = resolve
  })
  const gate = createServer(async (socket) => {
    await isOpen
    const there = connect(server.port, server.host)
    socket.on('error', () => there.destroy()).pipe(there)
    there.on('error', () => socket.destroy()).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(gate, 'listening')
  const sql = clientAt(server.urlAt((gate.address() as { port: number }).port))
  const runner = postgresJsRunner(sql)
  const given = new AbortController()
  const dropped = [runner.run(NOTED, ['a'], true, given.signal), runner.run(NOTED, ['b'], false, given.signal)]
  const arrived = once(gate, 'connection')
  const kept = runner.run(NOTED, ['c'], true)
  await arrived
  given.abort()
  letThrough()
  for (const each of dropped) await assert.rejects(each, /given up before the statement was sent/)
  assert.equal((await kept)[0]?.given, 'c')
  assert.equal((await runner.run(NOTED, ['d'], true))[0]?.given, 'd')
  assert.equal(await ran(), 2)
  await sql.end()
  gate.close()
})

test('a statement that a connection has is left alone, and answers', async () => {
  const sql = clientAt(server.url)
  await sql.unsafe('SELECT 1')
  const given = new AbortController()
  const rows = postgresJsRunner(sql).run({ name: 'slow', text: 'SELECT $1::text AS given FROM pg_sleep(0.1)' }, ['a'], true, given.signal)
  for (let i = 0; i < 5; i++) await new Promise(setImmediate)
  given.abort()
  assert.equal((await rows)[0]?.given, 'a')
  await assert.rejects(postgresJsRunner(sql).run(NOTED, ['b'], true, given.signal), /given up before/)
  await sql.end()
})

test('statements of several stores on one client do not mix their answers where the server has lost what was prepared', async () => {
  const sql = clientAt(server.url)
  const runners = [postgresJsRunner(sql), postgresJsRunner(sql)] as const
  const texts = ['SELECT $1::text AS given', 'SELECT $1::int AS number, $2::text AS given', 'SELECT 1 AS one, $1::text AS given']
  const all = (): Promise<unknown[]> =>
    Promise.all(
      texts.map(async (text, i) => {
        const values = text.includes('$2') ? [`${i}`, `${i}`] : [`${i}`]
        return (await runners[i % 2]?.run({ name: `${i}`, text }, values, true))?.[0]?.given
      }),
    )
  for (let round = 0; round < 5; round++) {
    assert.deepEqual(await all(), ['0', '1', '2'])
    await sql.unsafe('DEALLOCATE ALL')
  }
  await sql.end()
})
