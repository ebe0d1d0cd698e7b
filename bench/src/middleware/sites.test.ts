import assert from 'node:assert/strict'
import { createServer, get, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { load } from './load.js'
import { FRAMEWORKS, SIDES, type Side } from './middleware-settings.js'
import { SITES } from './site.js'
import type { SitePlan } from './site-plan.js'

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
