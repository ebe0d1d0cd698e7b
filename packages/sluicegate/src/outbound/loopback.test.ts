import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longTest, shortOrLong } from 'sluicegate-testkit'
import { LimitedServer } from 'sluicegate-testkit/outbound/limited-server.js'
import type { Decision } from '../decision/decision.js'
import type { HeaderVersion } from '../headers/header-writer.js'
import { tokenBucket } from '../policy/single-policy.js'
import { limitedFetch } from './limited-fetch.js'
import type { OutboundOptions } from './outbound-options.js'

const BUCKET = tokenBucket({ limit: 10, window: '1s' })
const CALLERS = 3
/** A turn of the event loop that takes longer than this was kept waiting by others on the machine. */
const LONG_TURN_MS = 50

/** Time as far as this process was let run: a machine that does something else says nothing about a rate. */
class RunningTime {
  private lostMs = 0
  private lastMs = performance.now()
  private readonly timer = setInterval(() => this.look(), LONG_TURN_MS / 10)

  get nowS(): number {
    this.look()
    return (this.lastMs - this.lostMs) / 1000
  }

  stop(): void {
    clearInterval(this.timer)
  }

  private look(): void {
    const nowMs = performance.now()
    this.lostMs += Math.max(0, nowMs - this.lastMs - LONG_TURN_MS)
    this.lastMs = nowMs
  }
}

interface Scene {
  readonly version: HeaderVersion | 'silent'
  readonly options?: OutboundOptions
  readonly tell?: (decision: Decision) => Decision
}

/** Callers who never rest, with Node's own fetch; counted from the second `fromS` on. */
async function shareOf({ version, tell, options }: Scene, { fromS, toS }: { readonly fromS: number; readonly toS: number }) {
  const server = await LimitedServer.start(BUCKET, version, tell)
  const polite = limitedFetch(fetch, { attempts: 50, ...options })
  const time = new RunningTime()
  const startS = time.nowS
  const endMs = performance.now() + 2000 * toS
  let from: { passed: number; refused: number; atS: number } | undefined
  const caller = async (): Promise<void> => {
    for (let nowS = time.nowS; nowS - startS < toS && performance.now() < endMs; nowS = time.nowS) {
      if (nowS - startS >= fromS) from ??= { passed: server.passed, refused: server.refused, atS: nowS }
      await (await polite(`${server.url}/`)).text()
    }
  }
  try {
    await Promise.all(Array.from({ length: CALLERS }, caller))
    // Kept from running for more than half of the time, it has nothing to say.
    from ??= { passed: 0, refused: 0, atS: startS }
    const passed = server.passed - from.passed
    return { share: passed / (BUCKET.limit * (time.nowS - from.atS)), refusals: (server.refused - from.refused) / passed }
  } finally {
    time.stop()
    await server.stop()
  }
}

test('over real sockets a server that announces its budget is used to nine tenths, and never has to refuse', {
  concurrency: true,
}, async (t) => {
  const all: readonly HeaderVersion[] = ['draft-11', 'draft-10', 'draft-8', 'draft-7', 'draft-6', 'x-ratelimit']
  const versions = all.slice(0, shortOrLong(1, all.length))
  const runs = versions.map((version) =>
    t.test(version, async () => {
      const { share, refusals } = await shareOf({ version }, { fromS: 1, toS: 4 })
      assert.ok(share >= 0.9, `a share of ${share}`)
      assert.equal(refusals, 0)
    }),
  )
  await Promise.all(runs)
})

// How it comes out in the long run, and where nothing else runs, is asserted by the same test over simulated time.
const FOUND_OUT: Readonly<Record<string, Scene>> = {
  'that reports ten times what it has': {
    version: 'draft-11',
    tell: (fields) => ({ ...fields, remaining: fields.remaining * 10 + 500 }),
  },
  'that only says when to come back': { version: 'none' },
  'that only refuses': { version: 'silent' },
}

longTest(
  'over real sockets a server whose rate has to be found out gets most of it, and seldom has to refuse',
  {
    concurrency: true,
  },
  async (t) => {
    const runs = Object.entries(FOUND_OUT).map(([name, scene]) =>
      t.test(`one ${name}`, async () => {
        const { share, refusals } = await shareOf(scene, { fromS: 4, toS: 10 })
        assert.ok(share >= 0.75, `a share of ${share}`)
        assert.ok(refusals <= 0.1, `${refusals} refused per request`)
      }),
    )
    await Promise.all(runs)
  },
)

test('an unread body blocks others for no longer than bodyTimeout', async () => {
  const server = await LimitedServer.answering((_, response) => {
    response.write('the beginning')
  })
  try {
    const polite = limitedFetch(fetch, { concurrency: 1, bodyTimeout: 50 })
    const startMs = performance.now()
    const responses = [await polite(server.url), await polite(server.url), await polite(server.url)]
    assert.ok(performance.now() - startMs >= 90)
    for (const { body } of responses) await body?.cancel()
  } finally {
    await server.stop()
  }
})

test('a redirect to another host counts there', async () => {
  const there = await LimitedServer.start(BUCKET, 'draft-11')
  const here = await LimitedServer.answering((_, response) => {
    response.writeHead(302, { Location: `${there.url}/moved` }).end()
  })
  try {
    const polite = limitedFetch(fetch, { policy: tokenBucket({ limit: 5, window: '1h' }) })
    const response = await polite(here.url)
    assert.deepEqual([response.redirected, await response.text()], [true, 'body'])
    assert.equal(polite.statsOf(new URL(there.url).host)?.remaining, 9)
    assert.equal(polite.stats().keys, 2)
  } finally {
    await Promise.all([here.stop(), there.stop()])
  }
})

test('a server that breaks off is asked again, and one that is gone is not asked for ever', async () => {
  const server = await LimitedServer.answering((request, response) => {
    if (server.asked.length === 1) request.socket.destroy()
    else response.end('at last')
  })
  const polite = limitedFetch(fetch, { backoff: 10, attempts: 3 })
  const { url } = server
  const response = await polite(url)
  assert.equal(await response.text(), 'at last')
  assert.equal(polite.stats().retried, 1)
  await server.stop()
  await assert.rejects(polite(url), TypeError)
  assert.equal(polite.stats().retried, 3)
})

test('an abort while waiting sends nothing, one under way is for fetch', async () => {
  const server = await LimitedServer.answering(() => undefined)
  try {
    const polite = limitedFetch(fetch, { policy: tokenBucket({ limit: 1, window: '1h' }) })
    const client = new AbortController()
    const calls = [1, 2, 3].map((i) => polite(`${server.url}/${i}`, { signal: client.signal }))
    const ends = Promise.allSettled(calls)
    while (server.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
    const gone = new Error('gone')
    client.abort(gone)
    assert.deepEqual(
      (await ends).map((end) => end.status === 'rejected' && end.reason),
      [gone, gone, gone],
    )
    assert.deepEqual(server.asked, ['GET /1'])
    assert.deepEqual([polite.stats().inFlight, polite.stats().waiting], [0, 0])
  } finally {
    await server.stop()
  }
})
