import assert from 'node:assert/strict'
import { after, before, mock, test } from 'node:test'
import { FakeNet, refusal } from 'sluicegate-testkit/outbound/fake-net.js'
import { gcra } from '../policy/single-policy.js'
import { limitedFetch } from './limited-fetch.js'
import type { OutboundOptions, RetryEvent, ThrottleEvent, WaitEvent } from './outbound-options.js'
import { isSafeToRepeat, type SentRequest } from './retry-rule.js'

// The same jitter in every run.
before(() => mock.method(Math, 'random', () => 0.5))
after(() => mock.restoreAll())

/** Answers in turn, the last one again and again. */
function answering(...answers: (() => Response | Error)[]): FakeNet {
  return new FakeNet((_, number) => (answers[Math.min(number, answers.length) - 1] as () => Response | Error)())
}

const ok = (): Response => new Response('ok')
const broken = (code: string) => (): Error =>
  Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(code), { code }) })

/** How often a request is sent that is answered like this at first, and what becomes of it. */
async function sent(init: RequestInit | Request, answer: () => Response | Error, options: OutboundOptions = {}) {
  const net = answering(answer, ok)
  const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0, ...options })
  const call = (init instanceof Request ? polite(init) : polite('http://a/', init)).then(
    ({ status }) => status,
    (error) => error.cause.code,
  )
  await net.pass(3_000, 50)
  return { times: net.times.length, end: await call }
}

test('Retry-After is kept to, in seconds and as a date, plus jitter and never less', async () => {
  const date = new Date(1_800_000_007_000).toUTCString()
  for (const [retryAfter, atMs] of [
    ['7', 7_700],
    [date, 7_700],
  ] as const) {
    const net = answering(() => refusal(429, retryAfter), ok)
    const polite = limitedFetch(net.fetch, { clock: net.clock, jitter: 0.2 })
    const call = polite('http://a/')
    await net.pass(8_000, 10)
    assert.equal((await call).status, 200)
    assert.deepEqual(net.times, [0, atMs])
  }
})

test('during a pause no request is sent to that host; then one is sent first, alone', async () => {
  const net = new FakeNet((_, number) => (number === 2 ? refusal(429, '5') : ok()), 30)
  const polite = limitedFetch(net.fetch, { policy: gcra({ limit: 100, window: '1s', burst: 1 }), clock: net.clock, jitter: 0 })
  const calls = Array.from({ length: 8 }, (_, i) => polite(`http://a/${i}`))
  await net.pass(6_000, 5)
  await Promise.all(calls)
  const back = net.arrivals.findIndex(({ atMs }) => atMs > 1_000)
  assert.deepEqual([net.arrivals[back]?.url, net.arrivals[back]?.atMs], ['http://a/1', 5_040])
  assert.ok((net.arrivals[back + 1]?.atMs ?? 0) >= 5_070)
})

test('429 is sent again whatever the method, 503 and others only where twice is the same as once', async () => {
  const status = (code: number) => (): Response => new Response(null, { status: code, headers: { 'Retry-After': '1' } })
  const post = { method: 'POST', body: 'order' }
  const keyed = { ...post, headers: { 'Idempotency-Key': 'k' } }
  const twice: [RequestInit, number][] = [
    [{}, 429],
    [post, 429],
    [{}, 503],
    [{ method: 'PUT', body: 'x' }, 503],
    [{ method: 'DELETE' }, 502],
    [keyed, 503],
    [{}, 504],
    [{}, 408],
  ]
  const once: [RequestInit, number][] = [
    [post, 503],
    [post, 502],
    [{ method: 'PATCH' }, 503],
    [{}, 500],
    [{}, 404],
    [{}, 403],
  ]
  for (const [init, code] of twice) assert.deepEqual(await sent(init, status(code)), { times: 2, end: 200 }, `${init.method} ${code}`)
  for (const [init, code] of once) assert.deepEqual(await sent(init, status(code)), { times: 1, end: code }, `${init.method} ${code}`)
})

test('a body that can be read only once is sent once, others again as they were', async () => {
  const stream = (): ReadableStream => new Blob(['x']).stream()
  const streamed = { method: 'PUT', body: stream(), duplex: 'half' } as RequestInit
  assert.deepEqual(await sent(streamed, () => refusal(429, '1')), { times: 1, end: 429 })
  const form = new FormData()
  form.set('a', 'b')
  for (const body of ['x', new URLSearchParams('a=b'), new Uint8Array(2), new Blob(['x']), form]) {
    assert.equal((await sent({ method: 'PUT', body }, () => refusal(429, '1'))).times, 2)
  }
})

test('a Request with a body is sent again with the same body', async () => {
  const bodies: string[] = []
  const net = new FakeNet(() => (bodies.length < 3 ? refusal(429, '1') : ok()))
  const reading = async (input: Request): Promise<Response> => {
    bodies.push(await input.text())
    return net.fetch(input)
  }
  const call = limitedFetch(reading, { clock: net.clock, jitter: 0 })(new Request('http://a/', { method: 'POST', body: 'order' }))
  await net.pass(4_000, 50)
  assert.equal((await call).status, 200)
  assert.deepEqual(bodies, ['order', 'order', 'order'])
})

