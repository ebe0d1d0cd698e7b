import assert from 'node:assert/strict'
import { createServer, get, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { type TestContext, test } from 'node:test'
import { clientAddresses, exchange, exchangeWalk, LightSocket } from './exchange.js'
import { type FirstResponse, firstResponse, load } from './load.js'
import { type MiddlewareResults, middlewareReport } from './middleware-report.js'
import {
  addedSettings,
  allocationSettings,
  FRAMEWORKS,
  isSameSetting,
  type MiddlewareSetting,
  SIDES,
  type Side,
  type SitePlan,
  settingName,
  socketSettings,
} from './middleware-settings.js'
import { checkedRun, type SettingRuns, type SideRun, sideTimes } from './side-runs.js'
import { SITES } from './site.js'

test('a machine that is twice as slow for most of the time changes what is added only in proportion', () => {
  const steady = sideTimes({ unlimited: [10, 10, 10, 10, 10], sluicegate: [12, 12, 12, 12, 12], rival: [16, 16, 16, 16, 16] })
  const slowed = sideTimes({ unlimited: [10, 20, 20, 20, 10], sluicegate: [12, 24, 24, 24, 12], rival: [16, 32, 32, 32, 16] })
  assert.deepEqual(steady, { unlimited: 10, sluicegate: 12, rival: 16 })
  assert.deepEqual(slowed, { unlimited: 20, sluicegate: 24, rival: 32 })
})

test('a block that something disturbed does not count', () => {
  const times = sideTimes({ unlimited: [10, 10, 90, 10, 10], sluicegate: [12, 12, 12, 80, 12], rival: [16, 16, 16, 16, 16] })
  assert.deepEqual(times, { unlimited: 10, sluicegate: 12, rival: 16 })
})

const CLIENTS: readonly MiddlewareSetting['clients'][] = ['one', 'many', 'mapped', 'ipv6']

test('no two rows of a table have one name, and no setting is measured twice', () => {
  for (const settings of [addedSettings(), allocationSettings(), socketSettings()]) {
    const names = settings.map((setting) => `${setting.framework} ${settingName(setting)}`)
    assert.equal(new Set(names).size, settings.length)
    for (const setting of settings) assert.equal(settings.filter((other) => isSameSetting(other, setting)).length, 1)
  }
})

test('every framework is measured in every part', () => {
  for (const settings of [addedSettings(), allocationSettings(), socketSettings()]) {
    assert.deepEqual(new Set(settings.map(({ framework }) => framework)), new Set(FRAMEWORKS))
  }
})

test('every client has an address of its own', () => {
  for (const clients of CLIENTS) {
    const addresses = clientAddresses(clients)
    assert.equal(new Set(addresses).size, addresses.length)
    for (const address of addresses) assert.notEqual(isIP(address), 0, address)
  }
  assert.equal(clientAddresses('many').length, 10_000)
})

const SETTING: MiddlewareSetting = { framework: 'express', options: 'same', outcome: 'allow', clients: 'one' }
const DENIED: MiddlewareSetting = { ...SETTING, outcome: 'deny' }
const ONE = { requests: 1, allowed: 1 }

/** What each side took, for each run. */
type Triple = readonly [unlimited: number, sluicegate: number, rival: number]

function timed(setting: MiddlewareSetting, runs: readonly Triple[]): SettingRuns<{ ns: number } & typeof ONE> {
  const found = (ns: number) => ({ ns, ...ONE })
  return {
    setting,
    runs: runs.map(([unlimited, ours, theirs]) => ({ unlimited: found(unlimited), sluicegate: found(ours), rival: found(theirs) })),
  }
}

function results(found: Partial<MiddlewareResults>): MiddlewareResults {
  const machine = { cpu: '', cores: 2, memoryGiB: 1, os: '', kernel: '', node: '', go: '' }
  const effort = { added: { lives: 1, repeats: 3 }, allocationRuns: 1, sockets: { runs: 2, ms: 1, warmUpMs: 1 } }
  const about = { kind: 'middleware', startedAt: '', machine, rivals: {}, effort, loadBefore: 0, loadAfter: 0 } as const
  return { ...about, added: [], allocations: [], sockets: [], ...found }
}

function rows(found: Partial<MiddlewareResults>, name: string): readonly (readonly string[])[] {
  return middlewareReport(results(found)).tables.find((table) => table.name === name)?.rows ?? []
}

function targets(added: MiddlewareResults['added']): readonly (readonly string[])[] {
  return rows({ added }, 'middleware-targets')
}

test('what was not measured is neither judged nor shown', () => {
  const tables = middlewareReport(results({})).tables.filter(({ rows }) => rows.length > 0)
  assert.deepEqual(
    tables.map(({ name }) => name),
    ['middleware-machine'],
  )
})

test('what is added is judged run by run', () => {
  // In the second run the whole machine was slow.
  const found = timed(SETTING, [
    [5_000, 5_300, 6_000],
    [50_000, 53_000, 60_000],
    [5_000, 5_400, 6_000],
  ])
  const [target] = targets([found])
  assert.deepEqual([target?.[2], target?.at(-1)], ['0.30 ×', 'met'])
  const [row] = rows({ added: [found] }, 'middleware-added')
  assert.deepEqual(row, ['express: allow, one address', '400', '1000', '0.30', '0.30..0.35', '5000'])
})

test('a third is enough, and more is not', () => {
  const verdict = (ours: number) => targets([timed(SETTING, [[0, ours, 3_000]])])[0]?.at(-1)
  assert.deepEqual([verdict(1_000), verdict(1_001)], ['met', '**missed**'])
})

test('a denial is reported whole, because it may cost less than what the app answers', () => {
  const added = [timed(DENIED, [[5_000, 4_000, 8_000]])]
  const [row] = rows({ added }, 'middleware-added')
  assert.deepEqual(row, ['express: deny, one address', '4000', '8000', '0.50', '0.50..0.50', '5000'])
  assert.deepEqual(targets(added), [])
})

test('allocations are the difference to the app alone', () => {
  const run = (ours: number) => ({
    unlimited: { bytes: 4_000, ...ONE },
    sluicegate: { bytes: ours, ...ONE },
    rival: { bytes: 6_200, ...ONE },
  })
  const allocations = [{ setting: SETTING, runs: [run(4_500), run(4_600)] }]
  const [row] = rows({ allocations }, 'middleware-allocations')
  assert.deepEqual(row?.slice(1), ['550', '2200', '0.25', '0.24..0.26', '4000'])
})

test('over sockets each side is compared with the unlimited app in the same round', () => {
  const load = (requests: number) => ({ requests, allowed: requests, elapsedMs: 1_000, cpuUs: 1_000_000 })
  const run = (bare: number, ours: number) => ({ unlimited: load(bare), sluicegate: load(ours), rival: load(bare / 2) })
  const sockets = [{ setting: SETTING, runs: [run(10_000, 8_000), run(1_000, 800)] }]
  const [row] = rows({ sockets }, 'middleware-sockets')
  assert.deepEqual(row?.slice(0, 5), ['express: allow, one address', '5500', '4400', '2750', '138'])
})

test('a side that answered otherwise than it should measured something else', () => {
  const run = (unlimited: number, ours: number): SideRun<typeof ONE> => {
    const found = (allowed: number) => ({ requests: 10, allowed })
    return { unlimited: found(unlimited), sluicegate: found(ours), rival: found(ours) }
  }
  assert.deepEqual(checkedRun(SETTING, run(10, 10)), run(10, 10))
  assert.deepEqual(checkedRun(DENIED, run(10, 0)), run(10, 0))
  assert.throws(() => checkedRun(SETTING, run(10, 9)), /sluicegate: 9 of 10/)
  assert.throws(() => checkedRun(DENIED, run(10, 1)), /sluicegate: 1 of 10/)
  assert.throws(() => checkedRun(DENIED, run(0, 0)), /unlimited: 0 of 10/)
})

test('a listener finds a request as Node has it, and the exchange ends with its response', async () => {
  const seen: unknown[] = []
  const listener: RequestListener = ({ method, url, headers, socket }, response) => {
    seen.push(method, url, headers.host, socket.remoteAddress, socket.remoteFamily)
    response.statusCode = 429
    response.end('later')
  }
  assert.equal(await exchange(listener, new LightSocket('203.0.113.7')), 429)
  assert.deepEqual(seen, ['GET', '/', 'localhost:3000', '203.0.113.7', 'IPv4'])
})

test('a connection serves one request after another, and nothing of them stays with it', async () => {
  const connection = new LightSocket('2001:db8::1')
  const before = connection.eventNames().map((name) => [name, connection.listenerCount(name)])
  for (let i = 0; i < 100; i++) {
    const status = await exchange((_, response) => {
      setImmediate(() => response.end('ok'))
    }, connection)
    assert.equal(status, 200)
  }
  assert.deepEqual(
    connection.eventNames().map((name) => [name, connection.listenerCount(name)]),
    before,
  )
})

test('a walk tells how many of its requests passed, and comes to every connection', async () => {
  const asked = new Map<string | undefined, number>()
  const walk = exchangeWalk(
    ({ socket: { remoteAddress } }, response) => {
      asked.set(remoteAddress, (asked.get(remoteAddress) ?? 0) + 1)
      response.statusCode = remoteAddress === '10.0.0.1' ? 200 : 403
      response.end()
    },
    ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => new LightSocket(address)),
  )
  const allowed = await walk(300)
  assert.equal(asked.size, 3)
  assert.equal(allowed, asked.get('10.0.0.1'))
})

