import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { everyNth } from 'sluicegate-testkit'
import { neededOfRuntime } from './core-memory.js'

const LIBRARY = new URL('../adapters/fetch.js', import.meta.url).href
const CORE = new URL('../index.js', import.meta.url).href

/** What its own program prints, in a runtime that was made poorer beforehand. */
function printed(poorer: string, program: string): string {
  const source = `${poorer}
    const { rateLimit } = await import('${LIBRARY}')
    const { tokenBucket } = await import('${CORE}')
    const policy = tokenBucket({ name: 'p', limit: 1, window: '1h' })
    ${program}`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', source], { encoding: 'utf8', timeout: 30_000 })
  assert.equal(stderr, '')
  return stdout.trim()
}

const NO_COMPILER = `WebAssembly.Module = class { constructor() { throw new WebAssembly.CompileError('code generation disallowed by embedder') } }`
const NO_SHARING = `delete globalThis.SharedArrayBuffer; WebAssembly.Memory = class { constructor() { throw new TypeError('shared') } }`

for (const [i, [poorer, what]] of (
  [
    [NO_COMPILER, 'WebAssembly'],
    [NO_SHARING, 'shared memory'],
  ] as const
).entries()) {
  test(`a runtime without ${what} gets an error that says so, and what to do instead`, () => {
    const program = `try { rateLimit(policy) } catch ({ code, message }) { console.log(code, message) }`
    assert.match(printed(poorer, program), new RegExp(`^RUNTIME_UNSUPPORTED ${what}.*docs/frameworks\\.md#`))
  })

  everyNth(i, 2)(`without ${what} a limiter elsewhere does all the same`, () => {
    const program = `
      const decision = { allowed: false, limit: 1, remaining: 0, retryAfterMs: 1500, resetAfterMs: 1500, policy: 'p', source: 'store' }
      const elsewhere = { policy, take: async () => decision, peek: async () => decision, refund: async () => decision }
      const response = await rateLimit({ limiter: elsewhere, key: () => 'all' })(new Request('http://localhost/'))
      console.log(response.status, response.headers.get('retry-after'))`
    assert.equal(printed(poorer, program), '429 2')
  })
}

test('one limiter too many gets an error that says how many there may be', () => {
  const full = `const Memory = WebAssembly.Memory
    let left = 3
    WebAssembly.Memory = class { constructor(...given) {
      if (left-- === 0) throw new RangeError('could not allocate memory')
      return new Memory(...given)
    } }`
  const program = `
    const { createLimiter } = await import('${CORE}')
    try { for (;;) createLimiter(policy).take('k') } catch ({ code, message }) { console.log(code, message) }`
  assert.match(printed(full, program), /^RANGE_UNSUPPORTED limiters: .*about 12,000 limiters/)
})

test('out of memory is no refusal', () => {
  const full = (): never => {
    throw new RangeError('could not allocate memory')
  }
  assert.throws(() => neededOfRuntime('shared memory', full), RangeError)
})
