import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { longTest, shortOrLong } from 'sluicegate-testkit'
import { TWO_POLICIES } from 'sluicegate-testkit/service/running-service.js'
import { type ServiceProcess, serveProcess } from 'sluicegate-testkit/service/sluicegate-process.js'

const CLIENTS = 64
const TAKE = '/v1/take?policy=burst&key=alice'

interface Answer {
  readonly status: number
  readonly isLast: boolean
}

function ask(url: string, path: string, agent: Agent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { agent }, (response) => {
      response.resume()
      response.once('end', () => resolve({ status: response.statusCode ?? 0, isLast: response.headers.connection === 'close' }))
      response.once('error', reject)
    })
    sent.once('error', reject)
    sent.end()
  })
}

interface Load {
  answered: number
  /** Connections that were refused, as they are once the port is closed. */
  refused: number
  /** Requests that ended in anything but an answer or a refused connection. */
  readonly lost: string[]
}

/** Clients that keep their connection, open another after `Connection: close`, and send requests without a pause until their connection is refused. */
function underLoad(t: TestContext, { url }: ServiceProcess): { load: Load; ended: Promise<unknown> } {
  const load: Load = { answered: 0, refused: 0, lost: [] }
  const client = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => agent.destroy())
    while (load.refused === 0) {
      try {
        await ask(url, TAKE, agent)
        load.answered++
      } catch (error) {
        const { code = String(error) } = error as NodeJS.ErrnoException
        if (code === 'ECONNREFUSED') load.refused++
        else load.lost.push(code)
      }
    }
  }
  return { load, ended: Promise.all(Array.from({ length: CLIENTS }, client)) }
}

for (const round of [1, 2, 3].slice(0, shortOrLong(1, 3))) {
  test(`${CLIENTS} clients under load lose no request to SIGTERM (${round})`, async (t) => {
    const service = await serveProcess(t, TWO_POLICIES, '--drain', '300ms')
    const { load, ended } = underLoad(t, service)
    while (load.answered < 500) await sleep(1)
    assert.equal(await service.end('SIGTERM'), 0)
    await ended
    assert.deepEqual(load.lost, [])
    assert.ok(load.refused > 0)
  })
}

test('while it drains, the port is open, /readyz says 503, /livez 200, and each answer is the last of its connection', async (t) => {
  const service = await serveProcess(t, TWO_POLICIES, '--drain', '2')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  assert.deepEqual(await ask(service.url, TAKE, agent), { status: 200, isLast: false })
  const ended = service.end('SIGTERM')
  const [said] = (await once(service.child.stdout, 'data')) as [Buffer]
  assert.match(said.toString(), /^SIGTERM: answering for 2s more while \/readyz says 503, then finishing requests in flight/)
  assert.deepEqual(await ask(service.url, TAKE, agent), { status: 200, isLast: true })
  for (const [path, status] of [
    ['/readyz', 503],
    ['/healthcheck', 500],
    ['/livez', 200],
    ['/metrics', 200],
    ['/events', 503],
  ] as const) {
    assert.deepEqual(await ask(service.url, path, agent), { status, isLast: true })
  }
  assert.equal(await ended, 0)
})

longTest('SIGINT does not drain', async (t) => {
  const service = await serveProcess(t, TWO_POLICIES, '--drain', '1h')
  assert.equal(await service.end('SIGINT'), 0)
})

longTest('a second signal ends it at once, with 1', async (t) => {
  for (const second of ['SIGTERM', 'SIGINT'] as const) {
    const service = await serveProcess(t, TWO_POLICIES, '--drain', '1h')
    service.child.kill('SIGTERM')
    await once(service.child.stdout, 'data')
    assert.equal(await service.end(second), 1)
  }
})

longTest('the file can say how long it drains, and the command line wins', async (t) => {
  const slow = `${TWO_POLICIES}stop: { drain: 1h }\n`
  const service = await serveProcess(t, slow, '--drain', '0')
  assert.equal(await service.end('SIGTERM'), 0)
  const quick = await serveProcess(t, slow.replace('1h', '10ms'))
  assert.equal(await quick.end('SIGTERM'), 0)
})
