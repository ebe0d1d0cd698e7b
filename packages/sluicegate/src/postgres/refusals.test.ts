import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { PostgresProcess, until } from 'sluicegate-testkit'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, slidingWindow } from '../policy/single-policy.js'
import { postgres } from './postgres.js'
import type { PostgresClient } from './sql-runner-for.js'
import { postgresTable } from './table-name.js'

freshWarnings()

let server: PostgresProcess
before(async () => {
  server = await PostgresProcess.start()
  await server.ask(`${postgresTable()}; CREATE ROLE stranger LOGIN; CREATE ROLE untidy LOGIN;
    GRANT SELECT, INSERT, UPDATE ON sluicegate TO untidy; CREATE ROLE crowded LOGIN CONNECTION LIMIT 0`)
  await server.ask('CREATE DATABASE guarded')
  const guarded = new pg.Client({ connectionString: Object.assign(new URL(server.url), { pathname: '/guarded' }).href })
  await guarded.connect()
  await guarded.query(`${postgresTable()}; GRANT ALL ON sluicegate TO stranger; REVOKE EXECUTE ON FUNCTION clock_timestamp() FROM PUBLIC`)
  await guarded.end()
})
after(() => server.stop())

/** Of warnings about a store that refuses or cannot be reached, from now on. */
function warnings(t: TestContext): string[] {
  const said: string[] = []
  const listen = ({ code, message }: NodeJS.ErrnoException): void =>
    void (code?.startsWith('SLUICEGATE_') && said.push(`${code} ${message}`))
  process.on('warning', listen)
  t.after(() => process.off('warning', listen))
  return said
}

/** Takes that the server decides, or that swap, so many that a circuit opens. */
async function takes(client: PostgresClient, table = 'sluicegate'): Promise<void> {
  const numbers = { limit: 10, window: '1d' } as const
  for (const policy of [fixedWindow({ ...numbers, name: 'decided' }), slidingWindow({ ...numbers, name: 'swapped' })]) {
    using limiter = createLimiter(policy, { store: postgres(client, { table }), mode: 'exact', outage: 'closed', timeout: 10_000 })
    for (let i = 0; i < 4; i++) assert.equal((await limiter.take('a')).source, 'outage')
  }
  await setImmediate()
}

const AT = 'PostgreSQL at 127.0.0.1:\\d+'
const REAL: readonly (readonly [name: string, change: (url: URL) => void, table: string | undefined, said: string])[] = [
  [
    'a user without privileges',
    (url) => Object.assign(url, { username: 'stranger' }),
    undefined,
    'permission denied for table sluicegate: GRANT',
  ],
  [
    'a function that the user may not call',
    (url) => Object.assign(url, { username: 'stranger', pathname: '/guarded' }),
    undefined,
    'permission denied for function clock_timestamp: GRANT .*what else the server names',
  ],
  ['no such database', (url) => Object.assign(url, { pathname: '/none' }), undefined, '"none" does not exist: give the name of a database'],
  ['no such user', (url) => Object.assign(url, { username: 'nobody' }), undefined, '"nobody" does not exist: give a user and password'],
  ['no connection left', (url) => Object.assign(url, { username: 'crowded' }), undefined, 'too many connections.*: raise max_connections'],
  ['no table', () => undefined, 'none', 'has no such table: run this once: CREATE UNLOGGED TABLE'],
  [
    'read-only transactions',
    (url) => url.searchParams.set('options', '-c default_transaction_read_only=on'),
    undefined,
    `${AT} begins transactions as read-only, .*: set default_transaction_read_only to off`,
  ],
]

for (const [name, change, table, said] of REAL) {
  test(`a server that refuses every call causes one warning, which says what to do: ${name}`, async (t) => {
    const all = warnings(t)
    const url = new URL(server.url)
    change(url)
    const pool = new pg.Pool({ connectionString: url.href, max: 2 })
    pool.on('error', () => undefined)
    await takes(pool, table)
    await pool.end()
    assert.equal(all.length, 1, all.join('\n'))
    assert.match(all[0] as string, new RegExp(`^SLUICEGATE_STORE_REFUSES .*${said}.*; until then the option outage decides$`, 's'))
  })
}

test('a user who may not delete decides, and causes a warning that expired rows stay', async (t) => {
  const all = warnings(t)
  const pool = new pg.Pool({ connectionString: Object.assign(new URL(server.url), { username: 'untidy' }).href, max: 2 })
  using limiter = createLimiter(slidingWindow({ limit: 1000, window: '1d' }), { store: postgres(pool), mode: 'exact', timeout: 10_000 })
  for (let i = 0; i < 65; i++) assert.equal((await limiter.take('a')).source, 'store')
  await until('the warning', () => all.length > 0)
  await pool.end()
  const said =
    'does not remove expired rows, permission denied for table sluicegate: GRANT .*DELETE .*; until then the table sluicegate grows$'
  assert.match(all.join('\n'), new RegExp(`^SLUICEGATE_STORE_REFUSES PostgreSQL ${said}`))
})

const refusing = (code: string): PostgresClient =>
  ({
    connect: () => Promise.resolve(),
    query: () => Promise.reject(Object.assign(new Error('its words'), { code, severity: 'ERROR' })),
  }) as PostgresClient

for (const [code, mend] of Object.entries({ 53100: 'make room', 53200: 'work_mem', '57P03': 'see its log' })) {
  test(`so does ${code}, again after a minute`, async (t) => {
    const all = warnings(t)
    await takes(refusing(code))
    assert.match(all.join('\n'), new RegExp(`^SLUICEGATE_STORE_REFUSES PostgreSQL refuses calls, its words: .*${mend}.*$`))
    const { now } = performance
    t.mock.method(performance, 'now', () => now.call(performance) + 60_000)
    await takes(refusing(code))
    assert.equal(all.length, 2)
  })
}

test('a client whose connections are gone causes one warning when the circuit opens', async (t) => {
  const all = warnings(t)
  const pool = new pg.Pool({ connectionString: server.url })
  await pool.end()
  await takes(pool)
  assert.match(all.join('\n'), /^SLUICEGATE_SILENT_STORE .*after calling end on the pool: connect the client, .*outage decides$/)
})
