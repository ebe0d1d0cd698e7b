import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const ENTRIES = [
  'index',
  'http',
  'keys/index',
  'adapters/express',
  'adapters/fastify',
  'adapters/fetch',
  'adapters/hono',
  'adapters/koa',
  'outbound/index',
  'redis/index',
  'cluster/index',
]

const path = (entry: string): string => JSON.stringify(new URL(`./${entry}.js`, import.meta.url).href)

/** What its own program prints where each function of `process` that the library might call throws, as in the edge runtime of Next.js. */
function printed(program: string): readonly string[] {
  const source = `
    const refuse = () => { throw new Error('not supported in the Edge Runtime') }
    for (const name of ['getBuiltinModule', 'emitWarning', 'hrtime', 'cwd', 'on', 'once']) process[name] = refuse
    console.warn = console.log
    ${program}`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', source], { encoding: 'utf8', timeout: 30_000 })
  assert.equal(stderr, '')
  return stdout.trim().split('\n')
}

test('every entry can be imported where the functions of process throw', () => {
  const program = ENTRIES.map((entry) => `await import(${path(entry)})`).join('\n')
  assert.deepEqual(printed(`${program}\nconsole.log('imported')`), ['imported'])
})

test('a limit works there, and its warnings stand on the console', () => {
  const [first, warning, ...rest] = printed(`
    const { rateLimit } = await import(${path('adapters/fetch')})
    const { tokenBucket } = await import(${path('index')})
    const limit = rateLimit({ policy: tokenBucket({ limit: 1, window: '1h' }), remoteAddress: () => '192.0.2.1' })
    const headers = { 'x-forwarded-for': '198.51.100.1' }
    console.log('asks')
    for (let i = 0; i < 2; i++) console.log((await limit(new Request('http://localhost/', { headers })))?.status)`)
  assert.equal(first, 'asks')
  assert.match(warning ?? '', /^SLUICEGATE_PROXY_UNTRUSTED: a request came with x-forwarded-for/)
  assert.deepEqual(rest, ['undefined', '429'])
})
