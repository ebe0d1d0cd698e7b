import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'

const require = createRequire(import.meta.url)
const { exports, version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
/** Entry points of runtimes that know ES modules alone have one form. */
const ENTRIES = Object.entries<{ readonly require?: object }>(exports)
  .filter(([, forms]) => forms.require !== undefined)
  .map(([entry]) => entry.replace('.', 'sluicegate'))

// By its public names, which lead to the one form or the other.
const modules = await import('sluicegate')
const required: typeof modules = require('sluicegate')
const { createLimiter, manualClock, tokenBucket } = modules
const policy = tokenBucket({ limit: 1, window: '1m' })

test('both forms are there, and they are two', () => {
  assert.notEqual(required.createLimiter, createLimiter)
})

for (const entry of ENTRIES) {
  test(`${entry} has the same names in both forms`, async () => {
    const imported = await import(entry)
    const names = Object.keys({ ...require(entry) }).sort()
    assert.deepEqual(names, Object.keys({ ...imported }).sort())
    assert.ok(names.length > 0)
  })
}

test('the name under which both forms keep their state has the version of the package', () => {
  assert.ok(Symbol.for(`sluicegate ${version}`) in globalThis)
})

for (const [entry, name] of [
  ['sluicegate', 'PolicyError'],
  ['sluicegate', 'StoreError'],
  ['sluicegate/outbound', 'OutboundError'],
  ['sluicegate/nest', 'RateLimitException'],
] as const) {
  test(`${name} is one class in both forms`, async () => {
    assert.equal((await import(entry))[name], require(entry)[name])
  })
}

test('an error of one form is an instance of the class of the other', () => {
  assert.throws(() => required.tokenBucket({ limit: 0, window: '1s' }), modules.PolicyError)
  assert.throws(() => tokenBucket({ limit: 0, window: '1s' }), required.PolicyError)
})

test('require() of the stand-in for express-rate-limit answers with the middleware, which has all else beside it', async () => {
  const rateLimit = require('sluicegate/express-rate-limit')
  const { MINUTE } = await import('sluicegate/express-rate-limit')
  assert.equal(typeof rateLimit({ windowMs: MINUTE, limit: 100 }).resetKey, 'function')
  assert.throws(() => rateLimit({ limit: -1 }), { option: 'limit' })
})

test('a clock of one form is known to the other: a handle carries it', () => {
  using limiter = required.createLimiter(policy, { clock: modules.coarseClock() })
  const { clock: carried } = limiter.handle() as unknown as { clock: { kind: string } }
  assert.equal(carried.kind, 'coarse')
  const clock = manualClock()
  using other = required.createLimiter(policy, { clock })
  using attached = modules.attachLimiter(other.handle())
  attached.take('a')
  clock.advance(59_999)
  assert.equal(other.take('a').allowed, false)
  clock.advance(1)
  assert.equal(other.take('a').allowed, true)
})

test('a worker thread of one form attaches to a limiter of the other', async () => {
  for (const [made, load] of [
    [modules, "require('node:module').createRequire(workerData.from)('sluicegate')"],
    [
      required,
      "await import(require('node:module').createRequire(workerData.from).resolve('sluicegate').replace('commonjs/index.js', 'index.js'))",
    ],
  ] as const) {
    using limiter = made.createLimiter(policy, { clock: made.manualClock() })
    const code = `const { workerData, parentPort } = require('node:worker_threads')
      ;(async () => {
        const { attachLimiter } = ${load}
        parentPort.postMessage(attachLimiter(workerData.handle).take('a').allowed)
      })()`
    const worker = new Worker(code, { eval: true, workerData: { handle: limiter.handle(), from: import.meta.filename } })
    // Both asked for at once: a thread that has ended gives its last message and its end in one turn.
    const [message] = await Promise.all([once(worker, 'message'), once(worker, 'exit')])
    assert.deepEqual(message, [true])
    assert.equal(limiter.take('a').allowed, false)
  }
})

test('a limiter of one form, in the shadow or not, stands behind middleware of the other', async () => {
  const edge = await import('sluicegate/fetch')
  for (const { rateLimit } of [edge, require('sluicegate/fetch') as typeof edge]) {
    for (const { createLimiter } of [modules, required]) {
      const denials: string[] = []
      for (const shadow of [false, true]) {
        using limiter = createLimiter(policy, { clock: manualClock(), shadow })
        const limited = rateLimit({ limiter, key: () => 'a', onDenied: ({ decision }) => void denials.push(decision.policy) })
        const serve = limited.wrap(() => new Response('served'))
        const answers = [await serve(new Request('http://a/')), await serve(new Request('http://a/'))]
        assert.deepEqual(
          answers.map(({ status }) => status),
          shadow ? [200, 200] : [200, 429],
        )
      }
      assert.equal(denials.length, 2)
    }
  }
})

test('a warning is emitted once, from either form', async () => {
  const edge = await import('sluicegate/fetch')
  const seen: string[] = []
  const hear = ({ code }: Error & { code?: string }): void => void (code === 'SLUICEGATE_COUNTED_TWICE' && seen.push(code))
  process.on('warning', hear)
  for (const { rateLimit } of [edge, require('sluicegate/fetch') as typeof edge]) {
    using limiter = createLimiter(policy, { clock: manualClock() })
    const twice = [1, 2].map(() => rateLimit({ limiter, key: () => 'a' }))
    const request = new Request('http://a/')
    for (const each of twice) await each(request)
  }
  await setImmediate()
  process.off('warning', hear)
  assert.deepEqual(seen, ['SLUICEGATE_COUNTED_TWICE'])
})