const TOLD = 'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nlater'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\na\r\n0123456789\r\n0\r\n\r\n'
const EMPTY = 'HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n'

/** What is read of bytes that come one at a time. */
function readSlowly(bytes: string): FirstResponse[] {
  const found: FirstResponse[] = []
  let received = ''
  for (const byte of bytes) {
    received += byte
    const response = firstResponse(received)
    if (response === undefined) continue
    found.push(response)
    received = received.slice(response.length)
  }
  assert.equal(received, '')
  return found
}

test('responses are found however few bytes come at a time', () => {
  const lengths = [TOLD, CHUNKED, EMPTY, TOLD].map(({ length }) => length)
  assert.deepEqual(
    readSlowly(TOLD + CHUNKED + EMPTY + TOLD),
    [429, 200, 403, 429].map((status, i) => ({ status, length: lengths[i] })),
  )
})

test('what follows a response is left to the next', () => {
  assert.deepEqual(firstResponse(CHUNKED + TOLD), { status: 200, length: CHUNKED.length })
  assert.deepEqual(firstResponse(TOLD + CHUNKED), { status: 429, length: TOLD.length })
})

test('a response without a length is an error', () => {
  assert.throws(() => firstResponse('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok'), /no length or chunked encoding/)
})

const LIMITING = ['sluicegate', 'rival'] as const

