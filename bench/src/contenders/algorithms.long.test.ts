import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Job } from '../job.js'
import { inOneLoop, madeKeys, walkOf } from '../key-row.js'
import { ALGORITHM_CONTENDERS, ALGORITHM_NAMES } from './algorithms.js'

const TAKES = 60_000

for (const name of ALGORITHM_NAMES) {
  test(`${name}: all of a loop pass, or none, on one key and on many`, async () => {
    for (const outcome of ['allow', 'deny'] as const) {
      for (const keys of [1, 3000]) {
        const job: Job = { contender: name, keys, takesPerTurn: 0, outcome, freshKeys: false, repeatMs: 1 }
        for (const keying of keys === 1 ? (['bound', 'keyed'] as const) : (['keyed'] as const)) {
          const contender = await ALGORITHM_CONTENDERS[`${name}; ${keying}; precise`](job)
          const { allowed } = await inOneLoop(walkOf(contender, madeKeys(keys)), TAKES)
          assert.equal(allowed, outcome === 'allow' ? TAKES : 0, `${outcome}, ${keys} keys, ${keying}`)
        }
      }
    }
  })
}
