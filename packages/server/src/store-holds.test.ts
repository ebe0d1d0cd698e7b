import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { manualClock } from 'sluicegate'
import { postgresTable } from 'sluicegate/postgres'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { longTest, PostgresProcess, Random, RedisCluster, RedisProcess, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { type RunningService, runNode, runService } from 'sluicegate-testkit/service/running-service.js'
import { type ServiceProcess, serveProcess } from 'sluicegate-testkit/service/sluicegate-process.js'
import { Limiter } from './protocols/grpc/messages/sluicegate/v1/limiter.gen.js'
import { STATUS } from './protocols/grpc/status.js'

const redis = await RedisProcess.start()
const postgres = await PostgresProcess.start()
after(async () => {
  await redis.stop()
  await postgres.stop()
})
await postgres.ask(postgresTable())

const STORAGES = [
  ['Redis', `redis: { url: "${redis.url}", timeout: 10s }`],
  ['PostgreSQL', `postgres: { url: "${postgres.url}", timeout: 10s }`],
] as const
const LIMIT = 1_000

const yamlOf = (storage: string): string => `
listen: { port: 0 }
policies:
  money: { algorithm: fixed-window, limit: ${LIMIT}, window: year }
  other: { algorithm: fixed-window, limit: ${LIMIT}, window: year }
  classes: { algorithm: fixed-window, limit: 10, window: year, priorities: { critical: 0%, sheddable: 40% }, default-priority: sheddable, max-priority: critical }
  tree:
    all-of:
      - { name: org, algorithm: fixed-window, limit: 100, window: year }
      - { name: user, algorithm: fixed-window, limit: 50, window: year }
  requests: { levels: { org: { algorithm: fixed-window, limit: 500, window: year }, user: { algorithm: fixed-window, limit: 100, window: year } } }
  tokens: { levels: { org: { algorithm: fixed-window, limit: 500, window: year }, user: { algorithm: fixed-window, limit: 100, window: year } } }
  tiered: { algorithm: fixed-window, limit: 10, window: year, tiers: { large: { limit: 90 } }, keys: { ada: large } }
storage: { ${storage} }
`

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

async function post(at: { readonly url: string }, path: string, value: object): Promise<Answer> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) }
  const response = await fetch(`${at.url}/v1/${path}`, init)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

