import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { FakeNet, settled } from 'sluicegate-testkit/outbound/fake-net.js'
import { limitedFetch } from './limited-fetch.js'

/** Answers every request with these lines. */
async function verbatim(answer: string, play: (url: string) => Promise<void>): Promise<void> {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('data', () => socket.write(answer)).on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    await play(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  } finally {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
}

/** A body that is filled, or broken, from outside. */
function openBody(): { readonly response: Response; readonly controller: ReadableStreamDefaultController; readonly cancelled: unknown[] } {
  const cancelled: unknown[] = []
  let controller!: ReadableStreamDefaultController
  const body = new ReadableStream({
    start: (given) => {
      controller = given
    },
    cancel: (reason) => void cancelled.push(reason),
  })
  return { response: new Response(body), controller, cancelled }
}

test('statuses and reasons that cannot be constructed come through, and keep a place as others do', async () => {
  for (const [line, status, reason, ok] of [
    ['999 Denied', 999, 'Denied', false],
    ['404 Не найдено', 404, 'Не найдено', false],
    ['200 Très bien', 200, 'Très bien', true],
  ] as const) {
    await verbatim(`HTTP/1.1 ${line}\r\nContent-Length: 4\r\nX-A: b\r\n\r\nbody`, async (url) => {
      const polite = limitedFetch(fetch, { concurrency: 1, attempts: 1 })
      const response = await polite(url)
      const second = polite(url)
      await settled()
      assert.equal(polite.stats().waiting, 1, line)
      for (const each of [response.clone(), response]) {
        assert.deepEqual([each.status, each.statusText, each.ok, each.headers.get('x-a')], [status, reason, ok, 'b'])
        assert.equal(await each.text(), 'body')
      }
      assert.equal(await (await second).text(), 'body')
    })
  }
})

test('a rebuilt response has its status also internally', async () => {
  const net = new FakeNet(() => new Response('no', { status: 404, statusText: 'Nowhere' }))
  const response = await limitedFetch(net.fetch, { clock: net.clock, concurrency: 1 })('http://a/')
  const within = (name: 'status' | 'statusText'): unknown => Object.getOwnPropertyDescriptor(Response.prototype, name)?.get?.call(response)
  assert.deepEqual([within('status'), within('statusText')], [404, 'Nowhere'])
})

test('a body of bytes is read into the buffer of the reader', async () => {
  const net = new FakeNet(() => new Response('body'))
  const polite = limitedFetch(net.fetch, { clock: net.clock, concurrency: 1 })
  const { body } = await polite('http://a/')
  const reader = (body as ReadableStream).getReader({ mode: 'byob' })
  let text = ''
  for (;;) {
    const { done, value } = await reader.read(new Uint8Array(3))
    if (done) break
    text += new TextDecoder().decode(value)
  }
  assert.equal(text, 'body')
  assert.equal((await polite('http://a/')).status, 200)
})

test('a body that breaks unread frees its place at once, and a later reader gets the error', async () => {
  const { response, controller } = openBody()
  const net = new FakeNet((_, number) => (number === 1 ? response : new Response('ok')))
  const polite = limitedFetch(net.fetch, { clock: net.clock, concurrency: 1, bodyTimeout: Number.POSITIVE_INFINITY })
  const first = await polite('http://a/')
  const second = polite('http://a/')
  await settled()
  assert.equal(net.times.length, 1)
  controller.error(new Error('gone'))
  assert.equal(await (await second).text(), 'ok')
  await assert.rejects(first.text(), /gone/)
})

test('a pending read keeps the place, an idle reader does not', async () => {
  const { response, controller } = openBody()
  const net = new FakeNet((_, number) => (number === 1 ? response : new Response('ok')))
  const polite = limitedFetch(net.fetch, { clock: net.clock, concurrency: 1, bodyTimeout: 1_000 })
  const reader = ((await polite('http://a/')).body as ReadableStream<Uint8Array>).getReader()
  const second = polite('http://a/')
  const read = reader.read()
  await net.pass(60_000, 500)
  assert.equal(net.times.length, 1)
  controller.enqueue(new Uint8Array(1))
  await read
  await net.pass(900, 100)
  assert.equal(net.times.length, 1)
  await net.pass(100, 100)
  assert.equal((await second).status, 200)
})

test('a response that was garbage collected frees its connection', { timeout: 30_000 }, async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { response, cancelled } = openBody()
  const net = new FakeNet((_, number) => (number === 1 ? response : new Response('ok')))
  const polite = limitedFetch(net.fetch, { clock: net.clock, concurrency: 1, bodyTimeout: Number.POSITIVE_INFINITY })
  await (async () => void (await polite('http://a/')))()
  const second = polite('http://a/')
  for (let round = 0; round < 200 && cancelled.length === 0; round++) {
    collect()
    await settled()
  }
  assert.equal(cancelled.length, 1)
  assert.equal((await second).status, 200)
})

test('a body that is read through its stream alone is not taken for forgotten', { timeout: 30_000 }, async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { response, controller, cancelled } = openBody()
  const polite = limitedFetch(async (_: string) => response, { concurrency: 1 })
  const { body } = await polite('http://a/')
  for (let round = 0; round < 5; round++) {
    collect()
    await settled()
  }
  controller.enqueue(new TextEncoder().encode('still there'))
  controller.close()
  assert.equal(await new Response(body).text(), 'still there')
  assert.deepEqual(cancelled, [])
})
