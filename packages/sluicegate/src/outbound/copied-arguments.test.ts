import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { FakeNet, refusal } from 'sluicegate-testkit/outbound/fake-net.js'
import { LimitedServer } from 'sluicegate-testkit/outbound/limited-server.js'
import { Agent, Client, request, FormData as UndiciForm, fetch as undiciFetch } from 'undici'
import { tokenBucket } from '../policy/single-policy.js'
import { limited } from './limited.js'
import { limitedFetch } from './limited-fetch.js'

interface Seen {
  readonly line: string
  readonly order: string | string[] | undefined
  readonly body: string
}

/** A server that records its requests, and refuses the first `refusals`. */
async function noting(refusals: number, play: (url: string, seen: readonly Seen[]) => Promise<void>): Promise<void> {
  const seen: Seen[] = []
  const server = await LimitedServer.answering(async (incoming, response) => {
    const body = await bodyOf(incoming)
    const refused = seen.push({ line: `${incoming.method} ${incoming.url}`, order: incoming.headers['x-order'], body }) <= refusals
    response.writeHead(refused ? 429 : 200, refused ? { 'Retry-After': '0' } : {}).end('ok')
  })
  try {
    await play(server.url, seen)
  } finally {
    await server.stop()
  }
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of incoming.setEncoding('latin1')) body += chunk
  return body
}

test('what is changed after the call changes nothing that is sent', async () => {
  await noting(0, async (url, seen) => {
    const polite = limitedFetch(fetch, { concurrency: 1 })
    const where = new URL(url)
    const headers = new Headers()
    const init: RequestInit = { method: 'PUT', headers }
    const bytes = Buffer.alloc(1)
    const params = new URLSearchParams()
    const form = new FormData()
    const bodies = [() => bytes, () => new DataView(bytes.buffer, bytes.byteOffset, 1), () => params, () => form, () => `${where.search}`]
    const calls = bodies.map((body, i) => {
      where.search = `?page=${i}`
      headers.set('X-Order', String(i))
      bytes[0] = 0x30 + i
      params.set('n', String(i))
      form.set('n', String(i))
      init.body = body() as NonNullable<RequestInit['body']>
      return polite(where, init).then((response) => response.text())
    })
    where.host = 'elsewhere.invalid'
    init.method = 'POST'
    await Promise.all(calls)
    assert.deepEqual(
      seen.map(({ line, order }) => [line, order]),
      bodies.map((_, i) => [`PUT /?page=${i}`, String(i)]),
    )
    assert.deepEqual([seen[0]?.body, seen[1]?.body, seen[2]?.body, seen[4]?.body], ['0', '1', 'n=2', '?page=4'])
    assert.match(seen[3]?.body ?? '', /name="n"\r\n\r\n3\r\n/)
  })
})

test('headers reach the fetch that is given in the form in which they are', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { clock: net.clock })
  const forms: RequestInit['headers'][] = [{ 'x-a': 'b' }, [['x-a', 'b']], new Headers({ 'x-a': 'b' })]
  for (const headers of forms) if (headers !== undefined) await polite('http://a/', { headers })
  assert.deepEqual(
    net.arrivals.map(({ init }) => init.headers),
    forms,
  )
  await polite('http://a/', new Request('http://b/', { method: 'POST', headers: { 'x-a': 'b' }, body: 'x' }))
  const { method, headers } = net.arrivals[3]?.init ?? {}
  assert.deepEqual([method, (headers as Headers).get('x-a')], ['POST', 'b'])
})

test('a Request is sent as it was at the call, with its signal, and is used up once it was sent', async () => {
  await noting(1, async (url, seen) => {
    const polite = limitedFetch(fetch, { jitter: 0 })
    const order = new Request(url, { method: 'POST', body: 'order', headers: { 'X-Order': '1' } })
    const answered = polite(order)
    order.headers.set('X-Order', '2')
    assert.equal((await answered).status, 200)
    const page = new Request(`${url}/page`, { headers: { 'X-Order': '1' } })
    const paged = polite(page)
    page.headers.set('X-Order', '2')
    assert.equal((await paged).status, 200)
    const asked = seen.map(({ line, order, body }) => `${line} ${order} ${body}`)
    assert.deepEqual(asked, ['POST / 1 order', 'POST / 1 order', 'GET /page 1 '])
    assert.equal(order.bodyUsed, true)
  })
})

