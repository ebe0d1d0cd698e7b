import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { serveFolder } from './static-server.js'

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