test('a connection that was never made is tried again for all, one that broke for what is idempotent, a mistake never', async () => {
  assert.deepEqual(await sent({ method: 'POST', redirect: 'manual' }, broken('ECONNREFUSED')), { times: 2, end: 200 })
  assert.deepEqual(await sent({ method: 'POST' }, broken('ECONNREFUSED')), { times: 2, end: 200 })
  assert.deepEqual(await sent({}, broken('ECONNRESET')), { times: 2, end: 200 })
  assert.deepEqual(await sent({ method: 'POST' }, broken('UND_ERR_SOCKET')), { times: 1, end: 'UND_ERR_SOCKET' })
  assert.deepEqual(await sent({}, broken('ENOTFOUND')), { times: 1, end: 'ENOTFOUND' })
})

test('the caller has the last word about sending again, but not about how often', async () => {
  assert.equal((await sent({}, () => refusal(429, '1'), { retry: () => false })).times, 1)
  assert.equal((await sent({}, () => new Response(null, { status: 500 }), { retry: (_, { status }) => status === 500 })).times, 2)
  const net = answering(() => refusal(429, '0'))
  const call = limitedFetch(net.fetch, { clock: net.clock, attempts: 3, retry: () => true, jitter: 0 })('http://a/')
  await net.pass(10_000, 50)
  assert.equal((await call).status, 429)
  assert.equal(net.times.length, 3)
})

test('attempts end where the next would begin too late: then the response is the answer', async () => {
  const net = answering(() => refusal(429, '30'))
  const call = limitedFetch(net.fetch, { clock: net.clock, maxTotal: 70_000, jitter: 0 })('http://a/')
  await net.pass(120_000, 1_000)
  assert.equal((await call).headers.get('retry-after'), '30')
  assert.deepEqual(net.times, [0, 30_000, 60_000])
})

test('without Retry-After the pauses grow, from one refusal to the next', async () => {
  const net = answering(() => refusal(429))
  const call = limitedFetch(net.fetch, { clock: net.clock, jitter: 0 })('http://a/')
  await net.pass(20_000, 50)
  assert.equal((await call).status, 429)
  assert.deepEqual(net.times, [0, 1_000, 3_000, 7_000, 15_000])
})

test('the body of a response that is not the answer is cancelled, that of the answer is not', async () => {
  const cancelled: number[] = []
  const net = new FakeNet((_, number) => refusal(429, '1', () => void cancelled.push(number)))
  const call = limitedFetch(net.fetch, { clock: net.clock, attempts: 3, jitter: 0 })('http://a/')
  await net.pass(4_000, 50)
  await call
  assert.deepEqual(cancelled, [1, 2])
})

test('an abort between two attempts ends the call with the reason, in a pause of the host and in one of its own', async () => {
  for (const answer of [() => refusal(429, '9'), broken('ECONNRESET')]) {
    const client = new AbortController()
    const net = answering(answer)
    let retries = 0
    const polite = limitedFetch(net.fetch, { clock: net.clock, onRetry: () => retries++ })
    const rejected = assert.rejects(polite('http://a/', { signal: client.signal }), /enough/)
    await net.pass(100, 10)
    assert.equal(retries, 1)
    client.abort(new Error('enough'))
    await rejected
    await net.pass(20_000, 100)
    assert.deepEqual([net.times.length, polite.stats().sent, polite.stats().retried], [1, 1, 0])
  }
})

test('hooks and counters report what happens', async () => {
  const waits: WaitEvent[] = []
  const retries: RetryEvent[] = []
  const throttles: ThrottleEvent[] = []
  const net = answering(() => refusal(429, '2'), ok)
  const polite = limitedFetch(net.fetch, {
    policy: gcra({ limit: 10, window: '1s', burst: 1 }),
    clock: net.clock,
    jitter: 0,
    onWait: (event) => waits.push(event),
    onRetry: (event) => retries.push(event),
    onThrottle: (event) => throttles.push(event),
  })
  const calls = [polite('http://a/1'), polite('http://a/2')]
  await net.pass(50)
  assert.deepEqual(polite.statsOf('a')?.pauseMs, 1_950)
  await net.pass(3_000, 10)
  await Promise.all(calls)
  assert.deepEqual(
    waits.map(({ url, waiting, delayMs }) => [url.pathname, waiting, delayMs]),
    [
      ['/1', 1, 0],
      ['/2', 2, 0],
      ['/1', 2, 2_000],
    ],
  )
  assert.deepEqual(
    retries.map(({ key, attempt, delayMs, status }) => [key, attempt, delayMs, status]),
    [['a', 2, 2_000, 429]],
  )
  assert.deepEqual(throttles, [{ key: 'a', status: 429, retryAfterMs: 2_000, pauseMs: 2_000, perSecond: Number.POSITIVE_INFINITY }])
  assert.deepEqual(polite.stats(), { keys: 1, waiting: 0, inFlight: 0, sent: 3, throttled: 1, retried: 1 })
})

