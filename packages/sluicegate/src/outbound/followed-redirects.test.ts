import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { longTest } from 'sluicegate-testkit'
import { LimitedServer } from 'sluicegate-testkit/outbound/limited-server.js'
import { tokenBucket } from '../index.js'
import { limitedFetch } from './limited-fetch.js'

// Redirects that limitedFetch follows hop by hop lead where those of a plain fetch lead, with the same requests, and each hop counts.

let here: LimitedServer
let there: LimitedServer

/** `/302/there/echo` answers 302 and leads to `/echo` of the other server; `/round/3` leads to `/round/2`, and `/round/0` ends. */
function answering(other: () => LimitedServer | undefined): Parameters<typeof LimitedServer.answering>[0] {
  return (request, response) => {
    const [, first = '', second = '', ...rest] = (request.url ?? '').split('/')
    if (first === 'round' && second !== '0') return void response.writeHead(302, { Location: `/round/${Number(second) - 1}` }).end('moved')
    if (/^30[12378]$/.test(first)) {
      const base = second === 'there' ? other()?.url : ''
      return void response.writeHead(Number(first), { Location: `${base}/${rest.join('/')}` }).end('moved')
    }
    if (first === 'scheme') return void response.writeHead(302, { Location: 'ftp://a/' }).end()
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { authorization, cookie, 'content-type': type, 'x-own': own, 'content-length': length } = request.headers
      response.end(
        JSON.stringify([request.method, request.url, authorization, cookie, type, own, length, Buffer.concat(chunks).toString()]),
      )
    })
  }
}

before(async () => {
  here = await LimitedServer.answering(answering(() => there))
  there = await LimitedServer.answering(answering(() => here))
})
after(() => Promise.all([here.stop(), there.stop()]))

type Sent = (input: string | Request, init?: RequestInit) => Promise<Response>

async function outcome(send: Sent, input: string | Request, init?: RequestInit): Promise<unknown> {
  try {
    const response = await send(input, init)
    const { status, redirected, url, ok } = response.clone()
    return [status, redirected, url, ok, response.redirected, await response.text()]
  } catch (error) {
    return [(error as Error).name, (error as Error).message, ((error as Error).cause as Error | undefined)?.message]
  }
}

const HEADERS = { authorization: 'Bearer x', cookie: 'a=b', 'x-own': 'kept' }
const own = { attempts: 1 } as const

longTest('methods, bodies, headers, addresses and failures are those of a plain fetch', async () => {
  const polite = limitedFetch(fetch, own) as Sent
  for (const status of [301, 302, 303, 307, 308]) {
    for (const place of ['here', 'there']) {
      const url = `${here.url}/${status}/${place}/echo`
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']) {
        const init = { method, headers: HEADERS, ...(['POST', 'PUT'].includes(method) && { body: 'order' }) }
        const label = `${method} ${status} ${place}`
        assert.deepEqual(await outcome(polite, url, init), await outcome(fetch, url, init), label)
        assert.deepEqual(await outcome(polite, new Request(url, init)), await outcome(fetch, new Request(url, init)), `Request ${label}`)
      }
    }
  }
})

test('a chain of redirects, one too long, and one that leads nowhere end as with a plain fetch', async () => {
  for (const concurrency of [undefined, 2]) {
    const polite = limitedFetch(fetch, { ...own, ...(concurrency !== undefined && { concurrency }) }) as Sent
    for (const path of ['/round/20', '/round/21', '/scheme', '/302/there/302/there/303/here/echo']) {
      const url = `${here.url}${path}#part`
      assert.deepEqual(await outcome(polite, url), await outcome(fetch, url), path)
    }
  }
})

test('redirects that are not to be followed are not, and a stream is sent once', async () => {
  const polite = limitedFetch(fetch, own) as Sent
  const url = `${here.url}/307/here/echo`
  const stream = (): RequestInit => ({ method: 'POST', body: new Blob(['order']).stream(), duplex: 'half' }) as RequestInit
  for (const init of [{ redirect: 'manual' }, { redirect: 'error' }] as const) {
    const [name] = (await outcome(polite, url, init)) as [unknown]
    assert.equal(name, ((await outcome(fetch, url, init)) as [unknown])[0])
  }
  const before = here.asked.length
  assert.equal(((await outcome(polite, url, stream())) as [unknown])[0], 'TypeError')
  assert.deepEqual(here.asked.slice(before), ['POST /307/here/echo'])
})

test('each hop takes a token of the host that it reaches', async () => {
  const polite = limitedFetch(fetch, { policy: tokenBucket({ limit: 10, window: '1h' }), maxWait: 0 })
  const call = () => polite(`${here.url}/302/there/round/3`).then((response) => response.text())
  await call()
  await call()
  const asked = there.asked.length
  // Eight of ten tokens are spent there: two hops pass, and the third is not sent.
  await assert.rejects(call(), { name: 'OutboundError', code: 'WAIT_TOO_LONG', host: new URL(there.url).host })
  assert.equal(there.asked.length, asked + 2)
  assert.equal(polite.stats().sent, 3 + 8 + 2)
})
