// A store in Deno KV, by `await Deno.openKv(file)`: `deno run --unstable-kv`. A version is a versionstamp, which never comes again. Deno KV has no
// clock to ask, so the time is this machine's: all processes need synchronized clocks.
import { createHash } from 'node:crypto'

/** A file that another process was writing: nothing was written. */
function notMade(error) {
  if (String(error).includes('database is locked')) return { ok: false }
  throw error
}

/** @returns {import('sluicegate/store').CasStore} */
export function denoKvStore(kv, prefix = 'limits') {
  // Parts of a key together take 2 kB, and values 64.
  const keyOf = (key) => [prefix, createHash('sha256').update(key).digest()]
  const stateOf = (value, versionstamp) => ({
    value: value ?? undefined,
    version: versionstamp ?? undefined,
    nowUs: Date.now() * 1000,
  })
  const read = async (key) => {
    const { value, versionstamp } = await kv.get(keyOf(key), { consistency: 'strong' })
    return stateOf(value, versionstamp)
  }

  const swapAll = async (swaps) => {
    const step = kv.atomic()
    for (const { key, version, value, ttlMs } of swaps) {
      step.check({ key: keyOf(key), versionstamp: version ?? null })
      step.set(keyOf(key), value.slice(), { expireIn: Math.ceil(ttlMs) })
    }
    const { ok, versionstamp } = await step.commit().catch(notMade)
    if (ok) return { swapped: true, states: swaps.map(({ value }) => stateOf(value, versionstamp)) }
    return { swapped: false, states: await Promise.all(swaps.map(({ key }) => read(key))) }
  }

  return {
    name: 'deno-kv',
    read,
    swap: async (swap) => {
      const { swapped, states } = await swapAll([swap])
      return { swapped, state: states[0] }
    },
    swapAll,
  }
}