test('a hook that throws fails only its own request', async () => {
  for (const hook of ['onWait', 'onRetry', 'onThrottle'] as const) {
    let calls = 0
    const net = answering(() => refusal(429, '1'), ok)
    const fail = (): void => {
      if (calls++ === 0) throw new Error(hook)
    }
    const polite = limitedFetch(net.fetch, {
      clock: net.clock,
      jitter: 0,
      concurrency: 1,
      policy: gcra({ limit: 100, window: '1s' }),
      [hook]: fail,
    })
    const first = assert.rejects(polite('http://a/'), new RegExp(hook))
    const second = polite('http://a/')
    await net.pass(3_000, 50)
    await first
    assert.equal((await second).status, 200)
    assert.deepEqual([polite.stats().inFlight, polite.stats().waiting], [0, 0])
  }
})

test('what is under way when all is closed has an answer, which is not tried to be bettered', async () => {
  const net = new FakeNet(() => refusal(429, '1'), 100)
  const polite = limitedFetch(net.fetch, { clock: net.clock })
  const call = polite('http://a/')
  await net.pass(50, 10)
  polite.close()
  await net.pass(2_000, 50)
  assert.equal((await call).status, 429)
  assert.equal(net.times.length, 1)
})

const request = (method: string): SentRequest => ({
  url: new URL('http://a/'),
  method,
  header: () => undefined,
  isRepeatable: true,
  signal: undefined,
  priority: 0,
})

/** Whether a GET, and a POST that was not redirected, may be sent again after an error. */
const afterError = (error: unknown): boolean[] =>
  ['GET', 'POST'].map((method) => isSafeToRepeat(request(method), { error, isRedirected: false }))

const fault = (code: string, syscall?: string): Error => Object.assign(new Error(code), { code, ...(syscall !== undefined && { syscall }) })

test('a host out of reach has seen nothing, a connection that lost it may have', () => {
  for (const code of ['EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']) {
    assert.deepEqual(afterError(fault(code, 'connect')), [true, true], code)
    assert.deepEqual(afterError(fault(code, 'read')), [true, false], code)
    assert.deepEqual(afterError(new TypeError('fetch failed', { cause: fault(code, 'read') })), [true, false], code)
  }
})

test('failures that pass are like a 503: repeated only where that is safe', () => {
  for (const status of [408, 425, 502, 503, 504, 520, 521, 522, 523, 524, 529]) {
    const outcome = { status, isRedirected: false }
    assert.deepEqual([isSafeToRepeat(request('GET'), outcome), isSafeToRepeat(request('POST'), outcome)], [true, false], String(status))
  }
  for (const status of [500, 501, 505, 519, 525, 526, 530]) assert.equal(isSafeToRepeat(request('GET'), { status }), false, String(status))
})

test('of several addresses none must have been reached', () => {
  const refused = fault('ECONNREFUSED', 'connect')
  const unreachable = fault('ENETUNREACH', 'connect')
  const tried = (...errors: Error[]): Error =>
    Object.assign(new AggregateError(errors), { code: (errors[0] as Error & { code: string }).code })
  assert.deepEqual(afterError(new TypeError('fetch failed', { cause: tried(unreachable, refused) })), [true, true])
  assert.deepEqual(afterError(tried(unreachable, fault('ENETUNREACH', 'read'))), [true, false])
})

test('what came of a redirect, or may have, is no reason to repeat what it answered', () => {
  const refused = fault('ECONNREFUSED', 'connect')
  for (const outcome of [{ status: 429 }, { error: refused }]) {
    for (const [isRedirected, isSafe] of [
      [false, true],
      [true, false],
      [undefined, false],
    ] as const) {
      assert.equal(isSafeToRepeat(request('POST'), { ...outcome, isRedirected }), isSafe)
      assert.equal(isSafeToRepeat(request('DELETE'), { ...outcome, isRedirected }), true)
    }
  }
})

test('a refused HTTP/2 stream was not processed, a reset one may have been', () => {
  const stream = (name: string): Error =>
    Object.assign(new Error(`Stream closed with error code ${name}`), { code: 'ERR_HTTP2_STREAM_ERROR' })
  for (const [name, post, get] of [
    ['NGHTTP2_REFUSED_STREAM', true, true],
    ['NGHTTP2_INTERNAL_ERROR', false, false],
  ] as const) {
    const outcome = { error: stream(name), isRedirected: false }
    assert.deepEqual([isSafeToRepeat(request('POST'), outcome), isSafeToRepeat(request('GET'), outcome)], [post, get])
  }
})
