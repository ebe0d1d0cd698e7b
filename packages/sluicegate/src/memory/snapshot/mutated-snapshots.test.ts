import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { shortOrLong } from 'sluicegate-testkit'
import type { MutationReport } from 'sluicegate-testkit/runtimes/mutated-snapshots.js'

// A checksum tells damage, not who computed it: what was changed on purpose has to be refused, or to stay within bounds.

/** Longer than a seed takes on a busy machine. */
const LONGEST_MS = 20_000
const MUTATIONS = shortOrLong(60, 500)

async function reported(from: number, to: number): Promise<MutationReport> {
  const progress = new SharedArrayBuffer(8)
  const worker = new Worker(new URL(import.meta.resolve('sluicegate-testkit/runtimes/mutated-snapshots.js')), {
    workerData: { from, to, progress },
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  })
  const at = new Int32Array(progress)
  let [seen, sinceMs] = [0, Date.now()]
  let watch: ReturnType<typeof setInterval> | undefined
  try {
    return await new Promise((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
      watch = setInterval(() => {
        const count = Atomics.load(at, 1)
        if (count !== seen) [seen, sinceMs] = [count, Date.now()]
        else if (Date.now() - sinceMs > LONGEST_MS) reject(new Error(`seed ${Atomics.load(at, 0)} hangs`))
      }, 100)
    })
  } finally {
    clearInterval(watch)
    await worker.terminate()
  }
}

test('a snapshot whose words were changed is refused, or neither hangs, nor traps, nor takes memory without end, whatever is asked of it', async () => {
  const { refused, driven, faults } = await reported(0, MUTATIONS)
  assert.deepEqual(faults, [])
  assert.ok(refused > MUTATIONS / 6 && driven > MUTATIONS / 12, `${refused} refused, ${driven} driven`)
})