interface Answer {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

async function serve(t: TestContext, framework: keyof typeof SITES, plan: SitePlan): Promise<number> {
  const server = createServer(await SITES[framework](plan))
  t.after(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

function ask(port: number, client = '203.0.113.7'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', headers: { 'X-Forwarded-For': client }, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text) => {
        body += text
      })
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }))
    }).on('error', reject)
  })
}

function plan(side: Side, more: Partial<SitePlan> = {}): SitePlan {
  return { side, options: 'same', outcome: 'allow', behindProxy: true, ...more }
}

for (const framework of FRAMEWORKS) {
  test(`${framework}: the app answers the same with each limiter`, async (t) => {
    for (const side of SIDES) {
      const { status, body } = await ask(await serve(t, framework, plan(side)))
      assert.deepEqual([side, status, body], [side, 200, 'ok'])
    }
  })

  test(`${framework}: the second request of a client is denied, and the first of another is not`, async (t) => {
    for (const side of LIMITING) {
      for (const options of ['defaults', 'same'] as const) {
        const port = await serve(t, framework, plan(side, { options, outcome: 'deny' }))
        const statuses = [await ask(port, '203.0.113.7'), await ask(port, '203.0.113.7'), await ask(port, '198.51.100.9')]
        assert.deepEqual(
          statuses.map(({ status }) => status),
          [200, 429, 200],
          `${side}, ${options}`,
        )
      }
    }
  })

  test(`${framework}: configured alike, both sides write the same headers`, async (t) => {
    for (const outcome of ['allow', 'deny'] as const) {
      const names: string[][] = []
      for (const side of LIMITING) {
        const port = await serve(t, framework, plan(side, { outcome }))
        await ask(port)
        const { headers } = await ask(port)
        names.push(
          Object.keys(headers)
            .filter((name) => /ratelimit|retry-after/.test(name))
            .sort(),
        )
      }
      assert.deepEqual(names[0], names[1], outcome)
      assert.ok((names[0]?.length ?? 0) > 1)
    }
  })
}

test('a load asks on each of its connections, and reads every answer', async (t) => {
  const port = await serve(t, 'express', plan('sluicegate', { outcome: 'deny' }))
  const one = { port, ms: 0, connections: 5, manyClients: false }
  assert.deepEqual({ ...(await load(one)), elapsedMs: 0 }, { requests: 5, allowed: 1, elapsedMs: 0 })
  const { requests, allowed } = await load({ ...one, manyClients: true })
  assert.equal(requests, 5)
  assert.ok(allowed > 1, 'clients that the header tells apart')
})
