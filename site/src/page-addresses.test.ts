import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT, withAnchorsThatAre } from './api-reference.js'
import { anchorOf, linkFrom, pageOf } from './page-addresses.js'
import { linksOfRepository } from './repository-links.js'
import { sidebar } from './sidebar.js'
import { serveFolder } from './static-server.js'

const REPOSITORY = 'https://git.example/sluicegate/blob/main'

test('documents, examples and the reference have pages, other files have none', () => {
  const pages = [
    'docs/redis.md',
    'docs/policies/gcra.md',
    'ARCHITECTURE.md',
    'docs/adr',
    'examples/nginx/sluicegate.conf',
    'site/reference/api/index.md',
  ]
  assert.deepEqual(pages.map(pageOf), [
    'redis.md',
    'policies/gcra.md',
    'architecture.md',
    'adr/index.md',
    'examples/nginx-sluicegate-conf.md',
    'api/index.md',
  ])
  assert.equal(pageOf('bench/results'), undefined)
  assert.equal(pageOf('packages/sluicegate/src/index.ts'), undefined)
})

test('a link of a document leads to the page of what it names, with its heading', () => {
  assert.equal(linkFrom('docs/policies/gcra.md', '../guide.md#waiting', undefined), '/guide.md#waiting')
  assert.equal(linkFrom('docs/redis.md', '../ARCHITECTURE.md', undefined), '/architecture.md')
  assert.equal(linkFrom('docs/README.md', 'adr/', undefined), '/adr/index.md')
  assert.equal(linkFrom('docs/guide.md', '#here', undefined), '#here')
  assert.equal(linkFrom('docs/guide.md', 'https://example.com', undefined), 'https://example.com')
})

test('a link to what is no page leads to the repository, and where that is not known it is no link', () => {
  assert.equal(linkFrom('docs/benchmarks.md', '../bench/results/', REPOSITORY), `${REPOSITORY}/bench/results`)
  assert.equal(linkFrom('docs/benchmarks.md', '../bench/results/', undefined), undefined)
})

test('what leads nowhere keeps its words', () => {
  const token = (type: string, content = '', href?: string) => ({
    type,
    content,
    info: '',
    children: null,
    attrGet: () => href ?? null,
    attrSet(_: string, value: string) {
      href = value
    },
  })
  const children = [
    ...[token('link_open', '', '../bench/results/'), token('text', 'results'), token('link_close')],
    ...[token('link_open', '', 'guide.md'), token('text', 'guide'), token('link_close')],
  ]
  const paragraph = { ...token('inline'), children }
  linksOfRepository('/repository/', undefined)({ tokens: [paragraph], env: { path: '/repository/docs/benchmarks.md' } })
  assert.deepEqual(
    children.map(({ type }) => type),
    ['text', 'text', 'text', 'link_open', 'text', 'link_close'],
  )
  assert.equal(children[3]?.attrGet(), '/guide.md')
})

test('anchors are those of a Git host', () => {
  assert.equal(anchorOf('`take(key, cost)`: the one door'), 'takekey-cost-the-one-door')
  assert.equal(anchorOf('What is returned'), 'what-is-returned')
})

test('links of the reference lead to anchors that are there', () => {
  const page = '### LimiterHandle\n\n### Key\n\n### key\n\n[a](#limiterhandle-1) [b](#key-1) [c](#gone-1)'
  assert.equal(withAnchorsThatAre(page).split('\n').at(-1), '[a](#limiterhandle) [b](#key-1) [c](#gone-1)')
})

test('every document stands in a group beside the pages', () => {
  const groups = sidebar(ROOT)['/'] ?? []
  assert.ok(groups.length > 5)
  assert.deepEqual(groups.find(({ text }) => text === 'More')?.items?.map(({ link }) => link) ?? [], [], 'name these in sidebar.ts')
})

/** The status of a path that is sent as it is. */
function statusOf(url: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { path }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    sent.on('error', reject).end()
  })
}

test('a folder without 404.html, paths that cannot be decoded and paths that lead out of it end no server', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-served-'))
  writeFileSync(join(folder, 'page.html'), 'a page')
  const server = await serveFolder(folder)
  try {
    const statuses = []
    for (const path of ['/page', '/none', '/%', '//', '/../../etc/hostname', '/%00', '/page.html'])
      statuses.push(await statusOf(server.url, path))
    assert.deepEqual(statuses, [200, 404, 404, 404, 404, 404, 200])
    writeFileSync(join(folder, '404.html'), 'no page')
    assert.equal(await statusOf(server.url, '/none'), 404)
  } finally {
    await server.close()
    rmSync(folder, { recursive: true })
  }
})