for (const [name, storage] of STORAGES) {
  test(`${name}: any process goes on with work that another has opened, also once that is killed, and a call said twice counts once`, async (t) => {
    const nodes = await Promise.all([1, 2, 3].map(() => serveProcess(t, yamlOf(storage))))
    const random = new Random(47)
    const alive: ServiceProcess[] = [...nodes]
    /** At any node; each second reply is lost, and the call is made again at another. */
    const said = async (path: string, value: object): Promise<Answer> => {
      if (random.chance(0.5)) await post(random.pick(alive), path, value)
      return post(random.pick(alive), path, value)
    }
    const opened = await Promise.all(
      Array.from({ length: 30 }, (_, i) => post(nodes[i % 3] as ServiceProcess, 'open', { policy: 'money', key: 'ada', expect: 50 })),
    )
    const works = opened.filter(({ status }) => status === 200).map(({ body }) => ({ hold: body.hold as string, used: 0 }))
    assert.equal(works.length, LIMIT / 50, 'as many begin as there is room for')
    assert.equal(new Set(works.map(({ hold }) => hold.slice(0, 32))).size, works.length)
    for (let call = 1; call <= 4; call++) {
      await Promise.all(
        works.map(async (work) => {
          const { status, body } = await said('add', { hold: work.hold, cost: 7, call })
          work.used += 7
          assert.deepEqual([status, body.used, body.held], [200, work.used, 50 - work.used])
        }),
      )
      if (call === 2) await (alive.shift() as ServiceProcess).end('SIGKILL')
    }
    await Promise.all(works.map(({ hold }) => said('close', { hold, cost: 40, call: 5 })))
    const peeked = await post(alive[0] as ServiceProcess, 'peek', { policy: 'money', key: 'ada' })
    assert.equal(peeked.body.remaining, LIMIT - works.length * 40)
  })

  test(`${name}: levels hold all or none, tiers open under their own limit, and what is refused says why`, async (t) => {
    const service = await runService(t, yamlOf(storage))
    const open = (value: object) => post(service, 'open', value)
    const tree = await open({ policy: 'tree', key: ['acme', 'ada'], expect: 40 })
    const refused = await open({ policy: 'tree', key: ['acme', 'ada'], expect: 11 })
    assert.deepEqual([tree.status, refused.status, refused.body.policy, 'hold' in refused.body], [200, 429, 'user', false])
    assert.equal((await post(service, 'close', { hold: tree.body.hold, cost: 15 })).body.used, 15)
    assert.equal((await open({ policy: 'tree', key: ['acme', 'bob'], expect: 50 })).status, 200)
    const large = await open({ policy: 'tiered', key: 'ada', expect: 60, most: 70 })
    assert.deepEqual([large.status, large.body.affordable], [200, 70])
    const beyond = await post(service, 'add', { hold: large.body.hold, cost: 71 })
    assert.deepEqual([beyond.status, beyond.body.impossible], [422, true])
    const id = crypto.randomUUID()
    const classed = (expect: number, more: object = {}) => open({ policy: 'classes', key: 'ada', expect, ...more })
    assert.deepEqual([(await classed(7)).status, (await classed(6, { id })).status, (await classed(1)).status], [422, 200, 429])
    assert.equal((await classed(6, { id })).body.held, 6, 'said again it receives what stands')
    assert.equal((await classed(4, { priority: 'critical' })).status, 200)
    const startMs = performance.now()
    const cut = await open({ policy: 'money', key: 'leo', expect: 10, ttlMs: 3_600_000 })
    await open({ policy: 'money', key: 'leo', expect: LIMIT - 10 })
    assert.equal((await post(service, 'add', { hold: cut.body.hold, cost: 11 })).status, 429)
    assert.ok(performance.now() - startMs < 30_000, 'a piece that does not wait is cut at once')
  })

  test(`${name}: levels of one name in two policies are two budgets, and are shown by their own names`, async (t) => {
    // A lease that comes late is spent.
    const service = await runService(t, yamlOf(storage.replace('timeout', 'mode: exact, timeout')))
    const key = ['acme', 'zoe']
    const said = (path: string, policy: string, more: object = {}) => post(service, path, { policy, key, ...more })
    const take = async (policy: string) => (await said('take', policy, { cost: 60 })).status
    assert.deepEqual([await take('requests'), await take('tokens')], [200, 200])
    const denied = await said('take', 'requests', { cost: 60 })
    assert.deepEqual([denied.status, denied.body.policy], [429, 'user'])
    const id = crypto.randomUUID()
    const works = await Promise.all(['requests', 'tokens'].map((policy) => said('open', policy, { expect: 30, id })))
    assert.deepEqual(
      works.map(({ status, body }) => [status, body.held]),
      [
        [200, 30],
        [200, 30],
      ],
    )
    await Promise.all(works.map(({ body }, i) => post(service, 'close', { hold: body.hold, cost: 10 * (i + 1) })))
    const left = await Promise.all(['requests', 'tokens'].map((policy) => said('peek', policy)))
    assert.deepEqual(
      left.map(({ body }) => body.remaining),
      [30, 20],
    )
  })

  test(`${name}: a piece waits for room before what opens later at its node, wherever that comes from, and no longer than a ttl`, async (t) => {
    const [here, there] = await Promise.all([1, 2].map(() => runService(t, yamlOf(storage))))
    if (here === undefined || there === undefined) return assert.fail()
    const key = 'cleo'
    const open = (at: RunningService, more: object) => post(at, 'open', { policy: 'money', key, ...more })
    const large = await open(there, { expect: 900 })
    const work = await open(here, { expect: 50, over: 'wait', ttlMs: 60_000 })
    const hold = work.body.hold
    const add = (at: RunningService) => post(at, 'add', { hold, cost: 400, call: 1 })
    const first = add(here)
    await until('what it holds is free meanwhile', async () => (await post(there, 'peek', { policy: 'money', key })).body.remaining === 100)
    assert.deepEqual([(await open(here, { expect: 1 })).status, (await open(there, { expect: 1 })).status], [429, 200])
    const shorter = await open(there, { expect: 1, over: 'wait', ttlMs: 400 })
    const refused = await post(there, 'add', { hold: shorter.body.hold, cost: 200 })
    assert.deepEqual([refused.status, refused.body.policy], [429, 'money'])
    assert.equal((await post(there, 'add', { hold: shorter.body.hold, cost: LIMIT + 1 })).status, 422)
    const again = add(there)
    await post(there, 'close', { hold: large.body.hold, cost: 300 })
    for (const answer of [await first, await again])
      assert.deepEqual([answer.status, answer.body.used, answer.body.over], [200, 400, 0], 'said twice it counts once')
    assert.equal((await open(here, { expect: 1 })).status, 200)
    assert.equal((await post(here, 'close', { hold, call: 2 })).body.used, 400)
    const counts = [here, there].map(({ engine }) => engine.policy('money')?.holds)
    assert.deepEqual(
      counts.map((each) => [each?.spent, each?.cut]),
      [counts[0]?.spent === 400 ? [400, 0] : [0, 0], counts[0]?.spent === 400 ? [300, 2] : [700, 2]],
    )
  })

  test(`${name}: behind a piece that waits an open hears when that is over, one said again receives what stands, and a removed policy ends the wait`, async (t) => {
    const service = await runService(t, yamlOf(storage))
    const key = 'gil'
    const open = (more: object) => post(service, 'open', { policy: 'money', key, ...more })
    const large = await open({ expect: 900, ttlMs: 600_000 })
    const asked = { expect: 10, id: crypto.randomUUID() }
    const first = await open(asked)
    const work = await open({ expect: 50, over: 'wait', ttlMs: 50_000 })
    const add = () => post(service, 'add', { hold: work.body.hold, cost: 400 })
    const isFree = async () => (await post(service, 'peek', { policy: 'money', key })).body.remaining === 90
    const passes = add()
    await until('what it holds is free meanwhile', isFree)
    const again = await open(asked)
    assert.deepEqual([again.status, again.body.hold, again.body.held], [200, first.body.hold, 10])
    const { status, body } = await open({ expect: 1 })
    assert.deepEqual([status, body.policy], [429, 'money'])
    assert.ok(
      (body.retryAfterMs as number) > 20_000 && (body.retryAfterMs as number) <= 50_000,
      `${body.retryAfterMs} ms, as the piece gives up then`,
    )
    assert.equal((await open({ expect: LIMIT + 1 })).status, 422)
    await post(service, 'close', { hold: large.body.hold, cost: 500 })
    assert.equal((await passes).body.used, 400)
    const given = add()
    await until('another waits', isFree)
    service.engine.prepare(parseConfig(yamlOf(storage)).policies.filter(({ policy }) => policy.name !== 'money'))()
    assert.deepEqual([(await given).status, (await given).body.code], [404, 'HOLD_UNKNOWN'])
    assert.equal((await post(service, 'close', { hold: work.body.hold })).body.code, 'HOLD_UNKNOWN')
  })

  test(`${name}: a piece that gives up lets the next one of its key try`, async (t) => {
    const service = await runService(t, yamlOf(storage))
    const key = 'ned'
    const open = async (more: object) => (await post(service, 'open', { policy: 'money', key, ...more })).body.hold
    const large = await open({ expect: 900, ttlMs: 600_000 })
    const [first, second] = [await open({ expect: 1, over: 'wait', ttlMs: 400 }), await open({ expect: 1, over: 'wait', ttlMs: 60_000 })]
    const left = async () => (await post(service, 'peek', { policy: 'money', key })).body.remaining
    const givesUp = post(service, 'add', { hold: first, cost: 950 })
    await until('the first waits', async () => (await left()) === 99)
    const passes = post(service, 'add', { hold: second, cost: 150 })
    await until('the second waits', async () => (await left()) === 100)
    await post(service, 'close', { hold: large, cost: 800 })
    assert.deepEqual([(await givesUp).status, (await passes).body.used], [429, 150])
  })

  test(`${name}: metrics have the work that a process opened, also when another goes on with it and closes it`, async (t) => {
    const clock = manualClock()
    const [here, there] = [await runService(t, yamlOf(storage), { clock }), await runService(t, yamlOf(storage))]
    const open = () => post(here, 'open', { policy: 'money', key: 'kim', expect: 50, ttlMs: 60_000 })
    const metrics = async (at: RunningService) => {
      const series = readExposition(await (await fetch(`${at.url}/metrics`)).text())
      return ['sluicegate_holds', 'sluicegate_held_tokens'].map((metric) => seriesValue(series, metric, { policy: 'money' }))
    }
    const looked = async (expected: readonly number[]): Promise<void> => {
      clock.advance(60_000)
      here.engine.sweep()
      await until(`the store has said ${expected}`, async () => isDeepStrictEqual(await metrics(here), expected))
    }
    const { hold } = (await open()).body
    assert.deepEqual(
      [await metrics(here), await metrics(there)],
      [
        [1, 50],
        [0, 0],
      ],
    )
    await post(there, 'add', { hold, cost: 20, call: 1 })
    await looked([1, 30])
    await post(here, 'add', { hold, cost: 10, call: 2 })
    assert.deepEqual(await metrics(here), [1, 20])
    const { hold: other } = (await open()).body
    assert.deepEqual(await metrics(here), [2, 70])
    await post(there, 'close', { hold, call: 3 })
    await looked([1, 50])
    await post(here, 'close', { hold: other })
    assert.deepEqual(
      [await metrics(here), await metrics(there)],
      [
        [0, 0],
        [0, 0],
      ],
    )
  })

  test(`${name}: an open that is said again with the id of its caller, at any node and over any protocol, receives the same hold`, async (t) => {
    const nodes = await Promise.all([1, 2].map(() => runNode(t, parseConfig(yamlOf(storage)))))
    const [here, there] = nodes
    if (here === undefined || there === undefined) return assert.fail()
    const id = crypto.randomUUID()
    const asked = { policy: 'money', key: 'fay', expect: 60, id }
    const first = await post(here.service, 'open', asked)
    const expect = { cost: { case: 'tokens', value: 60n } } as const
    const { grpc, resp } = there
    const second = await grpc.call(Limiter.method.open, { policy: 'money', keys: ['fay'], expect, id })
    const words = ['SG.OPEN', 'money', 'fay', 'EXPECT', '60', 'ID', id]
    const third = (await resp.sendCommand(words)) as unknown as unknown[]
    assert.deepEqual([first.body.hold, second.holdId, third[7]], Array(3).fill(first.body.hold))
    assert.equal((await post(here.service, 'peek', asked)).body.code, 'PARAMETER_UNKNOWN')
    assert.equal((await post(here.service, 'peek', { policy: 'money', key: 'fay' })).body.remaining, LIMIT - 60)
    assert.equal((await grpc.call(Limiter.method.add, { holdId: second.holdId, cost: expect, call: 1n })).work?.used, 60n)
    assert.equal((await post(here.service, 'open', asked)).body.code, 'CALL_PASSED')
    await assert.rejects(grpc.call(Limiter.method.open, { policy: 'money', keys: ['fay'], expect, id }), {
      code: STATUS.failedPrecondition,
    })
    await resp.sendCommand(['SG.CLOSE', String(third[7])])
    await assert.rejects(resp.sendCommand(words), /^Error: HOLDCLOSED/)
    for (const wrong of ['', 'short', 'x'.repeat(201)])
      assert.equal((await post(here.service, 'open', { ...asked, id: wrong })).body.code, 'PARAMETER_INVALID')
  })

  test(`${name}: what finishes makes debt, of which metrics tell once`, async (t) => {
    const service = await runService(t, yamlOf(storage))
    const { body } = await post(service, 'open', { policy: 'money', key: 'dan', expect: 10, over: 'finish' })
    const { hold } = body
    for (let i = 0; i < 2; i++) assert.equal((await post(service, 'add', { hold, cost: LIMIT + 5, call: 1 })).body.over, 5)
    for (let i = 0; i < 2; i++) assert.equal((await post(service, 'close', { hold, cost: LIMIT + 25, call: 2 })).body.over, 25)
    assert.equal((await post(service, 'take', { policy: 'money', key: 'dan' })).status, 429)
    const series = readExposition(await (await fetch(`${service.url}/metrics`)).text())
    const metric = (what: string): number => seriesValue(series, `sluicegate_hold_${what}_tokens_total`, { policy: 'money' })
    assert.deepEqual([metric('spent'), metric('over')], [LIMIT + 25, 25])
  })

  test(`${name}: an id that was made up, or of another key, is unknown; debt is bounded; a closed hold says so`, async (t) => {
    const service = await runService(t, yamlOf(storage))
    const { body } = await post(service, 'open', { policy: 'money', key: 'bob', expect: 10, over: 'finish' })
    const hold = body.hold as string
    const [number = ''] = hold.split('.')
    const placed = (...place: unknown[]) => `${number}.${Buffer.from(JSON.stringify(place)).toString('base64url')}`
    for (const other of [
      placed('money', 'bob', 11 * LIMIT + 1, 0),
      placed('other', 'bob', 11 * LIMIT, 0),
      placed('money', 'eve', 11 * LIMIT, 0),
      placed('money', 'eve'),
      placed('none', 'bob'),
      placed('money', ['bob']),
      placed('money', 'bob'),
      placed('money', 'bob', 'much', 0),
      placed('money', 'bob', 5, '9'),
      placed(),
      `${number}.x`,
      number.repeat(2),
    ]) {
      const { status } = await post(service, 'add', { hold: other, cost: 1, call: 1 })
      assert.equal(status, 404, other)
    }
    const { body: tree } = await post(service, 'open', { policy: 'tree', key: ['bob', 'bea'], expect: 1 })
    const [treeNumber] = (tree.hold as string).split('.')
    const other = Buffer.from(JSON.stringify(['tree', ['bob', 'eve'], null, 0])).toString('base64url')
    assert.equal(
      (await post(service, 'add', { hold: `${treeNumber}.${other}`, cost: 1, call: 1 })).status,
      404,
      'of another key of a level',
    )
    assert.equal((await post(service, 'add', { hold: tree.hold, cost: 1, call: 1 })).status, 200)
    assert.equal((await post(service, 'add', { hold: hold.replace(number, '0'.repeat(32)), cost: 1, call: 1 })).status, 404)
    for (const cost of [-1, 0.5, 2 ** 53]) assert.equal((await post(service, 'add', { hold, cost, call: 1 })).status, 400)
    assert.equal((await post(service, 'add', { hold, cost: 11 * LIMIT + 1, call: 1 })).status, 422, 'debt is bounded')
    assert.equal((await post(service, 'add', { hold, cost: 5, call: 2 })).status, 200)
    assert.equal((await post(service, 'add', { hold, cost: 5, call: 1 })).body.code, 'CALL_PASSED')
    const closed = await post(service, 'close', { hold, cost: Number.MAX_SAFE_INTEGER, call: 3 })
    // Ten times the burst beside the burst itself.
    assert.deepEqual([closed.status, (closed.body.used as number) <= 11 * LIMIT], [200, true])
    assert.equal((await post(service, 'add', { hold, cost: 1, call: 4 })).body.code, 'HOLD_CLOSED')
  })
}

longTest('in a cluster work opens where the keys of all levels have one hash slot, and what has not is refused clearly', async (t) => {
  const cluster = await RedisCluster.start({ replicas: 0 })
  t.after(() => cluster.stop())
  const urls = cluster.nodes.map(({ url }) => `"${url}"`).join(', ')
  const service = await runService(t, yamlOf(`redis: { nodes: [${urls}], timeout: 10s, mode: exact }`))
  const open = (key: unknown) => post(service, 'open', { policy: 'tree', key, expect: 1 })
  assert.equal((await open('ada')).status, 200)
  const { status, body } = await open(['acme', 'ada'])
  assert.deepEqual(
    [status, /several hash slots .* one key, or reserve and settle with mode: leased/.test(String(body.detail))],
    [400, true],
    JSON.stringify(body),
  )
  const leased = await runService(t, yamlOf(`redis: { nodes: [${urls}], timeout: 10s }`))
  assert.equal((await post(leased, 'open', { policy: 'tree', key: ['acme', 'ada'], expect: 1 })).status, 400)
  assert.equal((await post(leased, 'reserve', { policy: 'tree', key: ['acme', 'ada'], cost: 1 })).status, 200)
})
