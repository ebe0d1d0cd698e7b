/** Runtimes other than the Node.js at hand. */
export const RUNTIMES = ['node22', 'node24', 'bun', 'deno'] as const

export type Runtime = (typeof RUNTIMES)[number]

/** Suites, as parts of their paths, that a runtime is not asked, and why. Those on Redis and on processes ask Node's own clients and channels. */
const SERVERS = { '/redis/': 'servers', '/cluster/': 'processes', '/middleware/fleet.': 'servers', '-in-fleet.': 'servers' }
const UNASKED: Readonly<Record<Runtime, Readonly<Record<string, string>>>> = {
  node22: {},
  node24: {},
  bun: {
    ...SERVERS,
    '/shared/calls/deadlines.': 'counts what a timer throws as a failure of the test',
    '/outbound/copied-arguments.': 'has an undici of its own',
    '/outbound/dispatch-attempt.': 'has an undici of its own',
    '/outbound/held-response.': 'has no readers of bytes, and does not tell of what is collected',
    '/outbound/limited.': 'has an undici of its own',
    '/outbound/redirected-retries.': 'has other errors of connections',
    '/outbound/slow-hooks.': 'has an undici of its own',
    '/outbound/unread-bodies.': 'has an undici of its own',
    '/waiting/waiting.': 'does not tell which timers there are',
  },
  deno: {
    ...SERVERS,
    '/both-forms.': 'finds CommonJS where a package imports itself by a name that was required',
    '/edge-runtime.': 'evaluates no modules',
    '/express.': 'has a server of Node.js that has other rules about unread bodies',
    '/fastify': 'the same',
    '/koa.': 'the same',
    '/nest.': 'the same',
    '/hono.': 'the same; its own server is asked apart',
    '/fetch.': 'the same; its own server is asked apart',
    '/keys/ip-address.': 'has a BlockList that errs',
    '/memory/conformance.': 'has timers that cannot be watched',
    '/memory/runtime-refusal.': 'evaluates no modules',
    '/memory/worker-death.': 'lets a thread run on that was ended',
    '/mocked-time.': 'has no second mock of a clock',
    '/compat/express-rate-limit/': 'has no second mock of a clock',
    '/outbound/copied-arguments.': 'has other iterators of headers',
    '/outbound/held-response.': 'has no readers of bytes',
    '/outbound/limited.': 'has other rules of aborting in undici',
    '/outbound/loopback.': 'has other errors of connections',
    '/outbound/redirected-retries.': 'has other errors of connections',
    '/outbound/unread-bodies.': 'evaluates no modules, and has other rules of aborting in undici',
  },
}

/** The test files that a runtime is asked, and what it is not. */
export function suitesFor(
  runtime: Runtime,
  files: readonly string[],
): { readonly asked: readonly string[]; readonly unasked: readonly string[] } {
  const parts = Object.entries(UNASKED[runtime])
  const unasked = parts.map(([part, why]) => {
    const count = files.filter((file) => file.includes(part)).length
    // What is no longer there has no reason to be named.
    if (count === 0) throw new Error(`no test file is called ${part}`)
    return `${part} (${count} ${count === 1 ? 'file' : 'files'}: ${why})`
  })
  return { asked: files.filter((file) => !parts.some(([part]) => file.includes(part))), unasked }
}
