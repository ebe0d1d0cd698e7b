import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { connectTo } from 'sluicegate-testkit/service/many-connections.js'
import { runService, TWO_POLICIES } from 'sluicegate-testkit/service/running-service.js'

const FILES = [
  ['/', 'text/html; charset=utf-8'],
  ['/page.js', 'text/javascript; charset=utf-8'],
  ['/page.css', 'text/css; charset=utf-8'],
  ['/icon.svg', 'image/svg+xml'],
] as const

test('the page and its files may load nothing but themselves, and no page may frame them', async (t) => {
  const { url } = await runService(t)
  for (const [path, type] of FILES) {
    const { status, headers } = await fetch(url + path)
    assert.deepEqual([status, headers.get('content-type'), headers.get('x-content-type-options')], [200, type, 'nosniff'])
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/)
    assert.match(policy, /frame-ancestors 'none'/)
    assert.doesNotMatch(policy, /unsafe|https?:|\*/)
    assert.equal(headers.get('cache-control'), 'no-store')
  }
})

test('the page holds no script or style of its own, and the licence of what it ships', async (t) => {
  const { url } = await runService(t)
  const html = await (await fetch(url)).text()
  assert.doesNotMatch(html, /<style|<script>|\son\w+=|style=|https?:/)
  for (const path of ['/page.js', '/page.css']) {
    const start = (await (await fetch(url + path)).text()).slice(0, 500)
    assert.match(start, /uPlot[\s\S]*MIT License[\s\S]*Copyright/)
  }
})

test('switched off, there is no page and no list of keys', async (t) => {
  const { url, engine } = await runService(t, `${TWO_POLICIES}dashboard: { keys: off }\n`)
  for (const path of ['/', '/page.js', '/events']) assert.equal((await fetch(url + path)).status, 404)
  const served = engine.policy('burst') ?? assert.fail()
  served.take('alice', 1)
  assert.deepEqual(served.hotKeys(10), { demand: [], denials: [] })
})

test('at most 32 pages are served at once, and a closed one makes room', async (t) => {
  const { url } = await runService(t, undefined, { sampleMs: 10 })
  const open = async (): Promise<{ status: string; close(): Promise<unknown> }> => {
    const socket = await connectTo(url)
    socket.write('GET /events HTTP/1.1\r\nHost: x\r\n\r\n')
    const [first] = (await once(socket, 'data')) as [Buffer]
    return { status: first.toString().slice(9, 12), close: () => once(socket.destroy(), 'close') }
  }
  const pages = await Promise.all(Array.from({ length: 32 }, open))
  assert.ok(pages.every(({ status }) => status === '200'))
  assert.equal((await open()).status, '503')
  await pages[0]?.close()
  let again = await open()
  // The service learns of the close a moment later.
  while (again.status === '503') again = await open()
  assert.equal(again.status, '200')
})
