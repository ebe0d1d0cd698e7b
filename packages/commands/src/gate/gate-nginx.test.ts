import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePorts, longTest, until } from 'sluicegate-testkit'
import { replaced, startNginx, temporaryPaths } from 'sluicegate-testkit/service/running-service.js'
import { sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'

const SHIPPED = readFileSync(fileURLToPath(new URL('../../../../examples/nginx/verdicts.conf', import.meta.url)), 'utf8')

interface Guarded {
  readonly folder: string
  readonly map: string
  readonly log: string
  /** The status of a request from an address of this machine, or, through a proxy, of any. */
  statusFor(address: string): Promise<number>
}

/** nginx with the configuration that ships and an access log, the gate that follows the log, and an application. */
async function guarded(t: TestContext, option: '--nginx-geo' | '--nginx-map', ...gateFlags: string[]): Promise<Guarded> {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-gate-nginx-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const application = createServer((_, response) => response.end('from the application')).listen(0, '127.0.0.1')
  await once(application, 'listening')
  t.after(() => application.close())
  const [port = 0] = await freePorts(1)
  const map = join(folder, 'verdicts')
  const log = join(folder, 'access.log')
  const shipped = option === '--nginx-geo' ? SHIPPED : replaced(SHIPPED, { 'geo $remote_addr': 'map $remote_addr' })
  const conf = replaced(shipped, {
    '/var/lib/sluicegate/verdicts.geo;': `${map};`,
    '127.0.0.1:8000': `127.0.0.1:${port}`,
    '127.0.0.1:3000': `127.0.0.1:${(application.address() as AddressInfo).port}`,
  })
  writeFileSync(join(folder, 'verdicts.conf'), conf)
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; ${user} worker_processes 1; error_log ${folder}/error.log; pid ${folder}/pid;\nevents {}\nhttp {\n${temporaryPaths(folder)}\naccess_log ${log};\nmap_hash_bucket_size 256;\nset_real_ip_from 127.0.0.2;\nreal_ip_header x-real-ip;\ninclude ${folder}/verdicts.conf;\n}\n`,
  )
  const reload = `nginx -p ${folder} -e ${folder}/error.log -c ${folder}/nginx.conf -s reload`
  sluicegate(
    t,
    'gate',
    ...['--follow', log, '--interval', '20ms', option, map, '--reload-every', '20ms', ...gateFlags],
    // Before nginx runs there is nothing to reload.
    ...['--reload', `test ! -e ${folder}/pid || ${reload}`],
  )
  await until('the map exists', () => existsSync(map))
  startNginx(t, folder, '-e', `${folder}/error.log`)
  const statusFor = (address: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const from = address.includes(':') ? { localAddress: '127.0.0.2', headers: { 'x-real-ip': address } } : { localAddress: address }
      const sent = request({ host: '127.0.0.1', port, ...from, agent: false }, (response) => {
        response.resume()
        response.once('end', () => resolve(response.statusCode ?? 0))
      })
      sent.once('error', reject)
      sent.end()
    })
  await until('nginx answers', () =>
    statusFor('127.0.0.1').then(
      (status) => status === 200,
      () => false,
    ),
  )
  return { folder, map, log, statusFor }
}

/** Workers of the old configuration still take requests for a moment after the reload. */
const ANSWERS_IN_A_ROW = 5

/** Asks until some answers in a row have that status. */
async function asksUntil({ statusFor, folder }: Guarded, address: string, status: number, inARow = ANSWERS_IN_A_ROW): Promise<void> {
  let last = 0
  let same = 0
  await until(`${address} receives ${status}`, async () => {
    last = await statusFor(address)
    same = last === status ? same + 1 : 0
    return same === inARow
  }).catch((error) => {
    throw new Error(`${error.message}; last ${last}; ${readFileSync(join(folder, 'error.log'), 'utf8').slice(-2_000)}`)
  })
}

test('nginx answers 429 to an attacker that its log shows, and goes on answering others', async (t) => {
  const edge = await guarded(t, '--nginx-geo', '--window', '1m', '--block', '30 for 1h')
  for (let i = 0; i < 10; i++) assert.equal(await edge.statusFor('127.0.0.8'), 200)
  for (let i = 0; i < 31; i++) await edge.statusFor('127.0.0.7')
  await asksUntil(edge, '127.0.0.7', 429)
  for (let i = 0; i < 5; i++) {
    assert.equal(await edge.statusFor('127.0.0.8'), 200)
    assert.equal(await edge.statusFor('127.0.0.9'), 200)
    assert.equal(await edge.statusFor('127.0.0.7'), 429)
  }
})

test('an attacker with all addresses of an IPv6 network is found and stays out, whichever it takes next', async (t) => {
  const edge = await guarded(t, '--nginx-geo', '--window', '1m', '--block', '30 for 1h')
  for (let i = 0; i < 31; i++) await edge.statusFor(`2001:db8:0:4217::${i.toString(16)}`)
  await asksUntil(edge, '2001:db8:0:42ff::7', 429)
  assert.equal(await edge.statusFor('2001:db8:0:4300::1'), 200)
})

test('a throttled IPv6 client has one rate, whichever of its addresses it takes', async (t) => {
  const edge = await guarded(t, '--nginx-geo', '--window', '1m', '--throttle', '20 for 1h')
  for (let i = 0; i < 21; i++) await edge.statusFor(`2001:db8:0:4217::${i.toString(16)}`)
  await asksUntil(edge, '2001:db8:0:4217::7', 429, 1)
  const statuses = await Promise.all(Array.from({ length: 20 }, (_, i) => edge.statusFor(`2001:db8:0:42${(16 + i).toString(16)}::1`)))
  assert.ok(statuses.filter((status) => status === 429).length >= 15, statuses.join())
  assert.equal(await edge.statusFor('2001:db8:0:4300::1'), 200)
})

longTest('a throttled client has the rate of the zone, and is not blocked', async (t) => {
  const edge = await guarded(t, '--nginx-geo', '--window', '1m', '--throttle', '20 for 1h')
  for (let i = 0; i < 21; i++) await edge.statusFor('127.0.0.7')
  await asksUntil(edge, '127.0.0.7', 429)
  await asksUntil(edge, '127.0.0.7', 200, 1)
  for (let i = 0; i < 10; i++) assert.equal(await edge.statusFor('127.0.0.8'), 200)
})

test('keys that clients choose neither break the map nor block another', async (t) => {
  const edge = await guarded(t, '--nginx-map', '--window', '1m', '--block', '10 for 1h', '--key', '$remote_user')
  const time = `${new Date().toUTCString().slice(5, 16).replaceAll(' ', '/')}:${new Date().toISOString().slice(11, 19)} +0000`
  const hostile = [
    'default',
    'include',
    'hostnames',
    'volatile',
    '~.*',
    '~*127',
    'x"; } evil',
    '$remote_addr',
    "quo'te",
    '{',
    'Same',
    'SAME',
    '#',
    'k'.repeat(500),
  ]
  for (const user of hostile) appendFileSync(edge.log, `192.0.2.1 - ${user} [${time}] "GET / HTTP/1.1" 200 1 "-" "-"\n`.repeat(15))
  // The address of the attacker comes last: where it takes effect, nginx has taken all of the map.
  appendFileSync(edge.log, `192.0.2.1 - 127.0.0.7 [${time}] "GET / HTTP/1.1" 200 1 "-" "-"\n`.repeat(15))
  await asksUntil(edge, '127.0.0.7', 429)
  assert.equal(await edge.statusFor('127.0.0.8'), 200)
  assert.ok(readFileSync(edge.map, 'utf8').includes('"\\\\~.*" block;'))
  assert.ok(!/\[(emerg|warn)\]/.test(readFileSync(join(edge.folder, 'error.log'), 'utf8')))
})
