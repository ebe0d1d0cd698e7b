import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { concurrency, createLimiter, PolicyError, tokenBucket } from './index.js'

const run = promisify(execFile)

test('no promise that may be dropped ends the process, whatever numbers come from upstream, and a refused one is reported once', async () => {
  const script = fileURLToPath(import.meta.resolve('sluicegate-testkit/runtimes/dropped-promises.js'))
  const { stdout } = await run(process.execPath, ['--unhandled-rejections=strict', script], { timeout: 60_000 })
  const warnings = JSON.parse(stdout) as readonly string[]
  const refused = warnings.filter((warning) => warning.startsWith('SLUICEGATE_CALL_REFUSED'))
  assert.ok(
    refused.some((text) =>
      /settle\(\) of the policy memory was refused and changed nothing: actualCost must be an integer >= 0/.test(text),
    ),
  )
  assert.ok(refused.some((text) => /refund\(\) of the policy exact /.test(text)))
  assert.equal(new Set(refused).size, refused.length)
  assert.doesNotMatch(stdout, /secret-key|a job failed/)
})

test('a settle that is awaited rejects with the argument at fault, and the estimate stays charged', async () => {
  using limiter = createLimiter(tokenBucket({ limit: 10, window: '1h' }))
  for (const wrong of [undefined, Number.NaN, 12.5, -1, '7'] as readonly unknown[] as readonly number[]) {
    const isNamed = (error: unknown): boolean => error instanceof PolicyError && error.option === 'actualCost'
    await assert.rejects(
      limiter.run('k', (job) => job.settle(wrong), { cost: 2 }),
      isNamed,
    )
  }
  assert.equal(limiter.peek('k').remaining, 0)
  using places = createLimiter(concurrency({ limit: 1 }))
  await assert.rejects(
    places.run('k', (job) => job.settle(1)),
    PolicyError,
  )
  assert.equal(places.peek('k').remaining, 1)
})