test('a Request that was never sent is still the caller’s, one that the caller reads meanwhile is sent all the same', async () => {
  const net = new FakeNet()
  const sent: string[] = []
  const reading = async (input: Request): Promise<Response> => {
    sent.push(await input.text())
    return net.fetch(input)
  }
  const polite = limitedFetch(reading, { policy: tokenBucket({ limit: 1, window: '1h' }), maxWait: 0, clock: net.clock })
  const read = new Request('http://a/', { method: 'POST', body: 'order' })
  const [response, text] = await Promise.all([polite(read), read.text()])
  assert.deepEqual([response.status, text, sent], [200, 'order', ['order']])
  const left = new Request('http://a/', { method: 'POST', body: 'order' })
  await assert.rejects(polite(left), { code: 'WAIT_TOO_LONG' })
  assert.equal(await left.text(), 'order')
})

test('aborting the signal of a Request ends the attempt under way', async () => {
  const server = await LimitedServer.answering(() => undefined)
  try {
    const client = new AbortController()
    const call = limitedFetch(fetch)(new Request(server.url, { method: 'PUT', body: 'x', signal: client.signal }))
    const rejected = assert.rejects(call, /gone/)
    while (server.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
    client.abort(new Error('gone'))
    await rejected
  } finally {
    await server.stop()
  }
})

test('a Request of another make, whose body is no stream of the web, is sent again or not, and answered', async () => {
  class OtherRequest {
    readonly url = 'http://a/'
    readonly method = 'POST'
    readonly body = { pipe: () => undefined }
    clone(): OtherRequest {
      return new OtherRequest()
    }
  }
  const net = new FakeNet((_, number) => (number === 1 ? refusal(429, '1') : new Response('ok')))
  const call = limitedFetch((input: OtherRequest) => net.fetch(input.url), { clock: net.clock, jitter: 0 })(new OtherRequest())
  await net.pass(2_000, 50)
  assert.deepEqual([(await call).status, net.times], [200, [0, 1_000]])
})

test('forms and blobs of any make are sent again', async () => {
  const form = new UndiciForm()
  form.set('n', '1')
  const agent = new Agent()
  const dispatcher = agent.compose(limited({ jitter: 0 }))
  const sends: ((url: string) => Promise<unknown>)[] = [
    (url) => limitedFetch(undiciFetch, { jitter: 0 })(url, { method: 'POST', body: form }),
    (url) => request(url, { dispatcher, method: 'POST', body: form }),
    (url) => request(url, { dispatcher, method: 'POST', body: new Blob(['name="n"']) as unknown as Buffer }),
  ]
  for (const send of sends) {
    await noting(1, async (url, seen) => {
      await send(url)
      assert.equal(seen.length, 2)
      for (const { body } of seen) assert.match(body, /name="n"/)
    })
  }
  await agent.destroy()
})

test('options of undici can be used again as soon as it was called', async () => {
  await noting(0, async (url, seen) => {
    const agent = new Agent()
    const dispatcher = agent.compose(limited({ concurrency: 1 }))
    const headers: Record<string, string> = {}
    const options = { origin: url, path: '', method: 'GET' as const, headers }
    const calls = [1, 2, 3].map((i) => {
      options.path = `/${i}`
      headers['x-order'] = String(i)
      return dispatcher.request(options).then(({ body }) => body.text())
    })
    await Promise.all(calls)
    assert.deepEqual(
      seen.map(({ line, order }) => [line, order]),
      [1, 2, 3].map((i) => [`GET /${i}`, String(i)]),
    )
    await agent.destroy()
  })
})

test('headers of undici are sent in each form that it takes', async () => {
  await noting(0, async (url, seen) => {
    const agent = new Agent()
    const dispatcher = agent.compose(limited())
    const pairs = function* (): Iterable<[string, string]> {
      yield ['x-order', '1']
    }
    const once = pairs()
    const forms: unknown[] = [{ 'x-order': '1' }, ['x-order', '1'], new Map([['x-order', '1']]), new Headers({ 'x-order': '1' }), once]
    for (const headers of forms) await (await request(url, { dispatcher, headers: headers as Record<string, string> })).body.text()
    assert.deepEqual(
      seen.map(({ order }) => order),
      forms.map(() => '1'),
    )
    await agent.destroy()
  })
})

test('a client that does not pass its origin to interceptors is refused, if the request has none either', async () => {
  await noting(0, async (url, seen) => {
    const client = new Client(url)
    const interceptor = limited({ policy: tokenBucket({ limit: 1, window: '1h' }), maxWait: 0 })
    const composed = client.compose(interceptor)
    await assert.rejects(composed.request({ path: '/', method: 'GET' }), { code: 'CLIENT_INVALID', option: 'origin' })
    assert.equal(interceptor.stats().keys, 0)
    await (await composed.request({ origin: url, path: '/', method: 'GET' })).body.text()
    await assert.rejects(request(url, { dispatcher: composed }), { code: 'WAIT_TOO_LONG', host: new URL(url).host })
    assert.equal(seen.length, 1)
    await client.close()
  })
})
