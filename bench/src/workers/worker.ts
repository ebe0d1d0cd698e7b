/** What each request of the Worker does, in the order of the table. */
export const WAYS = ['no limit', 'in memory', 'leased', 'exact', 'counter'] as const
export type Way = (typeof WAYS)[number]

/** Those that call an object. */
export const WITH_OBJECT: readonly Way[] = ['leased', 'exact', 'counter']

/**
 * The Worker that is measured: a path names a way, how many keys there are, and one of them or none for any. The counter is the plain way on
 * the same input: an object for each key, which counts in its memory, stores each change, and answers when it is stored.
 */
export const WORKER = `
import { env, waitUntil } from 'cloudflare:workers'
import { createLimiter, fixedWindow } from 'sluicegate'
import { durableObjects, limiterObject } from 'sluicegate/durable-objects'

const PLENTY = 1_000_000_000
const DAY_MS = 86_400_000
const policyOf = (name) => fixedWindow({ limit: PLENTY, window: '1d', name })
const [memory, leased, exact] = ['memory', 'leased', 'exact'].map(policyOf)
let calls = 0

export class Limits extends limiterObject([leased, exact]) {
  constructor(state, env) {
    super(state, env)
    this.storage = state.storage
  }
  async fetch(request) {
    calls++
    return request.url.endsWith('/count') ? Response.json(await this.count()) : super.fetch(request)
  }
  async count() {
    this.window ??= (await this.storage.get('window')) ?? { count: 0, endMs: 0 }
    const nowMs = Date.now()
    if (nowMs >= this.window.endMs) this.window = { count: 0, endMs: nowMs + DAY_MS }
    if (this.window.count >= PLENTY) return { allowed: false }
    this.window.count++
    void this.storage.put('window', this.window)
    return { allowed: true }
  }
}

const options = { store: durableObjects(env.LIMITS, { waitUntil }), timeout: 60_000, outage: 'closed' }
const limiters = {
  leased: createLimiter(leased, options),
  exact: createLimiter(exact, { ...options, mode: 'exact' }),
}
let inMemory
const take = {
  'no limit': () => ({ allowed: true }),
  'in memory': (key) => (inMemory ??= createLimiter(memory)).take(key),
  leased: (key) => limiters.leased.take(key),
  exact: (key) => limiters.exact.take(key),
  counter: async (key) => (await env.LIMITS.get(env.LIMITS.idFromName(key)).fetch('https://limiter/count')).json(),
}

export default {
  async fetch(request) {
    const [, way, keys, one] = decodeURIComponent(new URL(request.url).pathname).split('/')
    if (way === 'calls') return Response.json(calls)
    const { allowed } = await take[way]('key ' + (one ?? Math.floor(Math.random() * Number(keys))))
    return new Response(allowed ? 'passed' : 'denied', { status: allowed ? 200 : 429 })
  },
}
`
